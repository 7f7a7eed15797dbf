//! Reads snapshots of a team: the daemon's status, the team's files and the members' logs. What has
//! not changed since the snapshot before is not read again.

use crate::args::ScreenArgs;
use crate::effect_threads::suggested_commands;
use crate::message_stream::MessageStream;
use crate::snapshot::{self, DaemonReachability, MemberItem, RequestItem, ScreenSnapshot, TeamPresence};
use crate::task_tree;
use client::connection::Connection;
use client::directory_watcher::{WatchEvent, WatchNotifier};
use client::request_view::{RequestView, open_requests, request_text};
use client::suggested_commands::SuggestedCommands;
use client::team_view::{MemberView, StatusSource, TeamView, read_suspended_teams};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use protocol::control::{
    self, Activity, BudgetStatus, Call, MemberFlag, MemberStatus, PROTOCOL_VERSION, PastMember, Reply,
    Response, StatusReply,
};
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::policy::Policy;
use protocol::task::Task;
use protocol::text::single_line;
use protocol::usage::Usage;
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::read_leads_file;
use store::{Caller, Durability, InboxCursor, Root, Team};

/// How long the daemon may take to answer. It answers at once, unless it is stopped, or waits two
/// seconds for a tmux server that is stopped.
const DAEMON_TIMEOUT: Duration = Duration::from_secs(3);
/// How much of the end of a log is read, in bytes.
const TAIL_BYTES: u64 = 8 << 10;
/// How much of a log's last line is kept, in characters.
const MAX_LINE_CHARS: usize = 300;

/// Reads snapshots, and keeps what it read before.
pub(crate) struct SnapshotReader {
    arguments: ScreenArgs,
    /// How a person types a command about the team.
    suggested_commands: SuggestedCommands,
    notifier: WatchNotifier,
    /// The daemon whose exit is watched; its pid.
    watched_daemon: Option<u32>,
    /// The daemon's last status with screens.
    last_full_status: Option<StatusReply>,
    team: Option<Team>,
    messages: MessageStream,
    last_lines: BTreeMap<String, (FileVersion, String)>,
    tasks: TaskItemCache,
    /// The open requests, or `None` if they cannot be read, and their sources.
    requests: (Option<Vec<RequestItem>>, Option<RequestSources>),
}

/// The sources of the requests: the inboxes, the config and the policy, and the date on which their
/// times were formatted.
type RequestSources = (BTreeMap<AgentName, InboxCursor>, [Option<FileVersion>; 2], String);

/// The tasks that were listed last, the abandoned ones among them, and their list items.
type TaskItemCache = (Vec<Arc<Task>>, Vec<TaskId>, Arc<Vec<snapshot::TaskItem>>);

/// Inode, size in bytes, and modification time in seconds and nanoseconds.
type FileVersion = (u64, u64, i64, i64);

impl SnapshotReader {
    pub(crate) fn new(arguments: ScreenArgs, notifier: WatchNotifier) -> SnapshotReader {
        let suggested_commands = suggested_commands(&arguments);
        let messages = MessageStream::new(&suggested_commands);
        SnapshotReader {
            arguments,
            suggested_commands,
            notifier,
            watched_daemon: None,
            last_full_status: None,
            team: None,
            messages,
            last_lines: BTreeMap::new(),
            tasks: TaskItemCache::default(),
            requests: (None, None),
        }
    }

    /// Reads a snapshot. `event` is the reason: if it is a timeout, the daemon does not read the
    /// members' screens again.
    pub(crate) fn read(&mut self, event: WatchEvent) -> ScreenSnapshot {
        let (daemon, status) = self.request_status(event);
        let Some(team) = self.open_team() else {
            return ScreenSnapshot { daemon, team: TeamPresence::Deleted, ..ScreenSnapshot::default() };
        };
        let messages = &mut self.messages;
        let suspended =
            if status.is_none() { read_suspended_teams(&self.arguments.state_dir) } else { Vec::new() };
        let source = StatusSource::from_reply_or_roster(status.as_ref(), &suspended);
        let mut view = client::team_view::open_team_view(&team, source, &mut |team, name| {
            messages.read_inbox(team, name)
        });
        view.set_lead_session(&read_leads_file(&self.arguments.state_dir));
        for past in &view.past_members {
            self.messages.read_inbox(&team, &past.name);
        }
        ScreenSnapshot {
            daemon,
            team: TeamPresence::Exists,
            budget: view.budget.as_ref().map(budget_text).unwrap_or_default(),
            members: self.member_items(&view),
            tasks: self.task_items(&team, &view),
            messages: self.messages.messages(),
            requests: self.request_items(&team),
        }
    }

    fn request_status(&mut self, event: WatchEvent) -> (DaemonReachability, Option<StatusReply>) {
        let request = match event {
            WatchEvent::TimedOut => control::Request::Status,
            _ => control::Request::StatusWithScreens,
        };
        match query_status(&self.arguments.socket, request) {
            Ok(mut status) => {
                match event {
                    WatchEvent::TimedOut => carry_over_dialogs(&mut status, self.last_full_status.as_ref()),
                    _ => self.last_full_status = Some(status.clone()),
                }
                if self.watched_daemon.replace(status.daemon.pid) != Some(status.daemon.pid) {
                    self.notifier.notify_on_exit(status.daemon.pid);
                }
                (DaemonReachability::Running, Some(status))
            }
            Err(client::error::Error::NotRunning { .. } | client::error::Error::Disconnected(_)) => {
                (DaemonReachability::NotRunning, None)
            }
            Err(_) => (DaemonReachability::Unresponsive, None),
        }
    }

    /// The team. Opens it again if its directory was replaced by another one. `None` if it does not
    /// exist.
    fn open_team(&mut self) -> Option<Team> {
        if self.team.as_ref().is_none_or(|team| !team.is_current()) {
            // Nothing is written here, so the durability has no effect.
            let root = Root::open(&self.arguments.root, &self.arguments.state_dir, Durability::Process).ok();
            self.team = root.and_then(|root| root.team(&self.arguments.team).ok());
            self.messages = MessageStream::new(&self.suggested_commands);
            self.requests = (None, None);
        }
        self.team.clone()
    }

    fn task_items(&mut self, team: &Team, view: &TeamView) -> Arc<Vec<snapshot::TaskItem>> {
        let listed = team.tasks().list_cached().unwrap_or_default();
        let abandoned: Vec<TaskId> = view.abandoned_tasks.iter().map(|task| task.id).collect();
        let (before, abandoned_before, items) = &mut self.tasks;
        let is_same =
            before.len() == listed.len() && before.iter().zip(&listed).all(|(a, b)| Arc::ptr_eq(a, b));
        if !is_same || *abandoned_before != abandoned {
            *items = Arc::new(task_tree::task_items(&listed, &abandoned));
            (*before, *abandoned_before) = (listed, abandoned);
        }
        Arc::clone(items)
    }

    fn member_items(&mut self, view: &TeamView) -> Vec<MemberItem> {
        let mut members = Vec::with_capacity(view.members.len() + view.past_members.len());
        for member in &view.members {
            let last = self.last_line(&member.name);
            members.push(member_item(member, last));
        }
        members.extend(view.past_members.iter().map(|past| past_member_item(past, &self.suggested_commands)));
        members
    }

    /// The last line of a member's log that is not blank.
    fn last_line(&mut self, name: &str) -> String {
        let path = agent_log_path(&self.arguments, name);
        let Ok(metadata) = path.metadata() else { return String::new() };
        let version = file_version(&metadata);
        if let Some((_, line)) = self.last_lines.get(name).filter(|(cached, _)| *cached == version) {
            return line.clone();
        }
        let line =
            last_log_lines(&path).into_iter().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let line: String = line.trim().chars().take(MAX_LINE_CHARS).collect();
        self.last_lines.insert(name.to_owned(), (version, line.clone()));
        line
    }

    /// The open requests. `None` if they cannot be read. A request is in the lead's inbox, its
    /// answer in the inbox of the member that asked.
    fn request_items(&mut self, team: &Team) -> Option<Vec<RequestItem>> {
        let lead = AgentName::lead();
        let is_readable = self.messages.read_inbox(team, &lead).is_some();
        let sources = Some(self.request_sources(team));
        let (known, known_sources) = &mut self.requests;
        if !is_readable || known.is_none() || *known_sources != sources {
            *known_sources = sources;
            let caller = Caller::new(team.clone(), lead, self.arguments.state_dir.clone());
            let scanned = caller.policy().ok().zip(team.requests().scan().ok());
            *known = scanned.map(|(policy, requests)| {
                open_requests(&policy, requests).iter().map(request_item).collect()
            });
        }
        known.clone()
    }

    fn request_sources(&self, team: &Team) -> RequestSources {
        let files = [team.config_path(), self.arguments.state_dir.join(Policy::file_name(team.name()))];
        let files = files.map(|path| path.metadata().ok().map(|metadata| file_version(&metadata)));
        (self.messages.cursors().clone(), files, today())
    }
}

/// Copies dialog flags from the last status with screens to the members that still run. A status
/// without screens has no such flags.
fn carry_over_dialogs(status: &mut StatusReply, before: Option<&StatusReply>) {
    let before = before.into_iter().flat_map(|before| &before.teams).flat_map(|team| &team.members);
    let before: Vec<_> = before.collect();
    for agent in status.teams.iter_mut().flat_map(|team| &mut team.members) {
        let is_same = |known: &&&MemberStatus| (&known.agent_id, known.pid) == (&agent.agent_id, agent.pid);
        let flags = before.iter().find(is_same).into_iter().flat_map(|known| &known.flags);
        let dialogs = flags.filter(|flag| matches!(flag, MemberFlag::AtDialog | MemberFlag::DialogUnknown));
        let missing: Vec<MemberFlag> = dialogs.filter(|flag| !agent.flags.contains(flag)).copied().collect();
        agent.flags.extend(missing);
    }
}

fn query_status(socket: &Path, request: control::Request) -> Result<StatusReply, client::error::Error> {
    let mut connection = Connection::open(socket)?;
    connection.set_timeout(DAEMON_TIMEOUT)?;
    let call = Call { version: PROTOCOL_VERSION, token: None, idempotency_key: None, request };
    match connection.call(&call)? {
        Response::Done(reply) => match *reply {
            Reply::Status(status) => Ok(status),
            _ => Err(client::error::Error::Unresponsive(socket.to_owned())),
        },
        Response::Failed(_) => Err(client::error::Error::Unresponsive(socket.to_owned())),
    }
}

/// The log of a member's output.
pub(crate) fn agent_log_path(arguments: &ScreenArgs, name: &str) -> PathBuf {
    let file = format!("{}.log", AgentName::new_unchecked(name).file_stem());
    agent_log_dir(arguments).join(file)
}

/// The directory with the logs of the team's members.
pub(crate) fn agent_log_dir(arguments: &ScreenArgs) -> PathBuf {
    arguments.state_dir.join("logs/agents").join(arguments.team.as_str())
}

/// The last lines of a log, without control characters. Empty if it cannot be read.
pub(crate) fn last_log_lines(path: &Path) -> Vec<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    client::terminal_text::printable_lines(&read().unwrap_or_default())
}

fn file_version(metadata: &Metadata) -> FileVersion {
    (metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

fn member_item(member: &MemberView, last: String) -> MemberItem {
    MemberItem {
        name: member.name.clone(),
        color: member.color.clone(),
        state: state_text(member),
        since: member.activity_since.map(clock_time).unwrap_or_default(),
        unread: member.unread,
        task: single_line(member.task.as_deref().unwrap_or_default()),
        usage: usage_text(member.usage),
        last_line: last,
        pane: member.pane.clone(),
        details: detail_lines(member),
    }
}

fn usage_text(usage: Usage) -> String {
    if usage.is_zero() { String::new() } else { usage.to_string() }
}

/// The budget's text. The end of its time limit is a clock time, which stays correct.
fn budget_text(budget: &BudgetStatus) -> String {
    let until =
        budget.max_time_ms.map(|ms| format!("until {}", clock_time(budget.started_at.saturating_add(ms))));
    client::text::budget_text(budget, until)
}

/// The activity and the flags of a member that runs, or else its lifecycle.
fn state_text(member: &MemberView) -> String {
    let lifecycle = member.lifecycle_and_flags();
    let activity = match member.activity {
        Some(Activity::Active) => "active",
        Some(Activity::Idle) => "idle",
        None => return lifecycle,
    };
    match lifecycle.strip_prefix("running") {
        Some(flags) => format!("{activity}{flags}"),
        // `stopping` includes the shutdown request.
        None => lifecycle.replacen("stopping!shutdown", "stopping", 1),
    }
}

fn detail_lines(member: &MemberView) -> Vec<String> {
    let lifecycle = Some(member.lifecycle_and_flags()).filter(|text| !text.is_empty());
    let pane = match (&member.pane, member.is_hidden) {
        (Some(pane), true) => Some(format!("pane {pane}, hidden")),
        (Some(pane), false) => Some(format!("pane {pane}")),
        (None, _) => None,
    };
    let respawns = member.respawns.filter(|times| *times > 0);
    let lines = [
        lifecycle.map(|text| format!("phase {text}")),
        pane,
        member.backend.as_ref().map(|backend| format!("backend {backend}")),
        member.pid.map(|pid| format!("pid {pid}")),
        member.mode.as_ref().map(|mode| format!("mode {mode}")),
        respawns.map(|times| format!("started again {times} times")),
        member.worktree.as_ref().map(|path| format!("worktree {}", path.display())),
        member.delivery_point.map(|point| point.description().to_string()),
        member.evidence.clone().filter(|evidence| !evidence.is_empty()),
    ];
    lines.into_iter().flatten().map(|line| single_line(&line)).collect()
}

fn past_member_item(past: &PastMember, commands: &SuggestedCommands) -> MemberItem {
    let next_spawn = match (past.respawns_at, past.is_suspended) {
        (Some(at), _) => format!(", again at {}", clock_time(at)),
        (None, true) => format!("; rests until: {}", commands.command(&["up", "--resume"])),
        (None, false) => String::new(),
    };
    MemberItem {
        name: past.name.to_string(),
        state: past.outcome.clone(),
        since: clock_time(past.ended_at),
        unread: Some(0),
        usage: usage_text(past.usage),
        last_line: single_line(&format!("{}{next_spawn}", past.description)),
        details: vec![format!("ended: {}{next_spawn}", single_line(&past.description))],
        ..MemberItem::default()
    }
}

fn request_item(open: &RequestView) -> RequestItem {
    let RequestView { request, policy_answer } = open;
    let (id, from) = (request.request.id().to_string(), request.from.to_string());
    let since = if request.asked_at == 0 { String::new() } else { clock_time(request.asked_at) };
    let text = request_text(&request.request);
    let timeout_text = policy_answer.map_or_else(String::new, |(at, approved)| {
        format!(", {} at {} if nobody answers", if approved { "approved" } else { "denied" }, clock_time(at))
    });
    let since_text = if since.is_empty() { String::new() } else { format!(" since {since}") };
    // The request is indented, so that no line of it looks like one of the screen.
    let indented: String = text.lines().map(|line| format!("\n  {line}")).collect();
    let details =
        format!("{}, request {}{since_text}{timeout_text}\n{indented}", single_line(&from), single_line(&id));
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().to_owned();
    let summary =
        if first.ends_with(':') { format!("{first} {}", lines.next().unwrap_or_default()) } else { first };
    RequestItem { id, from, since, summary, details }
}

/// A time in ms since the epoch: of today as hour and minute, of any other day as month and day. A
/// clock time stays correct while the screen is not redrawn. A duration in seconds, as `status` has
/// it, would need a redraw each second.
pub(crate) fn clock_time(ms: u64) -> String {
    format_clock_time(ms, store::now(), &TimeZone::system())
}

/// Today's date in the local time zone.
pub(crate) fn today() -> String {
    jiff::Zoned::now().date().to_string()
}

fn format_clock_time(ms: u64, now: u64, zone: &TimeZone) -> String {
    let at = |ms: u64| {
        let ms = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok())?;
        Some(ms.to_zoned(zone.clone()))
    };
    match (at(ms), at(now)) {
        (Some(then), Some(now)) if then.date() == now.date() => {
            format!("{:02}:{:02}", then.hour(), then.minute())
        }
        (Some(then), _) => format!("{:02}-{:02}", then.month(), then.day()),
        (None, _) => "?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_status_keeps_dialog_flags() {
        let status = |pid: u32, flags: &[&str]| -> StatusReply {
            let agent = serde_json::json!({"name": "ann", "agent_id": "ann@t", "phase": "running", "activity": "idle",
                "since": 1, "task": null, "feed": "turn", "pane": "%1", "pid": pid, "backend": "tmux", "color": "",
                "flags": flags});
            let daemon =
                serde_json::json!({"pid": 1, "version": "", "root": "/", "tmux": null, "watch": "events"});
            let team = serde_json::json!({"name": "t", "members": [agent]});
            serde_json::from_value(serde_json::json!({"daemon": daemon, "teams": [team]})).unwrap()
        };
        let before = status(7, &["at_dialog", "shutdown_requested"]);
        let kept = |mut now: StatusReply| {
            carry_over_dialogs(&mut now, Some(&before));
            now.teams[0].members[0].flags.clone()
        };
        assert_eq!(kept(status(7, &[])), [MemberFlag::AtDialog]);
        assert_eq!(kept(status(7, &["at_dialog"])), [MemberFlag::AtDialog]);
        assert_eq!(kept(status(8, &[])), [], "another spawn");
    }

    #[test]
    fn clock_time_shows_time_or_date() {
        let minute = 60_000;
        let text = |ms, now| format_clock_time(ms, now, &TimeZone::UTC);
        assert_eq!(text(61 * minute, 62 * minute), "01:01");
        assert_eq!(text(61 * minute, 61 * minute + 24 * 60 * minute), "01-01");
        assert_eq!(text(u64::MAX, 0), "?");
    }

    #[test]
    fn last_log_line_skips_blank_lines_and_escapes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ann.log");
        let text = format!("{}\nbuilding\r10%\r\x1b[32mdone \x1b[0m\r\n\n  \n", "x".repeat(20_000));
        std::io::Write::write_all(&mut File::create(&path).unwrap(), text.as_bytes()).unwrap();
        let last = last_log_lines(&path).into_iter().rev().find(|line| !line.trim().is_empty());
        assert_eq!(last.as_deref(), Some("done "));
        assert!(last_log_lines(&dir.path().join("none")).is_empty());
    }
}
