//! One end: a root, its mirror, and what the link has of its items.

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
}

impl End {
    pub(crate) fn new(dir: PathBuf, side: MirrorSide) -> End {
        let root = Root::open(&dir.join("root"), &dir.join("state"), Durability::Process).unwrap();
        let mirror = open(&dir, &side, &root, (&[], 0));
        let (volatile, spool) = (VecDeque::new(), VecDeque::new());
        let (stored, notices) = (Vec::new(), Vec::new());
        End { root, dir, side, mirror, volatile, spool, stored, last_number: 0, notices }
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

    pub(crate) fn add_team(&mut self) {
        let output = self.mirror.add_team(&team_name()).unwrap();
        self.add_output(output);
    }

    pub(crate) fn changed(&mut self, change: &FileChange) {
        let output = self.mirror.handle_change(&team_name(), change).unwrap();
        self.add_output(output);
    }

    pub(crate) fn compare_all(&mut self) {
        let output = self.mirror.compare_all().unwrap();
        self.add_output(output);
    }

    pub(crate) fn apply(&mut self, item: &ItemPayload) {
        println!("{:?} applies {}", self.side, serde_json::to_string(item).unwrap());
        let output = self.mirror.apply(item).unwrap();
        self.add_output(output);
    }

    /// The link keeps the items from now on.
    pub(crate) fn accept(&mut self, count: usize) {
        self.keep(count);
        self.mirror.note_accepted(self.last_number).unwrap();
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
        self.mirror = open(&self.dir, &self.side, &self.root, (&kept, self.last_number));
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
