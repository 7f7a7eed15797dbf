//! `why` without a name: what holds up the members of a team.

use super::cause::Cause;
use super::diagnosis::Diagnosis;
use super::find_causes::find_causes;
use super::gather_evidence::gather_evidence;
use super::shared_evidence::SystemSnapshot;
use crate::context::CommandContext;
use protocol::error::ErrorReport;
use protocol::name::AgentName;
use std::time::Duration;
use store::Team;

/// What `why` has found out about all members of a team.
pub(super) struct TeamDiagnosis {
    /// The strongest cause of each member that is held up. The strongest of all comes first. A cause
    /// that holds up all members alike, such as a full disk, is in the list once.
    pub(super) blocked: Vec<(AgentName, Diagnosis)>,
    working: usize,
    idle: usize,
}

impl TeamDiagnosis {
    /// Diagnoses every current member, and every past member that is suspended or has failed.
    pub(super) fn new(
        context: &CommandContext,
        snapshot: &SystemSnapshot,
        team: &Team,
        no_output_after: Duration,
    ) -> Result<TeamDiagnosis, ErrorReport> {
        let mut found = TeamDiagnosis { blocked: Vec::new(), working: 0, idle: 0 };
        for name in members_to_diagnose(snapshot, team)? {
            let evidence = gather_evidence(context, snapshot, team, name.as_str(), no_output_after)?;
            for diagnosis in find_causes(&evidence).into_iter().take(1) {
                found.add(name.clone(), diagnosis);
            }
        }
        found.blocked.sort_by_key(|(_, diagnosis)| diagnosis.cause);
        Ok(found)
    }

    fn add(&mut self, name: AgentName, diagnosis: Diagnosis) {
        match diagnosis.cause {
            Cause::Working => self.working += 1,
            Cause::Idle => self.idle += 1,
            _ if !diagnosis.is_blocking() => {}
            _ if self.blocked.iter().any(|(_, other)| other.is_same(&diagnosis)) => {}
            _ => self.blocked.push((name, diagnosis)),
        }
    }

    /// The sentence if no member is held up.
    pub(super) fn nothing_found_text(&self, team: &Team) -> String {
        let count = |n: usize, verb: &str, verbs: &str| match n {
            1 => format!("1 member {verb}"),
            n => format!("{n} members {verbs}"),
        };
        let (working, idle) = (count(self.working, "works", "work"), count(self.idle, "is idle", "are idle"));
        format!("Nothing holds {} up: {working}, {idle}.", team.name())
    }
}

fn members_to_diagnose(snapshot: &SystemSnapshot, team: &Team) -> Result<Vec<AgentName>, ErrorReport> {
    let members = team.config()?.members.into_iter().map(|member| member.name);
    let mut names: Vec<AgentName> = members.filter(|name| !name.is_lead()).collect();
    let status = snapshot.teams.iter().find(|status| status.name == *team.name());
    let past = status.into_iter().flat_map(|status| &status.past_members);
    for past in past.filter(|past| past.is_suspended || past.outcome == "failed") {
        if !names.contains(&past.name) {
            names.push(past.name.clone());
        }
    }
    Ok(names)
}
