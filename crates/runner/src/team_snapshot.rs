//! Reads a team's tasks and members at one moment.

use crate::decide_task_retries::{MemberState, MemberStates};
use crate::parts_that_all_run_steps_use::RunContext;
use crate::run_file::RunFile;
use protocol::control_socket::{HostContact, HostStatus, MemberStatus, TeamStatus};
use protocol::delivery_kind::Delivery;
use protocol::error_kind_and_report::ErrorReport;
use protocol::task::Task;
use protocol::team_and_member_names::MemberName;
use protocol::team_config::Member;
use std::collections::BTreeMap;
use std::path::PathBuf;
use store::Team;

/// The state of a team at one moment.
#[derive(Debug, Default)]
pub(crate) struct TeamSnapshot {
    /// All tasks, including internal ones.
    pub(crate) tasks: Vec<Task>,
    /// The states of all members and past members.
    pub(crate) members: MemberStates,
    /// The running members of this machine, as the daemon reports them.
    pub(crate) running: Vec<MemberStatus>,
    /// The members of other hosts.
    pub(crate) hosted: Vec<HostedMember>,
    /// Why the daemon spawns no more members for the team. `None` if the budget is not exhausted.
    pub(crate) exhausted_budget: Option<String>,
    /// The path of the team's record. `None` if the team is not recorded.
    pub(crate) record: Option<PathBuf>,
}

/// A member on another host, as config.json lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostedMember {
    pub(crate) name: MemberName,
    pub(crate) activity: HostedActivity,
}

/// What a member on another host does, as far as it is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostedActivity {
    /// It is idle, and does not continue by itself.
    Idle,
    /// It is idle, but may continue by itself, for example after a pause or an answer.
    Waiting,
    /// It has a turn, or its host has no contact. config.json then keeps the last activity.
    ActiveOrUnknown,
}

/// The members of other hosts. A member that is listed counts as running.
fn hosted_members(
    team: &Team,
    hosts: &[HostStatus],
    file: &RunFile,
) -> Result<Vec<HostedMember>, ErrorReport> {
    let members = team.config()?.members.into_iter();
    let hosted = members.filter(|member| member.host.is_some()).map(|member| {
        let activity = hosted_activity(&member, hosts, file);
        HostedMember { name: member.name, activity }
    });
    Ok(hosted.collect())
}

/// The activity of a member on another host, as far as config.json and the run file show it. The
/// member never counts as [`HostedActivity::Idle`] if its delivery is `pull` or unknown, because a
/// program with delivery `pull` may still work when it is reported as idle.
fn hosted_activity(member: &Member, hosts: &[HostStatus], file: &RunFile) -> HostedActivity {
    let is_connected = hosts.iter().any(|status| {
        Some(status.host.as_str()) == member.host.as_deref() && status.contact == HostContact::Connected
    });
    let request = file.members.iter().find(|request| request.name == member.name);
    match request {
        _ if !is_connected || member.is_active != Some(false) => HostedActivity::ActiveOrUnknown,
        Some(request) if request.delivery != Delivery::Pull => HostedActivity::Idle,
        _ => HostedActivity::Waiting,
    }
}

/// Takes a snapshot. The tasks are read before the members. In the opposite order, a member could
/// start and claim a task between the two reads. That task would then seem to have an owner that
/// does not run.
pub(crate) fn take(run: &mut RunContext, team: &Team) -> Result<TeamSnapshot, ErrorReport> {
    let tasks = team.tasks().list()?;
    let mut states = added_members(run, team)?;
    let status = run.daemon.status()?;
    let status = status.teams.into_iter().find(|status| status.name == *team.name());
    let status = status.unwrap_or_else(|| empty_status(team));
    for past_member in status.past_members {
        let state = match past_member.is_suspended {
            true => MemberState::Suspended,
            false if past_member.has_respawn() => MemberState::Respawning,
            false => MemberState::Gone,
        };
        states.insert(past_member.name, state);
    }
    states.extend(status.members.iter().map(|member| (member.name.clone(), MemberState::Running)));
    let hosted = hosted_members(team, &status.hosts, &run.file)?;
    states.extend(hosted.iter().map(|member| (member.name.clone(), MemberState::Running)));
    let turn_tasks = status.members.iter().filter_map(|member| member.turn_task).collect();
    Ok(TeamSnapshot {
        tasks,
        members: MemberStates { states, turn_tasks },
        running: status.members,
        hosted,
        record: status.record,
        exhausted_budget: status.budget.and_then(|budget| budget.exhausted_reason),
    })
}

/// The team's members that are not in the run file, because they were added later. They count as
/// running unless the daemon reports another state.
fn added_members(run: &RunContext, team: &Team) -> Result<BTreeMap<MemberName, MemberState>, ErrorReport> {
    let is_in_file = |name: &MemberName| run.file.members.iter().any(|member| member.name == *name);
    let names = team.config()?.members.into_iter().map(|member| member.name);
    let added = names.filter(|name| !name.is_lead() && !is_in_file(name));
    Ok(added.map(|name| (name, MemberState::Running)).collect())
}

/// The status that a team gets here if the daemon's reply does not contain the team. This happens
/// if the daemon has not read the team's files yet.
fn empty_status(team: &Team) -> TeamStatus {
    TeamStatus {
        name: team.name().clone(),
        members: Vec::new(),
        past_members: Vec::new(),
        worktrees: Vec::new(),
        budget: None,
        lead_session_ended_at: None,
        record: None,
        hosts: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_file::parse_valid;
    use protocol::team_config::TeamConfig;

    #[test]
    fn member_counts_as_idle_only_while_its_host_is_connected() {
        let file = parse_valid(
            "name = 't'\n[host.devbox]\nconnect = 'ssh devbox'\n\
             [[member]]\nname = 'ann'\nhost = 'devbox'\nprofile = 'worker'\n\
             [[member]]\nname = 'bob'\nhost = 'devbox'\ncommand = ['cat']\n",
        );
        let activity = |name: &str, is_active: &str, contact: &str| {
            let member = format!(r#"{{"name":"{name}","host":"devbox","isActive":{is_active}}}"#);
            let config = TeamConfig::parse(&format!(r#"{{"name":"t","members":[{member}]}}"#)).unwrap();
            let hosts: Vec<HostStatus> =
                serde_json::from_str(&format!(r#"[{{"host":"devbox","contact":{contact}}}]"#)).unwrap();
            hosted_activity(&config.members[0], &hosts, &file)
        };
        let (connected, lost) = (r#""connected""#, r#"{"no_contact":{"since":1,"reason":""}}"#);
        assert_eq!(activity("ann", "false", connected), HostedActivity::Idle);
        assert_eq!(activity("ann", "true", connected), HostedActivity::ActiveOrUnknown);
        assert_eq!(activity("ann", "false", lost), HostedActivity::ActiveOrUnknown);
        assert_eq!(activity("bob", "false", connected), HostedActivity::Waiting, "its delivery is pull");
        assert_eq!(activity("eve", "false", connected), HostedActivity::Waiting, "the file lacks it");
    }
}
