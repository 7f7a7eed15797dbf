//! One end: a root, its mirror, and what the link has of its items.

use crate::kills::Kill;
use mirror::{FileChange, Mirror, MirrorNotice, MirrorOutput, MirrorSide};
use protocol::annex_link::{ItemPayload, LinkItem};
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
    /// The moment in the next step of the mirror at which the process is killed.
    pub(crate) next_kill: Option<Kill>,
}

impl End {
    pub(crate) fn new(dir: PathBuf, side: MirrorSide) -> End {
        let root = Root::open(&dir.join("root"), &dir.join("state"), Durability::Process).unwrap();
        let mirror = open(&dir, &side, &root, (&[], 0));
        let (volatile, spool) = (VecDeque::new(), VecDeque::new());
        let (stored, notices) = (Vec::new(), Vec::new());
        let (last_number, next_kill) = (0, None);
        End { root, dir, side, mirror, volatile, spool, stored, last_number, notices, next_kill }
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

    /// Runs a step of the mirror. `None` if the process was killed in it. Then it runs again.
    fn run<T>(&mut self, step: impl FnOnce(&mut Mirror) -> T) -> Option<T> {
        let result = match self.next_kill.take() {
            None => return Some(step(&mut self.mirror)),
            Some(kill) => kill.run(|| step(&mut self.mirror)),
        };
        if result.is_none() {
            self.crash();
        }
        result
    }

    fn run_and_send(&mut self, step: impl FnOnce(&mut Mirror) -> MirrorOutput) -> Option<()> {
        let output = self.run(step)?;
        self.add_output(output);
        Some(())
    }

    pub(crate) fn add_team(&mut self) {
        self.run_and_send(|mirror| mirror.add_team(&team_name()).unwrap());
    }

    pub(crate) fn changed(&mut self, change: &FileChange) {
        self.run_and_send(|mirror| mirror.handle_change(&team_name(), change).unwrap());
    }

    pub(crate) fn compare_all(&mut self) {
        self.run_and_send(|mirror| mirror.compare_all().unwrap());
    }

    /// Applies an item. `None` if the process was killed before it recorded that.
    pub(crate) fn apply(&mut self, item: &ItemPayload) -> Option<()> {
        println!("{:?} applies {}", self.side, serde_json::to_string(item).unwrap());
        self.run_and_send(|mirror| mirror.apply(item).unwrap())
    }

    /// The link keeps the items from now on.
    pub(crate) fn accept(&mut self, count: usize) {
        self.keep(count);
        let last_number = self.last_number;
        self.run(|mirror| mirror.note_accepted(last_number).unwrap());
    }

    /// The process is killed after the link kept the items, and before the mirror knew that.
    pub(crate) fn crash_while_accepting(&mut self, count: usize) {
        self.keep(count);
        self.crash();
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

    /// Kills the process and starts it again.
    pub(crate) fn crash(&mut self) {
        println!("{:?} crashes", self.side);
        self.volatile.clear();
        self.root = Root::open(&self.dir.join("root"), &self.dir.join("state"), Durability::Process).unwrap();
        let kept: Vec<Arc<LinkItem>> = self.stored.iter().chain(&self.spool).cloned().collect();
        let open = || open(&self.dir, &self.side, &self.root, (&kept, self.last_number));
        let killed = self.next_kill.take().map(|kill| kill.run(open));
        self.mirror = killed.flatten().unwrap_or_else(open);
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

fn open(dir: &Path, side: &MirrorSide, root: &Root, kept: (&[Arc<LinkItem>], u64)) -> Mirror {
    let state = StateDir::open(&dir.join("link")).unwrap();
    Mirror::open((side.clone(), "home.devbox".to_owned()), root.clone(), state, kept).unwrap()
}
