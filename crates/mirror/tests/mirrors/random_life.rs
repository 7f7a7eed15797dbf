//! Random lives of a mirrored team, with cuts and faults at every step. At the end both ends have the
//! same tasks and members, each message once and in the order of its sender, and no task was begun twice.

use crate::end::{End, name, task_id, team_name};
use crate::faults::{FAILPOINTS, Fault, run_again_with_faults};
use crate::pair::{Pair, teammate};
use mirror::{FileChange, TaskCheck};
use protocol::task::TaskStatus;
use protocol::team_config::Member;
use std::collections::{BTreeMap, BTreeSet};
use store::{NewTask, TaskUpdate, message_id};

/// How many lives are tried. `MIRROR_SEEDS=N` tries another number, and `FIRST=S` begins with this
/// seed.
const SEEDS: u64 = 40;
const STEPS: u32 = 130;

/// The members that the annex runs, and those of the home.
const AT_ANNEX: [&str; 2] = ["ann", "amy"];
const AT_HOME: [&str; 2] = ["bob", "team-lead"];

struct Life {
    pair: Pair,
    random: fastrand::Rng,
    clock: u64,
    /// The messages that were sent, by sender and recipient.
    sent: BTreeMap<(String, String), Vec<String>>,
    /// The subjects of the tasks that were created.
    created: BTreeSet<String>,
    /// Who has begun each task, by its id and subject.
    begun: BTreeMap<(u32, String), Vec<String>>,
    completed: BTreeSet<u32>,
    /// Claims at the annex that wait for the home.
    unconfirmed: Vec<(u32, &'static str)>,
    /// The last text of each end in a field that only this end changes, by task.
    edits: BTreeMap<(u32, Side), String>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Home,
    Annex,
}

impl Life {
    fn new(seed: u64) -> Life {
        let mut pair = Pair::new();
        AT_ANNEX.iter().for_each(|member| pair.join(member));
        let random = fastrand::Rng::with_seed(seed);
        let (sent, begun) = (BTreeMap::new(), BTreeMap::new());
        let (unconfirmed, edits) = (Vec::new(), BTreeMap::new());
        let (created, completed) = (BTreeSet::new(), BTreeSet::new());
        Life { pair, random, clock: 1000, sent, created, begun, completed, unconfirmed, edits }
    }

    fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Home => &mut self.pair.home,
            Side::Annex => &mut self.pair.annex,
        }
    }

    /// Tells the mirror of a change, unless the watcher has lost the event.
    fn changed(&mut self, side: Side, change: &FileChange) {
        if self.random.u8(..10) > 0 {
            self.end(side).changed(change);
        }
    }

    fn step(&mut self) {
        let side = if self.random.bool() { Side::Home } else { Side::Annex };
        if self.random.bool() {
            self.end(side).next_fault = Fault::choose(&mut self.random.fork());
        }
        match self.random.u8(..27) {
            24..=25 => self.change_members(),
            26 => self.create_task(side),
            20..=22 => self.edit(side),
            23 => self.end_unconfirmed(),
            0..=4 => self.send(side),
            5 => self.create_task(side),
            6..=7 => self.claim(side),
            8 => self.complete(side),
            9 => self.read(),
            10 => self.end(side).compare_all(),
            11 => self.stop_or_restart(side),
            12..=14 => {
                let count = self.random.usize(..4);
                match self.random.u8(..4) {
                    0 => self.end(side).restart_while_accepting(count),
                    _ => self.end(side).accept(count),
                }
            }
            15..=16 => drop(self.pair.deliver_to_annex()),
            17..=18 => drop(self.pair.deliver_to_home()),
            _ => self.confirm_claims(),
        }
    }

    /// Now and then a process stays down, and later steps change files that nobody compares.
    fn stop_or_restart(&mut self, side: Side) {
        match self.end(side).is_running && self.random.bool() {
            true => self.end(side).stop(),
            false => self.end(side).restart(),
        }
    }

    /// A member of the home or of a third host joins, changes or leaves, or a program at the annex
    /// removes its entry.
    fn change_members(&mut self) {
        let member = ["cid", "dan", "eve"][self.random.usize(..3)];
        self.clock += 1;
        let team = self.pair.home.team();
        match self.random.u8(..8) {
            0..=2 => {
                let host = self.random.bool().then(|| "otherbox".to_owned());
                team.add_missing_members(&[Member { host, ..teammate(member) }]).unwrap();
            }
            3..=5 => drop(team.set_member_fields(&name(member), &[("joinedAt", self.clock.into())])),
            6 => team.remove_member(&name(member)).unwrap(),
            _ => return self.pair.annex.team().remove_member(&name(member)).unwrap(),
        }
        self.changed(Side::Home, &FileChange::Config);
    }

    fn send(&mut self, side: Side) {
        let senders = if side == Side::Home { AT_HOME } else { AT_ANNEX };
        let from = senders[self.random.usize(..2)];
        let to = [AT_HOME, AT_ANNEX].concat()[self.random.usize(..4)];
        self.clock += 1;
        let (text, at) = (format!("message {}", self.clock), self.clock);
        self.end(side).send(from, to, &text, at);
        self.sent.entry((from.to_owned(), to.to_owned())).or_default().push(text);
        self.changed(side, &FileChange::Inbox(name(to)));
    }

    fn create_task(&mut self, side: Side) {
        self.clock += 1;
        let subject = format!("{} {}", if side == Side::Home { "home" } else { "annex" }, self.clock);
        let task = NewTask::new(&subject, &name("team-lead"));
        let task = self.end(side).team().tasks().create(task).unwrap();
        self.created.insert(subject);
        self.changed(side, &FileChange::Task(task.id));
    }

    fn claim(&mut self, side: Side) {
        let members = if side == Side::Home { AT_HOME } else { AT_ANNEX };
        let member = members[if side == Side::Home { 0 } else { self.random.usize(..2) }];
        let Ok(task) = self.end(side).team().tasks().claim(None, &name(member)) else { return };
        let id = task.id.number();
        self.changed(side, &FileChange::Task(task.id));
        match side {
            Side::Home => self.begin(side, id, member),
            // The member may have claimed another task before, that got another id.
            Side::Annex if self.unconfirmed.contains(&(id, member)) => {}
            Side::Annex => self.unconfirmed.push((id, member)),
        }
    }

    /// The workers at the annex begin the tasks that the home has given them.
    fn confirm_claims(&mut self) {
        if !self.pair.annex.is_running {
            return;
        }
        for (id, member) in std::mem::take(&mut self.unconfirmed) {
            let (check, output) = self.pair.annex.mirror.check_task(&team_name(), task_id(id)).unwrap();
            self.pair.annex.add_output(output);
            let task = self.pair.annex.team().tasks().get(&task_id(id));
            let is_owner = task
                .is_ok_and(|task| task.owner == Some(name(member)) && task.status == TaskStatus::InProgress);
            match check {
                TaskCheck::Undecided => self.unconfirmed.push((id, member)),
                TaskCheck::Decided if is_owner => self.begin(Side::Annex, id, member),
                TaskCheck::Decided => {}
            }
        }
    }

    fn begin(&mut self, side: Side, id: u32, member: &str) {
        let subject = self.end(side).task(id).subject;
        self.begun.entry((id, subject)).or_default().push(member.to_owned());
    }

    /// A member completes a task that it has begun.
    fn complete(&mut self, side: Side) {
        let members = if side == Side::Home { AT_HOME } else { AT_ANNEX };
        let begun = self.begun.clone();
        let own =
            begun.iter().find(|(_, owners)| owners.iter().any(|owner| members.contains(&owner.as_str())));
        let Some(((id, _), owners)) = own else { return };
        let tasks = self.end(side).team().tasks();
        if tasks.get(&task_id(*id)).is_ok_and(|task| task.status == TaskStatus::InProgress) {
            tasks.complete(&task_id(*id), &name(&owners[0])).unwrap();
            self.completed.insert(*id);
            self.changed(side, &FileChange::Task(task_id(*id)));
        }
    }

    /// Changes a text of a task that the home has created.
    fn edit(&mut self, side: Side) {
        let tasks = self.end(side).team().tasks();
        let of_home = |task: &protocol::task::Task| task.subject.starts_with("home ");
        let tasks_of_home: Vec<_> = tasks.list().unwrap().into_iter().filter(of_home).collect();
        let Some(task) = self.random.choice(&tasks_of_home) else { return };
        self.clock += 1;
        let text = format!("text {}", self.clock);
        let update = match side {
            Side::Home => TaskUpdate { description: Some(text.clone()), ..TaskUpdate::default() },
            Side::Annex => TaskUpdate { active_form: Some(text.clone()), ..TaskUpdate::default() },
        };
        tasks.update(&task.id, update, &name("bob")).unwrap();
        self.edits.insert((task.id.number(), side), text);
        self.changed(side, &FileChange::Task(task.id));
    }

    /// A member gives up a claim, or completes the task, before the home has decided about the claim.
    /// Programs other than teamd may do so.
    fn end_unconfirmed(&mut self) {
        let Some((id, member)) = self.unconfirmed.pop() else { return };
        let tasks = self.pair.annex.team().tasks();
        if tasks.get(&task_id(id)).is_ok_and(|task| task.owner == Some(name(member))) {
            match self.random.bool() {
                true => tasks.release(&task_id(id), &name(member)).unwrap(),
                false => tasks.complete(&task_id(id), &name(member)).unwrap(),
            };
            self.changed(Side::Annex, &FileChange::Task(task_id(id)));
        }
    }

    fn read(&mut self) {
        let owner = name(AT_ANNEX[self.random.usize(..2)]);
        let inbox = self.pair.annex.team().inbox(&owner);
        let entries = inbox.read_unread().unwrap();
        inbox.mark_read(&entries[..entries.len().min(2)]).unwrap();
        self.changed(Side::Annex, &FileChange::Inbox(owner));
    }

    fn check(&mut self) {
        self.pair.home.restart();
        self.pair.annex.restart();
        self.pair.settle();
        self.confirm_claims();
        self.pair.settle();
        self.check_messages();
        self.check_members();
        let lists = [&self.pair.home, &self.pair.annex].map(|end| end.team().tasks().list().unwrap());
        assert_eq!(lists[0], lists[1]);
        let mut subjects: Vec<&String> = lists[0].iter().map(|task| &task.subject).collect();
        subjects.sort_unstable();
        assert_eq!(subjects, self.created.iter().collect::<Vec<_>>());
        for task in &lists[0] {
            let (check, _) = self.pair.annex.mirror.check_task(&team_name(), task.id).unwrap();
            assert_eq!(check, TaskCheck::Decided, "task {}", task.id);
        }
        for ((id, side), text) in &self.edits {
            let task = self.pair.home.task(*id);
            let edited = if *side == Side::Home { Some(task.description) } else { task.active_form };
            assert_eq!(edited.as_ref(), Some(text), "task {id}");
        }
        for ((id, subject), owners) in &self.begun {
            assert!(owners.len() == 1, "task {id} was begun by {owners:?}");
            let task = self.pair.home.task(*id);
            assert_eq!(&task.subject, subject, "task {id} is the one that {owners:?} has begun");
            assert_eq!(task.owner, Some(name(&owners[0])), "task {id}");
            assert_eq!(task.status == TaskStatus::Completed, self.completed.contains(id), "task {id}");
        }
        // Two equal messages of the same millisecond, for example if a task is claimed twice, have the
        // same id and count as one.
        let unread = |end: &End, owner: &str| -> BTreeSet<String> {
            let entries = end.team().inbox(&name(owner)).read_unread().unwrap();
            entries.iter().map(|entry| message_id(entry.message.as_ref().unwrap())).collect()
        };
        for owner in AT_ANNEX {
            assert_eq!(unread(&self.pair.home, owner), unread(&self.pair.annex, owner), "{owner}");
        }
    }

    /// Both ends list the same members, with their hosts as each end names them.
    fn check_members(&self) {
        let [home, annex] = [&self.pair.home, &self.pair.annex].map(|end| {
            let members = end.team().config().unwrap().members.into_iter();
            members.map(|member| (member.name.to_string(), (member.host, member.joined_at)))
        });
        let at_annex = |host: Option<String>| match host.as_deref() {
            None => Some("home".to_owned()),
            Some("devbox") => None,
            Some(_) => host,
        };
        let home: BTreeMap<_, _> =
            home.map(|(name, (host, joined_at))| (name, (at_annex(host), joined_at))).collect();
        assert_eq!(home, annex.collect::<BTreeMap<_, _>>());
    }

    fn check_messages(&self) {
        for ((from, to), sent) in &self.sent {
            let ends = if AT_ANNEX.contains(&to.as_str()) {
                vec![&self.pair.home, &self.pair.annex]
            } else {
                vec![&self.pair.home]
            };
            for end in ends {
                let entries = end.team().inbox(&name(to)).read().unwrap();
                let messages = entries.into_iter().map(|entry| entry.message.unwrap());
                let received: Vec<String> = messages
                    .filter(|message| message.from == *from && message.text.starts_with("message "))
                    .map(|message| message.text)
                    .collect();
                assert_eq!(&received, sent, "from {from} to {to}");
            }
        }
    }
}

#[test]
fn random_lives_with_faults_lose_and_double_nothing() {
    let killed = run_again_with_faults("random_life::random_lives_lose_and_double_nothing");
    assert_eq!(killed, FAILPOINTS.map(str::to_owned).into(), "failpoints at which a step was killed");
}

#[test]
fn random_lives_lose_and_double_nothing() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let first: u64 = number("FIRST", 0);
    for seed in first..first + number("MIRROR_SEEDS", SEEDS) {
        println!("seed {seed}");
        let mut life = Life::new(seed);
        (0..STEPS).for_each(|_| life.step());
        life.check();
    }
}
