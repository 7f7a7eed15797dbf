//! Where views of teams take the status of agents from: the daemon, or the roster if no daemon runs.

use protocol::control_socket::{StatusReply, TeamStatus};
use protocol::team_and_member_names::TeamName;
use std::path::Path;

/// The suspended members of each team, from the daemon's roster. Used if no daemon is running.
pub fn read_suspended_teams(state: &Path) -> Vec<TeamStatus> {
    store::read_roster_file(state).unwrap_or_default().suspended_teams()
}

/// Where the status of agents comes from.
#[derive(Debug, Clone, Copy)]
pub enum StatusSource<'a> {
    /// Status from the running daemon.
    Daemon(&'a [TeamStatus]),
    /// Suspended members from the roster, because no daemon is running.
    Roster(&'a [TeamStatus]),
}

impl<'a> StatusSource<'a> {
    /// The daemon's status if a daemon is running, otherwise the suspended members from the roster.
    pub fn from_reply_or_roster(
        reply: Option<&'a StatusReply>,
        roster: &'a [TeamStatus],
    ) -> StatusSource<'a> {
        reply.map_or(StatusSource::Roster(roster), |status| StatusSource::Daemon(&status.teams))
    }

    /// The status of all teams.
    pub fn teams(self) -> &'a [TeamStatus] {
        let (StatusSource::Daemon(teams) | StatusSource::Roster(teams)) = self;
        teams
    }

    /// The status of the team `name`. `None` if there is none.
    pub fn team_status(self, name: &TeamName) -> Option<&'a TeamStatus> {
        self.teams().iter().find(|team| team.name == *name)
    }
}
