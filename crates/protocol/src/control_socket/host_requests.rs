//! Requests about members of a team on other hosts.

use crate::hosts_file_entry::HostName;
use crate::member_task_and_request_ids::TaskId;
use crate::team_and_member_names::{MemberName, TeamName};
use serde::{Deserialize, Serialize};

/// Prepares a host to run members of a team: connects to it, and mirrors the team there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UseHostRequest {
    /// The team.
    pub team: TeamName,
    /// The host.
    pub host: HostName,
    /// Program and arguments that run `teamctl annex --stdio` on the host, with standard input and
    /// output connected to this machine. The daemon adds two arguments: the [`HomeId`] of its root
    /// and the host's name.
    pub command: Vec<String>,
}

/// Identity of the root of a home, which its daemon makes once: up to 64 of `[a-z0-9-]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String")]
pub struct HomeId(String);

impl HomeId {
    /// Parses an identity. `None` if the text is not a valid one.
    pub fn parse(text: &str) -> Option<HomeId> {
        let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let is_valid = !text.is_empty() && text.len() <= 64 && text.bytes().all(is_allowed);
        is_valid.then(|| HomeId(text.to_owned()))
    }

    /// The identity as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A new identity from the name of the machine and 36 characters that no other home has.
    pub fn with_machine(machine: &str, unique: &str) -> Option<HomeId> {
        let to_allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String = machine.chars().map(to_allowed).take(MAX_MACHINE_NAME).collect();
        match name.trim_matches('-') {
            "" => HomeId::parse(unique),
            name => HomeId::parse(&format!("{name}-{unique}")),
        }
    }

    /// The machine's name in messages to people: the first part of this id. The user's `hosts.toml`
    /// may have another name for the machine.
    pub fn machine(&self) -> HostName {
        let end = self.0.len().saturating_sub(UNIQUE_PART + 1);
        let name = self.0.get(..end).filter(|name| !name.is_empty()).unwrap_or(&self.0);
        let named = HostName::parse(name).or_else(|| HostName::parse(&format!("host-{name}")));
        named.unwrap_or_else(|| HostName::parse("host").expect("it is a valid name"))
    }
}

/// Length of the unique part of an identity.
const UNIQUE_PART: usize = 36;

/// The longest name of a machine in an identity.
const MAX_MACHINE_NAME: usize = 27;

impl TryFrom<String> for HomeId {
    type Error = String;

    fn try_from(text: String) -> Result<HomeId, String> {
        HomeId::parse(&text).ok_or_else(|| format!("{text:?} is no identity of a home"))
    }
}

/// Makes the connection of the client the link to a home.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConnectHomeRequest {
    /// The home.
    pub home: HomeId,
    /// The name by which the home knows this host.
    pub annex: HostName,
    /// The generation of the link. It is higher if the home has forgotten this host since.
    #[serde(default = "first_generation", skip_serializing_if = "is_first_generation")]
    pub generation: u32,
}

/// The generation of a link to a host that the home has never forgotten.
pub const FIRST_LINK_GENERATION: u32 = 1;

fn first_generation() -> u32 {
    FIRST_LINK_GENERATION
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_first_generation(generation: &u32) -> bool {
    *generation == FIRST_LINK_GENERATION
}

/// Makes this host, which has a mirror of the team, the team's home. This host must have no contact
/// with the old home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TakeHomeRequest {
    /// The team.
    pub team: TeamName,
}

/// Moves the home of a team from here to another host, which has a mirror of the team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MoveHomeRequest {
    /// The team.
    pub team: TeamName,
    /// The host.
    pub host: HostName,
}

/// Forgets a host that is gone for good: its members are deregistered, and their tasks released.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForgetHostRequest {
    /// The host.
    pub host: HostName,
}

/// Waits until the team's files here have every change that the host made before this request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AwaitHostRequest {
    /// The team.
    pub team: TeamName,
    /// The host.
    pub host: HostName,
}

/// A client sends this after a member of an annex has claimed a task. The reply comes when the home
/// of the team has accepted or refused the claim. So members on two hosts cannot start the same
/// task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfirmTaskRequest {
    /// The team.
    pub team: TeamName,
    /// The task.
    pub task: TaskId,
    /// The member that has claimed the task.
    pub owner: MemberName,
}

/// Whether a host can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostStatus {
    /// The host.
    pub host: HostName,
    /// The state of the connection.
    pub contact: HostContact,
    /// Why the host cannot store what it receives, for example because its disk is full. `None` if
    /// it can, or if there is no contact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_error: Option<String>,
}

/// The state of the connection to a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HostContact {
    /// The connection works.
    Connected,
    /// The host is the team's home now. The files here are its last state before that.
    IsHome {
        /// Since when, in milliseconds since the epoch.
        since: u64,
        /// The epoch of the home.
        epoch: u64,
    },
    /// The team's home is being moved to the host. Neither changes the team meanwhile.
    BecomesHome {
        /// Since when, in milliseconds since the epoch.
        since: u64,
    },
    /// There is no connection. What members do there is unknown.
    NoContact {
        /// Since when, in milliseconds since the epoch.
        since: u64,
        /// Why, in words.
        reason: String,
    },
}
