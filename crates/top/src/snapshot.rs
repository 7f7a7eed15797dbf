//! What a look has found: plain data, equal where nothing has changed. Times are clock times, so that nothing in it grows
//! old while nobody looks. Texts are as others wrote them.

use protocol::id::TaskId;
use std::sync::Arc;

/// All that the screen shows of a team.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScreenSnapshot {
    pub(crate) daemon: DaemonReachability,
    pub(crate) team: TeamPresence,
    /// What the team has used up, and of how much; empty where nobody tells or limits that.
    pub(crate) budget: String,
    pub(crate) members: Vec<MemberItem>,
    /// Shared with the looks before and after, as long as no task changes.
    pub(crate) tasks: Arc<Vec<TaskItem>>,
    /// Oldest first.
    pub(crate) messages: Vec<Arc<MessageItem>>,
    /// Those that wait, oldest first; none where that is not known.
    pub(crate) requests: Option<Vec<RequestItem>>,
}

/// Whether a daemon answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum DaemonReachability {
    /// Nobody has looked yet.
    #[default]
    Unknown,
    Running,
    /// Nobody listens.
    NotRunning,
    /// Somebody listens, and says nothing.
    Unresponsive,
}

/// Whether the team is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TeamPresence {
    #[default]
    Exists,
    Deleted,
}

/// A part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Panel {
    Members,
    Tasks,
    Messages,
    Requests,
}

impl Panel {
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

/// One thing of a part.
pub(crate) trait ListItem {
    /// Tells it from the others of its part, whatever else changes.
    fn key(&self) -> String;
    /// Whose it is: to whom a message goes, who is ended, attached to.
    fn member_name(&self) -> Option<&str>;
    /// What a filter is held against.
    fn filter_text(&self) -> String;
    /// All of it, over several lines.
    fn details(&self) -> String;
    /// Itself, to be drawn as a line.
    fn as_item(&self) -> ListItemRef<'_>;
}

/// A thing that is drawn as a line.
pub(crate) enum ListItemRef<'a> {
    Member(&'a MemberItem),
    Task(&'a TaskItem),
    Letter(&'a MessageItem),
    Request(&'a RequestItem),
}

/// A member, or one whose life has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MemberItem {
    pub(crate) name: String,
    pub(crate) color: String,
    /// What it does, with what waits: `active!asks`.
    pub(crate) state: String,
    pub(crate) since: String,
    /// None: its inbox can't be read.
    pub(crate) unread: Option<usize>,
    /// With its number, where that is known.
    pub(crate) task: String,
    /// What it has used up; empty where its program does not tell.
    pub(crate) usage: String,
    /// The last line that its program wrote.
    pub(crate) last_line: String,
    /// `%14`.
    pub(crate) pane: Option<String>,
    /// What else is known of it, a line each.
    pub(crate) details: Vec<String>,
}

/// A task, in the order in which the tasks are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskItem {
    pub(crate) id: TaskId,
    /// How deep below what it waits for.
    pub(crate) depth: usize,
    pub(crate) state: &'static str,
    pub(crate) owner: Option<String>,
    pub(crate) subject: String,
    /// What it waits for beside the task that it stands below.
    pub(crate) waits_for: Vec<TaskId>,
    pub(crate) details: String,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageItem {
    /// Counts the letters that we have seen.
    pub(crate) number: u64,
    /// When it was sent, ms since the epoch, as far as it says.
    pub(crate) at: u64,
    pub(crate) time_text: String,
    pub(crate) from: String,
    pub(crate) to: String,
    /// Its summary, else how it begins.
    pub(crate) summary: String,
    pub(crate) text: String,
    /// So often it has come, its sender saying nothing else to this one in between; `at` is of the last.
    pub(crate) count: usize,
}

/// A request that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestItem {
    pub(crate) id: String,
    pub(crate) from: String,
    pub(crate) since: String,
    /// In one line.
    pub(crate) summary: String,
    /// All that a person must have read before the answer.
    pub(crate) details: String,
}

impl ScreenSnapshot {
    /// The things of a part, in their order.
    pub(crate) fn items(&self, part: Panel) -> Vec<&dyn ListItem> {
        match part {
            Panel::Members => self.members.iter().map(|item| item as &dyn ListItem).collect(),
            Panel::Tasks => self.tasks.iter().map(|item| item as &dyn ListItem).collect(),
            Panel::Messages => self.messages.iter().map(|item| &**item as &dyn ListItem).collect(),
            Panel::Requests => self.requests.iter().flatten().map(|item| item as &dyn ListItem).collect(),
        }
    }

    /// Whether somebody may wait, and it can't be read who.
    pub(crate) fn has_unreadable_requests(&self) -> bool {
        let has_looked = self.daemon != DaemonReachability::Unknown && self.team == TeamPresence::Exists;
        has_looked && self.requests.is_none()
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
        [self.state, self.owner.as_deref().unwrap_or_default(), &self.subject].join(" ")
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
        let head = format!("from {} to {}, {}", self.from, self.to, self.time_text).replace('\n', " ");
        format!("{head}\n\n{}", self.text)
    }

    fn as_item(&self) -> ListItemRef<'_> {
        ListItemRef::Letter(self)
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
