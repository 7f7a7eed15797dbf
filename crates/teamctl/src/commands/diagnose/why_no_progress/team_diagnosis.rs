//! The diagnosis of a whole team, for `why` without a name: why members of the team make no
//! progress.

use super::cause::Cause;
use super::cause_with_evidence_and_commands::Diagnosis;
use super::find_causes::find_causes;
use super::gather_member_evidence::gather_evidence;
use super::system_snapshot::SystemSnapshot;
use super::team_evidence::TeamEvidence;
use crate::command_context::CommandContext;
use client::suggested_commands::SuggestedCommands;
use protocol::error_kind_and_report::ErrorReport;
use protocol::task::Task;
use protocol::team_and_member_names::MemberName;
use std::time::Duration;
use store::Team;

/// What `why` has found out about all members of a team.
pub(super) struct TeamDiagnosis {
    /// The strongest cause of each member that makes no progress. The strongest of all comes first. A
    /// cause that is the same for all members, such as a full disk, is in the list once.
    pub(super) stuck: Vec<(MemberName, Diagnosis)>,
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
        let mut team_diagnosis = TeamDiagnosis { stuck: Vec::new(), working: 0, idle: 0 };
        let team_evidence = TeamEvidence::gather(context, snapshot, team, snapshot.log.events())?;
        for name in members_to_diagnose(&team_evidence)? {
            let evidence = gather_evidence(&team_evidence, name.as_str(), no_output_after);
            // A hidden pane does not keep its member from working, so the cause `Hidden` is
            // skipped. The next cause says what the member does.
            let causes = find_causes(&evidence).into_iter();
            for diagnosis in causes.filter(|diagnosis| diagnosis.cause != Cause::Hidden).take(1) {
                team_diagnosis.add(name.clone(), diagnosis);
            }
        }
        team_diagnosis.stuck.sort_by_key(|(_, diagnosis)| diagnosis.cause);
        Ok(team_diagnosis)
    }

    fn add(&mut self, name: MemberName, diagnosis: Diagnosis) {
        match diagnosis.cause {
            Cause::Working => self.working += 1,
            Cause::Idle => self.idle += 1,
            _ if !diagnosis.is_blocking() => {}
            _ if self.stuck.iter().any(|(_, other)| other.is_same(&diagnosis)) => {}
            _ => self.stuck.push((name, diagnosis)),
        }
    }

    /// The sentence if no member is stuck.
    pub(super) fn nothing_found_text(&self, team: &Team, commands: &SuggestedCommands) -> String {
        let count = |n: usize, verb: &str, verbs: &str| match n {
            1 => format!("1 member {verb}"),
            n => format!("{n} members {verbs}"),
        };
        if self.working + self.idle == 0 {
            return no_members_text(team, commands);
        }
        let (working, idle) = (count(self.working, "works", "work"), count(self.idle, "is idle", "are idle"));
        format!("Nothing holds {} up: {working}, {idle}.", team.name())
    }
}

/// The sentence if no member runs.
fn no_members_text(team: &Team, commands: &SuggestedCommands) -> String {
    let is_open = |task: &&Task| !task.is_internal() && !task.status.is_closed();
    let tasks = match team.tasks().list().map_or(0, |tasks| tasks.iter().filter(is_open).count()) {
        0 => String::new(),
        1 => ", and 1 task is open".to_owned(),
        n => format!(", and {n} tasks are open"),
    };
    format!(
        "{} has no member that runs{tasks}; start one with: {}",
        team.name(),
        commands.command(&["spawn", "NAME"])
    )
}

/// If config.json cannot be read, the members are those that the daemon runs.
fn members_to_diagnose(team: &TeamEvidence<'_>) -> Result<Vec<MemberName>, ErrorReport> {
    let status = team.status;
    let members: Vec<MemberName> = match (&team.config, status) {
        (Ok(config), _) => config.members.iter().map(|member| member.name.clone()).collect(),
        (Err(_), Some(status)) => status.members.iter().map(|member| member.name.clone()).collect(),
        (Err(error), None) => return Err(error.clone()),
    };
    let mut names: Vec<MemberName> = members.into_iter().filter(|name| !name.is_lead()).collect();
    let past_members = status.into_iter().flat_map(|status| &status.past_members);
    for past_member in
        past_members.filter(|past_member| past_member.is_suspended || past_member.outcome == "failed")
    {
        if !names.contains(&past_member.name) {
            names.push(past_member.name.clone());
        }
    }
    Ok(names)
}
