//! What only the home of a team has, and hands over when it is moved.

use crate::policy::Policy;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What the new home of a team needs beside the mirror and the inboxes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HomeHandover {
    /// The policy.
    pub policy: Policy,
    /// New tasks get higher ids than this.
    pub last_task_id: u32,
    /// The answered requests of members that run, as lines of the answer log.
    pub answers: Vec<Map<String, Value>>,
}
