//! The scripted agent, which stands in for real agent programs. Its first argument selects a mode.
//!
//! Modes that need the wake socket read it as their standard input. Tests start them with
//! `sh -c 'exec agent MODE <&$TEAMD_WAKE_FD'`.

mod cut_relay;
mod hook_program;
#[cfg(target_os = "linux")]
mod wake_probe;

use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["exit", code] => std::process::exit(code.parse().unwrap_or(1)),
        ["stay"] => wait_for_signal(),
        ["record", file] => record_wakes(&PathBuf::from(file)),
        ["children"] => start_surviving_children(),
        ["ask", name, text] => write_to_lead(name, text),
        ["hooked", file, rest @ ..] => hook_program::run(file, rest),
        ["dump", file] => dump_process_state(&PathBuf::from(file)),
        ["argv", file, rest @ ..] => dump_args(&PathBuf::from(file), rest),
        ["words", socket, rest @ ..] => send_args(socket, rest),
        ["line", to_program, from_program, rest @ ..] => cut_relay::run(to_program, from_program, rest),
        #[cfg(target_os = "linux")]
        ["ear", socket] => wake_probe::report_pipe_wakes(socket),
        #[cfg(target_os = "linux")]
        ["ear", socket, directory] => wake_probe::report_inotify_wakes(socket, directory),
        #[cfg(target_os = "linux")]
        ["reader", socket] => wake_probe::report_inbox_reads(socket, &inbox_path()),
        #[cfg(target_os = "linux")]
        ["relay", directory] => wake_probe::relay_inotify_wakes(directory),
        _ => {
            writeln!(
                std::io::stderr(),
                "agent: exit N | stay | hooked FILE [--OPTION…] [TEXT] | record FILE | children | dump FILE | argv FILE … | \
                 words SOCKET … | line N N PROGRAM … | ear SOCKET [DIRECTORY] | reader SOCKET | relay DIRECTORY | ask NAME TEXT"
            )
            .ok();
            std::process::exit(64);
        }
    }
}

/// Splits the arguments of an interactive program into its options and its first prompt.
fn parse_options(args: &[&str]) -> (Vec<String>, Option<String>) {
    let (options, texts): (Vec<&str>, Vec<&str>) = args.iter().partition(|arg| arg.starts_with("--"));
    (options.into_iter().map(str::to_owned).collect(), texts.first().map(|text| (*text).to_owned()))
}

/// Waits until a signal ends the process.
fn wait_for_signal() {
    loop {
        std::thread::park();
    }
}

/// Writes a line for each wake: the time in ns since the epoch, and the size of the inbox in bytes.
fn record_wakes(file: &PathBuf) {
    let inbox = inbox_path();
    let mut out = std::fs::File::create(file).expect("the file can be created");
    writeln!(out, "ready").ok();
    let mut bytes = [0; 64];
    while std::io::stdin().read(&mut bytes).is_ok_and(|read| read > 0) {
        let text = std::fs::read(&inbox).unwrap_or_default();
        writeln!(out, "{} {}", unix_time_ns(), text.len()).ok();
    }
    writeln!(out, "end of line").ok();
}

/// Appends a line of JSON to the file: the arguments, the standard input, the working directory and
/// the variable `VALUE`.
fn dump_args(file: &PathBuf, args: &[&str]) {
    let mut stdin = String::new();
    // Reading from a terminal would not end.
    if !std::io::stdin().is_terminal() {
        std::io::stdin().read_to_string(&mut stdin).ok();
    }
    let line = serde_json::json!({
        "argv": args, "stdin": stdin, "cwd": std::env::current_dir().ok(), "value": std::env::var("VALUE").ok(),
    });
    let out = std::fs::File::options().append(true).create(true).open(file);
    out.and_then(|mut out| out.write_all(format!("{line}\n").as_bytes())).expect("the file can be written");
}

/// Sends the arguments to a datagram socket, each followed by a NUL byte.
fn send_args(socket: &str, args: &[&str]) {
    let bytes: Vec<u8> = args.iter().flat_map(|arg| [arg.as_bytes(), b"\0"].concat()).collect();
    let result = std::os::unix::net::UnixDatagram::unbound().and_then(|from| from.send_to(&bytes, socket));
    result.expect("the socket accepts the arguments");
}

/// The path of this member's inbox, according to the shim's environment variables.
fn inbox_path() -> PathBuf {
    let var = |name| std::env::var(name).expect("the shim sets the variable");
    let name = format!("{}.json", var("TEAMD_MEMBER"));
    PathBuf::from(var("TEAMD_ROOT")).join("teams").join(var("TEAMD_TEAM")).join("inboxes").join(name)
}

/// The time in ns since the epoch.
fn unix_time_ns() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

/// Sends a message to the lead as an agent does that writes the team files itself: it takes the
/// lock, writes a temporary file and renames it. The team is `survey` unless `TEAMD_TEAM` names
/// another.
#[allow(clippy::disallowed_methods, reason = "this function stands in for a foreign program")]
fn write_to_lead(name: &str, text: &str) {
    let team = std::env::var("TEAMD_TEAM").unwrap_or_else(|_| "survey".to_owned());
    let root = PathBuf::from(std::env::var("TEAMD_ROOT").expect("the test environment sets the variable"));
    let inbox = root.join("teams").join(team).join("inboxes/team-lead.json");
    let (lock, temp_path) = (inbox.with_extension("json.lock"), inbox.with_extension("json.tmp.ask"));
    let deadline = SystemTime::now() + std::time::Duration::from_secs(10);
    while std::fs::create_dir(&lock).is_err() {
        assert!(SystemTime::now() < deadline, "the lock of {} is held", inbox.display());
        std::thread::yield_now();
    }
    let now = Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%S.%3NZ"]).output().expect("date starts");
    let timestamp = String::from_utf8_lossy(&now.stdout).trim().to_owned();
    let before = std::fs::read(&inbox).unwrap_or_else(|_| b"[]".to_vec());
    let mut messages: Vec<serde_json::Value> =
        serde_json::from_slice(&before).expect("the inbox is an array");
    messages.push(serde_json::json!({"from": name, "text": text, "timestamp": timestamp, "read": false}));
    let after = serde_json::to_vec_pretty(&messages).expect("the messages are JSON");
    std::fs::File::create(&temp_path)
        .and_then(|mut file| file.write_all(&after))
        .expect("the temporary file can be written");
    std::fs::rename(&temp_path, &inbox).expect("the inbox can be replaced");
    std::fs::remove_dir(&lock).expect("the lock is still held");
}

/// Starts children that survive the end of their terminal in different ways, and then waits.
#[allow(clippy::zombie_processes, reason = "the tests need children that the agent does not wait for")]
fn start_surviving_children() {
    for script in [
        "sleep 3600",
        "trap '' HUP; sleep 3600",
        "trap '' HUP TERM; sleep 3600 & wait",
        "exec nohup sleep 3600 >/dev/null 2>&1",
        "exec setsid sleep 3600",
        "(setsid sh -c \"trap '' HUP TERM; sleep 3600 & wait\" &)",
    ] {
        Command::new("sh").arg("-c").arg(script).spawn().expect("sh starts");
    }
    writeln!(std::io::stdout(), "children are out").ok();
    wait_for_signal();
}

/// Writes the state of this process to a file: its descriptors, signal masks, working directory and
/// environment variables.
fn dump_process_state(file: &PathBuf) {
    let mut text = String::new();
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("/proc is readable").flatten();
    for descriptor in descriptors {
        let target = std::fs::read_link(descriptor.path()).unwrap_or_default();
        text.push_str(&format!("fd {} {}\n", descriptor.file_name().to_string_lossy(), target.display()));
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is readable");
    status
        .lines()
        .filter(|line| line.starts_with("Sig"))
        .for_each(|line| text.push_str(&format!("{line}\n")));
    text.push_str(&format!("cwd {}\n", std::env::current_dir().unwrap_or_default().display()));
    std::env::vars().for_each(|(name, value)| text.push_str(&format!("env {name}={value}\n")));
    std::fs::File::create(file)
        .and_then(|mut out| out.write_all(text.as_bytes()))
        .expect("the file can be written");
}
