//! What an annex must know about the budget of a team. The home counts what all members use.

use crate::token_and_cost_usage::Usage;
use serde::{Deserialize, Serialize};

/// The budget of a team, as the home tells it to an annex. The default is no budget.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HomeBudget {
    /// Which limit the team has reached, as a text for people. `None` if its members may go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exhausted_reason: Option<String>,
    /// The usage at which a member has used its share. `None` if one member may use all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_limit: Option<Usage>,
}
