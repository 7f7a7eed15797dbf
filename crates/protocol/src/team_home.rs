//! Which machine is a team's home, and since when.

use crate::error_kind_and_report::{ErrorKind, ErrorReport};
use crate::hosts_file_entry::HostName;
use crate::team_and_member_names::TeamName;
use crate::timestamp::iso8601;
use crate::token_and_cost_usage::Usage;
use serde::{Deserialize, Serialize};

/// The record of a team's home on this machine. A team without a record has the default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredTeamHome", into = "StoredTeamHome")]
pub struct TeamHome {
    /// The epoch of the team's home: a number that each move of the home to another host raises. If
    /// two hosts both count as the home, only the host with the higher epoch may change the team.
    /// On a machine with a mirror of the team, this is the epoch of the home on the other host.
    pub epoch: u64,
    /// How far the home has moved away from here.
    pub state: HomeState,
}

/// How far the home of a team has moved away from this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HomeState {
    /// No move has begun. The home is this machine or, for a mirror, the machine of the link.
    Settled,
    /// The home is being moved.
    Moving(MovingHome),
    /// The home was moved.
    Moved(MovedHome),
}

/// The file with the record.
#[derive(Serialize, Deserialize)]
struct StoredTeamHome {
    epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moved: Option<MovedHome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moving: Option<MovingHome>,
}

impl From<StoredTeamHome> for TeamHome {
    fn from(StoredTeamHome { epoch, moved, moving }: StoredTeamHome) -> TeamHome {
        let state = match (moved, moving) {
            (Some(moved), _) => HomeState::Moved(moved),
            (None, Some(moving)) => HomeState::Moving(moving),
            (None, None) => HomeState::Settled,
        };
        TeamHome { epoch, state }
    }
}

impl From<TeamHome> for StoredTeamHome {
    fn from(TeamHome { epoch, state }: TeamHome) -> StoredTeamHome {
        let (moved, moving) = match state {
            HomeState::Settled => (None, None),
            HomeState::Moving(moving) => (None, Some(moving)),
            HomeState::Moved(moved) => (Some(moved), None),
        };
        StoredTeamHome { epoch, moved, moving }
    }
}

impl Default for TeamHome {
    fn default() -> TeamHome {
        TeamHome::with_epoch(TeamHome::FIRST_EPOCH)
    }
}

impl TeamHome {
    /// The epoch of a home that was never moved.
    pub const FIRST_EPOCH: u64 = 1;

    /// The record of a home that is not moved.
    pub fn with_epoch(epoch: u64) -> TeamHome {
        TeamHome { epoch, state: HomeState::Settled }
    }

    /// Where the home is now. `None` if it was not moved away from here.
    pub fn moved(self) -> Option<MovedHome> {
        match self.state {
            HomeState::Moved(moved) => Some(moved),
            HomeState::Settled | HomeState::Moving(_) => None,
        }
    }

    /// Where the home is being moved. `None` if no move is under way.
    pub fn moving(self) -> Option<MovingHome> {
        match self.state {
            HomeState::Moving(moving) => Some(moving),
            HomeState::Settled | HomeState::Moved(_) => None,
        }
    }

    /// When the moved team was created, in milliseconds since the Unix epoch. This tells the moved
    /// team from a later team of the same name. `None` if no move has begun.
    pub fn created_at(&self) -> Option<u64> {
        match &self.state {
            HomeState::Settled => None,
            HomeState::Moving(moving) => Some(moving.created_at),
            HomeState::Moved(moved) => Some(moved.created_at),
        }
    }

    /// Checks that this machine may change the team.
    ///
    /// # Errors
    /// `Refused` if the home was moved or is being moved.
    pub fn check(&self, team: &TeamName) -> Result<(), ErrorReport> {
        match &self.state {
            HomeState::Settled => Ok(()),
            HomeState::Moving(moving) => Err(moving.error(team)),
            HomeState::Moved(moved) => Err(moved.error(team)),
        }
    }
}

/// An unfinished move of a team's home to another host. Until this machine knows how the move
/// ended, it does not change the team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovingHome {
    /// The host that is to be the home.
    pub host: HostName,
    /// The epoch of the home after the move.
    pub epoch: u64,
    /// When the move began, in milliseconds since the Unix epoch.
    pub since: u64,
    /// When the team was created.
    pub created_at: u64,
    /// How far the move has come.
    pub step: MoveStep,
    /// What the team has used until the offer. Zero before the home is offered.
    #[serde(default)]
    pub usage: HomeUsage,
}

/// What a team has used, as its home has counted it for the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HomeUsage {
    /// How many turns the members have started.
    pub turns: u64,
    /// The usage of those turns.
    pub usage: Usage,
    /// When the time limit began, in milliseconds since the epoch of Unix. 0: unknown.
    pub started_at: u64,
}

/// How far a move of a team's home has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveStep {
    /// Both hosts exchange what they have. The move can still be cancelled here.
    Exchanging,
    /// The home was offered to the host. Only its answer ends the move.
    Offered,
}

impl MovingHome {
    /// The error for a change of the team on this machine.
    pub fn error(&self, team: &TeamName) -> ErrorReport {
        MovingHome::refusal(team, &self.host, self.since)
    }

    /// The error for a change of a team while its home moves to `host`. `since` is when the move
    /// began, in milliseconds since the Unix epoch.
    pub fn refusal(team: &TeamName, host: &HostName, since: u64) -> ErrorReport {
        let since = iso8601(since);
        let message = format!("cannot change {team} here: its home moves to {host} since {since}");
        ErrorReport::new(ErrorKind::Refused, message).with_help(format!(
            "in a moment, use it there: teamctl --host {host} status -t {team}; whether {host} has contact: teamctl status -t {team}; if it is lost for good: teamctl hosts forget {host}"
        ))
    }
}

/// The home of a team that has left this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedHome {
    /// The host that is the home now.
    pub host: HostName,
    /// Where the name of the host is from.
    #[serde(default, skip_serializing_if = "HomeNameSource::is_hosts_file")]
    pub named_by: HomeNameSource,
    /// The epoch of the new home.
    pub epoch: u64,
    /// When this machine has learned of the move, in milliseconds since the Unix epoch.
    pub since: u64,
    /// When the team was created.
    pub created_at: u64,
    /// Whether the new home has what was done here.
    #[serde(default)]
    pub work: LocalWork,
}

/// Where the name of a team's new home is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HomeNameSource {
    /// `hosts.toml` on this machine.
    #[default]
    HostsFile,
    /// The name of the machine itself, until `hosts.toml` gives another one.
    Machine,
}

impl HomeNameSource {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_hosts_file(&self) -> bool {
        *self == HomeNameSource::HostsFile
    }
}

/// What was done at an old home of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LocalWork {
    /// The new home has it.
    HandedOver,
    /// The new home may lack some of the work. Either the new home was taken without an offer, or
    /// the host that reported the move does not know whether the work was handed over. Records of
    /// earlier releases count as this.
    #[default]
    OnlyHere,
}

impl MovedHome {
    /// The error for a change of the team on this machine.
    pub fn error(&self, team: &TeamName) -> ErrorReport {
        let MovedHome { host, epoch, since, .. } = self;
        let since = iso8601(*since);
        let message = format!("cannot use {team} here: its home is {host} since {since} (epoch {epoch})");
        ErrorReport::new(ErrorKind::Refused, message).with_help(format!(
            "use it there: teamctl --host {host} status -t {team}; keep the files here: teamctl export {team}; delete them: teamctl delete {team} --force"
        ))
    }
}
