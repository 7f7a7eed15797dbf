//! Worktrees, each job on a thread of its own: git may take seconds, with the user's hooks and filters even minutes,
//! and neither the loop nor the files wait for it.
//!
//! Nothing of ours is filled that the roster on disk does not name, and nothing is removed that it does not name.

use crate::event::{ConnId, Event};
use crate::roster::{Ground, Record};
use protocol::control::{Delete, Swept, Trashed};
use protocol::fault::{Fault, Kind};
use protocol::name::{AgentName, TeamName};
use protocol::time::iso8601;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc::UnboundedSender;
use worktree::{Error, Found, Plan, Reason, Removed, Saved, Surroundings, Tree, Wanted, flat, plan, quoted};

/// A worktree on its way.
#[derive(Debug)]
pub(crate) struct Making {
    pub(crate) client: ConnId,
    pub(crate) team: TeamName,
    pub(crate) name: AgentName,
    pub(crate) plan: Plan,
    pub(crate) surroundings: Surroundings,
}

/// Something to do with git.
#[derive(Debug)]
pub(crate) enum TreeJob {
    /// Decide what it will be, and make its empty directory.
    Plan { client: ConnId, team: TeamName, name: AgentName, wanted: Wanted, surroundings: Surroundings },
    /// Fill it; the roster on disk names it.
    Add(Box<Making>),
    /// Remove all of a team, or none: those with unsaved work only if they are named, and saved below `trash`.
    Sweep { client: ConnId, order: Delete, grounds: Vec<Ground>, trash: PathBuf },
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum TreeDone {
    Planned {
        client: ConnId,
        team: TeamName,
        name: AgentName,
        result: Result<Box<Making>, Fault>,
    },
    /// The directory in it; `is_there`: something is at its path, made or not.
    Added {
        making: Box<Making>,
        result: Result<PathBuf, Fault>,
        is_there: bool,
    },
    /// `done_with`: these are no worktrees of ours any more.
    Swept {
        client: ConnId,
        order: Delete,
        done_with: Vec<PathBuf>,
        result: Result<Swept, Fault>,
    },
}

/// Begins a job; its end is an event.
pub(crate) fn begin(job: TreeJob, events: UnboundedSender<Event>) {
    let run = move || {
        // The loop has ended: nobody is left to be told.
        events.send(Event::Worktree(done(job))).ok();
    };
    let thread = std::thread::Builder::new().name("worktree".into()).spawn(run);
    drop(thread.expect("a thread can be started where the daemon itself could"));
}

fn done(job: TreeJob) -> TreeDone {
    match job {
        TreeJob::Plan { client, team, name, wanted, surroundings } => {
            let result = match plan(&wanted, &surroundings) {
                Ok(plan) => {
                    let (team, name) = (team.clone(), name.clone());
                    Ok(Box::new(Making { client, team, name, plan, surroundings }))
                }
                Err(error) => Err(fault(error)),
            };
            TreeDone::Planned { client, team, name, result }
        }
        TreeJob::Add(making) => {
            let result = making.plan.add(&making.surroundings).map_err(fault);
            let is_there = !matches!(making.plan.tree.look(), Ok(Found::Missing));
            TreeDone::Added { making, result, is_there }
        }
        TreeJob::Sweep { client, order, grounds, trash } => {
            let mut done_with = Vec::new();
            let result = sweep(&order, &grounds, &trash, &mut done_with);
            TreeDone::Swept { client, order, done_with, result }
        }
    }
}

/// Before its agent starts, in each of its lives: it is what we made. No git, so that it takes no time.
pub(crate) fn check(record: &Record) -> Result<(), Fault> {
    let Some(tree) = &record.worktree else { return Ok(()) };
    match tree.look() {
        Ok(Found::Ours(_)) => Ok(()),
        Ok(_) => {
            let path = tree.path.display();
            let message = format!("cannot start {} in its worktree {path}: it is gone", record.name);
            Err(Fault::new(Kind::Refused, message).hinted("spawn it again with --worktree for another one"))
        }
        Err(error) => Err(fault(error)),
    }
}

/// A worktree and what would be lost with it.
struct Seen<'a> {
    ground: &'a Ground,
    reasons: Vec<Reason>,
}

/// All are looked at before the first is touched.
fn sweep(
    order: &Delete,
    grounds: &[Ground],
    trash: &Path,
    done_with: &mut Vec<PathBuf>,
) -> Result<Swept, Fault> {
    let (surroundings, mut swept) = (Surroundings::own(), Swept::default());
    let mut seen = Vec::new();
    for ground in grounds {
        match reasons(ground, &surroundings) {
            Ok(reasons) => seen.push(Seen { ground, reasons }),
            Err(stranger) => {
                swept.left.push(stranger.to_string());
                done_with.push(ground.tree.path.clone());
            }
        }
    }
    let (clean, unsaved): (Vec<&Seen>, Vec<&Seen>) = seen.iter().partition(|seen| seen.reasons.is_empty());
    let (named, kept): (Vec<&Seen>, Vec<&Seen>) =
        unsaved.into_iter().partition(|it| order.discard.contains(&it.ground.tree.path));
    if !kept.is_empty() {
        return Err(refused(order, &kept));
    }
    for (tree, saved) in saved(order, &named, trash, &surroundings)? {
        tree.discard(&saved, &surroundings).map_err(fault)?;
        done_with.push(tree.path.clone());
        swept.trashed.push(Trashed { path: tree.path.clone(), trash: saved.directory });
    }
    for it in clean {
        let tree = &it.ground.tree;
        if let Removed::Not(reasons) = tree.remove(&surroundings).map_err(fault)? {
            return Err(refused(order, &[&Seen { ground: it.ground, reasons }]));
        }
        done_with.push(tree.path.clone());
        swept.removed.push(tree.path.clone());
    }
    Ok(swept)
}

/// All of them are in the trash before the first is discarded.
fn saved<'a>(
    order: &Delete,
    named: &[&Seen<'a>],
    trash: &Path,
    surroundings: &Surroundings,
) -> Result<Vec<(&'a Tree, Saved)>, Fault> {
    let save = |it: &&Seen<'a>| {
        let (tree, directory) = (&it.ground.tree, place(trash, &order.team, &it.ground.member));
        tree.save(&directory, surroundings).map(|saved| (tree, saved)).map_err(fault)
    };
    named.iter().map(save).collect()
}

/// Not knowing is a reason; an error is that something else is there, which is not ours to touch.
fn reasons(ground: &Ground, surroundings: &Surroundings) -> Result<Vec<Reason>, Error> {
    let unknown = |error: Error| vec![Reason::Unknown(error.to_string())];
    match ground.tree.look() {
        Err(stranger @ Error::NotOurs { .. }) => Err(stranger),
        Err(error) => Ok(unknown(error)),
        Ok(Found::Missing | Found::Empty) => Ok(Vec::new()),
        Ok(Found::Ours(_)) => Ok(ground.tree.unsaved(surroundings).unwrap_or_else(unknown)),
    }
}

/// Each path with its reasons, and the very command.
fn refused(order: &Delete, kept: &[&Seen]) -> Fault {
    let told = kept.iter().map(|seen| {
        let reasons: Vec<String> = seen.reasons.iter().map(ToString::to_string).collect();
        let path = flat(&seen.ground.tree.path.display().to_string());
        format!("{path} ({}): {}", seen.ground.member, reasons.join("; "))
    });
    let told: Vec<String> = told.collect();
    let paths = order.discard.iter().chain(kept.iter().map(|seen| &seen.ground.tree.path));
    let words: Vec<String> = paths.map(|path| format!("--discard {}", quoted(path))).collect();
    let message = format!("cannot delete {}: there is unsaved work\n{}", order.team, told.join("\n"));
    let command = format!("teamctl delete {} {}", order.team, words.join(" "));
    Fault::new(Kind::Refused, message)
        .hinted(format!("commit and push it, or merge it; to put it into the trash instead: {command}"))
}

/// A directory that is not there yet.
fn place(trash: &Path, team: &TeamName, member: &AgentName) -> PathBuf {
    let time = iso8601(store::now()).replace([':', '-'], "");
    let names = (1..).map(|n| match n {
        1 => format!("{team}-{member}-{time}"),
        n => format!("{team}-{member}-{time}-{n}"),
    });
    let mut paths = names.map(|name| trash.join(name));
    paths.find(|path| !path.exists()).expect("there is always a next number")
}

fn fault(error: Error) -> Fault {
    let message = error.to_string();
    let fault = |kind| Fault::new(kind, &message);
    match &error {
        Error::NoGit => fault(Kind::Missing).hinted("install git, or do without --worktree"),
        Error::NoRepository(_) => {
            fault(Kind::Refused).hinted("name a directory of one with --cwd, or do without --worktree")
        }
        Error::NoCommit(_) => fault(Kind::Refused).hinted("make a first commit"),
        Error::BadBranch(_) => fault(Kind::Usage).hinted("git check-ref-format --branch NAME tells"),
        Error::BranchTaken { .. } => fault(Kind::Exists).hinted("name another branch, or none"),
        Error::NotOurs { .. } | Error::BadPath(_) => fault(Kind::Refused),
        Error::Changed(_) => fault(Kind::Refused).hinted("see who works in it, and try again"),
        Error::Git { .. } | Error::Io { .. } => fault(Kind::Io),
        Error::Timeout { .. } | Error::Locked { .. } => fault(Kind::Timeout),
    }
}
