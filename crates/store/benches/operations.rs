//! What the store's own steps take in one process that goes on: `cargo bench -p teamd-store --bench operations`, as `make bench` does. What is a
//! ratio to another program is in the example `figures`.

#![allow(clippy::unwrap_used, reason = "a measurement that fails must stop")]
#![allow(missing_docs, reason = "nobody calls these")]

mod bench_team;

use bench_team::{diamond_tasks, message, open_team, team, team_with_messages};
use divan::{Bencher, black_box};
use protocol::id::TaskId;
use protocol::name::AgentName;
use std::time::Duration;
use store::{Caller, Durability, Inbox, Team};

const LENGTHS: [usize; 4] = [0, 1_000, 10_000, 100_000];
const TASKS: [usize; 3] = [10, 1_000, 10_000];

fn main() {
    divan::main();
}

fn lead_inbox(team: &Team) -> Inbox {
    team.inbox(&AgentName::lead())
}

fn append(inbox: &Inbox) {
    inbox.append(&message(format!("{:0>180}", 1))).unwrap();
}

#[divan::bench(name = "append", args = LENGTHS, sample_count = 200, sample_size = 1)]
fn append_to(bencher: Bencher, length: usize) {
    let (_dir, team) = team_with_messages(length);
    let inbox = lead_inbox(&team);
    // Neither the first look nor the first copy is what a message costs.
    (0..2).for_each(|_| append(&inbox));
    bencher.bench_local(|| append(&inbox));
}

/// What `send` does at the files, as a process that begins: root, team, config, inbox and journal are found anew.
#[divan::bench(sample_count = 200, sample_size = 1)]
fn send(bencher: Bencher) {
    let (dir, team) = team_with_messages(100);
    append(&lead_inbox(&team));
    bencher.bench_local(|| {
        let team = open_team(dir.path(), Durability::Process);
        let caller = Caller::new(team, AgentName::lead(), dir.path().to_owned());
        caller.send("team-lead", format!("{:0>180}", 1), None, 1_771_000_000_000).unwrap()
    });
}

/// Ten at the end of it.
#[divan::bench(args = LENGTHS)]
fn unread(bencher: Bencher, length: usize) {
    let (_dir, team) = team_with_messages(length);
    let inbox = lead_inbox(&team);
    let all = inbox.read().unwrap();
    inbox.mark_read(&all[..all.len().saturating_sub(10)]).unwrap();
    bencher.bench_local(|| black_box(inbox.read_unread().unwrap()));
}

/// One that came just now.
#[divan::bench(args = LENGTHS, sample_count = 200, sample_size = 1)]
fn mark_read(bencher: Bencher, length: usize) {
    let (_dir, team) = team_with_messages(length);
    let inbox = lead_inbox(&team);
    inbox.mark_read(&inbox.read().unwrap()).unwrap();
    let came = || {
        append(&inbox);
        inbox.read_unread().unwrap()
    };
    bencher.with_inputs(came).bench_local_values(|new| inbox.mark_read(&new).unwrap());
}

/// One message, for whoever has read what was before.
#[divan::bench(args = LENGTHS, sample_count = 200, sample_size = 1)]
fn since(bencher: Bencher, length: usize) {
    let (_dir, team) = team_with_messages(length);
    let inbox = lead_inbox(&team);
    let came = || {
        let mark = inbox.read_since(None).unwrap().1;
        append(&inbox);
        mark
    };
    bencher.with_inputs(came).bench_local_values(|mark| black_box(inbox.read_since(Some(&mark)).unwrap()));
}

#[divan::bench(args = LENGTHS, max_time = 2)]
fn read(bencher: Bencher, length: usize) {
    let (_dir, team) = team_with_messages(length);
    bencher.bench_local(|| black_box(lead_inbox(&team).read().unwrap()));
}

fn team_with_tasks(count: usize) -> (tempfile::TempDir, Team) {
    let (dir, team) = team();
    team.tasks().create_all(diamond_tasks(count)).unwrap();
    // A look so soon after a change can't be sure of the time stamps.
    std::thread::park_timeout(Duration::from_millis(100));
    team.tasks().list_cached().unwrap();
    (dir, team)
}

/// By whoever is not told what has changed.
#[divan::bench(args = TASKS)]
fn list(bencher: Bencher, count: usize) {
    let (_dir, team) = team_with_tasks(count);
    bencher.bench_local(|| black_box(team.tasks().list_cached().unwrap()));
}

/// By the daemon, which is told.
#[divan::bench(args = TASKS)]
fn list_changed(bencher: Bencher, count: usize) {
    let (_dir, team) = team_with_tasks(count);
    let one = [TaskId::parse("1").unwrap()];
    bencher.bench_local(|| black_box(team.tasks().list_after_changes(&one).unwrap()));
}

#[divan::bench(args = TASKS, sample_count = 5, sample_size = 1)]
fn list_first(bencher: Bencher, count: usize) {
    let (dir, _team) = team_with_tasks(count);
    bencher
        .bench_local(|| black_box(open_team(dir.path(), Durability::Process).tasks().list_cached().unwrap()));
}

#[divan::bench(args = TASKS, sample_count = 5, sample_size = 1)]
fn create_all(bencher: Bencher, count: usize) {
    let (_dir, team) = team();
    bencher.bench_local(|| black_box(team.tasks().create_all(diamond_tasks(count)).unwrap()));
}

/// A task taken, and done.
#[divan::bench(args = TASKS, sample_count = 5, sample_size = 1)]
fn claim_and_complete(bencher: Bencher, count: usize) {
    let (_dir, team) = team_with_tasks(count);
    let (tasks, lead) = (team.tasks(), AgentName::lead());
    bencher.bench_local(|| {
        let task = tasks.claim(None, &lead).unwrap();
        tasks.complete(&task.id, &lead).unwrap()
    });
}
