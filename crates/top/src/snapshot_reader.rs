//! Reads snapshots of a team from the daemon's status, the team's files and the members' logs.
//! Files that have not changed since the previous snapshot are not read again.

use crate::args::ScreenArgs;
use crate::clock_time::ScreenClock;
use crate::member_and_request_items::{budget_text, member_item, past_member_item, request_item};
use crate::output_log_tail::{agent_log_path, last_log_lines};
use crate::recent_events::EventStream;
use crate::recent_messages::MessageStream;
use crate::task_items_by_dependency;
use crate::team_snapshot_for_screen::{
    self, DaemonReachability, MemberItem, RequestItem, ScreenSnapshot, TeamPresence,
};
use crate::teamctl_command::suggested_commands;
use client::connect_to_daemon::DaemonAddress;
use client::directory_watcher::{WatchEvent, WatchNotifier};
use client::member_request_view::open_requests;
use client::status_source::{StatusSource, read_suspended_teams};
use client::suggested_commands::SuggestedCommands;
use client::team_view::TeamView;
use protocol::control_socket::{self, Call, Reply, Response, StatusReply};
use protocol::member_task_and_request_ids::TaskId;
use protocol::state_file_names;
use protocol::task::Task;
use protocol::team_and_member_names::MemberName;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{Caller, Durability, InboxCursor, Root, Team, read_leads_file};

/// How long the daemon may take to answer before it counts as unresponsive. The daemon normally
/// answers at once. While the tmux server is stopped (SIGSTOP), the daemon answers after two
/// seconds. A stopped daemon does not answer at all.
const DAEMON_TIMEOUT: Duration = Duration::from_secs(3);
/// How much of a log's last line is kept, in characters.
const MAX_LINE_CHARS: usize = 300;

/// Reads snapshots, and keeps the results of earlier reads.
pub(crate) struct SnapshotReader {
    arguments: ScreenArgs,
    /// How a person types a command about the team.
    suggested_commands: SuggestedCommands,
    notifier: WatchNotifier,
    /// The pid of the daemon whose exit is watched.
    watched_daemon: Option<u32>,
    team: Option<Team>,
    messages: MessageStream,
    events: EventStream,
    last_lines: BTreeMap<String, LastLine>,
    tasks: TaskItemCache,
    /// The open requests that were read last, with the sources that they were read from.
    requests: Option<(RequestSources, Vec<RequestItem>)>,
}

/// The last non-blank line of a log, and the version of the log from which the line was read.
struct LastLine {
    version: ShownFileVersion,
    text: String,
}

/// The versions of everything from which the open requests are read.
#[derive(PartialEq)]
struct RequestSources {
    inboxes: BTreeMap<MemberName, InboxCursor>,
    config: Option<ShownFileVersion>,
    policy: Option<ShownFileVersion>,
    /// The date on which the requests' times were formatted.
    day: String,
}

/// The list items of the tasks that were listed last.
#[derive(Default)]
struct TaskItemCache {
    tasks: Vec<Arc<Task>>,
    abandoned: Vec<TaskId>,
    items: Arc<Vec<team_snapshot_for_screen::TaskItem>>,
}

/// The version of a file. It changes whenever the file is written or replaced.
#[derive(PartialEq, Eq)]
struct ShownFileVersion {
    inode: u64,
    size: u64,
    /// The modification time: seconds since the epoch, and nanoseconds.
    modified: (i64, i64),
}

impl SnapshotReader {
    pub(crate) fn new(arguments: ScreenArgs, notifier: WatchNotifier) -> SnapshotReader {
        let suggested_commands = suggested_commands(&arguments);
        let messages = MessageStream::new(&suggested_commands);
        let events = EventStream::new(&arguments.state_dir, &arguments.team);
        SnapshotReader {
            arguments,
            suggested_commands,
            notifier,
            watched_daemon: None,
            team: None,
            messages,
            events,
            last_lines: BTreeMap::new(),
            tasks: TaskItemCache::default(),
            requests: None,
        }
    }

    /// Reads a snapshot. `event` is the reason: a file has changed, or nothing has changed for some
    /// time. Only if a file has changed, the daemon also searches the members' screens for dialogs.
    pub(crate) fn read(&mut self, event: WatchEvent) -> ScreenSnapshot {
        let (daemon, status) = self.request_status(event);
        let Some(team) = self.open_team() else {
            return ScreenSnapshot { daemon, team: TeamPresence::Deleted, ..ScreenSnapshot::default() };
        };
        let clock = ScreenClock::current();
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
            tmux_socket: status.as_ref().and_then(|status| status.daemon.tmux.clone()),
            budget: view.budget.as_ref().map(|budget| budget_text(budget, &clock)).unwrap_or_default(),
            members: self.member_items(&view, &clock),
            tasks: self.task_items(&team, &view),
            messages: self.messages.messages(&clock),
            events: self.events.events(&clock),
            requests: self.request_items(&team, &clock),
        }
    }

    fn request_status(&mut self, event: WatchEvent) -> (DaemonReachability, Option<StatusReply>) {
        let request = match event {
            WatchEvent::TimedOut => control_socket::Request::Status,
            _ => control_socket::Request::StatusWithScreens,
        };
        match query_status(&self.arguments, request) {
            Ok(status) => {
                if self.watched_daemon.replace(status.daemon.pid) != Some(status.daemon.pid) {
                    self.notifier.notify_on_exit(status.daemon.pid);
                }
                (DaemonReachability::Running, Some(status))
            }
            Err(
                client::daemon_call_error::Error::NotRunning { .. }
                | client::daemon_call_error::Error::Disconnected(_),
            ) => (DaemonReachability::NotRunning, None),
            Err(_) => (DaemonReachability::Unresponsive, None),
        }
    }

    /// Opens the team, or returns the team that was opened before. If the team's directory was
    /// replaced by a different one, for example because the team was deleted and created again, the
    /// team is opened again. `None` if the team does not exist.
    fn open_team(&mut self) -> Option<Team> {
        if self.team.as_ref().is_none_or(|team| !team.is_current()) {
            // Nothing is written here, so the durability has no effect.
            let root = Root::open(&self.arguments.root, &self.arguments.state_dir, Durability::Process).ok();
            self.team = root.and_then(|root| root.team(&self.arguments.team).ok());
            self.messages = MessageStream::new(&self.suggested_commands);
            self.requests = None;
        }
        self.team.clone()
    }

    fn task_items(&mut self, team: &Team, view: &TeamView) -> Arc<Vec<team_snapshot_for_screen::TaskItem>> {
        let listed = team.tasks().list_cached().unwrap_or_default();
        let abandoned: Vec<TaskId> = view.abandoned_tasks.iter().map(|task| task.id).collect();
        let cache = &mut self.tasks;
        let is_same = cache.tasks.len() == listed.len()
            && cache.tasks.iter().zip(&listed).all(|(a, b)| Arc::ptr_eq(a, b));
        if !is_same || cache.abandoned != abandoned {
            let items = Arc::new(task_items_by_dependency::task_items(&listed, &abandoned));
            *cache = TaskItemCache { tasks: listed, abandoned, items };
        }
        Arc::clone(&cache.items)
    }

    fn member_items(&mut self, view: &TeamView, clock: &ScreenClock) -> Vec<MemberItem> {
        let mut members = Vec::with_capacity(view.members.len() + view.past_members.len());
        for member in &view.members {
            let last = self.last_line(&member.name);
            members.push(member_item(member, last, clock));
        }
        members.extend(
            view.past_members.iter().map(|past| past_member_item(past, &self.suggested_commands, clock)),
        );
        members
    }

    /// The last line of a member's log that is not blank.
    fn last_line(&mut self, name: &str) -> String {
        let path = agent_log_path(&self.arguments, name);
        let Ok(metadata) = path.metadata() else { return String::new() };
        let version = ShownFileVersion::new(&metadata);
        if let Some(cached) = self.last_lines.get(name).filter(|cached| cached.version == version) {
            return cached.text.clone();
        }
        let text = last_line_of(last_log_lines(&path));
        self.last_lines.insert(name.to_owned(), LastLine { version, text: text.clone() });
        text
    }

    /// The open requests of members. `None` if they cannot be read. Requests are in the lead's
    /// inbox, and each answer is in the inbox of the member that made the request. So the requests
    /// are read again only when one of these inboxes has changed.
    fn request_items(&mut self, team: &Team, clock: &ScreenClock) -> Option<Vec<RequestItem>> {
        let lead = MemberName::lead();
        let is_readable = self.messages.read_inbox(team, &lead).is_some();
        let sources = self.request_sources(team, clock);
        if !is_readable || self.requests.as_ref().is_none_or(|(known, _)| *known != sources) {
            let caller = Caller::new(team.clone(), lead);
            let scanned = caller.policy().ok().zip(team.requests().scan().ok());
            self.requests = scanned.map(|(policy, requests)| {
                (
                    sources,
                    open_requests(&policy, requests).iter().map(|open| request_item(open, clock)).collect(),
                )
            });
        }
        self.requests.as_ref().map(|(_, items)| items.clone())
    }

    fn request_sources(&self, team: &Team, clock: &ScreenClock) -> RequestSources {
        let version = |path: &Path| path.metadata().ok().map(|metadata| ShownFileVersion::new(&metadata));
        RequestSources {
            inboxes: self.messages.cursors().clone(),
            config: version(&team.config_path()),
            policy: version(&self.arguments.state_dir.join(state_file_names::policy(team.name()))),
            day: clock.day(),
        }
    }
}

/// The last line that is not blank.
pub(crate) fn last_line_of(lines: Vec<String>) -> String {
    let line = lines.into_iter().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line.trim().chars().take(MAX_LINE_CHARS).collect()
}

fn query_status(
    arguments: &ScreenArgs,
    request: control_socket::Request,
) -> Result<StatusReply, client::daemon_call_error::Error> {
    let socket = &arguments.socket;
    let address = DaemonAddress { socket: socket.clone(), state_dir: arguments.state_dir.clone() };
    let mut connection = address.open()?;
    connection.set_timeout(DAEMON_TIMEOUT)?;
    let root = Some(arguments.root.to_string_lossy().into_owned());
    let call = Call { root, ..Call::new(request) };
    match connection.call(&call)? {
        Response::Done(reply) => match *reply {
            Reply::Status(status) => Ok(status),
            _ => Err(client::daemon_call_error::Error::Unresponsive(socket.to_owned())),
        },
        Response::Failed(_) => Err(client::daemon_call_error::Error::Unresponsive(socket.to_owned())),
    }
}

impl ShownFileVersion {
    fn new(metadata: &Metadata) -> ShownFileVersion {
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        ShownFileVersion { inode: metadata.ino(), size: metadata.len(), modified }
    }
}
