//! The scripted agent: does what its first argument says, so that a test can have any kind of agent.
//!
//! Started by `sh -c 'exec agent MODE <&$TEAMD_WAKE_FD'` where it needs its wake line: then that is its
//! standard input.

mod hook_program;
mod wake_probe;

use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["exit", code] => std::process::exit(code.parse().unwrap_or(1)),
        ["stay"] => wait_for_signal(),
        ["record", file] => record_wakes(&PathBuf::from(file)),
        ["children"] => spawn_surviving_children(),
        ["ask", name, text] => write_to_lead(name, text),
        ["hooked", file, rest @ ..] => hook_program::run(file, rest),
        ["dump", file] => dump_process_state(&PathBuf::from(file)),
        ["argv", file, rest @ ..] => dump_args(&PathBuf::from(file), rest),
        ["words", socket, rest @ ..] => send_args(socket, rest),
        ["ear", socket] => wake_probe::report_pipe_wakes(socket),
        ["ear", socket, directory] => wake_probe::report_inotify_wakes(socket, directory),
        ["reader", socket] => wake_probe::report_inbox_reads(socket, &inbox()),
        ["relay", directory] => wake_probe::relay_inotify_wakes(directory),
        _ => {
            writeln!(
                std::io::stderr(),
                "agent: exit N | stay | hooked FILE [--OPTION…] [TEXT] | record FILE | children | dump FILE | argv FILE … | \
                 words SOCKET … | ear SOCKET [DIRECTORY] | reader SOCKET | relay DIRECTORY | ask NAME TEXT"
            )
            .ok();
            std::process::exit(64);
        }
    }
}

/// The options of an interactive program, which it only writes down, and its first text.
fn options(rest: &[&str]) -> (Vec<String>, Option<String>) {
    let (options, texts): (Vec<&str>, Vec<&str>) = rest.iter().partition(|word| word.starts_with("--"));
    (options.into_iter().map(str::to_owned).collect(), texts.first().map(|text| (*text).to_owned()))
}

/// Until a signal.
fn wait_for_signal() {
    loop {
        std::thread::park();
    }
}

/// Writes a line for each wake: nanoseconds since the epoch, and the inbox's size by then.
fn record_wakes(file: &PathBuf) {
    let inbox = inbox();
    let mut out = std::fs::File::create(file).expect("the file can be made");
    writeln!(out, "ready").ok();
    let mut bytes = [0; 64];
    while std::io::stdin().read(&mut bytes).is_ok_and(|read| read > 0) {
        let text = std::fs::read(&inbox).unwrap_or_default();
        writeln!(out, "{} {}", nanoseconds(), text.len()).ok();
    }
    writeln!(out, "end of line").ok();
}

/// Adds a line of JSON to the file: its further arguments, its standard input, its directory, its variable `VALUE`.
fn dump_args(file: &PathBuf, rest: &[&str]) {
    let mut stdin = String::new();
    // A pane's terminal has no end.
    if !std::io::stdin().is_terminal() {
        std::io::stdin().read_to_string(&mut stdin).ok();
    }
    let line = serde_json::json!({
        "argv": rest, "stdin": stdin, "cwd": std::env::current_dir().ok(), "value": std::env::var("VALUE").ok(),
    });
    let out = std::fs::File::options().append(true).create(true).open(file);
    out.and_then(|mut out| out.write_all(format!("{line}\n").as_bytes())).expect("the file can be written");
}

/// Sends its further arguments, each with a NUL behind it.
fn send_args(socket: &str, rest: &[&str]) {
    let words: Vec<u8> = rest.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
    let sent = std::os::unix::net::UnixDatagram::unbound().and_then(|from| from.send_to(&words, socket));
    sent.expect("the socket takes it");
}

fn inbox() -> PathBuf {
    let var = |name| std::env::var(name).expect("the shim sets it");
    let name = format!("{}.json", var("TEAMD_MEMBER"));
    PathBuf::from(var("TEAMD_ROOT")).join("teams").join(var("TEAMD_TEAM")).join("inboxes").join(name)
}

fn nanoseconds() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

/// Writes to the lead as an agent does that speaks the files' protocol itself: under the lock, and by rename. The team
/// is `survey`, unless the environment names another.
#[allow(clippy::disallowed_methods, reason = "it is that other program")]
fn write_to_lead(name: &str, text: &str) {
    let team = std::env::var("TEAMD_TEAM").unwrap_or_else(|_| "survey".to_owned());
    let root = PathBuf::from(std::env::var("TEAMD_ROOT").expect("the test environment sets it"));
    let inbox = root.join("teams").join(team).join("inboxes/team-lead.json");
    let (lock, new) = (inbox.with_extension("json.lock"), inbox.with_extension("json.tmp.ask"));
    let deadline = SystemTime::now() + std::time::Duration::from_secs(10);
    while std::fs::create_dir(&lock).is_err() {
        assert!(SystemTime::now() < deadline, "the lock of {} is held", inbox.display());
        std::thread::yield_now();
    }
    let now = Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%S.%3NZ"]).output().expect("date is there");
    let timestamp = String::from_utf8_lossy(&now.stdout).trim().to_owned();
    let before = std::fs::read(&inbox).unwrap_or_else(|_| b"[]".to_vec());
    let mut all: Vec<serde_json::Value> = serde_json::from_slice(&before).expect("it is an array");
    all.push(serde_json::json!({"from": name, "text": text, "timestamp": timestamp, "read": false}));
    let after = serde_json::to_vec_pretty(&all).expect("it was read as JSON");
    std::fs::File::create(&new).and_then(|mut file| file.write_all(&after)).expect("it can be written");
    std::fs::rename(&new, &inbox).expect("it can be put in place");
    std::fs::remove_dir(&lock).expect("the lock is ours");
}

/// Every kind of child that survives the end of a terminal, then stays.
#[allow(clippy::zombie_processes, reason = "children that nobody waits for are what this is for")]
fn spawn_surviving_children() {
    for script in [
        "sleep 3600",
        "trap '' HUP; sleep 3600",
        "trap '' HUP TERM; sleep 3600 & wait",
        "exec nohup sleep 3600 >/dev/null 2>&1",
        "exec setsid sleep 3600",
        "(setsid sh -c \"trap '' HUP TERM; sleep 3600 & wait\" &)",
    ] {
        Command::new("sh").arg("-c").arg(script).spawn().expect("sh is there");
    }
    writeln!(std::io::stdout(), "children are out").ok();
    wait_for_signal();
}

/// What it finds around itself: descriptors, signals, arguments, directory.
fn dump_process_state(file: &PathBuf) {
    let mut text = String::new();
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("there is a /proc").flatten();
    for descriptor in descriptors {
        let target = std::fs::read_link(descriptor.path()).unwrap_or_default();
        text.push_str(&format!("fd {} {}\n", descriptor.file_name().to_string_lossy(), target.display()));
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("there is a /proc");
    status
        .lines()
        .filter(|line| line.starts_with("Sig"))
        .for_each(|line| text.push_str(&format!("{line}\n")));
    text.push_str(&format!("cwd {}\n", std::env::current_dir().unwrap_or_default().display()));
    std::env::vars().for_each(|(name, value)| text.push_str(&format!("env {name}={value}\n")));
    std::fs::File::create(file)
        .and_then(|mut out| out.write_all(text.as_bytes()))
        .expect("the file can be made");
}
