//! Checks the system: the version of tmux, and the limits of file watches, processes and terminals.

use super::report::DoctorReport;
use client::directory_watcher::DirectoryWatcher;
use platform::WatchLimit;
use std::process::Command;

/// The oldest version of tmux that works.
const MIN_TMUX: (u32, u32) = (3, 2);
/// The oldest version of tmux without known bugs that affect teamd.
const RECOMMENDED_TMUX: (u32, u32) = (3, 4);
/// In tmux 3.2, `display-message` does not take the client to which it shows a message.
const NOTICES_TMUX: (u32, u32) = (3, 3);

pub(super) fn check(report: &mut DoctorReport) {
    check_tmux(report);
    for limit in platform::system().watch_limits() {
        check_watch_limit(&limit, report);
    }
    check_watching(report);
    check_process_limits(report);
    check_login_passwords(report);
}

/// Checks that programs can read the Keychain of macOS, in which Claude Code keeps its login. If
/// Claude Code cannot read the Keychain, it says "Not logged in".
fn check_login_passwords(report: &mut DoctorReport) {
    match platform::system().can_read_login_passwords() {
        Some(true) => report.ok("keychain", "programs can read your Keychain"),
        Some(false) => report.warn(
            "keychain",
            "programs that start here cannot read your Keychain, so Claude Code finds no login",
            "start tmux in a terminal window, not over ssh and not as a background service",
        ),
        None => {}
    }
}

/// Tries a watch, because other programs of the user can have taken all instances and watches.
fn check_watching(report: &mut DoctorReport) {
    match DirectoryWatcher::new(&["/".into()]) {
        Ok(watcher) if watcher.is_watching() => report.ok("watching", "a directory can be watched"),
        Ok(_) => report.warn(
            "watching",
            "no watch is left, so commands that wait read files every two seconds",
            raise_watch_limits(),
        ),
        Err(error) => report.warn("watching", error.message, "see what is mounted at /"),
    }
}

/// What a person does if no watch is left.
fn raise_watch_limits() -> String {
    let settings: Vec<String> =
        platform::system().watch_limits().into_iter().map(|limit| limit.setting).collect();
    match settings.is_empty() {
        true => "end programs that watch files".to_owned(),
        false => format!("end programs that watch files, or raise {} (sysctl)", settings.join(" and ")),
    }
}

/// A new member needs several processes and, in a pane, a pseudo-terminal.
fn check_process_limits(report: &mut DoctorReport) {
    for limit in store::process_limits() {
        match limit.is_nearly_reached() {
            true => report.fail("processes", limit.usage_text(), limit.remedy),
            false => report.ok("processes", limit.usage_text()),
        }
    }
}

fn check_tmux(report: &mut DoctorReport) {
    let answer = match Command::new("tmux").arg("-V").output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(error) => {
            return report.fail("tmux", format!("cannot run tmux: {error}"), "install tmux 3.4 or newer");
        }
    };
    match parse_version(&answer) {
        Some(version) if version >= RECOMMENDED_TMUX => report.ok("tmux", answer),
        Some(version) if version < NOTICES_TMUX && version >= MIN_TMUX => {
            let message = format!("{answer} is old, and cannot show notices in your status line");
            report.warn("tmux", message, "better is 3.4 or newer");
        }
        Some(version) if version >= MIN_TMUX => {
            report.warn("tmux", format!("{answer} is old"), "better is 3.4 or newer");
        }
        Some(_) => report.fail("tmux", format!("{answer} is too old"), "install tmux 3.4 or newer"),
        None => {
            report.warn("tmux", format!("cannot tell the version from {answer:?}"), "needed is 3.2 or newer");
        }
    }
}

/// Parses the output of `tmux -V` into the major and minor version: `tmux 3.3a` is 3.3, `tmux
/// next-3.8` is 3.8. A development build without a number counts as newer than all releases.
fn parse_version(answer: &str) -> Option<(u32, u32)> {
    let version = answer.strip_prefix("tmux ")?.trim();
    if version == "master" || version.starts_with("openbsd") {
        return Some((u32::MAX, 0));
    }
    let (major, minor) = version.trim_start_matches("next-").split_once('.')?;
    let end = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
    Some((major.parse().ok()?, minor[..end].parse().ok()?))
}

fn check_watch_limit(limit: &WatchLimit, report: &mut DoctorReport) {
    let WatchLimit { name, minimum, path, text, setting } = limit;
    match text.trim().parse::<u64>() {
        Ok(number) if number >= *minimum => report.ok("watching", format!("{name} is {number}")),
        Ok(number) => report.warn(
            "watching",
            format!("{name} is {number}, so watching files may fail"),
            format!("raise it: sysctl {setting}={}", minimum * 8),
        ),
        Err(_) => {
            report.warn("watching", format!("cannot read {path}: {text:?}"), "see what is mounted there");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tmux_versions_are_parsed() {
        assert_eq!(parse_version("tmux 3.3a"), Some((3, 3)));
        assert_eq!(parse_version("tmux next-3.8"), Some((3, 8)));
        assert!(parse_version("tmux master").is_some_and(|version| version > RECOMMENDED_TMUX));
        assert_eq!(parse_version("screen 4"), None);
    }
}
