//! Views of teams and members, combined from the daemon's status and the team files. The JSON keys
//! of a view are those that `teamctl --json` prints.

use crate::member_view::{MemberView, UnreadCounter, member_view, unsupervised_member_views};
use crate::status_source::StatusSource;
use crate::task_counts_and_failures::{
    AbandonedTask, FailedTask, TaskCounts, abandoned_tasks, count_tasks, failed_tasks,
};
use protocol::control_socket::{
    BudgetStatus, HostStatus, LeadsFile, MemberStatus, PastMember, TeamStatus, WorktreeStatus,
};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::task::{WaitCycle, wait_cycles};
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_config::TeamConfig;
use serde::Serialize;
use std::path::PathBuf;
use store::{Root, Team};

/// A team with its members and task counts.
#[derive(Debug, Serialize)]
pub struct TeamView {
    /// Name of the team.
    pub name: TeamName,
    /// The lead and the current members.
    pub members: Vec<MemberView>,
    /// Past members whose names are still free, the most recent last.
    pub past_members: Vec<PastMember>,
    /// Worktrees of current and past members.
    pub worktrees: Vec<WorktreeStatus>,
    /// The team's usage and limits. `None` if the team has neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetStatus>,
    /// When the team's last lead session ended, in milliseconds since the epoch. `None` if a
    /// session leads the team now, if no session ever led it, or after the command
    /// `teamctl lead --release`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead_session_ended_at: Option<u64>,
    /// Path of the team's record. `None` if the team is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// Why the team's config.json cannot be read. `None` if it can, or if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_error: Option<String>,
    /// Number of tasks by status.
    pub tasks: TaskCounts,
    /// Tasks in progress whose owner is no longer a member.
    pub abandoned_tasks: Vec<AbandonedTask>,
    /// Tasks whose work failed.
    pub failed_tasks: Vec<FailedTask>,
    /// The open tasks that wait for each other, one entry for each cycle.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub task_cycles: Vec<WaitCycle>,
    /// The other hosts that run members, and whether they can be reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostStatus>,
}

impl TeamView {
    /// Fills in pane and pid of the lead's row, if the team has a lead session.
    pub fn set_lead_session(&mut self, leads: &LeadsFile) {
        let lead = leads.leads.iter().find(|lead| lead.team == self.name);
        let row = self.members.iter_mut().find(|member| MemberName::new_unchecked(&member.name).is_lead());
        if let (Some(lead), Some(row)) = (lead, row) {
            (row.pane, row.pid) = (lead.pane.clone(), Some(lead.pid));
        }
    }
}

/// The view of the team `name`. If the team's files cannot be read, the view contains only what the
/// daemon or the roster (`source`) says about the team.
pub fn team_view(root: &Root, name: TeamName, source: StatusSource, unread: &mut UnreadCounter) -> TeamView {
    let status = source.team_status(&name);
    let supervised = || status.and_then(|_| root.open_team_without_config(&name).ok().flatten());
    match root.team(&name) {
        Ok(team) => open_team_view(&team, source, unread),
        Err(error) => match supervised() {
            Some(team) => open_team_view(&team, source, unread),
            None => TeamView { config_error: config_error(error), ..view_without_files(name, status) },
        },
    }
}

/// The view of a team that is already open.
pub fn open_team_view(team: &Team, source: StatusSource, unread: &mut UnreadCounter) -> TeamView {
    let name = team.name().clone();
    let status = source.team_status(&name);
    let supervised: &[MemberStatus] = status.map_or(&[], |team| &team.members);
    let past_members = status.map(|team| team.past_members.clone()).unwrap_or_default();
    let mut members: Vec<MemberView> =
        supervised.iter().map(|agent| member_view(team, agent, unread)).collect();
    // A read waits while another program writes the config, so the config is read only once.
    let config = team.config();
    let config_members = config.as_ref().map_or(&[][..], |config| &config.members);
    members.extend(unsupervised_member_views(
        team,
        config_members,
        supervised,
        &past_members,
        source,
        unread,
    ));
    let tasks = team.tasks().list().unwrap_or_default();
    TeamView {
        abandoned_tasks: match &config {
            Ok(config) => abandoned_tasks(&tasks, &possible_workers(config, status)),
            Err(_) => Vec::new(),
        },
        config_error: config.err().and_then(config_error),
        failed_tasks: failed_tasks(&tasks),
        task_cycles: wait_cycles(&tasks),
        tasks: count_tasks(&tasks),
        members,
        ..view_without_files(name, status)
    }
}

/// The error as a message for people. `None` if the team or its config is missing. This needs no
/// message: either the team was deleted, or the daemon will write the config again.
fn config_error(error: store::Error) -> Option<String> {
    let report = ErrorReport::from(error);
    (report.kind != ErrorKind::NotFound).then_some(report.message)
}

/// The view of a team whose files cannot be read.
fn view_without_files(name: TeamName, status: Option<&TeamStatus>) -> TeamView {
    let past_members = status.map(|team| team.past_members.clone()).unwrap_or_default();
    let worktrees = status.map(|team| team.worktrees.clone()).unwrap_or_default();
    let budget = status.and_then(|team| team.budget.clone());
    let (members, tasks) = (Vec::new(), TaskCounts::default());
    TeamView {
        name,
        members,
        past_members,
        worktrees,
        budget,
        lead_session_ended_at: status.and_then(|team| team.lead_session_ended_at),
        record: status.and_then(|team| team.record.clone()),
        config_error: None,
        hosts: status.map(|team| team.hosts.clone()).unwrap_or_default(),
        tasks,
        abandoned_tasks: Vec::new(),
        failed_tasks: Vec::new(),
        task_cycles: Vec::new(),
    }
}

/// The members that may work on a task. These are the current members, and past members that will
/// be started again.
fn possible_workers(config: &TeamConfig, status: Option<&TeamStatus>) -> Vec<MemberName> {
    let members = config.members.iter().map(|member| member.name.clone());
    let supervised = status.into_iter().flat_map(|team| team.members.iter().map(|agent| agent.name.clone()));
    let respawning =
        status.into_iter().flat_map(|team| team.past_members.iter().filter(|past| past.has_respawn()));
    members.chain(supervised).chain(respawning.map(|past| past.name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member_view::{count_unread, remote_lifecycle};
    use protocol::control_socket::HostContact;
    use protocol::task::Task;
    use protocol::token_and_cost_usage::Usage;

    #[test]
    fn task_is_abandoned_if_its_owner_is_no_worker() {
        let task = |id: u32, status: &str, owner: &str, metadata: &str| {
            Task::parse(&format!(
                r#"{{"id":"{id}","subject":"x","status":"{status}","owner":"{owner}","metadata":{{{metadata}}}}}"#
            ))
            .unwrap()
        };
        let tasks = [
            task(1, "in_progress", "ann", ""),
            task(2, "in_progress", "bob", ""),
            task(3, "in_progress", "bob", r#""failure":"exit 1\nno such file""#),
            task(4, "pending", "bob", ""),
            task(5, "completed", "bob", r#""failure":"once""#),
            task(6, "in_progress", "bob", r#""_internal":true"#),
            task(7, "in_progress", "", ""),
        ];
        let ann = MemberName::new_unchecked("ann");
        let abandoned: Vec<String> =
            abandoned_tasks(&tasks, &[ann]).iter().map(|task| task.id.to_string()).collect();
        assert_eq!(abandoned, ["2"]);
        let failed = failed_tasks(&tasks);
        assert_eq!((failed.len(), failed[0].failure.as_str()), (1, "exit 1\nno such file"));
        assert_eq!(count_tasks(&tasks), TaskCounts { pending: 1, in_progress: 3, completed: 1, failed: 1 });
    }

    #[test]
    fn lifecycle_of_a_remote_member_is_unknown_without_contact() {
        let member = protocol::team_config::parse_member(r#"{"name":"ann","host":"devbox"}"#).unwrap();
        let status = |host: &str, contact| HostStatus {
            host: protocol::hosts_file_entry::HostName::parse(host).unwrap(),
            contact,
            storage_error: None,
        };
        let no_contact = || HostContact::NoContact { since: 1, reason: "exit code 255".to_owned() };
        let lifecycle = |hosts: &[HostStatus]| remote_lifecycle(&member, hosts);
        assert_eq!(lifecycle(&[]), "running");
        assert_eq!(lifecycle(&[status("devbox", HostContact::Connected)]), "running");
        assert_eq!(lifecycle(&[status("other", no_contact())]), "running");
        assert_eq!(lifecycle(&[status("devbox", no_contact())]), "unknown");
    }

    #[test]
    fn respawning_members_count_as_workers() {
        let dir = tempfile::tempdir().unwrap();
        let durability = store::Durability::Process;
        let root = Root::open(&dir.path().join("r"), dir.path(), durability).unwrap();
        let text =
            r#"{"name":"t","members":[{"name":"team-lead"},{"name":"bob"},{"name":"cy","joinedAt":5}]}"#;
        let config = TeamConfig::parse(text).unwrap();
        let team = root.create_team(&config).unwrap();
        let past_member = |name: &str, respawns_at| PastMember {
            name: MemberName::new_unchecked(name),
            outcome: "failed".into(),
            description: "exit 1".into(),
            ended_at: 7,
            respawns_at,
            is_suspended: false,
            respawns_exhausted_reason: None,
            usage: Usage::default(),
        };
        let past_members =
            vec![past_member("ann", None), past_member("bob", Some(9)), past_member("cy", None)];
        let lifecycles = |past_members: &[PastMember]| -> Vec<String> {
            let views = unsupervised_member_views(
                &team,
                &config.members,
                &[],
                past_members,
                StatusSource::Daemon(&[]),
                &mut count_unread,
            )
            .into_iter();
            views.map(|member| format!("{} {}", member.name, member.lifecycle)).collect()
        };
        assert_eq!(lifecycles(&[]), ["team-lead lead", "bob unsupervised", "cy unsupervised"]);
        assert_eq!(lifecycles(&past_members), ["team-lead lead", "cy exited"], "bob waits for its respawn");
        let earlier_exit = [PastMember { ended_at: 4, ..past_members[2].clone() }];
        assert_eq!(
            lifecycles(&earlier_exit)[2],
            "cy unsupervised",
            "another member with the same name has joined since"
        );
        let status = TeamStatus {
            name: team.name().clone(),
            members: Vec::new(),
            past_members,
            worktrees: vec![],
            budget: None,
            lead_session_ended_at: None,
            record: None,
            hosts: Vec::new(),
        };
        assert_eq!(
            possible_workers(&config, Some(&status)),
            ["team-lead", "bob", "cy", "bob"].map(MemberName::new_unchecked)
        );
        let error =
            |team: &Team| open_team_view(team, StatusSource::Daemon(&[]), &mut count_unread).config_error;
        assert_eq!(error(&team), None);
        std::fs::remove_file(team.config_path()).unwrap();
        assert_eq!(error(&team), None, "the daemon writes it again");
    }
}
