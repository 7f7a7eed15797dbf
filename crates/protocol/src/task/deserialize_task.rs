//! Reads a task that is part of a larger JSON value.

use super::task_and_task_status::Task;
use serde::{Deserialize, Deserializer};

/// Reads a task by the tolerant parser of task files. For `#[serde(deserialize_with)]`.
pub(crate) fn deserialize_task<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<Task>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Task::parse(&value.to_string()).map(Box::new).map_err(serde::de::Error::custom)
}
