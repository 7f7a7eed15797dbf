//! Worktrees on the disk, and git, whose jobs end in any order and go on when the daemon is killed.

use super::disk::Disk;
use super::world::World;
use crate::event::Event;
use crate::roster::Ground;
use crate::worktrees::{Making, TreeDone, TreeJob};
use protocol::control::{DeleteTeamRequest, RemovedWorktrees, TrashedWorktree};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use worktree::{WorktreeOptions, WorktreeProposal, WorktreeRecord};

/// A directory beside the repository.
#[derive(Debug)]
pub(super) struct Wood {
    pub(super) tree: WorktreeRecord,
    /// Git has filled it.
    pub(super) filled: bool,
    /// There is work in it that is nowhere else.
    pub(super) unsaved: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Woods {
    pub(super) there: BTreeMap<PathBuf, Wood>,
    /// What was in those that were discarded.
    pub(super) trash: BTreeSet<u64>,
    inodes: u64,
}

fn fault(message: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::Refused, message)
}

impl Woods {
    pub(super) fn is_there(&self, tree: &WorktreeRecord) -> bool {
        self.there.get(&tree.path).is_some_and(|wood| wood.filled && wood.tree == *tree)
    }

    fn plan(&mut self, wanted: &WorktreeOptions) -> WorktreeProposal {
        let (within, cwd) = (PathBuf::from("sub"), wanted.cwd.clone());
        if let Some(tree) = wanted.previous.iter().find(|tree| self.is_there(tree)) {
            return WorktreeProposal { record: tree.clone(), exists: true, subdirectory: within, cwd };
        }
        self.inodes += 1;
        let path = (1..).map(|n| PathBuf::from(format!("/repo.worktrees/{}-{n}", wanted.name)));
        let path = path.into_iter().find(|path| !self.there.contains_key(path)).expect("there is a next");
        let tree = WorktreeRecord {
            path: path.clone(),
            branch: wanted.default_branch.clone(),
            branch_created: true,
            common_git_dir: "/repo/.git".into(),
            base_commit: "0".into(),
            inode: self.inodes,
        };
        self.there.insert(path, Wood { tree: tree.clone(), filled: false, unsaved: false });
        WorktreeProposal { record: tree, exists: false, subdirectory: within, cwd }
    }

    fn add(&mut self, tree: &WorktreeRecord) -> Result<PathBuf, ErrorReport> {
        let wood = self.there.get_mut(&tree.path).filter(|wood| wood.tree == *tree);
        let wood = wood.ok_or_else(|| fault("somebody has removed it"))?;
        wood.filled = true;
        Ok(tree.path.join("sub"))
    }

    /// Those that would be lost.
    fn kept(&self, order: &DeleteTeamRequest, grounds: &[Ground]) -> bool {
        let lost = |ground: &&Ground| {
            let wood = self.there.get(&ground.tree.path).filter(|wood| wood.tree == ground.tree);
            wood.is_some_and(|wood| wood.unsaved) && !order.discard_worktrees.contains(&ground.tree.path)
        };
        grounds.iter().any(|ground| lost(&ground))
    }

    /// All are looked at before the first is touched; it may fail after `so_many`.
    fn sweep(
        &mut self,
        order: &DeleteTeamRequest,
        grounds: &[Ground],
        so_many: usize,
        swept: &mut RemovedWorktrees,
    ) -> Result<(), ErrorReport> {
        if self.kept(order, grounds) {
            return Err(fault("there is unsaved work"));
        }
        for (n, ground) in grounds.iter().enumerate() {
            let path = ground.tree.path.clone();
            if n >= so_many {
                return Err(fault("git does not answer"));
            }
            match self.there.get(&path) {
                None => swept.missing.push(path),
                Some(wood) if wood.tree != ground.tree => swept.kept.push("it is another".to_owned()),
                Some(wood) => {
                    match wood.unsaved {
                        true => {
                            assert!(
                                order.discard_worktrees.contains(&path),
                                "unsaved work in {path:?} goes, and nobody said so"
                            );
                            self.trash.insert(wood.tree.inode);
                            swept.trashed.push(TrashedWorktree {
                                path: path.clone(),
                                trash_dir: "/state/trash/1".into(),
                            });
                        }
                        false => swept.removed.push(path.clone()),
                    }
                    self.there.remove(&path);
                }
            }
        }
        Ok(())
    }
}

impl Disk {
    fn tree_job(&mut self, rng: &mut fastrand::Rng, job: TreeJob) -> TreeDone {
        let fails = rng.u8(..) < 30;
        match job {
            TreeJob::Plan { client, team, name, wanted, surroundings } => {
                let making = |plan| {
                    let (team, name) = (team.clone(), name.clone());
                    Box::new(Making { client, team, name, plan, surroundings })
                };
                let result =
                    if fails { Err(fault("no repository")) } else { Ok(making(self.woods.plan(&wanted))) };
                TreeDone::Planned { client, team, name, result }
            }
            TreeJob::Add(making) => {
                self.is_recorded(&making.team, &making.name, &making.plan.record);
                let result =
                    if fails { Err(fault("a filter fails")) } else { self.woods.add(&making.plan.record) };
                if fails && !making.plan.exists && rng.bool() {
                    self.woods.there.remove(&making.plan.record.path);
                }
                let is_there = self.woods.there.contains_key(&making.plan.record.path);
                TreeDone::Added { making, result, is_there }
            }
            TreeJob::Look { client, order, grounds, .. } => {
                let result =
                    if self.woods.kept(&order, &grounds) { Err(fault("unsaved work")) } else { Ok(()) };
                TreeDone::Looked { client, order, result }
            }
            TreeJob::Sweep { client, order, grounds, .. } => {
                let (so_many, mut swept) =
                    (if fails { rng.usize(0..2) } else { usize::MAX }, RemovedWorktrees::default());
                let result = self.woods.sweep(&order, &grounds, so_many, &mut swept);
                TreeDone::Swept { client, order, swept, result }
            }
        }
    }

    /// Nothing of ours is filled that the roster on the disk does not name.
    fn is_recorded(&self, team: &TeamName, name: &AgentName, tree: &WorktreeRecord) {
        let grounds = self.roster.worktrees.get(team).into_iter().flatten();
        let mut hers = grounds.filter(|ground| ground.member == *name);
        assert!(
            hers.any(|ground| ground.tree == *tree),
            "git fills {}, and no roster names it",
            tree.path.display()
        );
    }
}

impl World {
    /// One of git's jobs ends, whichever.
    pub(super) fn trees(&mut self) {
        let Some(daemon) = &mut self.daemon else { return };
        let at = self.rng.usize(0..daemon.trees.len());
        let Some(job) = daemon.trees.remove(at) else { return };
        let line = if self.is_quiet() { String::new() } else { format!("git: {job:?}") };
        let done = self.disk.tree_job(&mut self.rng, job);
        self.note(|| line);
        self.tell(Event::Worktree(done));
    }

    /// The daemon was killed: git is another process, and what looks or removes is a thread of the dead one's.
    pub(super) fn git_goes_on(&mut self, jobs: VecDeque<TreeJob>) {
        for job in jobs {
            if self.rng.bool() {
                self.disk.tree_job(&mut self.rng, job);
            }
        }
    }

    /// Somebody works in one, commits what is in it, or removes it by hand.
    pub(super) fn a_tree_changes(&mut self) {
        let paths: Vec<PathBuf> = self.disk.woods.there.keys().cloned().collect();
        let Some(path) = self.rng.choice(paths) else { return };
        self.note(|| format!("somebody is at work in {}", path.display()));
        match self.rng.u8(0..8) {
            0 => drop(self.disk.woods.there.remove(&path)),
            1..=4 => self.works_in(&path, true),
            _ => self.works_in(&path, false),
        }
    }

    fn works_in(&mut self, path: &Path, unsaved: bool) {
        if let Some(wood) = self.disk.woods.there.get_mut(path).filter(|wood| wood.filled) {
            wood.unsaved = unsaved;
        }
    }
}
