//! What the daemon must know of the mirrored teams when it starts.

use crate::home_budget_file::read_home_budget;
use crate::mirror::{Mirror, MirrorSide};
use crate::mirrored_teams::TakenTeam;
use protocol::annex_link::HomeBudget;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_home::HomeUsage;
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

    /// At the annex: the usage that old homes have handed over, with the epoch of the home since
    /// then. Only for teams that are no mirrors here. A team whose files can't be read is left out.
    pub fn usage_of_old_homes(&self) -> BTreeMap<TeamName, (u64, HomeUsage)> {
        let usage = |(team, taken): (&TeamName, &TakenTeam)| {
            let existing = self.root.team(team).ok().filter(|existing| !existing.is_mirror())?;
            let is_same = existing.config_if_valid()?.created_at == taken.created_at;
            let handover = taken.handover.as_ref().filter(|_| is_same)?;
            Some((team.clone(), (taken.epoch, handover.usage)))
        };
        self.teams.taken.iter().filter_map(usage).collect()
    }

    fn members_on_annex(&self, team: &TeamName) -> Option<BTreeSet<MemberName>> {
        let MirrorSide::Home { annex } = &self.side else { return None };
        let config = self.root.team(team).ok()?.config_if_valid()?;
        let is_there = |host: Option<&str>| host == Some(annex.as_str());
        let members = config.members.iter().filter(|member| is_there(member.host.as_deref()));
        Some(members.map(|member| member.name.clone()).collect())
    }
}
