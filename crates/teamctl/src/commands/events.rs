//! `events`: the daemon's event log, oldest first, as it is or as a line for people. The log lies outside
//! the root and survives the daemon and the teams; the file before a rotation is read too.

use crate::context::CommandContext;
use crate::output;
use client::directory_watcher::{DirectoryWatcher, WatchEvent};
use client::event_log::event_line;
use client::file_tail::FileTail;
use protocol::duration;
use protocol::error::ErrorReport;
use protocol::timestamp::{iso8601, parse_iso8601};
use serde_json::Value;
use std::process::ExitCode;
use store::now;

/// Show what happened: who came, what was done, who ended and how
///
/// With -t only those of that team, and the daemon's own. With --json each event is an object on a line of its own, as it stands in the log; docs/events.md lists the kinds.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl events\n  teamctl events -f\n  teamctl events --since 10m --json\n  teamctl events --since 2026-02-13T10:00:00Z"
)]
pub(crate) struct EventsArgs {
    /// Wait for more, until interrupted
    #[arg(short, long)]
    follow: bool,
    /// Only from then on: a duration back, or a time in ISO 8601
    #[arg(long, value_name = "T", value_parser = parse_since)]
    since: Option<u64>,
}

/// Ms since the epoch.
fn parse_since(text: &str) -> Result<u64, String> {
    if let Some(at) = parse_iso8601(text) {
        return Ok(at);
    }
    let back = duration::parse(text).map_err(|wrong| format!("{wrong}, or as a time like {}", iso8601(0)))?;
    Ok(now().saturating_sub(u64::try_from(back.as_millis()).unwrap_or(u64::MAX)))
}

pub(crate) fn run(here: &CommandContext, args: &EventsArgs) -> Result<ExitCode, ErrorReport> {
    let state = here.state_dir()?.path().to_owned();
    let mut follow =
        args.follow.then(|| DirectoryWatcher::new_for_stream(std::slice::from_ref(&state))).transpose()?;
    let mut show = LineSplitter::new(|line| print_event(here, args, line));
    // Opened before the older one is: where a rotation comes between, both are the same, and none is missed.
    let mut log = FileTail::new(state.join("events.jsonl"));
    let mut older = FileTail::new(state.join("events.jsonl.1"));
    while !older.is_same_file(&log)
        && let Some(chunk) = older.next_chunk_of_open_file()?
    {
        show.push(&chunk);
    }
    loop {
        while let Some(chunk) = log.next_chunk()? {
            show.push(&chunk);
        }
        let Some(follow) = &mut follow else { return Ok(ExitCode::SUCCESS) };
        if follow.wait(None)? == WatchEvent::OutputClosed {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn print_event(here: &CommandContext, args: &EventsArgs, line: &[u8]) {
    let line = String::from_utf8_lossy(line);
    let event: Option<Value> = serde_json::from_str(&line).ok().filter(Value::is_object);
    let other_team = |event: &Value| {
        let asked = here.args.team.as_deref();
        asked.is_some_and(|team| event["team"].as_str().is_some_and(|of| of != team))
    };
    if event.as_ref().is_some_and(|event| is_before(event, args.since) || other_team(event)) {
        return;
    }
    match event {
        // As it is: scripts get the log's own spelling.
        Some(_) if here.args.json => output::print_json(&line),
        Some(event) if !here.args.quiet => output::print_line(&event_line(&line, &event)),
        // A line that a crash cut short.
        None if !here.args.json && !here.args.quiet => output::print_line(&output::sanitize(&line)),
        _ => {}
    }
}

fn is_before(event: &Value, since: Option<u64>) -> bool {
    let time = event["time"].as_str().and_then(parse_iso8601);
    since.zip(time).is_some_and(|(since, time)| time < since)
}

/// Cuts what arrives in pieces into lines; an unfinished one waits for its rest.
struct LineSplitter<F> {
    partial_line: Vec<u8>,
    each: F,
}

impl<F: FnMut(&[u8])> LineSplitter<F> {
    fn new(each: F) -> LineSplitter<F> {
        LineSplitter { partial_line: Vec::new(), each }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.partial_line.extend_from_slice(bytes);
        let Some(end) = self.partial_line.iter().rposition(|byte| *byte == b'\n') else { return };
        let rest = self.partial_line.split_off(end + 1);
        let whole = std::mem::replace(&mut self.partial_line, rest);
        whole[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).for_each(&mut self.each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_are_whole_however_they_arrive() {
        let mut seen = Vec::new();
        let mut lines = LineSplitter::new(|line| seen.push(String::from_utf8_lossy(line).into_owned()));
        for piece in ["a", "b\n\nc\nd", "e", "\n", "f"] {
            lines.push(piece.as_bytes());
        }
        assert_eq!(seen, ["ab", "c", "de"]);
    }

    fn event_text(event: &Value) -> String {
        event_line(&event.to_string(), event)
    }

    #[test]
    fn an_event_is_one_clean_line() {
        let event = json!({"time":"T","event":"task_failed","team":"t","task":"3","subject":"count","owner":"ann",
            "reason":"exit 1\n\u{1b}x","more":1});
        assert_eq!(event_text(&event), "T t task 3 failed by ann (exit 1 \\u{1b}x): count");
        let idle = json!({"time":"T","event":"member_idle","team":"t","member":"ann","reason":"failed"});
        assert_eq!(event_text(&idle), "T ann@t idle after a failed turn");
    }

    #[test]
    fn of_an_older_or_a_later_kind_all_fields_are_told() {
        let older = json!({"time":"T","event":"ended","team":"t","member":"ann","text":"exit 1\n\u{1b}x"});
        assert_eq!(event_text(&older), "T ann@t ended exit 1 \\u{1b}x");
        assert_eq!(event_text(&json!({"time":"T","event":"ready"})), "T ready");
        let later = json!({"time":"T","event":"from_tomorrow","team":"t","n":1,"why":"x","list":["a"]});
        assert_eq!(event_text(&later), "T t from_tomorrow n=1 why=x list=[\"a\"]");
        let odd = json!({"event":"task_failed","team":7});
        assert_eq!(event_text(&odd), "task_failed");
    }

    #[test]
    fn a_time_is_a_duration_back_or_a_date() {
        assert_eq!(parse_since("1970-01-01T00:00:01Z"), Ok(1000));
        assert!(parse_since("10m").is_ok_and(|at| at <= now() - 600_000));
        assert!(parse_since("yesterday").is_err());
        let event = json!({"time":"1970-01-01T00:00:01Z"});
        assert!(is_before(&event, Some(1001)) && !is_before(&event, Some(1000)) && !is_before(&event, None));
    }
}
