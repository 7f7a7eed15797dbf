//! A change of a task, given as the fields that the change sets or removes. So an annex and the
//! home can change different fields of the same task at the same time.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The field whose keys are compared one by one, because different programs use different keys.
const METADATA: &str = "metadata";

/// The field with the member that works on the task.
const OWNER: &str = "owner";
/// The field that says how far the work is.
const STATUS: &str = "status";

/// A change of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskChange {
    /// The task was created.
    Create {
        /// The fields of its file.
        task: Map<String, Value>,
    },
    /// Fields of the task were changed.
    Edit {
        /// The changes by the path of the field: its key, or `metadata` and a key in it.
        fields: BTreeMap<FieldPath, FieldChange>,
    },
    /// The task was deleted.
    Delete,
}

/// The path of a field of a task file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "String", into = "String")]
pub struct FieldPath {
    /// Whether the field is in the metadata.
    place: FieldPlace,
    key: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
enum FieldPlace {
    Task,
    Metadata,
}

/// The change of one field. `None`: the field is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FieldChange {
    /// The value before.
    pub from: Option<Value>,
    /// The value after.
    pub to: Option<Value>,
}

impl FieldPath {
    fn task(key: &str) -> FieldPath {
        FieldPath { place: FieldPlace::Task, key: key.to_owned() }
    }

    fn is_metadata(&self) -> bool {
        self.place == FieldPlace::Metadata
    }
}

/// A change that leaves a field as it is, and conflicts with another value of the field.
fn unchanged(task: &Map<String, Value>, key: &str) -> FieldChange {
    FieldChange { from: task.get(key).cloned(), to: task.get(key).cloned() }
}

impl From<String> for FieldPath {
    fn from(path: String) -> FieldPath {
        match path.strip_prefix("metadata/") {
            Some(key) => FieldPath { place: FieldPlace::Metadata, key: key.to_owned() },
            None => FieldPath { place: FieldPlace::Task, key: path },
        }
    }
}

impl From<FieldPath> for String {
    fn from(path: FieldPath) -> String {
        match path.place {
            FieldPlace::Task => path.key,
            FieldPlace::Metadata => format!("{METADATA}/{}", path.key),
        }
    }
}

impl TaskChange {
    /// The change that turns the task `from` into the task `to`. `None` stands for a task that does
    /// not exist. Returns `None` if nothing changes.
    ///
    /// A change of the status or of the metadata also contains the owner that the task has in
    /// `from`. So [`TaskChange::apply`] refuses the change if the task has another owner by then.
    pub fn between(from: Option<&Map<String, Value>>, to: Option<&Map<String, Value>>) -> Option<TaskChange> {
        match (from, to) {
            (None, None) => None,
            (None, Some(task)) => Some(TaskChange::Create { task: task.clone() }),
            (Some(_), None) => Some(TaskChange::Delete),
            (Some(from), Some(to)) => {
                let mut fields = field_changes(&fields(from), &fields(to));
                if fields
                    .keys()
                    .any(|path| [OWNER, STATUS].contains(&path.key.as_str()) || path.is_metadata())
                {
                    fields.entry(FieldPath::task(OWNER)).or_insert_with(|| unchanged(from, OWNER));
                }
                (!fields.is_empty()).then_some(TaskChange::Edit { fields })
            }
        }
    }

    /// The value that the change gives to a field of the task. `None` if the field stays as it is
    /// or is removed.
    pub fn new_value(&self, key: &str) -> Option<&Value> {
        match self {
            TaskChange::Create { task } => task.get(key),
            TaskChange::Edit { fields } => fields.get(&FieldPath::from(key.to_owned()))?.to.as_ref(),
            TaskChange::Delete => None,
        }
    }

    /// Makes this change to `task`, the task as it is now. The task may have changed since this
    /// change was computed. So a field is changed only if it still has the old value, or already
    /// has the new value. The owner, the status and the metadata are changed together or not at
    /// all. The result names the first field that was refused.
    pub fn apply(&self, task: Option<&Map<String, Value>>) -> AppliedChange {
        match (self, task) {
            (TaskChange::Create { task: created }, None) => AppliedChange::complete(Some(created.clone())),
            (TaskChange::Create { task: created }, Some(existing)) if created == existing => {
                AppliedChange::complete(Some(existing.clone()))
            }
            (TaskChange::Delete, _) => AppliedChange::complete(None),
            (TaskChange::Edit { fields }, Some(task)) => apply_edit(fields, task),
            (TaskChange::Create { .. }, Some(_)) | (TaskChange::Edit { .. }, None) => {
                AppliedChange { task: task.cloned(), conflict: Some("id".to_owned()) }
            }
        }
    }
}

/// What a change has made of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedChange {
    /// The task. `None` if it does not exist.
    pub task: Option<Map<String, Value>>,
    /// The name of the first field that was not changed, because the task's value is neither the
    /// old nor the new one. It is `id` if the task to edit does not exist, or if another task has
    /// the id of the task to create. `None` if the whole change was made.
    pub conflict: Option<String>,
}

impl AppliedChange {
    fn complete(task: Option<Map<String, Value>>) -> AppliedChange {
        AppliedChange { task, conflict: None }
    }
}

/// All fields by their paths.
fn fields(task: &Map<String, Value>) -> BTreeMap<FieldPath, &Value> {
    let path = |place: FieldPlace, key: &String| FieldPath { place, key: key.clone() };
    let mut fields = BTreeMap::new();
    for (key, value) in task {
        match value {
            Value::Object(metadata) if key == METADATA => {
                fields.extend(metadata.iter().map(|(key, value)| (path(FieldPlace::Metadata, key), value)));
            }
            value => drop(fields.insert(path(FieldPlace::Task, key), value)),
        }
    }
    fields
}

fn field_changes(
    from: &BTreeMap<FieldPath, &Value>,
    to: &BTreeMap<FieldPath, &Value>,
) -> BTreeMap<FieldPath, FieldChange> {
    let value = |fields: &BTreeMap<FieldPath, &Value>, path: &FieldPath| {
        fields.get(path).map(|value| Value::clone(value))
    };
    let paths = from.keys().chain(to.keys().filter(|path| !from.contains_key(*path)));
    let changes =
        paths.map(|path| (path.clone(), FieldChange { from: value(from, path), to: value(to, path) }));
    changes.filter(|(_, change)| change.from != change.to).collect()
}

fn apply_edit(changes: &BTreeMap<FieldPath, FieldChange>, task: &Map<String, Value>) -> AppliedChange {
    let now = fields(task);
    let has_conflict = |(path, change): &(&FieldPath, &FieldChange)| {
        let now = now.get(*path).map(|value| Value::clone(value));
        now != change.from && now != change.to
    };
    let conflicts: Vec<&FieldPath> = changes.iter().filter(has_conflict).map(|(path, _)| path).collect();
    // The fields of the owner's work are changed together or not at all.
    let is_work = |path: &FieldPath| path.is_metadata() || [OWNER, STATUS].contains(&path.key.as_str());
    let is_work_refused = conflicts.iter().any(|path| is_work(path));
    let mut changed = task.clone();
    for (path, change) in changes {
        let is_refused = conflicts.contains(&path) || is_work_refused && is_work(path);
        if !is_refused {
            set_field(&mut changed, path, change.to.clone());
        }
    }
    let conflict = conflicts.first().map(|path| FieldPath::clone(path).into());
    AppliedChange { task: Some(changed), conflict }
}

fn set_field(task: &mut Map<String, Value>, path: &FieldPath, value: Option<Value>) {
    if value.is_none() && path.is_metadata() && !task.contains_key(METADATA) {
        return;
    }
    let place = match path.place {
        FieldPlace::Task => Some(task),
        FieldPlace::Metadata => {
            let metadata = task.entry(METADATA).or_insert_with(|| Value::Object(Map::new()));
            metadata.as_object_mut()
        }
    };
    let Some(fields) = place else { return };
    match value {
        Some(value) => drop(fields.insert(path.key.clone(), value)),
        None => drop(fields.shift_remove(&path.key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn task(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn base() -> Map<String, Value> {
        task(json!({"id": "3", "status": "pending", "metadata": {"command": "make"}}))
    }

    #[test]
    fn changes_of_different_fields_are_both_made() {
        let claimed = task(
            json!({"id": "3", "status": "in_progress", "owner": "ann", "metadata": {"command": "make", "a": 1}}),
        );
        let at_home = task(
            json!({"id": "3", "status": "pending", "subject": "new", "metadata": {"command": "make", "b": 2}}),
        );
        let change = TaskChange::between(Some(&base()), Some(&claimed)).unwrap();
        let merged = change.apply(Some(&at_home)).task.unwrap();
        assert_eq!(
            Value::Object(merged.clone()),
            json!({"id": "3", "status": "in_progress", "owner": "ann", "subject": "new",
                "metadata": {"command": "make", "a": 1, "b": 2}})
        );
        assert_eq!(change.apply(Some(&merged)), AppliedChange::complete(Some(merged.clone())));
        let text = serde_json::to_string(&change).unwrap();
        assert_eq!(serde_json::from_str::<TaskChange>(&text).unwrap(), change);
    }

    #[test]
    fn a_change_of_the_same_field_is_left_out_and_named() {
        let claim = |owner: &str| {
            let claimed = task(
                json!({"id": "3", "status": "in_progress", "owner": owner, "metadata": {"command": "make"}}),
            );
            (TaskChange::between(Some(&base()), Some(&claimed)).unwrap(), claimed)
        };
        let refused = |task: Option<Map<String, Value>>, key: &str| AppliedChange {
            task,
            conflict: Some(key.to_owned()),
        };
        let of_bob = claim("bob").1;
        assert_eq!(claim("ann").0.apply(Some(&of_bob)), refused(Some(of_bob), "owner"));
        assert_eq!(claim("ann").0.apply(None), refused(None, "id"));
        assert_eq!(TaskChange::between(Some(&base()), Some(&base())), None);
        let removed = TaskChange::between(Some(&claim("ann").1), Some(&base())).unwrap();
        assert_eq!(removed.apply(Some(&claim("ann").1)), AppliedChange::complete(Some(base())));
    }

    #[test]
    fn work_of_an_owner_is_refused_if_another_member_has_the_task() {
        let of = |owner: &str, status: &str| task(json!({"id": "3", "status": status, "owner": owner}));
        let done = TaskChange::between(Some(&of("ann", "in_progress")), Some(&of("ann", "completed")));
        let of_bob = of("bob", "in_progress");
        let applied = done.unwrap().apply(Some(&of_bob));
        assert_eq!(applied, AppliedChange { task: Some(of_bob), conflict: Some("owner".to_owned()) });
    }

    #[test]
    fn created_and_deleted_tasks_have_their_own_kinds() {
        let create = TaskChange::between(None, Some(&base())).unwrap();
        assert_eq!(create.apply(None), AppliedChange::complete(Some(base())));
        assert_eq!(create.apply(Some(&base())), AppliedChange::complete(Some(base())));
        assert_eq!(create.apply(Some(&task(json!({"id": "3"})))).conflict, Some("id".to_owned()));
        let delete = TaskChange::between(Some(&base()), None).unwrap();
        assert_eq!(delete.apply(Some(&base())), AppliedChange::complete(None));
        assert_eq!(delete.apply(None), AppliedChange::complete(None));
    }
}
