//! A snapshot of a team: plain data for drawing. Two snapshots are equal if nothing that the screen
//! shows has changed between them. Times are stored as clock times, such as `14:05`. Unlike
//! durations, they stay correct while the snapshot is on the screen. Texts are stored exactly as
//! other programs wrote them; drawing replaces control characters.

use protocol::member_task_and_request_ids::TaskId;
use std::path::PathBuf;
use std::sync::Arc;

/// Everything that the screen shows of a team.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScreenSnapshot {
    pub(crate) daemon: DaemonReachability,
    pub(crate) team: TeamPresence,
    /// The socket of the tmux server with the members' panes. `None` without a daemon or tmux.
    pub(crate) tmux_socket: Option<PathBuf>,
    /// The team's usage and limits. Empty if neither is known.
    pub(crate) budget: String,
    pub(crate) members: Vec<MemberItem>,
    /// The tasks. Successive snapshots share this list until a task changes.
    pub(crate) tasks: Arc<Vec<TaskItem>>,
    /// The messages, oldest first.
    pub(crate) messages: Vec<Arc<MessageItem>>,
    /// The last events of the team and of the daemon, oldest first.
    pub(crate) events: Vec<EventItem>,
    /// Open requests, oldest first. `None` if they cannot be read.
    pub(crate) requests: Option<Vec<RequestItem>>,
}

/// An event of the event log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventItem {
    pub(crate) time_text: String,
    pub(crate) text: String,
}

/// Whether the daemon answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum DaemonReachability {
    /// No snapshot was read yet.
    #[default]
    Unknown,
    Running,
    /// There is no daemon.
    NotRunning,
    /// The daemon has the socket but does not answer.
    Unresponsive,
}

/// Whether the team exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TeamPresence {
    #[default]
    Exists,
    Deleted,
}

/// A list on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Panel {
    Members,
    Tasks,
    Messages,
    Requests,
}

impl Panel {
    /// All panels, from top to bottom.
    pub(crate) const ALL: [Panel; 4] = [Panel::Members, Panel::Requests, Panel::Tasks, Panel::Messages];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Panel::Members => "members",
            Panel::Tasks => "tasks",
            Panel::Messages => "messages",
            Panel::Requests => "requests",
        }
    }
}

/// An item of a panel.
pub(crate) trait ListItem {
    /// A text that identifies the item in its panel and never changes.
    fn key(&self) -> String;
    /// The member that the keys act on: the one that gets a message, is killed or attached to.
    fn member_name(&self) -> Option<&str>;
    /// The text that a filter is compared with.
    fn filter_text(&self) -> String;
    /// The full text, of several lines.
    fn details(&self) -> String;
    /// The item by its kind, to be drawn as a line.
    fn as_item(&self) -> ListItemRef<'_>;
}

/// An item by its kind.
pub(crate) enum ListItemRef<'a> {
    Member(&'a MemberItem),
    Task(&'a TaskItem),
    Message(&'a MessageItem),
    Request(&'a RequestItem),
}

/// A member or a past member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MemberItem {
    pub(crate) name: String,
    pub(crate) color: String,
    /// What the member does, with its flags: `active!asks`.
    pub(crate) state: String,
    pub(crate) since: String,
    /// How many messages are unread. `None` if the inbox cannot be read.
    pub(crate) unread: Option<usize>,
    /// The member's task, with its number if that is known. Empty if it has none.
    pub(crate) task: String,
    /// The usage. Empty if the program does not report it.
    pub(crate) usage: String,
    /// The last line of the program's output.
    pub(crate) last_line: String,
    /// The id of the pane, such as `%14`. `None` if the member has no pane.
    pub(crate) pane: Option<String>,
    /// What else is known, one fact a line.
    pub(crate) details: Vec<String>,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskItem {
    pub(crate) id: TaskId,
    /// The text that shows the task in the tree of tasks: lines to the task above it, the task's
    /// id, and an arrow with the ids of other open tasks that the task waits for.
    pub(crate) graph: String,
    pub(crate) state: TaskState,
    pub(crate) owner: Option<String>,
    pub(crate) subject: String,
    pub(crate) details: String,
}

/// The state of a task, as the screen shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskState {
    Failed,
    /// The task is in progress, but its owner has exited.
    Abandoned,
    Working,
    /// The task waits for other tasks.
    Blocked,
    Ready,
    Done,
    /// A status that this program does not know.
    Unknown,
}

impl TaskState {
    /// The word on the screen.
    pub(crate) fn label(self) -> &'static str {
        match self {
            TaskState::Failed => "failed",
            TaskState::Abandoned => "left",
            TaskState::Working => "working",
            TaskState::Blocked => "waits",
            TaskState::Ready => "ready",
            TaskState::Done => "done",
            TaskState::Unknown => "?",
        }
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageItem {
    /// The number of the message, counted in the order in which this program read the messages.
    pub(crate) number: u64,
    /// When it was sent, in ms since the epoch, as the message says.
    pub(crate) at: u64,
    pub(crate) time_text: String,
    pub(crate) from: String,
    pub(crate) to: String,
    /// The summary, or else the first line.
    pub(crate) summary: String,
    pub(crate) text: String,
    /// How many times in a row the sender has sent this text to the same member. The field `at` is
    /// the time of the last of these messages.
    pub(crate) count: usize,
}

/// An open request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestItem {
    pub(crate) id: String,
    pub(crate) from: String,
    pub(crate) since: String,
    /// The summary, of one line.
    pub(crate) summary: String,
    /// Everything that a person must read before the answer.
    pub(crate) details: String,
}

impl ScreenSnapshot {
    /// The items of a panel, in their order.
    pub(crate) fn items(&self, panel: Panel) -> Vec<&dyn ListItem> {
        match panel {
            Panel::Members => self.members.iter().map(|item| item as &dyn ListItem).collect(),
            Panel::Tasks => self.tasks.iter().map(|item| item as &dyn ListItem).collect(),
            Panel::Messages => self.messages.iter().map(|item| &**item as &dyn ListItem).collect(),
            Panel::Requests => self.requests.iter().flatten().map(|item| item as &dyn ListItem).collect(),
        }
    }

    /// Whether the requests cannot be read, so that some may be open.
    pub(crate) fn has_unreadable_requests(&self) -> bool {
        let was_read = self.daemon != DaemonReachability::Unknown && self.team == TeamPresence::Exists;
        was_read && self.requests.is_none()
    }

    pub(crate) fn member(&self, name: &str) -> Option<&MemberItem> {
        self.members.iter().find(|member| member.name == name)
    }
}

impl ListItem for MemberItem {
    fn key(&self) -> String {
        self.name.clone()
    }

    fn member_name(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn filter_text(&self) -> String {
        [self.name.as_str(), &self.state, &self.task, &self.last_line].join(" ")
    }

    fn details(&self) -> String {
        let since = if self.since.is_empty() { String::new() } else { format!(" since {}", self.since) };
        let unread = self.unread.map_or_else(|| "?".to_owned(), |unread| unread.to_string());
        let mut lines = vec![format!("{}: {}{since}, {unread} unread", self.name, self.state)];
        if !self.task.is_empty() {
            lines.push(format!("task {}", self.task));
        }
        if !self.usage.is_empty() {
            lines.push(format!("used up {}", self.usage));
        }
        lines.extend(self.details.iter().cloned());
        lines.join("\n")
    }

    fn as_item(&self) -> ListItemRef<'_> {
        ListItemRef::Member(self)
    }
}

impl ListItem for TaskItem {
    fn key(&self) -> String {
        self.id.to_string()
    }

    fn member_name(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    fn filter_text(&self) -> String {
        [self.state.label(), self.owner.as_deref().unwrap_or_default(), &self.subject].join(" ")
    }

    fn details(&self) -> String {
        self.details.clone()
    }

    fn as_item(&self) -> ListItemRef<'_> {
        ListItemRef::Task(self)
    }
}

impl ListItem for MessageItem {
    fn key(&self) -> String {
        self.number.to_string()
    }

    fn member_name(&self) -> Option<&str> {
        Some(&self.from)
    }

    fn filter_text(&self) -> String {
        [self.from.as_str(), &self.to, &self.summary].join(" ")
    }

    fn details(&self) -> String {
        let header = format!("from {} to {}, {}", self.from, self.to, self.time_text).replace('\n', " ");
        format!("{header}\n\n{}", self.text)
    }

    fn as_item(&self) -> ListItemRef<'_> {
        ListItemRef::Message(self)
    }
}

impl ListItem for RequestItem {
    fn key(&self) -> String {
        format!("{} {}", self.from, self.id)
    }

    fn member_name(&self) -> Option<&str> {
        Some(&self.from)
    }

    fn filter_text(&self) -> String {
        [self.from.as_str(), &self.summary].join(" ")
    }

    fn details(&self) -> String {
        self.details.clone()
    }

    fn as_item(&self) -> ListItemRef<'_> {
        ListItemRef::Request(self)
    }
}
