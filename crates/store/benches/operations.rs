//! Benchmarks of the store's operations within one process. Run them with `make bench` or with
//! `cargo bench -p teamd-store --bench operations`. The example `compare` measures the store
//! against other programs.

#![allow(clippy::unwrap_used, reason = "a measurement that fails must stop")]
#![allow(missing_docs, reason = "the functions are benchmarks")]

mod bench_team;

use bench_team::{diamond_tasks, message, open_team, team, team_with_messages};
use divan::{Bencher, black_box};
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::MemberName;
use std::time::Duration;
use store::{Caller, Durability, Inbox, Team};

const LENGTHS: [usize; 4] = [0, 1_000, 10_000, 100_000];
const TASKS: [usize; 3] = [10, 1_000, 10_000];

fn main() {
    divan::main();
}

fn lead_inbox(team: &Team) -> Inbox {
    team.inbox(&MemberName::lead())
}

fn append(inbox: &Inbox) {
    inbox.append(&message(format!("{:0>180}", 1))).unwrap();
}

#[divan::bench(name = "append", args = LENGTHS, sample_count = 200, sample_size = 1)]
fn append_to(bencher: Bencher, length: usize) {
    let (_dir, team) = team_with_messages(length);
    let inbox = lead_inbox(&team);
    // The first read of the file and the first shadow copy cost more than a usual message.
    (0..2).for_each(|_| append(&inbox));
    bencher.bench_local(|| append(&inbox));
}

/// A `send` by a new process, which opens root, team, config, inbox and journal.
#[divan::bench(sample_count = 200, sample_size = 1)]
fn send(bencher: Bencher) {
    let (dir, team) = team_with_messages(100);
    append(&lead_inbox(&team));
    bencher.bench_local(|| {
        let team = open_team(dir.path(), Durability::Process);
        let caller = Caller::new(team, MemberName::lead());
        caller.send("team-lead", format!("{:0>180}", 1), None, 1_771_000_000_000).unwrap()
    });
}

/// Reads the unread messages of an inbox that has ten of them at its end.
#[divan::bench(args = LENGTHS)]
fn unread(bencher: Bencher, length: usize) {
    let (_dir, team) = team_with_messages(length);
    let inbox = lead_inbox(&team);
    let all = inbox.read().unwrap();
    inbox.mark_read(&all[..all.len().saturating_sub(10)]).unwrap();
    bencher.bench_local(|| black_box(inbox.read_unread().unwrap()));
}

/// Marks one new message read.
#[divan::bench(args = LENGTHS, sample_count = 200, sample_size = 1)]
fn mark_read(bencher: Bencher, length: usize) {
    let (_dir, team) = team_with_messages(length);
    let inbox = lead_inbox(&team);
    inbox.mark_read(&inbox.read().unwrap()).unwrap();
    let new_message = || {
        append(&inbox);
        inbox.read_unread().unwrap()
    };
    bencher.with_inputs(new_message).bench_local_values(|new| inbox.mark_read(&new).unwrap());
}

/// Reads one new message with a cursor behind all other messages.
#[divan::bench(args = LENGTHS, sample_count = 200, sample_size = 1)]
fn since(bencher: Bencher, length: usize) {
    let (_dir, team) = team_with_messages(length);
    let inbox = lead_inbox(&team);
    let new_message = || {
        let cursor = inbox.read_since(None).unwrap().1;
        append(&inbox);
        cursor
    };
    bencher
        .with_inputs(new_message)
        .bench_local_values(|cursor| black_box(inbox.read_since(Some(&cursor)).unwrap()));
}

#[divan::bench(args = LENGTHS, max_time = 2)]
fn read(bencher: Bencher, length: usize) {
    let (_dir, team) = team_with_messages(length);
    bencher.bench_local(|| black_box(lead_inbox(&team).read().unwrap()));
}

fn team_with_tasks(count: usize) -> (tempfile::TempDir, Team) {
    let (dir, team) = team();
    team.tasks().create_all(diamond_tasks(count)).unwrap();
    // After a change, the cache can't trust timestamps for a short time.
    std::thread::park_timeout(Duration::from_millis(100));
    team.tasks().list_cached().unwrap();
    (dir, team)
}

/// Reads the list without information about changes.
#[divan::bench(args = TASKS)]
fn list(bencher: Bencher, count: usize) {
    let (_dir, team) = team_with_tasks(count);
    bencher.bench_local(|| black_box(team.tasks().list_cached().unwrap()));
}

/// Reads the list like the daemon, which knows which task files have changed.
#[divan::bench(args = TASKS)]
fn list_changed(bencher: Bencher, count: usize) {
    let (_dir, team) = team_with_tasks(count);
    let changed = [TaskId::parse("1").unwrap()];
    bencher.bench_local(|| black_box(team.tasks().list_after_changes(&changed).unwrap()));
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

/// Claims and completes a task.
#[divan::bench(args = TASKS, sample_count = 5, sample_size = 1)]
fn claim_and_complete(bencher: Bencher, count: usize) {
    let (_dir, team) = team_with_tasks(count);
    let (tasks, lead) = (team.tasks(), MemberName::lead());
    bencher.bench_local(|| {
        let task = tasks.claim(None, &lead).unwrap();
        tasks.complete(&task.id, &lead).unwrap()
    });
}
