//! Measures a link between two processes over a pipe. Command:
//! `cargo run --release -p teamd-link --example link_throughput [DIRECTORY]`.
//!
//! For each durability it prints how many messages of 200 characters one end sends to the other in a
//! second, and how long one message takes there and back on an idle link. Both ends store each
//! message. For comparison it prints how long the same bytes take through `cat` and back. DIRECTORY
//! is for the files; the default is the directory for temporary files.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement that can't go on fails")]

use link::{
    ConnectionSource, ItemReceiver, LinkDriver, LinkIdentity, LinkInputs, LinkRole, LinkSettings, LinkStream,
    ReceivedLog, ReceivedPosition, SpoolFile, Submission,
};
use protocol::annex_link::{ItemPayload, LinkItem, MemberGeneration};
use protocol::inbox_file::Message;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Durability, StateDir};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::sync::mpsc;

const ROUND_TRIPS: usize = 300;
const MESSAGES: usize = 5_000;
/// The summary of a message to which the annex sends an answer.
const PING: &str = "ping";

/// Stores items, and then passes on those that are an answer or ask for one.
struct NotifyingReceiver {
    log: ReceivedLog,
    pings: mpsc::UnboundedSender<()>,
}

impl ItemReceiver for NotifyingReceiver {
    fn position(&self) -> ReceivedPosition {
        self.log.position()
    }

    fn apply(&mut self, items: &[Arc<LinkItem>], position: ReceivedPosition) -> Result<(), String> {
        self.log.apply(items, position)?;
        items.iter().filter(|item| is_ping(item)).for_each(|_| self.pings.send(()).unwrap());
        Ok(())
    }
}

fn is_ping(item: &LinkItem) -> bool {
    matches!(&item.payload, ItemPayload::Message { message, .. } if message.summary.as_deref() == Some(PING))
}

fn message(summary: Option<&str>) -> Submission {
    let mut message = Message::new(&MemberName::new_unchecked("ann"), "x".repeat(200), 0);
    message.summary = summary.map(str::to_owned);
    let (team, to) = (TeamName::parse("survey").unwrap(), MemberName::new_unchecked("bob"));
    Submission::new(None, ItemPayload::Message { team, created_at: 1, to, message }).unwrap()
}

/// A running end: its submissions, the pings that it has stored, and a sender that is only kept.
struct End {
    submissions: mpsc::Sender<Submission>,
    pings: mpsc::UnboundedReceiver<()>,
    _spawns: mpsc::UnboundedSender<MemberGeneration>,
}

fn start(dir: &Path, level: &str, role: LinkRole, source: ConnectionSource) -> End {
    let (state, durability) = (|| StateDir::open(dir).unwrap(), level.parse::<Durability>().unwrap());
    let spool = SpoolFile::open(state(), "spool", durability).unwrap();
    let (ping_sender, pings) = mpsc::unbounded_channel();
    let log = ReceivedLog::open(state(), "received", durability).unwrap();
    let receiver = Box::new(NotifyingReceiver { log, pings: ping_sender });
    let [program_version, root, annex] = ["0.1.0", "root", "annex"].map(str::to_owned);
    let identity = LinkIdentity { role, program_version, root, annex };
    let (submissions, queue) = mpsc::channel(64);
    let (spawn_sender, spawns) = mpsc::unbounded_channel();
    let inputs = LinkInputs { submissions: queue, spawns };
    let channels = (inputs, mpsc::unbounded_channel().0);
    let driver = LinkDriver::new((identity, LinkSettings::default()), spool, receiver, source, channels);
    drop(tokio::spawn(driver.unwrap().run()));
    End { submissions, pings, _spawns: spawn_sender }
}

/// The annex: answers each ping until it is killed.
async fn run_annex(dir: &Path, level: &str) {
    let input = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let output = std::io::stdout().as_fd().try_clone_to_owned().unwrap();
    let input = pipe::Receiver::from_owned_fd(input).unwrap();
    let output = pipe::Sender::from_owned_fd(output).unwrap();
    let (streams, incoming) = mpsc::channel(1);
    streams.send(LinkStream::new(input, output)).await.unwrap();
    let mut annex = start(dir, level, LinkRole::Annex, ConnectionSource::Incoming(incoming));
    while annex.pings.recv().await.is_some() {
        annex.submissions.send(message(Some(PING))).await.unwrap();
    }
}

/// Submits a ping, and waits for its answer.
async fn round_trip(home: &mut End) -> Duration {
    let started = Instant::now();
    home.submissions.send(message(Some(PING))).await.unwrap();
    home.pings.recv().await.unwrap();
    started.elapsed()
}

async fn measure_link(dir: &Path, level: &str) {
    let program = std::env::current_exe().unwrap().into_os_string();
    let annex_dir = dir.join("annex").into_os_string();
    let command = vec![program, OsString::from("annex"), annex_dir, OsString::from(level)];
    let role = LinkRole::Home { epoch: 1 };
    let mut home = start(&dir.join("home"), level, role, ConnectionSource::Command(command));
    round_trip(&mut home).await;
    let mut times = Vec::new();
    for _ in 0..ROUND_TRIPS {
        times.push(round_trip(&mut home).await);
    }
    let started = Instant::now();
    for _ in 0..MESSAGES {
        home.submissions.send(message(None)).await.unwrap();
    }
    round_trip(&mut home).await;
    let rate = MESSAGES as f64 / started.elapsed().as_secs_f64();
    println!("{level:<10} {rate:>8.0} messages/s   {}", describe(times));
}

/// The median and the 99th percentile.
fn describe(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |percent: usize| times[times.len() * percent / 100].as_micros();
    format!("there and back {} µs (99 %: {} µs)", at(50), at(99))
}

async fn measure_cat() {
    let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (cat.stdin.take().unwrap(), cat.stdout.take().unwrap());
    let mut bytes = [b'x'; 400];
    let mut times = Vec::new();
    for _ in 0..ROUND_TRIPS {
        let started = Instant::now();
        input.write_all(&bytes).await.unwrap();
        output.read_exact(&mut bytes).await.unwrap();
        times.push(started.elapsed());
    }
    drop(input);
    cat.wait().await.unwrap();
    println!("cat        {:>8}              {}", "", describe(times));
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, dir, level] = arguments.as_slice()
        && word == "annex"
    {
        return run_annex(Path::new(dir), level).await;
    }
    let parent = arguments.first().map_or_else(std::env::temp_dir, Into::into);
    for level in ["process", "ordered", "power"] {
        let dir = tempfile::tempdir_in(&parent).unwrap();
        measure_link(dir.path(), level).await;
    }
    measure_cat().await;
}
