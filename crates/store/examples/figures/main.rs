//! What the store's own steps take in one long-lived process, as rows of `make bench`. Give TMPDIR to say on
//! which file system.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that fails must stop, and prints"
)]

use protocol::config::{Member, TeamConfig};
use protocol::message::Message;
use protocol::name::{AgentName, TeamName};
use std::path::Path;
use std::time::{Duration, Instant};
use store::{Durability, NewTask, Planned, Root, Team};
use tempfile::TempDir;

mod inboxes;
mod lists;
mod peer;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [dir, count] = words.as_slice() {
        return inboxes::write(Path::new(dir), count.parse().unwrap());
    }
    inboxes::appends();
    inboxes::first_append();
    inboxes::sixteen_writers();
    inboxes::marks_and_lists();
    inboxes::torn_reads();
    inboxes::durabilities();
    lists::lists_and_claims();
    tasks_made_together();
    claims();
    looks();
    new_messages();
}

fn row(what: &str, figure: &str, aim: &str) {
    println!("| {what} | {figure} | {aim} |");
}

fn team() -> (TempDir, Team) {
    let dir = TempDir::new().unwrap();
    let team = made(dir.path(), Durability::Process);
    (dir, team)
}

fn root(dir: &Path, durability: Durability) -> Root {
    Root::open(&dir.join("root"), &dir.join("aside"), durability).unwrap()
}

/// The team that is there already, as another process has it.
fn at(dir: &Path, durability: Durability) -> Team {
    root(dir, durability).team(&TeamName::parse("bench").unwrap()).unwrap()
}

fn made(dir: &Path, durability: Durability) -> Team {
    let name = TeamName::parse("bench").unwrap();
    let config = TeamConfig {
        name: name.to_string(),
        description: None,
        created_at: 1,
        lead_agent_id: format!("team-lead@{name}"),
        lead_session_id: "c93b690c-1c1e-4c5e-9d0e-d9451b749ac2".to_owned(),
        members: vec![Member::lead(&name, None, String::new(), "/".to_owned(), 1)],
        hidden_pane_ids: vec![],
    };
    root(dir, durability).create_team(&config).unwrap()
}

/// Diamonds in a chain: one, two that wait for it, one that waits for both, and so on.
fn diamonds(count: usize) -> Vec<Planned> {
    let after = |at: usize| match at % 3 {
        0 if at == 0 => vec![],
        0 => vec![at - 2, at - 1],
        turn => vec![at - turn],
    };
    let task = |at: usize| NewTask::new(&format!("work on part {at} of the whole"), &AgentName::lead());
    (0..count).map(|at| Planned { task: task(at), after: after(at) }).collect()
}

fn timed(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

fn median(count: usize, mut run: impl FnMut(usize)) -> Duration {
    let mut times: Vec<Duration> = (0..count).map(|at| timed(|| run(at))).collect();
    times.sort();
    times[count / 2]
}

fn tasks_made_together() {
    let (_dir, team) = team();
    let took = timed(|| drop(team.tasks().create_all(diamonds(1000)).unwrap()));
    row("1,000 linked tasks made in one step", &format!("{took:.1?}"), "1 s");
}

fn claims() {
    let (_dir, team) = team();
    let (tasks, lead) = (team.tasks(), AgentName::lead());
    tasks.create_all(diamonds(1000)).unwrap();
    let (mut claims, mut whole) = (Vec::new(), Duration::ZERO);
    for _ in 0..1000 {
        let mut task = None;
        let claim = timed(|| task = tasks.claim(None, &lead).ok());
        whole += claim + timed(|| drop(tasks.complete(&task.unwrap().id, &lead).unwrap()));
        claims.push(claim);
    }
    claims.sort();
    row(
        "claim among 1,000 tasks in one process, median of 1,000; claim and completion of all",
        &format!("{:.2?}; {whole:.0?}", claims[500]),
        "100 a second",
    );
}

fn looks() {
    let (_dir, team) = team();
    team.tasks().create_all(diamonds(5000)).unwrap();
    let first = timed(|| drop(team.tasks().list_shared().unwrap()));
    std::thread::park_timeout(Duration::from_millis(100));
    team.tasks().list_shared().unwrap();
    let again = median(20, |_| drop(team.tasks().list_shared().unwrap()));
    row("look at 5,000 tasks: the first; again, median of 20", &format!("{first:.1?}; {again:.1?}"), "-");
}

fn message(text: String) -> Message {
    Message::new(&AgentName::lead(), text, 1_771_000_000_000)
}

/// Entries of some 300 bytes in the file.
fn filled(count: usize) -> (TempDir, Team) {
    let (dir, team) = team();
    let all: Vec<Message> = (0..count).map(|n| message(format!("{n:0>180}"))).collect();
    all.chunks(10_000).for_each(|some| team.inbox(&AgentName::lead()).append_all(some).unwrap());
    (dir, team)
}

fn new_messages() {
    let (_dir, team) = filled(1000);
    let inbox = team.inbox(&AgentName::lead());
    let (_, mut mark) = inbox.since(None).unwrap();
    let (mut after, mut whole) = (Vec::new(), Vec::new());
    for n in 0..21 {
        inbox.append(&message(format!("{n:0>180}"))).unwrap();
        after.push(timed(|| mark = inbox.since(Some(&mark)).unwrap().1));
        whole.push(timed(|| drop(inbox.read().unwrap())));
    }
    after.sort();
    whole.sort();
    let figure = format!("{:.2?}; {:.2?}", after[10], whole[10]);
    row("what is new in an inbox of 1,000; all of it", &figure, "-");
}
