//! Measures the store's operations on inboxes of several lengths. The measurements are compared
//! with a Node program and with the time to read the file's bytes.

use crate::bench_team::{create_team, message, open_team, team_with_messages};
use crate::node_baseline::{NodeProcess, command, time_pairs};
use crate::{median, row, time};
use protocol::team_and_member_names::MemberName;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::{Durability, Inbox, Team};

const LENGTHS: [(usize, usize); 4] = [(0, 101), (1_000, 101), (10_000, 31), (100_000, 7)];
const WRITERS: usize = 16;
const READS: u64 = 1_000_000;

fn lead_inbox(team: &Team) -> Inbox {
    team.inbox(&MemberName::lead())
}

fn append(inbox: &Inbox, n: usize) {
    inbox.append(&message(format!("{n:0>180}"))).unwrap();
}

/// Copies the inbox for the baseline program. Returns the path of the copy.
fn copy_inbox(inbox: &Inbox) -> PathBuf {
    let copy = inbox.path().with_file_name("peer.json");
    match std::fs::copy(inbox.path(), &copy) {
        Ok(_) => {}
        Err(_) => std::io::Write::write_all(&mut std::fs::File::create(&copy).unwrap(), b"[]").unwrap(),
    }
    copy
}

pub(crate) fn appends() {
    let mut medians = Vec::new();
    for (length, count) in LENGTHS {
        let (_dir, team) = team_with_messages(length);
        let inbox = lead_inbox(&team);
        let Some(mut peer) = NodeProcess::start(&copy_inbox(&inbox)) else {
            return row("append", "skipped: no node", "");
        };
        peer.run("append");
        // The first read of the file and the first shadow copy cost more than a usual message.
        (0..2).filter(|_| length > 0).for_each(|n| append(&inbox, n));
        let both = time_pairs(count, |n| append(&inbox, n), || peer.run("append"));
        let (ours, worst) = (both.ours[count / 2], both.ours[(count * 99).div_ceil(100) - 1]);
        // Measured alone, because the baseline evicts data from the processor's cache.
        medians.push(median(301, |n| append(&inbox, n)));
        let figure = format!("{ours:.1?}, {worst:.1?}; {:.1?}; {:.0} ×", both.theirs[count / 2], both.ratio);
        let target = if length == 10_000 { "20 × on a disk, 500 × in memory" } else { "" };
        row(&format!("append to an inbox of {length}: ours, 99 of 100; Node; ratio"), &figure, target);
    }
    let growth = medians[3].as_secs_f64() / medians[0].as_secs_f64();
    let figure = format!("{:.1?} to {:.1?}; {growth:.2} ×", medians[3], medians[0]);
    row("append at 100,000 to append at 0, medians of 301", &figure, "1.5 ×");
}

/// Counts invalid arrays that a reader without a lock sees while another thread appends.
pub(crate) fn torn_reads() {
    let (_dir, team) = team_with_messages(60);
    let (inbox, reads, torn) = (lead_inbox(&team), AtomicU64::new(0), AtomicU64::new(0));
    let is_done = AtomicBool::new(false);
    let duration = time(|| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // The writer shortens the inbox now and then, because reading a long file is slow.
                for n in (0..60).cycle().take_while(|_| !is_done.load(Ordering::Relaxed)) {
                    append(&inbox, n);
                    if n == 59 {
                        truncate_inbox(&inbox);
                    }
                }
            });
            while reads.fetch_add(1, Ordering::Relaxed) < READS {
                let text = std::fs::read_to_string(inbox.path()).unwrap();
                let is_complete = serde_json::from_str::<Vec<serde::de::IgnoredAny>>(&text).is_ok();
                torn.fetch_add(u64::from(!is_complete), Ordering::Relaxed);
            }
            is_done.store(true, Ordering::Relaxed);
        });
    });
    let figure = format!("{} in {duration:.0?}", torn.into_inner());
    row("torn reads of a million, without a lock, beside a writer without pause", &figure, "0");
}

/// Shortens the inbox to its first 60 entries and replaces the file by a rename. Programs that
/// remove read messages do the same.
#[allow(clippy::disallowed_methods, reason = "this function is the foreign writer")]
fn truncate_inbox(inbox: &Inbox) {
    let mut all: Vec<Box<serde_json::value::RawValue>> =
        serde_json::from_str(&std::fs::read_to_string(inbox.path()).unwrap()).unwrap();
    all.truncate(60);
    let temp_path = inbox.path().with_extension("new");
    serde_json::to_writer_pretty(std::fs::File::create(&temp_path).unwrap(), &all).unwrap();
    std::fs::rename(temp_path, inbox.path()).unwrap();
}

/// Measures sixteen processes that append to one inbox. Each process runs [`write`].
pub(crate) fn sixteen_writers() {
    let (dir, team) = team_with_messages(0);
    let ours = run_concurrently(500, |count| {
        let mut store_writer = Command::new(std::env::current_exe().unwrap());
        store_writer.args([dir.path().to_str().unwrap(), count]);
        store_writer
    });
    let stored = lead_inbox(&team).read().unwrap().len();
    assert_eq!(stored, WRITERS * 500, "no message is lost");
    let peer = copy_inbox(&team.inbox(&MemberName::new_unchecked("unused")));
    let theirs = run_concurrently(20, |count| {
        let mut node = command(&peer).unwrap();
        node.arg(count);
        node
    });
    let ratio = ours / theirs;
    row(
        "16 processes on one inbox, messages a second: ours; Node with retries; ratio",
        &format!("{ours:.0}; {theirs:.0}; {ratio:.0} ×"),
        "20 ×",
    );
}

/// Runs all processes at the same time. Returns the number of messages per second.
fn run_concurrently(count_each: usize, command: impl Fn(&str) -> Command) -> f64 {
    let duration = time(|| {
        let children: Vec<_> =
            (0..WRITERS).map(|_| command(&count_each.to_string()).spawn().unwrap()).collect();
        children.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    });
    (WRITERS * count_each) as f64 / duration.as_secs_f64()
}

/// The work of one of the sixteen processes: appends `count` messages.
pub(crate) fn write(dir: &Path, count: usize) {
    let inbox = lead_inbox(&open_team(dir, Durability::Process));
    (0..count).for_each(|n| append(&inbox, n));
}

/// Measures reading and marking in an inbox of 100,000 messages, of which ten are unread.
pub(crate) fn marks_and_lists() {
    let (_dir, team) = team_with_messages(100_000);
    let inbox = lead_inbox(&team);
    let all = inbox.read().unwrap();
    inbox.mark_read(&all[..all.len() - 10]).unwrap();
    let mut peer = NodeProcess::start(&copy_inbox(&inbox)).unwrap();
    inbox.mark_read(&inbox.read_unread().unwrap()[..1]).unwrap();
    let mark_timings =
        time_pairs(7, |_| inbox.mark_read(&inbox.read_unread().unwrap()[..1]).unwrap(), || peer.run("mark"));
    let floor = median(21, |_| drop(std::fs::read(inbox.path()).unwrap()));
    let unread_list = median(101, |_| drop(inbox.read_unread().unwrap()));
    let full_read = median(5, |_| drop(inbox.read().unwrap()));
    let figure =
        format!("{:.1?}; {:.1?}; {:.0} ×", mark_timings.ours[3], mark_timings.theirs[3], mark_timings.ratio);
    row("list and mark one of the last ten of 100,000: ours; Node; ratio", &figure, "flat");
    let figure = format!("{unread_list:.1?}; {full_read:.1?}; {floor:.1?}");
    row("unread of 100,000, ten at the end; all of them parsed; their bytes read", &figure, "2 × the bytes");
}

/// Measures each durability level on the disk of cargo's target directory. On a file system in
/// memory the levels would take the same time.
pub(crate) fn durabilities() {
    let disk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    std::fs::create_dir_all(&disk).unwrap();
    let figures = [Durability::Process, Durability::Ordered, Durability::Power].map(|durability| {
        let dir = tempfile::TempDir::new_in(&disk).unwrap();
        let inbox = lead_inbox(&create_team(dir.path(), durability));
        inbox.append_all(&(0..10_000).map(|n| message(format!("{n:0>180}"))).collect::<Vec<_>>()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        let mut times: Vec<Duration> =
            (0..101).take_while(|_| Instant::now() < deadline).map(|n| time(|| append(&inbox, n))).collect();
        times.sort();
        format!("{:.0?}", times[times.len() / 2])
    });
    row("append at 10,000 on the disk of target/: process; ordered; power", &figures.join("; "), "-");
}
