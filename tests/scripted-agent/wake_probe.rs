//! Who is woken, for `make bench`: the first thing that it does is to say when that was. Beside it the bare ways of being
//! woken, to compare with: by inotify itself, or by somebody whom that has woken.

use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read, Seek, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// By a byte on its standard input.
pub(crate) fn report_pipe_wakes(socket: &str) {
    let told = connect(socket);
    let mut bytes = [0; 64];
    while std::io::stdin().read(&mut bytes).is_ok_and(|read| read > 0) {
        send_time(&told);
    }
}

/// By the kernel, when something in that directory is renamed.
pub(crate) fn report_inotify_wakes(socket: &str, directory: &str) {
    let told = connect(socket);
    on_each_event(&watch_directory(directory), || send_time(&told));
}

/// A byte on its standard output for each.
pub(crate) fn relay_inotify_wakes(directory: &str) {
    let mut out = std::io::stdout();
    on_each_event(&watch_directory(directory), || {
        out.write_all(b".").and_then(|()| out.flush()).expect("somebody is there");
    });
}

/// Reads its inbox at each wake, what is new of it, which nobody marks read here; tells of each message when it had it.
pub(crate) fn report_inbox_reads(socket: &str, inbox: &Path) {
    let told = UnixDatagram::unbound().expect("a socket can be had");
    told.connect(socket).expect("somebody is there");
    let (mut bytes, mut end) = ([0; 64], 0);
    while std::io::stdin().read(&mut bytes).is_ok_and(|read| read > 0) {
        for message in new(inbox, &mut end).unwrap_or_default() {
            let text = message["text"].as_str().unwrap_or_default();
            told.send(format!("{} {text}", monotonic_ns()).as_bytes()).expect("somebody is there");
        }
    }
}

/// What stands behind `end`, where the last one ended.
fn new(inbox: &Path, end: &mut u64) -> Option<Vec<serde_json::Value>> {
    let mut file = std::fs::File::open(inbox).ok()?;
    file.seek(SeekFrom::Start(*end)).ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let new = text.trim_end().strip_suffix(']')?.trim_end();
    let inside = new.trim_start_matches(['[', ',']);
    let all = serde_json::from_str(&format!("[{inside}]")).ok()?;
    *end += new.len() as u64;
    Some(all)
}

/// With a first word, that it is there.
fn connect(socket: &str) -> UnixDatagram {
    let told = UnixDatagram::unbound().expect("a socket can be had");
    told.connect(socket).expect("somebody is there");
    send_time(&told);
    told
}

fn send_time(told: &UnixDatagram) {
    told.send(&monotonic_ns().to_le_bytes()).expect("somebody is there");
}

/// Nanoseconds on the clock that never jumps.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn watch_directory(directory: &str) -> OwnedFd {
    let inotify = init(CreateFlags::CLOEXEC).expect("there is a watch left");
    add_watch(&inotify, directory, WatchFlags::MOVED_TO).expect("the directory is there");
    inotify
}

fn on_each_event(inotify: &OwnedFd, mut act: impl FnMut()) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = Reader::new(inotify, &mut buffer);
    while events.next().is_ok() {
        act();
    }
}
