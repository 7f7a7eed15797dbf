//! Which machine is a team's home, and since when.

use crate::error_kind_and_report::{ErrorKind, ErrorReport};
use crate::hosts_file_entry::HostName;
use crate::team_and_member_names::TeamName;
use crate::timestamp::iso8601;
use serde::{Deserialize, Serialize};

/// The record of a team's home on this machine. A team without a record has the default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamHome {
    /// The epoch of the team's home: a number that grows each time a person moves the home to
    /// another host. Of two homes, only the one with the higher epoch may change the team. The home
    /// is this machine, or another one if this machine has a mirror of the team.
    pub epoch: u64,
    /// Where the home is now. `None` if it was not moved away from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<MovedHome>,
}

impl Default for TeamHome {
    fn default() -> TeamHome {
        TeamHome { epoch: 1, moved: None }
    }
}

/// The home of a team that has left this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedHome {
    /// The host that is the home now.
    pub host: HostName,
    /// Its epoch.
    pub epoch: u64,
    /// When this machine has learned of it, in milliseconds since the epoch of Unix.
    pub since: u64,
}

impl MovedHome {
    /// The error for a change of the team on this machine.
    pub fn error(&self, team: &TeamName) -> ErrorReport {
        let MovedHome { host, epoch, since } = self;
        let since = iso8601(*since);
        let message = format!("cannot use {team} here: its home is {host} since {since} (epoch {epoch})");
        ErrorReport::new(ErrorKind::Refused, message).with_help(format!(
            "use it there: teamctl --host {host} status -t {team}; keep the files here: teamctl export {team}; delete them: teamctl delete {team} --force"
        ))
    }
}
