//! `events`: prints the daemon's event log, oldest event first. The event log stays when the daemon
//! stops and when teams are deleted.

use super::rotated_log::RotatedLog;
use crate::command_context::CommandContext;
use crate::output;
use client::directory_watcher::{DirectoryWatcher, WatchEvent};
use client::format_event_line::event_line;
use protocol::did_you_mean::did_you_mean;
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::EventKind;
use protocol::parse_duration;
use protocol::state_file_names::EVENT_LOG;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::timestamp::{parse_iso8601, parse_typed_time};
use serde_json::{Value, json};
use std::cell::Cell;
use std::process::ExitCode;
use store::now;

/// Show the event log of teams, members, messages and tasks
///
/// Example: teamctl events -f --since 10m
///
/// With -t, only events of that team and of the daemon are shown. With --json, each event is a JSON
/// object on its own line, as in the log. docs/events.md lists the kinds.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl events --member ann --kind task_failed,member_exited\n  teamctl events --since 2026-02-13T10:00:00Z --json"
)]
pub(crate) struct EventsArgs {
    /// Show new events until interrupted; with --since, also earlier ones
    #[arg(short, long)]
    follow: bool,
    /// Only events since then: a duration before now, or a date or time in UTC
    #[arg(long, value_name = "T", value_parser = parse_since)]
    since: Option<u64>,
    /// Only events of this member: NAME or NAME@TEAM
    #[arg(long, value_name = "NAME", value_parser = parse_member)]
    member: Option<MemberFilter>,
    /// Only events of these kinds, separated by commas
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = parse_kind)]
    kind: Vec<String>,
}

/// The member whose events are shown.
#[derive(Debug, Clone)]
struct MemberFilter {
    name: MemberName,
    team: Option<TeamName>,
}

fn parse_member(text: &str) -> Result<MemberFilter, String> {
    let (name, team) = text.split_once('@').map_or((text, None), |(name, team)| (name, Some(team)));
    let team = team.map(TeamName::parse).transpose().map_err(|error| error.to_string())?;
    Ok(MemberFilter { name: MemberName::new_unchecked(name), team })
}

/// Checks that `text` is the kind of an event.
fn parse_kind(text: &str) -> Result<String, String> {
    let kinds = event_kinds();
    if kinds.iter().any(|kind| kind == text) {
        return Ok(text.to_owned());
    }
    let near = did_you_mean(text, &kinds).map(|near| format!("{near} ")).unwrap_or_default();
    Err(format!("there are no such events; {near}there are: {}", kinds.join(", ")))
}

/// The kinds of events, in the order of docs/events.md. To get the list, this function parses an
/// event of an unknown kind: the parser's error lists all known kinds.
fn event_kinds() -> Vec<String> {
    let unknown = serde_json::from_value::<EventKind>(json!({"event": ""}));
    let error = unknown.err().map(|error| error.to_string()).unwrap_or_default();
    error.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

impl MemberFilter {
    fn selects(&self, event: &Value) -> bool {
        let is_named =
            |key| event[key].as_str().is_some_and(|name| MemberName::new_unchecked(name) == self.name);
        let is_of_team = |team: &TeamName| event["team"] == team.as_str();
        MEMBER_KEYS.into_iter().any(is_named) && self.team.as_ref().is_none_or(is_of_team)
    }
}

impl EventsArgs {
    /// Whether an event is of the wanted member and kind.
    fn selects(&self, event: &Value) -> bool {
        let is_kind = event["event"]
            .as_str()
            .is_some_and(|kind| self.kind.iter().any(|selected_kind| selected_kind == kind));
        self.member.as_ref().is_none_or(|member| member.selects(event)) && (self.kind.is_empty() || is_kind)
    }
}

/// The keys of an event whose value is the name of a member.
const MEMBER_KEYS: [&str; 4] = ["member", "owner", "from", "to"];

/// Parses `--since` of `events` and `report` into ms since the epoch.
pub(super) fn parse_since(text: &str) -> Result<u64, String> {
    match parse_typed_time(text) {
        Some(time) if time > now() => {
            return Err("this time is in the future; a time without an offset is in UTC".to_owned());
        }
        Some(time) => return Ok(time),
        None => {}
    }
    let example = "2026-02-13 or 2026-02-13T10:05Z";
    let age = parse_duration::parse(text).map_err(|error| format!("{error}, or as a time like {example}"))?;
    Ok(now().saturating_sub(u64::try_from(age.as_millis()).unwrap_or(u64::MAX)))
}

pub(crate) fn run(context: &CommandContext, args: &EventsArgs) -> Result<ExitCode, ErrorReport> {
    let team = context.args.team.as_deref().and_then(|name| TeamName::sanitize(name).ok());
    context.check_acts_in(team.as_ref())?;
    let state = context.state_dir_path()?;
    let mut watcher =
        args.follow.then(|| DirectoryWatcher::new_for_stream(std::slice::from_ref(&state))).transpose()?;
    let is_past = Cell::new(args.follow && args.since.is_none());
    let mut lines = LineSplitter::new(|line| {
        if !is_past.get() {
            print_event(context, args, line);
        }
    });
    let mut log = RotatedLog::open(&state.join(EVENT_LOG));
    loop {
        while let Some(chunk) = log.next_chunk()? {
            lines.push(&chunk);
        }
        is_past.set(false);
        let Some(watcher) = &mut watcher else { return Ok(ExitCode::SUCCESS) };
        if watcher.wait(None)? == WatchEvent::OutputClosed {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn print_event(context: &CommandContext, args: &EventsArgs, line: &[u8]) {
    let line = String::from_utf8_lossy(line);
    let event: Option<Value> = serde_json::from_str(&line).ok().filter(Value::is_object);
    let is_of_other_team = |event: &Value| {
        let selected_team = context.args.team.as_deref();
        selected_team.is_some_and(|team| event["team"].as_str().is_some_and(|event_team| event_team != team))
    };
    let is_excluded =
        |event: &Value| is_before(event, args.since) || is_of_other_team(event) || !args.selects(event);
    if event.as_ref().is_some_and(is_excluded) {
        return;
    }
    match event {
        // Scripts get the line of the log.
        Some(_) if context.args.json => output::print_json(&line),
        Some(event) if !context.args.quiet => output::print_line(&event_line(&line, &event)),
        // A crash of the daemon can leave an incomplete line, which is of no member or kind.
        None if args.member.is_some() || !args.kind.is_empty() => {}
        None if !context.args.json && !context.args.quiet => output::print_line(&output::sanitize(&line)),
        _ => {}
    }
}

fn is_before(event: &Value, since: Option<u64>) -> bool {
    // An event of another host comes late, so its own time may be long ago.
    let time = event["logged_at"].as_str().or(event["time"].as_str()).and_then(parse_iso8601);
    since.zip(time).is_some_and(|(since, time)| time < since)
}

/// Splits a stream of chunks into lines. An incomplete line is kept until its end arrives.
struct LineSplitter<F> {
    partial_line: Vec<u8>,
    on_line: F,
}

impl<F: FnMut(&[u8])> LineSplitter<F> {
    fn new(on_line: F) -> LineSplitter<F> {
        LineSplitter { partial_line: Vec::new(), on_line }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.partial_line.extend_from_slice(bytes);
        let Some(end) = self.partial_line.iter().rposition(|byte| *byte == b'\n') else { return };
        let partial_line = self.partial_line.split_off(end + 1);
        let complete = std::mem::replace(&mut self.partial_line, partial_line);
        complete[..end]
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .for_each(&mut self.on_line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_split_into_complete_lines() {
        let mut received_lines = Vec::new();
        let mut lines =
            LineSplitter::new(|line| received_lines.push(String::from_utf8_lossy(line).into_owned()));
        for piece in ["a", "b\n\nc\nd", "e", "\n", "f"] {
            lines.push(piece.as_bytes());
        }
        assert_eq!(received_lines, ["ab", "c", "de"]);
    }

    fn event_text(event: &Value) -> String {
        event_line(&event.to_string(), event)
    }

    #[test]
    fn event_is_one_line_without_control_characters() {
        let event = json!({"time":"T","event":"task_failed","team":"t","task":"3","subject":"count","owner":"ann",
            "reason":"exit 1\n\u{1b}x","more":1});
        assert_eq!(event_text(&event), "T t task 3 failed by ann (exit 1 \\u{1b}x): count");
        let idle_event =
            json!({"time":"T","event":"member_idle","team":"t","member":"ann","reason":"failed"});
        assert_eq!(event_text(&idle_event), "T ann@t idle after a failed turn");
    }

    #[test]
    fn event_of_unknown_kind_is_shown_with_all_fields() {
        let older_event =
            json!({"time":"T","event":"ended","team":"t","member":"ann","text":"exit 1\n\u{1b}x"});
        assert_eq!(event_text(&older_event), "T ann@t ended exit 1 \\u{1b}x");
        assert_eq!(event_text(&json!({"time":"T","event":"ready"})), "T ready");
        let newer_event = json!({"time":"T","event":"from_tomorrow","team":"t","n":1,"why":"x","list":["a"]});
        assert_eq!(event_text(&newer_event), "T t from_tomorrow n=1 why=x list=[\"a\"]");
        let invalid_event = json!({"event":"task_failed","team":7});
        assert_eq!(event_text(&invalid_event), "task_failed");
    }

    #[test]
    fn events_are_selected_by_member_and_kind() {
        let args = |member: Option<&str>, kind: &[&str]| EventsArgs {
            follow: false,
            since: None,
            member: member.map(|member| parse_member(member).unwrap()),
            kind: kind.iter().map(|kind| (*kind).to_owned()).collect(),
        };
        let failed = json!({"event":"task_failed","team":"t","task":"3","owner":"ann"});
        assert!(args(None, &[]).selects(&failed));
        assert!(args(Some("Ann"), &[]).selects(&failed) && args(Some("ann@t"), &[]).selects(&failed));
        assert!(!args(Some("bob"), &[]).selects(&failed) && !args(Some("ann@u"), &[]).selects(&failed));
        assert!(
            args(Some("ann"), &["x", "task_failed"]).selects(&failed) && !args(None, &["x"]).selects(&failed)
        );
    }

    #[test]
    fn unknown_kind_is_refused_with_the_known_ones() {
        let kinds = event_kinds();
        assert!(
            kinds.contains(&"daemon_ready".to_owned()) && kinds.contains(&"error".to_owned()),
            "{kinds:?}"
        );
        assert!(kinds.iter().all(|kind| parse_kind(kind).is_ok()) && !kinds.contains(&String::new()));
        let error = parse_kind("task_faild").unwrap_err();
        assert!(error.contains("did you mean task_failed") && error.contains("message_stored"), "{error}");
    }

    #[test]
    fn since_is_a_duration_or_a_date() {
        assert_eq!(parse_since("1970-01-01T00:00:01Z"), Ok(1000));
        assert_eq!(parse_since("1970-01-02"), Ok(86_400_000));
        assert!(parse_since("10m").is_ok_and(|at| at <= now() - 600_000));
        assert!(parse_since("yesterday").is_err());
        let event = json!({"time":"1970-01-01T00:00:01Z"});
        assert!(is_before(&event, Some(1001)) && !is_before(&event, Some(1000)) && !is_before(&event, None));
    }
}
