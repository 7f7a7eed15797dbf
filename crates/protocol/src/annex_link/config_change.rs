//! A change of a team's config. It contains only the members and fields that have changed. A whole
//! config can have thousands of members, which is too much to send for each change.

use super::member_entry::MemberEntry;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A change of a team's config. It leaves out the members that the annex runs, because the annex
/// itself reports changes of these members.
///
/// The names of members are plain texts, because other programs may write names that teamd does not
/// accept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigChange {
    /// The version of the config before the change.
    pub base: u64,
    /// The version after the change.
    pub version: u64,
    /// Changed fields of the team, without `members`. Null: the field was removed.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// Names of removed members.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// Changed members, which keep their places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<MemberChange>,
    /// Entries of new members, which follow the others in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Map<String, Value>>"))]
    pub added: Vec<MemberEntry>,
}

impl ConfigChange {
    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        let ConfigChange { base: _, version: _, fields, removed, changed, added } = self;
        fields.is_empty() && removed.is_empty() && changed.is_empty() && added.is_empty()
    }
}

/// The changed fields of one member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberChange {
    /// The name before the change. Case is ignored.
    pub name: String,
    /// The changed fields. Null: the field was removed.
    pub fields: Map<String, Value>,
}
