//! One task and its status, parsed from its file, and the dependencies between tasks.
//!
//! Whether a task is available is computed from the whole list each time and never stored. A
//! blocker stays in the file's list of blockers after it is completed. teamd shows a task with an
//! unknown status and does not change the status. Such a task blocks the tasks that wait for it.

use crate::format_preserving_json::{FieldError, JsonError, Object, to_value};
use crate::member_task_and_request_ids::TaskId;
use crate::team_and_member_names::MemberName;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The metadata key with the name of the only member that may claim the task. A run file sets it.
pub const RUN_OWNER_KEY: &str = "run_owner";
/// The metadata key of a task whose `run_owner` is a member that is started for this task only.
pub const ONCE_KEY: &str = "once";
/// The metadata key with the answer of such a member.
pub const ANSWER_KEY: &str = "answer";
/// The metadata key in which a run counts how often it made the task pending again after a failure.
pub const RETRIES_KEY: &str = "retries";
/// The metadata key in which a run counts how often it made the task pending again because the
/// owner had ended.
pub const ABANDONED_KEY: &str = "abandoned";

/// Why a text is not a task.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The text is not JSON, or not an object.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A field is missing or has the wrong type.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// Status of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskStatus {
    /// The task waits for a member to start it.
    Pending,
    /// The task's owner works on it.
    InProgress,
    /// The task is done.
    Completed,
    /// The task is deleted. A program writes this status just before it removes the file.
    Deleted,
    /// A status of another program that teamd does not know.
    Other(String),
}

impl TaskStatus {
    /// The status with this name.
    pub fn from_name(name: &str) -> TaskStatus {
        match name {
            "pending" => TaskStatus::Pending,
            "in_progress" => TaskStatus::InProgress,
            "completed" => TaskStatus::Completed,
            "deleted" => TaskStatus::Deleted,
            other => TaskStatus::Other(other.to_owned()),
        }
    }

    /// The status's name in files.
    pub fn as_str(&self) -> &str {
        match self {
            TaskStatus::Pending => "pending",
            TaskStatus::InProgress => "in_progress",
            TaskStatus::Completed => "completed",
            TaskStatus::Deleted => "deleted",
            TaskStatus::Other(name) => name,
        }
    }

    /// Whether the task no longer blocks others.
    pub fn is_closed(&self) -> bool {
        matches!(self, TaskStatus::Completed | TaskStatus::Deleted)
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for TaskStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One task. The order of its fields is their order in the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Id of the task.
    pub id: TaskId,
    /// What to do, in the imperative.
    pub subject: String,
    /// Details of the work.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub description: String,
    /// Text that is shown while the task is in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
    /// Status of the task.
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("examples" = ["pending", "in_progress", "completed", "deleted"])))]
    pub status: TaskStatus,
    /// The member that owns the task. `None` if no member does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<MemberName>,
    /// Tasks that wait for this one.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<TaskId>>"))]
    pub blocks: Vec<TaskId>,
    /// Tasks that this one waits for.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<TaskId>>"))]
    pub blocked_by: Vec<TaskId>,
    /// Further data. `failure` says why the work on the task failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// The fields of the file that teamd does not know. They are only for output: an edit of the
    /// file leaves the original text of these fields unchanged.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

const KNOWN_FIELDS: [&str; 9] =
    ["id", "subject", "description", "activeForm", "status", "owner", "blocks", "blockedBy", "metadata"];

impl Task {
    /// Parses a task file.
    pub fn parse(text: &str) -> Result<Task, TaskError> {
        let object = Object::parse(text)?;
        Ok(Task {
            id: parse_id(&object)?,
            subject: object.string("subject")?,
            description: object.optional_string("description")?.unwrap_or_default(),
            active_form: object.optional_string("activeForm")?,
            status: TaskStatus::from_name(&object.string("status")?),
            owner: object
                .optional_string("owner")?
                .filter(|name| !name.is_empty())
                .map(|name| MemberName::new_unchecked(&name)),
            blocks: parse_links(&object, "blocks")?,
            blocked_by: parse_links(&object, "blockedBy")?,
            metadata: parse_metadata(text, &object)?,
            unknown_fields: object
                .entries()
                .filter(|(key, _)| !KNOWN_FIELDS.contains(&key.as_ref()))
                .map(|(key, raw)| (key.into_owned(), to_value(raw)))
                .collect(),
        })
    }

    /// The content of a new task file.
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).expect("a task has string keys and no failing impl")
    }

    /// The fields of the file, with the known ones first.
    pub fn to_fields(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            other => unreachable!("a task is an object: {other:?}"),
        }
    }

    /// Whether this is a tracking task, which Claude Code creates for every spawn.
    pub fn is_internal(&self) -> bool {
        self.metadata.as_ref().and_then(|data| data.get("_internal")) == Some(&Value::Bool(true))
    }

    /// The command that a worker runs for the task: `metadata.command`. `None` if it has none.
    pub fn command(&self) -> Option<&str> {
        self.metadata.as_ref()?.get("command")?.as_str()
    }

    /// How often a run made the task pending again after a failure: `metadata.retries`.
    pub fn retries(&self) -> u64 {
        self.metadata.as_ref().and_then(|data| data.get(RETRIES_KEY)?.as_u64()).unwrap_or(0)
    }

    /// Why the work on the task failed: `metadata.failure`. `None` if it did not fail.
    pub fn failure(&self) -> Option<&str> {
        self.metadata.as_ref()?.get("failure")?.as_str()
    }

    /// The member to which the run file gives the task. `None` if any member may claim it, or if no
    /// run created the task.
    pub fn run_owner(&self) -> Option<MemberName> {
        self.metadata.as_ref()?.get(RUN_OWNER_KEY)?.as_str().map(MemberName::new_unchecked)
    }

    /// The member that does only this task and is started for it (`kind = "once"` in a run file).
    /// `None` if there is no such member.
    pub fn once_member(&self) -> Option<MemberName> {
        let is_once = self.metadata.as_ref()?.get(ONCE_KEY)?.as_bool()?;
        self.run_owner().filter(|_| is_once)
    }

    /// The answer of the member that was started for the task. `None` if there is none.
    pub fn answer(&self) -> Option<&str> {
        self.metadata.as_ref()?.get(ANSWER_KEY)?.as_str()
    }

    /// The only member that may claim the task next: its owner, or the member that is started for
    /// it. `None` if any member may.
    pub fn claimer(&self) -> Option<MemberName> {
        self.owner.clone().or_else(|| self.once_member())
    }

    /// The text that is shown for the task. While the task is in progress, this is its active form,
    /// such as `counting the lines`; otherwise it is the subject.
    pub fn title(&self) -> &str {
        let active_form = self.active_form.as_deref().filter(|form| !form.trim().is_empty());
        active_form.filter(|_| self.status == TaskStatus::InProgress).unwrap_or(&self.subject)
    }

    /// The tasks that still block this task. A blocker without a file does not block: either the
    /// blocker was deleted, or its file was removed after the blocker was completed.
    pub fn open_blockers<T: Borrow<Task>>(&self, all: &[T]) -> Vec<TaskId> {
        let is_open = |id: &TaskId| find_task(all, *id).is_some_and(|task| !task.status.is_closed());
        self.blocked_by.iter().copied().filter(is_open).collect()
    }

    /// Whether any member may claim the task now.
    pub fn is_available<T: Borrow<Task>>(&self, all: &[T]) -> bool {
        self.claimer().is_none() && self.is_startable(all)
    }

    /// Whether the task may be started now: it is pending, not internal, and has no open blockers.
    pub fn is_startable<T: Borrow<Task>>(&self, all: &[T]) -> bool {
        self.status == TaskStatus::Pending && !self.is_internal() && self.open_blockers(all).is_empty()
    }

    /// The task as JSON, with the computed keys `available` and `open_blockers`. `all` is the whole
    /// task list.
    pub fn to_json<T: Borrow<Task>>(&self, all: &[T]) -> Value {
        let mut object = serde_json::json!(self);
        object["available"] = serde_json::json!(self.is_available(all));
        object["open_blockers"] = serde_json::json!(self.open_blockers(all));
        object
    }

    /// How often work on the task was abandoned: `metadata.attempts`.
    pub fn attempts(&self) -> u64 {
        self.metadata.as_ref().and_then(|data| data.get("attempts")?.as_u64()).unwrap_or(0)
    }
}

/// Finds the task `id`. A list that is ordered by id is searched in logarithmic time.
pub fn find_task<T: Borrow<Task>>(all: &[T], id: TaskId) -> Option<&Task> {
    match all.binary_search_by_key(&id, |task| task.borrow().id) {
        Ok(at) => Some(all[at].borrow()),
        Err(_) => all.iter().map(Borrow::borrow).find(|task| task.id == id),
    }
}

/// For each task, the tasks that wait for it. A dependency between two tasks is stored in the files
/// of both. Both files are read, because a crash can leave it in only one of them.
pub fn dependents<T: Borrow<Task>>(all: &[T]) -> BTreeMap<TaskId, BTreeSet<TaskId>> {
    let mut waiting: BTreeMap<TaskId, BTreeSet<TaskId>> = BTreeMap::new();
    for task in all.iter().map(Borrow::borrow) {
        if !task.blocks.is_empty() {
            waiting.entry(task.id).or_default().extend(&task.blocks);
        }
        for blocker in &task.blocked_by {
            waiting.entry(*blocker).or_default().insert(task.id);
        }
    }
    waiting
}

fn parse_id(object: &Object) -> Result<TaskId, FieldError> {
    let error = || FieldError::new("id", "a number in a string", object.get("id"));
    TaskId::parse(&object.string("id")?).map_err(|_| error())
}

fn parse_links(object: &Object, key: &str) -> Result<Vec<TaskId>, FieldError> {
    let error = || FieldError::new(key, "an array of task ids", object.get(key));
    object.strings(key)?.iter().map(|text| TaskId::parse(text).map_err(|_| error())).collect()
}

fn parse_metadata(text: &str, object: &Object) -> Result<Option<Map<String, Value>>, FieldError> {
    let Some(raw) = object.non_null("metadata") else { return Ok(None) };
    let error = |_| FieldError::new("metadata", "an object", Some(raw));
    let metadata = Object::from_raw(text, raw).map_err(error)?;
    Ok(Some(to_values(&metadata).collect()))
}

fn to_values(object: &Object) -> impl Iterator<Item = (String, Value)> {
    object.entries().map(|(key, raw)| (key.into_owned(), to_value(raw)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(number: u32, status: TaskStatus, blocked_by: &[u32]) -> Task {
        let id = |number: u32| TaskId::from_number(number).unwrap();
        Task {
            id: id(number),
            subject: "x".into(),
            description: String::new(),
            active_form: None,
            status,
            owner: None,
            blocks: vec![],
            blocked_by: blocked_by.iter().map(|number| id(*number)).collect(),
            metadata: None,
            unknown_fields: Map::new(),
        }
    }

    #[test]
    fn task_waits_for_open_blockers() {
        let unknown = TaskStatus::Other("paused".into());
        let all = [
            task(1, TaskStatus::Completed, &[]),
            task(2, unknown, &[]),
            task(3, TaskStatus::Pending, &[1, 9]),
            task(4, TaskStatus::Pending, &[1, 2]),
        ];
        assert!(all[2].is_available(&all), "a missing blocker does not block");
        assert_eq!(all[3].open_blockers(&all), [all[1].id]);
        assert!(!all[3].is_available(&all) && !all[0].is_available(&all) && !all[1].is_available(&all));
        let [a, b, c, d] = all;
        let unordered = [d, a, c, b];
        assert_eq!(
            unordered[0].open_blockers(&unordered),
            [unordered[3].id],
            "the order of the tasks does not matter"
        );
    }

    #[test]
    fn empty_owner_is_none_and_errors_name_the_field() {
        let task_json =
            |owner: &str| format!(r#"{{"id":"1","subject":"s","status":"pending","owner":{owner}}}"#);
        assert_eq!(Task::parse(&task_json("null")).unwrap().owner, None);
        assert_eq!(Task::parse(&task_json("\"\"")).unwrap().owner, None);
        let error = Task::parse(&task_json("7")).unwrap_err();
        assert_eq!(error.to_string(), "field owner should be a string, but is 7");
    }

    #[test]
    fn values_that_do_not_fit_are_kept_as_text() {
        let text =
            r#"{"id":"1","subject":"s","status":"pending","metadata":{"n":1e999,"f":"x"},"new":[1e999]}"#;
        let task = Task::parse(text).unwrap();
        assert_eq!(task.metadata.unwrap()["n"], "1e999");
        assert_eq!(task.unknown_fields["new"], "[1e999]");
    }

    #[test]
    fn active_form_is_the_title_while_the_task_is_in_progress() {
        let title = |status: &str, form: &str| {
            let text = format!(r#"{{"id":"1","subject":"count","status":"{status}","activeForm":"{form}"}}"#);
            Task::parse(&text).unwrap().title().to_owned()
        };
        assert_eq!(title("in_progress", "counting"), "counting");
        assert_eq!(title("pending", "counting"), "count");
        assert_eq!(title("completed", "counting"), "count");
        assert_eq!(title("in_progress", " "), "count");
    }
}
