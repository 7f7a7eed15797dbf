//! The entries of members in items.

use crate::team_config::{ConfigError, Member, TeamConfig, parse_member};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;

/// The entry of a member in config.json, as JSON text. Clones share the text. With many hosts, each
/// link sends the entries of nearly all members, and copies would take gigabytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MemberEntry(Arc<RawValue>);

impl From<&Member> for MemberEntry {
    fn from(member: &Member) -> MemberEntry {
        let text = serde_json::value::to_raw_value(member);
        MemberEntry(Arc::from(text.expect("a member has string keys and no failing impl")))
    }
}

impl MemberEntry {
    /// The JSON text.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The member.
    ///
    /// # Errors
    ///
    /// As [`parse_member`].
    pub fn to_member(&self) -> Result<Member, ConfigError> {
        parse_member(self.text())
    }
}

impl PartialEq for MemberEntry {
    fn eq(&self, other: &MemberEntry) -> bool {
        self.text() == other.text()
    }
}

impl Eq for MemberEntry {}

/// A team's config.json without the members of one annex.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigForAnnex {
    /// The team's name in the file.
    pub name: String,
    /// What the team is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When the team was created, in milliseconds since the epoch.
    #[serde(default)]
    pub created_at: u64,
    /// Id of the lead.
    #[serde(default)]
    pub lead_agent_id: String,
    /// Id of the lead's session.
    #[serde(default)]
    pub lead_session_id: String,
    /// The members in their order.
    pub members: Vec<MemberEntry>,
}

impl ConfigForAnnex {
    /// The config.
    ///
    /// # Errors
    ///
    /// As [`parse_member`].
    pub fn to_config(&self) -> Result<TeamConfig, ConfigError> {
        Ok(TeamConfig {
            name: self.name.clone(),
            description: self.description.clone(),
            created_at: self.created_at,
            lead_agent_id: self.lead_agent_id.clone(),
            lead_session_id: self.lead_session_id.clone(),
            members: self.members.iter().map(MemberEntry::to_member).collect::<Result<_, _>>()?,
            hidden_pane_ids: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_an_entry_is_kept() {
        let text =
            r#"{"name":"t","createdAt":1,"leadAgentId":"","leadSessionId":"","members":[{"name":"ann"}]}"#;
        let config: ConfigForAnnex = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&config).unwrap(), text);
        assert_eq!(config.to_config().unwrap().members[0].name.as_str(), "ann");
        let invalid = ConfigForAnnex { members: vec![serde_json::from_str("7").unwrap()], ..config };
        assert!(invalid.to_config().is_err());
    }
}
