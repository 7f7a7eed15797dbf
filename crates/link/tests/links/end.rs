//! One end of a link, with its files in a directory of the test.

use link::{
    ConnectionSource, LinkDriver, LinkIdentity, LinkInputs, LinkReport, LinkRole, LinkSettings,
    ReceivedItems, ReceivedLog, SpoolFile, Submission,
};
use protocol::annex_link::{ItemPayload, LinkItem, MemberGeneration};
use protocol::inbox_file::Message;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use store::{Durability, StateDir};
use tokio::sync::mpsc;

/// How long a test waits at most.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A running end.
pub(crate) struct End {
    pub(crate) submissions: mpsc::Sender<Submission>,
    pub(crate) reports: mpsc::UnboundedReceiver<LinkReport>,
    pub(crate) last_number: u64,
    _spawns: mpsc::UnboundedSender<MemberGeneration>,
}

/// Starts an end. The link ends when the result is dropped.
pub(crate) fn start(dir: &Path, role: LinkRole, source: ConnectionSource) -> End {
    start_with_silence(dir, role, source, LinkSettings::default().silence_ms)
}

/// Starts an end that gives up a connection after `silence_ms` without a frame.
pub(crate) fn start_with_silence(
    dir: &Path,
    role: LinkRole,
    source: ConnectionSource,
    silence_ms: u64,
) -> End {
    let state = || StateDir::open(dir).unwrap();
    let spool = SpoolFile::open(state(), "spool", Durability::Process).unwrap();
    let log = ReceivedLog::open(state(), "received", Durability::Process).unwrap();
    let text = str::to_owned;
    let (version, root, annex) = (text("0.1.0"), text("root"), text("annex"));
    let identity = LinkIdentity { role, program_version: version, root, annex };
    let settings =
        LinkSettings { first_pause_ms: 10, longest_pause_ms: 40, silence_ms, ..LinkSettings::default() };
    let (submissions, submission_queue) = mpsc::channel(16);
    let (spawn_sender, spawns) = mpsc::unbounded_channel();
    let (report_sender, reports) = mpsc::unbounded_channel();
    let last_number = spool.1.last_number();
    let inputs = LinkInputs { submissions: submission_queue, spawns };
    let channels = (inputs, report_sender);
    let driver = LinkDriver::new((identity, settings), spool, Box::new(log), source, channels).unwrap();
    drop(tokio::spawn(driver.run()));
    End { submissions, reports, last_number, _spawns: spawn_sender }
}

impl End {
    /// Submits the items up to the number `last` that were not accepted before.
    pub(crate) fn submit_through(&self, last: u64) {
        let (submissions, first) = (self.submissions.clone(), self.last_number + 1);
        drop(tokio::spawn(async move {
            for number in first..=last {
                submissions.send(submission(number)).await.unwrap();
            }
        }));
    }

    pub(crate) async fn next_report(&mut self) -> LinkReport {
        let report = tokio::time::timeout(DEADLINE, self.reports.recv()).await;
        report.expect("a report comes in time").expect("the link runs")
    }
}

pub(crate) fn command(words: &[&str]) -> ConnectionSource {
    ConnectionSource::Command(words.iter().map(OsString::from).collect())
}

fn submission(number: u64) -> Submission {
    let mut message = Message::new(&MemberName::new_unchecked("ann"), number.to_string(), 0);
    message.summary = Some("x".repeat(600));
    let (team, to) = (TeamName::parse("survey").unwrap(), MemberName::new_unchecked("bob"));
    Submission::new(None, ItemPayload::Message { team, created_at: 1, to, message }).unwrap()
}

/// The texts of the received items, as numbers. A line that is still being written does not count.
pub(crate) fn received(dir: &Path) -> Vec<u64> {
    let mut lines = std::fs::read(dir.join("received")).unwrap_or_default();
    lines.truncate(lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
    ReceivedItems::parse(&lines).unwrap().items.iter().map(|item| number_in_text(item)).collect()
}

fn number_in_text(item: &LinkItem) -> u64 {
    let ItemPayload::Message { message, .. } = &item.payload else { panic!("{item:?}") };
    message.text.parse().unwrap()
}

/// Waits until `dir` has received as many items, and checks that they are the items 1 to `count`.
pub(crate) async fn wait_for_items(dir: &Path, count: u64) {
    let wait = async {
        while (received(dir).len() as u64) < count {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let in_time = tokio::time::timeout(DEADLINE, wait).await;
    assert!(in_time.is_ok(), "{} items of {count} have arrived", received(dir).len());
    assert_eq!(received(dir), (1..=count).collect::<Vec<_>>());
}
