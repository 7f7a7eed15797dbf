//! A tmux server that can die, and one that comes after it and gives the same numbers to strangers.

use crate::event::Event;
use crate::panes::{DialogPane, PaneDone, PaneJob, Seen, Sight};
use crate::roster::SpawnId;
use crate::step::Opened;
use protocol::control::{CapturePaneReply, Reply};
use protocol::error::{ErrorKind, ErrorReport};
use std::collections::{BTreeMap, BTreeSet};
use tmux::{PaneId, PaneTag};

/// Whose a pane is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whose {
    /// With the pid of the join in it.
    Ours(SpawnId, u32),
    Stranger,
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Tmux {
    /// The server's pid; a new one with each server.
    pub(super) server: u32,
    pub(super) panes: BTreeMap<u32, Whose>,
    /// Those out of sight.
    pub(super) hidden: BTreeSet<u32>,
    next: u32,
    /// It answers nothing.
    pub(super) hangs: bool,
}

/// What of a job concerns the processes in the panes.
#[derive(Debug)]
pub(super) enum Outcome {
    Nothing,
    /// A join is to be started, which goes by this pid, in this pane.
    Started {
        spawn: SpawnId,
        pid: u32,
        pane: u32,
    },
    /// The pane of this join is closed.
    Closed(u32),
}

fn silent() -> ErrorReport {
    ErrorReport::new(ErrorKind::Timeout, "cannot ask tmux: it does not answer")
}

fn not_ours() -> ErrorReport {
    ErrorReport::new(ErrorKind::NotFound, "cannot find its pane")
}

impl Tmux {
    pub(super) fn new() -> Tmux {
        Tmux { server: 100, panes: BTreeMap::new(), hidden: BTreeSet::new(), next: 0, hangs: false }
    }

    pub(super) fn epoch(&self) -> String {
        format!("{}:1:/tmp/tmux", self.server)
    }

    /// The server dies, and another takes its place, with panes of strangers under the first numbers.
    pub(super) fn restart(&mut self, strangers: u32) {
        self.server += 1;
        self.panes = (0..strangers).map(|pane| (pane, Whose::Stranger)).collect();
        self.hidden.clear();
        self.next = strangers;
    }

    /// A person opens a pane.
    pub(super) fn stranger(&mut self) {
        self.panes.insert(self.next, Whose::Stranger);
        self.next += 1;
    }

    /// The guard of the real one: nothing is done to a pane that has another owner.
    fn guarded(&self, pane: u32, owner: &PaneTag) -> bool {
        matches!(self.panes.get(&pane), Some(Whose::Ours(spawn, _)) if spawn.owner() == *owner)
    }

    /// What the panes thread does, and tells; `pid` is for a join that it starts.
    pub(super) fn job(&mut self, job: PaneJob, pid: u32) -> (Option<Event>, Outcome) {
        let mut outcome = Outcome::Nothing;
        let hangs = self.hangs;
        let answer = || if hangs { Err(silent()) } else { Ok(()) };
        let done = match job {
            PaneJob::Open(opening) => match (opening.spawn, answer()) {
                (spawn, Err(fault)) => PaneDone::Opened { spawn, result: Err(fault) },
                (spawn, Ok(())) => {
                    let pane = self.next;
                    self.next += 1;
                    self.panes.insert(pane, Whose::Ours(spawn.clone(), pid));
                    outcome = Outcome::Started { spawn: spawn.clone(), pid, pane };
                    PaneDone::Opened { spawn, result: Ok(self.opened(pane, pid)) }
                }
            },
            PaneJob::Look { spawn, pane } => {
                PaneDone::Looked { spawn, seen: self.look(&pane.epoch, &pane.pane) }
            }
            PaneJob::Close { spawn, pane, owner, .. } => {
                assert_eq!(owner, spawn.owner(), "a pane is closed in the name of the one it was made for");
                let left = answer().err();
                let pane = number(&pane.to_string());
                if left.is_none()
                    && self.guarded(pane, &owner)
                    && let Some(Whose::Ours(_, join)) = self.panes.remove(&pane)
                {
                    outcome = Outcome::Closed(join);
                }
                PaneDone::Closed { spawn, left }
            }
            PaneJob::Move { client, spawn, pane, owner, sight, .. } => {
                let result = answer().and_then(|()| self.put(number(&pane.to_string()), &owner, sight));
                PaneDone::Moved { client, spawn, sight, result }
            }
            PaneJob::LayOut { client, team, layout, .. } => {
                PaneDone::LaidOut { client, team, layout, result: answer().map(|()| 1) }
            }
            PaneJob::Keys { client, pane, owner, .. } => {
                let ours = self.guarded(number(&pane.to_string()), &owner);
                let typed = || if ours { Ok(Reply::Ack) } else { Err(not_ours()) };
                PaneDone::Keyed { client, result: answer().and_then(|()| typed()) }
            }
            PaneJob::Capture { client, .. } => PaneDone::Captured {
                client,
                result: answer().map(|()| CapturePaneReply { screen: "$".to_owned() }),
            },
            PaneJob::Dialogs { panes } => {
                let there =
                    |it: &DialogPane| !self.hangs && self.panes.contains_key(&number(&it.pane.to_string()));
                let open = panes.into_iter().filter(there).map(|it| (it.spawn, true)).collect();
                PaneDone::Dialogs { open }
            }
            PaneJob::Hidden { panes } => {
                let seen = |(_, pane, owner): &(SpawnId, PaneId, PaneTag)| {
                    let pane = number(&pane.to_string());
                    !self.hangs && self.guarded(pane, owner) && !self.hidden.contains(&pane)
                };
                PaneDone::InSight {
                    spawns: panes.into_iter().filter(seen).map(|(spawn, ..)| spawn).collect(),
                }
            }
            PaneJob::Announce { text, .. } => PaneDone::Announced { unseen: Some(text) },
            PaneJob::Label { .. } => return (None, outcome),
        };
        (Some(Event::Paned(done)), outcome)
    }

    fn put(&mut self, pane: u32, owner: &PaneTag, sight: Sight) -> Result<(), ErrorReport> {
        if !self.guarded(pane, owner) {
            return Err(not_ours());
        }
        match sight {
            Sight::Hidden => self.hidden.insert(pane),
            Sight::Shown => self.hidden.remove(&pane),
        };
        Ok(())
    }

    fn opened(&self, pane: u32, pid: u32) -> Opened {
        Opened {
            pane: format!("%{pane}").parse().expect("it is one"),
            window: "@0".parse().expect("it is one"),
            epoch: self.epoch().parse().expect("it is one"),
            pid,
        }
    }

    fn look(&self, epoch: &str, pane: &str) -> Seen {
        match () {
            () if self.hangs => Seen::Unknown,
            () if epoch != self.epoch() => Seen::ServerGone,
            () if self.panes.contains_key(&number(pane)) => Seen::Present,
            () => Seen::Absent,
        }
    }
}

fn number(pane: &str) -> u32 {
    pane.trim_start_matches('%').parse().expect("a pane's number")
}
