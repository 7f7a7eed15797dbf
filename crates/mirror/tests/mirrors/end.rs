//! One end: a root, its mirror, and what the link has of its items.

use crate::faults::{Fault, StepEnd};
use mirror::{FileChange, Mirror, MirrorNotice, MirrorOutput, MirrorSide};
use protocol::annex_link::{ItemPayload, LinkItem};
use protocol::error_kind_and_report::ErrorReport;
use protocol::hosts_file_entry::HostName;
use protocol::inbox_file::Message;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Durability, Root, StateDir, Team};

pub(crate) fn team_name() -> TeamName {
    TeamName::parse("survey").unwrap()
}

pub(crate) fn name(text: &str) -> MemberName {
    MemberName::parse(text).unwrap()
}

pub(crate) struct End {
    pub(crate) root: Root,
    dir: PathBuf,
    /// Identity of the link.
    link: &'static str,
    side: MirrorSide,
    pub(crate) mirror: Mirror,
    /// Items that a crash of this end loses.
    volatile: VecDeque<ItemPayload>,
    /// Items that the link keeps, until the other end has stored them.
    pub(crate) spool: VecDeque<Arc<LinkItem>>,
    /// Items that the other end has stored. The link forgets them now and then.
    pub(crate) stored: Vec<Arc<LinkItem>>,
    last_number: u64,
    pub(crate) notices: Vec<MirrorNotice>,
    /// The fault in the next step of the mirror.
    pub(crate) next_fault: Option<Fault>,
    /// Whether the process runs. Without it, programs write to the files and nothing is compared.
    pub(crate) is_running: bool,
}

impl End {
    pub(crate) fn new(dir: PathBuf, side: MirrorSide) -> End {
        End::with_link(dir, side, "home.devbox")
    }

    /// An end of this link. A host can have ends of several links.
    pub(crate) fn with_link(dir: PathBuf, side: MirrorSide, link: &'static str) -> End {
        let root = Root::open(&dir.join("root"), &dir.join("state"), Durability::Process).unwrap();
        let mirror = open((&dir, link), &side, &root, (&[], 0)).unwrap();
        let (volatile, spool) = (VecDeque::new(), VecDeque::new());
        let (stored, notices) = (Vec::new(), Vec::new());
        let (last_number, next_fault, is_running) = (0, None, true);
        End {
            root,
            dir,
            link,
            side,
            mirror,
            volatile,
            spool,
            stored,
            last_number,
            notices,
            next_fault,
            is_running,
        }
    }

    /// The other end of another link, at the same host. This end is stopped.
    pub(crate) fn with_other_link(self, side: MirrorSide, link: &'static str) -> End {
        End::with_link(self.dir, side, link)
    }

    pub(crate) fn home(dir: PathBuf) -> End {
        End::new(dir, MirrorSide::Home { annex: HostName::parse("devbox").unwrap() })
    }

    pub(crate) fn team(&self) -> Team {
        self.root.team(&team_name()).unwrap()
    }

    pub(crate) fn add_output(&mut self, output: MirrorOutput) {
        for item in &output.items {
            println!("{:?} sends {}", self.side, serde_json::to_string(item).unwrap());
        }
        self.volatile.extend(output.items);
        self.notices.extend(output.notices);
    }

    /// Runs a step of the mirror. `None` if the step failed, or if the process was killed in it or
    /// does not run. A killed process is started again.
    pub(crate) fn run<T>(&mut self, step: impl FnOnce(&mut Mirror) -> Result<T, ErrorReport>) -> Option<T> {
        let fault = self.next_fault.take();
        if !self.is_running {
            return None;
        }
        let Some(fault) = fault else { return Some(step(&mut self.mirror).unwrap()) };
        match fault.run(|| step(&mut self.mirror)) {
            StepEnd::Done(value) => Some(value),
            StepEnd::Failed => None,
            StepEnd::Killed => {
                self.restart();
                None
            }
        }
    }

    pub(crate) fn run_and_send(
        &mut self,
        step: impl FnOnce(&mut Mirror) -> Result<MirrorOutput, ErrorReport>,
    ) -> Option<()> {
        let output = self.run(step)?;
        self.add_output(output);
        Some(())
    }

    pub(crate) fn add_team(&mut self) {
        self.run_and_send(|mirror| mirror.add_team(&team_name()));
    }

    pub(crate) fn changed(&mut self, change: &FileChange) {
        self.run_and_send(|mirror| mirror.handle_change(&team_name(), change));
    }

    pub(crate) fn compare_all(&mut self) {
        self.run_and_send(Mirror::compare_all);
    }

    /// Applies an item. `None` if that failed, or if the process was killed before it recorded
    /// that.
    pub(crate) fn apply(&mut self, item: &ItemPayload) -> Option<()> {
        self.apply_group(&[item])
    }

    /// Applies one item, or messages to one inbox. `None` as for [`End::apply`].
    pub(crate) fn apply_group(&mut self, items: &[&ItemPayload]) -> Option<()> {
        println!("{:?} applies {}", self.side, serde_json::to_string(items).unwrap());
        self.run_and_send(|mirror| mirror.apply_group(items))
    }

    /// The link keeps the items from now on.
    pub(crate) fn accept(&mut self, count: usize) {
        self.keep(count);
        let last_number = self.last_number;
        self.run(|mirror| mirror.note_accepted(last_number));
    }

    /// The process is killed after the link kept the items, and before the mirror knew that.
    pub(crate) fn restart_while_accepting(&mut self, count: usize) {
        self.keep(count);
        self.restart();
    }

    fn keep(&mut self, count: usize) {
        let count = count.min(self.volatile.len());
        for payload in self.volatile.drain(..count) {
            self.last_number += 1;
            self.spool.push_back(Arc::new(LinkItem { number: self.last_number, spawn: None, payload }));
        }
    }

    pub(crate) fn accept_all(&mut self) {
        self.accept(usize::MAX);
    }

    /// Kills the process.
    pub(crate) fn stop(&mut self) {
        println!("{:?} stops", self.side);
        self.volatile.clear();
        self.is_running = false;
    }

    /// Kills the process if it runs, and starts it again.
    pub(crate) fn restart(&mut self) {
        self.stop();
        self.root = Root::open(&self.dir.join("root"), &self.dir.join("state"), Durability::Process).unwrap();
        let kept: Vec<Arc<LinkItem>> = self.stored.iter().chain(&self.spool).cloned().collect();
        let open = || open((&self.dir, self.link), &self.side, &self.root, (&kept, self.last_number));
        let opened = match self.next_fault.take().map(|fault| fault.run(open)) {
            Some(StepEnd::Done(mirror)) => mirror,
            Some(StepEnd::Failed | StepEnd::Killed) | None => open().unwrap(),
        };
        self.mirror = opened;
        self.is_running = true;
        self.compare_all();
    }

    pub(crate) fn send(&mut self, from: &str, to: &str, text: &str, at: u64) {
        let message = Message::new(&name(from), text.to_owned(), at);
        self.team().inbox(&name(to)).append(&message).unwrap();
    }

    pub(crate) fn texts(&self, owner: &str) -> Vec<String> {
        let entries = self.team().inbox(&name(owner)).read().unwrap();
        entries.into_iter().map(|entry| entry.message.unwrap().text).collect()
    }

    pub(crate) fn task(&self, id: u32) -> protocol::task::Task {
        self.team().tasks().get(&task_id(id)).unwrap()
    }
}

pub(crate) fn task_id(id: u32) -> TaskId {
    TaskId::from_number(id).unwrap()
}

fn open(
    (dir, link): (&Path, &str),
    side: &MirrorSide,
    root: &Root,
    kept: (&[Arc<LinkItem>], u64),
) -> Result<Mirror, ErrorReport> {
    let state = StateDir::open(&dir.join(link))?;
    Mirror::open((side.clone(), link.to_owned()), root.clone(), state, kept)
}
