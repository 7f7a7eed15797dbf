//! Processes that report the time of each wake, for `make bench`. They are woken by a byte on a
//! socket or by inotify. Another mode relays inotify events as bytes.

use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read, Seek, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// Reports a wake for each read from the standard input.
pub(crate) fn report_pipe_wakes(socket: &str) {
    let reports = connect(socket);
    let mut bytes = [0; 64];
    while std::io::stdin().read(&mut bytes).is_ok_and(|read| read > 0) {
        send_time(&reports);
    }
}

/// Reports a wake each time a file is renamed into the directory.
pub(crate) fn report_inotify_wakes(socket: &str, directory: &str) {
    let reports = connect(socket);
    on_each_event(&watch_directory(directory), || send_time(&reports));
}

/// Writes a byte to the standard output each time a file is renamed into the directory.
pub(crate) fn relay_inotify_wakes(directory: &str) {
    let mut out = std::io::stdout();
    on_each_event(&watch_directory(directory), || {
        out.write_all(b".").and_then(|()| out.flush()).expect("the woken process reads");
    });
}

/// Reads the new messages of the inbox at each wake. Reports the time and text of each message.
/// Requires that no process marks messages read, because the inbox must only grow at its end.
pub(crate) fn report_inbox_reads(socket: &str, inbox: &Path) {
    let reports = UnixDatagram::unbound().expect("the socket can be created");
    reports.connect(socket).expect("the benchmark has bound the socket");
    let (mut bytes, mut end) = ([0; 64], 0);
    while std::io::stdin().read(&mut bytes).is_ok_and(|read| read > 0) {
        for message in read_new_messages(inbox, &mut end).unwrap_or_default() {
            let text = message["text"].as_str().unwrap_or_default();
            reports
                .send(format!("{} {text}", monotonic_ns()).as_bytes())
                .expect("the benchmark receives reports");
        }
    }
}

/// Reads the messages after the offset `end`, where the last read ended. `None` if the inbox can't
/// be read or parsed.
fn read_new_messages(inbox: &Path, end: &mut u64) -> Option<Vec<serde_json::Value>> {
    let mut file = std::fs::File::open(inbox).ok()?;
    file.seek(SeekFrom::Start(*end)).ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let new = text.trim_end().strip_suffix(']')?.trim_end();
    let entries = new.trim_start_matches(['[', ',']);
    let messages = serde_json::from_str(&format!("[{entries}]")).ok()?;
    *end += new.len() as u64;
    Some(messages)
}

/// Connects to the socket for reports. Sends a first report, which says that this process has
/// started.
fn connect(socket: &str) -> UnixDatagram {
    let reports = UnixDatagram::unbound().expect("the socket can be created");
    reports.connect(socket).expect("the benchmark has bound the socket");
    send_time(&reports);
    reports
}

fn send_time(reports: &UnixDatagram) {
    reports.send(&monotonic_ns().to_le_bytes()).expect("the benchmark receives reports");
}

/// The time on the monotonic clock in ns.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn watch_directory(directory: &str) -> OwnedFd {
    let inotify = init(CreateFlags::CLOEXEC).expect("inotify works");
    add_watch(&inotify, directory, WatchFlags::MOVED_TO).expect("the directory can be watched");
    inotify
}

fn on_each_event(inotify: &OwnedFd, mut action: impl FnMut()) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = Reader::new(inotify, &mut buffer);
    while events.next().is_ok() {
        action();
    }
}
