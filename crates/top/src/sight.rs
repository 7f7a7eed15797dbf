//! What a look has found: plain data, equal where nothing has changed. Times are clock times, so that nothing in it grows
//! old while nobody looks. Texts are as others wrote them.

use protocol::id::TaskId;
use std::sync::Arc;

/// All that the screen shows of a team.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sight {
    pub(crate) daemon: Daemon,
    pub(crate) team: Found,
    /// What the team has used up, and of how much; empty where nobody tells or limits that.
    pub(crate) budget: String,
    pub(crate) members: Vec<Member>,
    /// Shared with the looks before and after, as long as no task changes.
    pub(crate) tasks: Arc<Vec<Task>>,
    /// Oldest first.
    pub(crate) messages: Vec<Arc<Letter>>,
    /// Those that wait, oldest first; none where that is not known.
    pub(crate) requests: Option<Vec<Request>>,
}

/// Whether a daemon answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Daemon {
    /// Nobody has looked yet.
    #[default]
    Unasked,
    Answers,
    /// Nobody listens.
    Down,
    /// Somebody listens, and says nothing.
    Silent,
}

/// Whether the team is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Found {
    #[default]
    There,
    Gone,
}

/// A part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Members,
    Tasks,
    Messages,
    Requests,
}

impl Part {
    pub(crate) const ALL: [Part; 4] = [Part::Members, Part::Requests, Part::Tasks, Part::Messages];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Part::Members => "members",
            Part::Tasks => "tasks",
            Part::Messages => "messages",
            Part::Requests => "requests",
        }
    }
}

/// One thing of a part.
pub(crate) trait Item {
    /// Tells it from the others of its part, whatever else changes.
    fn key(&self) -> String;
    /// Whose it is: to whom a message goes, who is ended, attached to.
    fn whose(&self) -> Option<&str>;
    /// What a filter is held against.
    fn words(&self) -> String;
    /// All of it, over several lines.
    fn whole(&self) -> String;
    /// Itself, to be drawn as a line.
    fn as_line(&self) -> AsLine<'_>;
}

/// A thing that is drawn as a line.
pub(crate) enum AsLine<'a> {
    Member(&'a Member),
    Task(&'a Task),
    Letter(&'a Letter),
    Request(&'a Request),
}

/// A member, or one whose life has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Member {
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
    pub(crate) used: String,
    /// The last line that its program wrote.
    pub(crate) last: String,
    /// `%14`.
    pub(crate) pane: Option<String>,
    /// What else is known of it, a line each.
    pub(crate) about: Vec<String>,
}

/// A task, in the order in which the tasks are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) id: TaskId,
    /// How deep below what it waits for.
    pub(crate) depth: usize,
    pub(crate) state: &'static str,
    pub(crate) owner: Option<String>,
    pub(crate) subject: String,
    /// What it waits for beside the task that it stands below.
    pub(crate) waits_for: Vec<TaskId>,
    pub(crate) whole: String,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Letter {
    /// Counts the letters that we have seen.
    pub(crate) number: u64,
    /// When it was sent, ms since the epoch, as far as it says.
    pub(crate) at: u64,
    pub(crate) clock: String,
    pub(crate) from: String,
    pub(crate) to: String,
    /// Its summary, else how it begins.
    pub(crate) about: String,
    pub(crate) text: String,
    /// So often it has come, its sender saying nothing else to this one in between; `at` is of the last.
    pub(crate) times: usize,
}

/// A request that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) id: String,
    pub(crate) from: String,
    pub(crate) since: String,
    /// In one line.
    pub(crate) about: String,
    /// All that a person must have read before the answer.
    pub(crate) whole: String,
}

impl Sight {
    /// The things of a part, in their order.
    pub(crate) fn items(&self, part: Part) -> Vec<&dyn Item> {
        match part {
            Part::Members => self.members.iter().map(|item| item as &dyn Item).collect(),
            Part::Tasks => self.tasks.iter().map(|item| item as &dyn Item).collect(),
            Part::Messages => self.messages.iter().map(|item| &**item as &dyn Item).collect(),
            Part::Requests => self.requests.iter().flatten().map(|item| item as &dyn Item).collect(),
        }
    }

    /// Whether somebody may wait, and it can't be read who.
    pub(crate) fn hides_requests(&self) -> bool {
        let has_looked = self.daemon != Daemon::Unasked && self.team == Found::There;
        has_looked && self.requests.is_none()
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }
}

impl Item for Member {
    fn key(&self) -> String {
        self.name.clone()
    }

    fn whose(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn words(&self) -> String {
        [self.name.as_str(), &self.state, &self.task, &self.last].join(" ")
    }

    fn whole(&self) -> String {
        let since = if self.since.is_empty() { String::new() } else { format!(" since {}", self.since) };
        let unread = self.unread.map_or_else(|| "?".to_owned(), |unread| unread.to_string());
        let mut lines = vec![format!("{}: {}{since}, {unread} unread", self.name, self.state)];
        if !self.task.is_empty() {
            lines.push(format!("task {}", self.task));
        }
        if !self.used.is_empty() {
            lines.push(format!("used up {}", self.used));
        }
        lines.extend(self.about.iter().cloned());
        lines.join("\n")
    }

    fn as_line(&self) -> AsLine<'_> {
        AsLine::Member(self)
    }
}

impl Item for Task {
    fn key(&self) -> String {
        self.id.to_string()
    }

    fn whose(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    fn words(&self) -> String {
        [self.state, self.owner.as_deref().unwrap_or_default(), &self.subject].join(" ")
    }

    fn whole(&self) -> String {
        self.whole.clone()
    }

    fn as_line(&self) -> AsLine<'_> {
        AsLine::Task(self)
    }
}

impl Item for Letter {
    fn key(&self) -> String {
        self.number.to_string()
    }

    fn whose(&self) -> Option<&str> {
        Some(&self.from)
    }

    fn words(&self) -> String {
        [self.from.as_str(), &self.to, &self.about].join(" ")
    }

    fn whole(&self) -> String {
        let head = format!("from {} to {}, {}", self.from, self.to, self.clock).replace('\n', " ");
        format!("{head}\n\n{}", self.text)
    }

    fn as_line(&self) -> AsLine<'_> {
        AsLine::Letter(self)
    }
}

impl Item for Request {
    fn key(&self) -> String {
        format!("{} {}", self.from, self.id)
    }

    fn whose(&self) -> Option<&str> {
        Some(&self.from)
    }

    fn words(&self) -> String {
        [self.from.as_str(), &self.about].join(" ")
    }

    fn whole(&self) -> String {
        self.whole.clone()
    }

    fn as_line(&self) -> AsLine<'_> {
        AsLine::Request(self)
    }
}
