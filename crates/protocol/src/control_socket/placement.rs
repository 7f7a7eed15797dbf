//! The choice of the host on which a new member runs.

use crate::hosts_file_entry::{HOME_HOST, HostName};
use crate::team_and_member_names::{MemberName, TeamName};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Chooses the host of a new member, and reserves a slot (the place of one member) there. The
/// daemon frees the slot when the caller closes its connection. So the caller keeps the connection
/// open until the new member is in the team's config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlaceMemberRequest {
    /// The team.
    pub team: TeamName,
    /// Name of the new member. With `--unique`, the member may get another name.
    pub name: MemberName,
    /// Labels that the host must have.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The hosts to choose from. If several are equally good, the first of them is chosen.
    pub candidates: Vec<HostCandidate>,
}

/// A host on which a member could run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostCandidate {
    /// The host.
    pub host: MemberHost,
    /// What the host has, in the user's own words.
    #[serde(default)]
    pub labels: Vec<String>,
    /// How many members the host may run at once. `None`: any number.
    #[serde(default)]
    pub slots: Option<u32>,
}

/// Reply to `place_member`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlaceMemberReply {
    /// The chosen host.
    pub host: MemberHost,
}

/// The host of a member, as text: `home` or the name of another host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
#[serde(try_from = "String", into = "String")]
pub enum MemberHost {
    /// The team's home.
    Home,
    /// Another host.
    Other(HostName),
}

impl TryFrom<String> for MemberHost {
    type Error = String;

    fn try_from(text: String) -> Result<MemberHost, String> {
        match text.as_str() {
            HOME_HOST => Ok(MemberHost::Home),
            _ => HostName::try_from(text).map(MemberHost::Other),
        }
    }
}

impl From<MemberHost> for String {
    fn from(host: MemberHost) -> String {
        host.to_string()
    }
}

impl fmt::Display for MemberHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemberHost::Home => f.write_str(HOME_HOST),
            MemberHost::Other(host) => host.fmt(f),
        }
    }
}
