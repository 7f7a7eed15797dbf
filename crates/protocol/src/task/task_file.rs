//! One task's file, and what follows from all of them together.
//!
//! Whether a task can be taken is worked out from the whole list each time, never stored: a link stays as it
//! was written when its blocker is done. A status we do not know is shown, blocks what waits for it, and is
//! never rewritten.

use crate::id::TaskId;
use crate::json::{FieldError, JsonError, Object, apply_edits, to_value};
use crate::name::AgentName;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::borrow::Borrow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Why a text is no task.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// Not JSON, or no object.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A field missing or of an unexpected type.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// How far a task is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskStatus {
    /// Nobody works on it.
    Pending,
    /// Its owner does.
    InProgress,
    /// It is done.
    Completed,
    /// It is gone; a file that says so is one that somebody is about to remove.
    Deleted,
    /// Somebody's else's idea.
    Other(String),
}

impl TaskStatus {
    /// The status of that name.
    pub fn from_name(name: &str) -> TaskStatus {
        match name {
            "pending" => TaskStatus::Pending,
            "in_progress" => TaskStatus::InProgress,
            "completed" => TaskStatus::Completed,
            "deleted" => TaskStatus::Deleted,
            other => TaskStatus::Other(other.to_owned()),
        }
    }

    /// The name in files.
    pub fn as_str(&self) -> &str {
        match self {
            TaskStatus::Pending => "pending",
            TaskStatus::InProgress => "in_progress",
            TaskStatus::Completed => "completed",
            TaskStatus::Deleted => "deleted",
            TaskStatus::Other(name) => name,
        }
    }

    /// True once nothing has to wait for it any more.
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

/// One task, in the files' order of fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its number.
    pub id: TaskId,
    /// What to do, in the imperative.
    pub subject: String,
    /// More of it.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub description: String,
    /// What is shown while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
    /// How far it is.
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("examples" = ["pending", "in_progress", "completed", "deleted"])))]
    pub status: TaskStatus,
    /// Who has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<AgentName>,
    /// What waits for it.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<TaskId>>"))]
    pub blocks: Vec<TaskId>,
    /// What it waits for.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<TaskId>>"))]
    pub blocked_by: Vec<TaskId>,
    /// Anything else; `failure` says why its work failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Fields that we do not know, for showing: an edit of the file keeps them as they are spelled.
    #[serde(flatten)]
    #[serde(rename = "extra")]
    pub unknown_fields: Map<String, Value>,
}

const KNOWN_FIELDS: [&str; 9] =
    ["id", "subject", "description", "activeForm", "status", "owner", "blocks", "blockedBy", "metadata"];

impl Task {
    /// Reads a task's file.
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
                .map(|name| AgentName::new_unchecked(&name)),
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

    /// The task as a new file's text.
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).expect("a task has string keys and no failing impl")
    }

    /// True for the tracking task that every spawn makes.
    pub fn is_internal(&self) -> bool {
        self.metadata.as_ref().and_then(|data| data.get("_internal")) == Some(&Value::Bool(true))
    }

    /// What a worker runs for it, where somebody said: `metadata.command`.
    pub fn command(&self) -> Option<&str> {
        self.metadata.as_ref()?.get("command")?.as_str()
    }

    /// Why its work failed, where it did.
    pub fn failure(&self) -> Option<&str> {
        self.metadata.as_ref()?.get("failure")?.as_str()
    }

    /// The blockers that are not over. One whose file is gone is: it was deleted, or completed and tidied up.
    pub fn open_blockers<T: Borrow<Task>>(&self, all: &[T]) -> Vec<TaskId> {
        let open = |id: &TaskId| find_task(all, *id).is_some_and(|task| !task.status.is_closed());
        self.blocked_by.iter().copied().filter(open).collect()
    }

    /// True if anyone may take it now.
    pub fn is_available<T: Borrow<Task>>(&self, all: &[T]) -> bool {
        self.owner.is_none() && self.is_startable(all)
    }

    /// True if its owner may begin now: pending, not internal, nothing in the way.
    pub fn is_startable<T: Borrow<Task>>(&self, all: &[T]) -> bool {
        self.status == TaskStatus::Pending && !self.is_internal() && self.open_blockers(all).is_empty()
    }

    /// The task with `available` and `open_blockers`, which follow from all tasks.
    pub fn to_json<T: Borrow<Task>>(&self, all: &[T]) -> Value {
        let mut object = serde_json::json!(self);
        object["available"] = serde_json::json!(self.is_available(all));
        object["open_blockers"] = serde_json::json!(self.open_blockers(all));
        object
    }

    /// How often work on it was given back unfinished: `metadata.attempts`.
    pub fn attempts(&self) -> u64 {
        self.metadata.as_ref().and_then(|data| data.get("attempts")?.as_u64()).unwrap_or(0)
    }
}

/// The task `id`, found at once in a list by number, as it is read, and found all the same in any other.
pub fn find_task<T: Borrow<Task>>(all: &[T], id: TaskId) -> Option<&Task> {
    match all.binary_search_by_key(&id, |task| task.borrow().id) {
        Ok(at) => Some(all[at].borrow()),
        Err(_) => all.iter().map(Borrow::borrow).find(|task| task.id == id),
    }
}

/// The text with each field set, in its place or at the end; none takes the field out.
pub fn with_fields(text: &str, fields: &[(&str, Option<Value>)]) -> Result<String, TaskError> {
    let mut edited = text.to_owned();
    for (field, value) in fields {
        let object = Object::parse(&edited)?;
        let edits = match value {
            Some(value) => object.set(&[(field, value.clone())]),
            None => object.remove(field).into_iter().collect(),
        };
        edited = apply_edits(&edited, edits);
    }
    Ok(edited)
}

/// The text with `changes` merged into its metadata; null takes a key out.
pub fn with_metadata(text: &str, changes: &Map<String, Value>) -> Result<String, TaskError> {
    let object = Object::parse(text)?;
    if object.non_null("metadata").is_none() {
        let fresh = changes.iter().filter(|(_, value)| !value.is_null());
        let fresh: Map<String, Value> = fresh.map(|(key, value)| (key.clone(), value.clone())).collect();
        return with_fields(text, &[("metadata", (!fresh.is_empty()).then_some(Value::Object(fresh)))]);
    }
    let mut merged = text.to_owned();
    for (key, value) in changes {
        merged = with_metadata_key(&merged, key, value)?;
    }
    Ok(merged)
}

fn with_metadata_key(text: &str, key: &str, value: &Value) -> Result<String, TaskError> {
    let object = Object::parse(text)?;
    let found = object.get("metadata");
    let metadata = found.and_then(|raw| Object::from_raw(text, raw).ok());
    let metadata = metadata.ok_or_else(|| FieldError::new("metadata", "an object", found))?;
    let edits = match value {
        Value::Null => metadata.remove(key).into_iter().collect(),
        value => metadata.set(&[(key, value.clone())]),
    };
    Ok(apply_edits(text, edits))
}

/// The way from `blocked` back to itself that a link "`blocker` blocks `blocked`" would close, if it would.
pub fn find_cycle<T: Borrow<Task>>(all: &[T], blocker: TaskId, blocked: TaskId) -> Option<Vec<TaskId>> {
    if blocker == blocked {
        return Some(vec![blocker, blocked]);
    }
    let waiting = dependents(all);
    let mut came_from = BTreeMap::from([(blocked, blocked)]);
    let mut open = vec![blocked];
    while let Some(at) = open.pop() {
        if at == blocker {
            return Some(path_between(&came_from, blocked, blocker));
        }
        for next in waiting.get(&at).into_iter().flatten() {
            if let Entry::Vacant(unseen) = came_from.entry(*next) {
                unseen.insert(at);
                open.push(*next);
            }
        }
    }
    None
}

/// What waits for each task. Both ends are looked at: a crash may have left a link half written.
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

fn path_between(came_from: &BTreeMap<TaskId, TaskId>, from: TaskId, to: TaskId) -> Vec<TaskId> {
    let mut way = vec![from, to];
    while let Some(at) = way.last().copied().filter(|at| *at != from) {
        way.push(came_from[&at]);
    }
    way.reverse();
    way
}

fn parse_id(object: &Object) -> Result<TaskId, FieldError> {
    let fault = || FieldError::new("id", "a number in a string", object.get("id"));
    TaskId::parse(&object.string("id")?).map_err(|_| fault())
}

fn parse_links(object: &Object, key: &str) -> Result<Vec<TaskId>, FieldError> {
    let fault = || FieldError::new(key, "an array of task ids", object.get(key));
    object.strings(key)?.iter().map(|text| TaskId::parse(text).map_err(|_| fault())).collect()
}

fn parse_metadata(text: &str, object: &Object) -> Result<Option<Map<String, Value>>, FieldError> {
    let Some(raw) = object.non_null("metadata") else { return Ok(None) };
    let fault = |_| FieldError::new("metadata", "an object", Some(raw));
    let metadata = Object::from_raw(text, raw).map_err(fault)?;
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
    fn a_task_waits_for_what_is_not_over() {
        let odd = TaskStatus::Other("paused".into());
        let all = [
            task(1, TaskStatus::Completed, &[]),
            task(2, odd, &[]),
            task(3, TaskStatus::Pending, &[1, 9]),
            task(4, TaskStatus::Pending, &[1, 2]),
        ];
        assert!(all[2].is_available(&all), "a missing blocker is over");
        assert_eq!(all[3].open_blockers(&all), [all[1].id]);
        assert!(!all[3].is_available(&all) && !all[0].is_available(&all) && !all[1].is_available(&all));
        let [a, b, c, d] = all;
        let unordered = [d, a, c, b];
        assert_eq!(unordered[0].open_blockers(&unordered), [unordered[3].id], "in any order");
    }

    #[test]
    fn a_cycle_is_found_with_its_way() {
        let all = [
            task(1, TaskStatus::Pending, &[]),
            task(2, TaskStatus::Pending, &[1]),
            task(3, TaskStatus::Pending, &[2]),
        ];
        let [a, b, c] = [all[0].id, all[1].id, all[2].id];
        assert_eq!(find_cycle(&all, c, a), Some(vec![a, b, c, a]));
        assert_eq!(find_cycle(&all, b, a), Some(vec![a, b, a]));
        assert_eq!(find_cycle(&all, a, a), Some(vec![a, a]));
        assert_eq!(find_cycle(&all, a, c), None);
    }

    #[test]
    fn owners_of_nothing_are_absent_and_faults_name_the_field() {
        let with = |owner: &str| format!(r#"{{"id":"1","subject":"s","status":"pending","owner":{owner}}}"#);
        assert_eq!(Task::parse(&with("null")).unwrap().owner, None);
        assert_eq!(Task::parse(&with("\"\"")).unwrap().owner, None);
        let error = Task::parse(&with("7")).unwrap_err();
        assert_eq!(error.to_string(), "field owner should be a string, but is 7");
    }

    #[test]
    fn metadata_is_merged() {
        let merged =
            |text: &str, changes: &str| with_metadata(text, &serde_json::from_str(changes).unwrap()).unwrap();
        let text = r#"{"id":"1","metadata":{"a":1e999,"b":2}}"#;
        let expected = r#"{"id":"1","metadata":{"a":1e999,"c":3}}"#;
        assert_eq!(merged(text, r#"{"b":null,"c":3,"d":null}"#), expected);
        assert_eq!(merged(r#"{"id":"1"}"#, r#"{"x":1,"y":null}"#), r#"{"id":"1","metadata":{"x":1}}"#);
        assert_eq!(merged(r#"{"id":"1"}"#, r#"{"y":null}"#), r#"{"id":"1"}"#);
    }

    #[test]
    fn what_no_value_can_hold_does_not_hide_a_task() {
        let text =
            r#"{"id":"1","subject":"s","status":"pending","metadata":{"n":1e999,"f":"x"},"new":[1e999]}"#;
        let task = Task::parse(text).unwrap();
        assert_eq!(task.metadata.unwrap()["n"], "1e999");
        assert_eq!(task.unknown_fields["new"], "[1e999]");
    }

    #[test]
    fn an_edit_leaves_the_rest() {
        let text = r#"{"id":"1","future":1000.0,"status":"pending","owner":""}"#;
        let fields =
            [("status", Some(Value::from("completed"))), ("owner", None), ("new", Some(Value::from(1)))];
        let expected = r#"{"id":"1","future":1000.0,"status":"completed","new":1}"#;
        assert_eq!(with_fields(text, &fields).unwrap(), expected);
    }
}
