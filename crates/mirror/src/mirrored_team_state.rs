//! What the daemon must know of the mirrored teams when it starts.

use crate::home_budget_file::read_home_budget;
use crate::mirror::{Mirror, MirrorSide};
use protocol::annex_link::HomeBudget;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet};

/// A mirrored team.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MirroredTeamState {
    /// At the home: the members that config.json lists for the annex.
    pub members: BTreeSet<MemberName>,
    /// At the annex: the budget that the home has sent last.
    pub budget: HomeBudget,
}

impl Mirror {
    /// The teams that are mirrored. Files that can't be read count as missing.
    pub fn team_states(&self) -> BTreeMap<TeamName, MirroredTeamState> {
        let state = |team: &TeamName| MirroredTeamState {
            members: self.members_on_annex(team).unwrap_or_default(),
            budget: read_home_budget(&self.state, team).unwrap_or_default(),
        };
        self.teams().into_iter().map(|team| (team.clone(), state(&team))).collect()
    }

    fn members_on_annex(&self, team: &TeamName) -> Option<BTreeSet<MemberName>> {
        let MirrorSide::Home { annex } = &self.side else { return None };
        let config = self.root.team(team).ok()?.config_if_valid()?;
        let is_there = |host: Option<&str>| host == Some(annex.as_str());
        let members = config.members.iter().filter(|member| is_there(member.host.as_deref()));
        Some(members.map(|member| member.name.clone()).collect())
    }
}
