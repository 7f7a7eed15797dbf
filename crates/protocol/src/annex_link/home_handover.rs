//! What only the home of a team has, and hands over when it is moved.

use crate::policy::Policy;
use crate::team_home::HomeUsage;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// What the new home of a team needs beside the mirror and the inboxes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HomeHandover {
    /// The team's policy. If this release can't read the policy, it uses a policy under which only
    /// a person answers requests.
    #[serde(deserialize_with = "read_policy")]
    #[cfg_attr(feature = "schema", schemars(with = "Policy"))]
    pub policy: Policy,
    /// What the team has used.
    pub usage: HomeUsage,
    /// New tasks get higher ids than this.
    pub last_task_id: u32,
    /// The answered requests of members that run, as lines of the answer log.
    pub answers: Vec<Map<String, Value>>,
}

fn read_policy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Policy, D::Error> {
    Value::deserialize(deserializer).map(Policy::from_json)
}
