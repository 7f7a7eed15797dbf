//! The record of the teams that are mirrored over one link.

use protocol::annex_link::HomeHandover;
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use store::{Error, StateDir};

/// The name of the record's file.
const FILE: &str = "teams.json";

/// The teams, by their names.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct MirroredTeams {
    /// The teams that are mirrored.
    pub(crate) active: BTreeSet<TeamName>,
    /// At the home: deleted teams whose item `TeamDeleted` has not reached the link's spool yet. At
    /// the annex: teams that the home has deleted, but whose mirrors still exist here.
    #[serde(default)]
    pub(crate) ended: BTreeSet<TeamName>,
    /// At the annex: former mirrors, whose home this host is now.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) taken: BTreeMap<TeamName, TakenTeam>,
    /// At the annex: the homes that this host has declined, until the link keeps the answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) declined: BTreeMap<TeamName, DeclinedOffer>,
}

/// An offer of a home that the annex has declined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeclinedOffer {
    /// The offered epoch.
    pub(crate) epoch: u64,
    /// Why.
    pub(crate) error: ErrorReport,
}

/// A team whose home has moved to the annex.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TakenTeam {
    /// When the team was created. Another team of its name was not moved.
    pub(crate) created_at: u64,
    /// The epoch of the new home.
    pub(crate) epoch: u64,
    /// What the old home has handed over. `None` if a person took the home (`home take`), even if
    /// an offer arrived afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) handover: Option<Box<HomeHandover>>,
}

impl MirroredTeams {
    /// Reads the record. A damaged file counts as empty.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn open(state: &StateDir) -> Result<MirroredTeams, Error> {
        let bytes = state.read(FILE)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
    }

    /// Adds a team that is mirrored, and writes the record if this changes it.
    ///
    /// # Errors
    ///
    /// `Io`. After this error, the team is not added.
    pub(crate) fn add(&mut self, team: &TeamName, state: &StateDir) -> Result<(), Error> {
        let has_ended = self.ended.remove(team);
        if !self.active.insert(team.clone()) && !has_ended {
            return Ok(());
        }
        let saved = self.save(state);
        if saved.is_err() {
            self.active.remove(team);
        }
        saved
    }

    /// Writes the record.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn save(&self, state: &StateDir) -> Result<(), Error> {
        state.replace(FILE, &serde_json::to_vec(self).expect("team names are strings"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::policy::{Approver, Policy};

    /// In the middle of a move, the daemon may be replaced by a daemon of another release. So this
    /// release reads records of earlier and of later releases.
    #[test]
    fn records_of_other_releases_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        let read = |handover: &str| {
            let team = format!("{{\"created_at\":1,\"epoch\":2,\"handover\":{handover},\"later\":1}}");
            let record = format!("{{\"active\":[\"other\"],\"taken\":{{\"survey\":{team}}}}}");
            state.replace(FILE, record.as_bytes()).unwrap();
            let teams = MirroredTeams::open(&state).unwrap();
            assert_eq!(teams.active.len(), 1);
            teams.taken.into_values().next().unwrap().handover.unwrap()
        };
        let handover = read("{\"policy\":{\"later\":1},\"last_task_id\":7,\"answers\":[],\"later\":1}");
        assert_eq!((handover.policy.plan_approver, handover.last_task_id), (Approver::Person, 7));
        assert_eq!(read("{\"last_task_id\":7}").policy, Policy::default());
    }
}
