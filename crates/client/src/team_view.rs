//! Views of teams and members, combined from the daemon's status and the team files. The JSON keys
//! of a view are those that `teamctl --json` prints.

use protocol::control_socket::{
    Activity, BudgetStatus, HostContact, HostStatus, LeadsFile, MemberFlag, MemberStatus, PastMember,
    StatusReply, TeamStatus, TurnPause, UsageLimit, WorktreeStatus,
};
use protocol::delivery_kind::{Delivery, DeliveryPoint};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_task_and_request_ids::TaskId;
use protocol::redact_variables::redact;
use protocol::single_line::single_line;
use protocol::state_file_names::ENVIRONMENTS_DIR;
use protocol::task::{Task, TaskStatus, WaitCycle, wait_cycles};
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_config::{Member, TeamConfig};
use protocol::token_and_cost_usage::Usage;
use serde::Serialize;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::{Root, StateDir, Team};

/// A team with its members and task counts.
#[derive(Debug, Serialize)]
pub struct TeamView {
    pub name: TeamName,
    pub members: Vec<MemberView>,
    /// Past members whose names are still free, the most recent last.
    pub past_members: Vec<PastMember>,
    /// Worktrees of current and past members.
    pub worktrees: Vec<WorktreeStatus>,
    /// The team's usage and limits. `None` if the team has neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetStatus>,
    /// When the team's lead session ended, in milliseconds since the epoch. `None` if a session
    /// leads the team now, if no session ever led it, or if the last lead session gave up the team
    /// before it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead_session_ended_at: Option<u64>,
    /// Path of the team's record. `None` if the team is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// Why the team's config.json cannot be read. `None` if it can, or if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_error: Option<String>,
    pub tasks: TaskCounts,
    /// Tasks in progress whose owner is no longer a member.
    pub abandoned_tasks: Vec<AbandonedTask>,
    pub failed_tasks: Vec<FailedTask>,
    /// The open tasks that wait for each other, one entry for each cycle.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub task_cycles: Vec<WaitCycle>,
    /// The other hosts that run members, and whether they can be reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostStatus>,
}

/// A member. `None` in a field means unknown.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MemberView {
    pub name: String,
    pub agent_id: String,
    /// The host that runs the member. `None`: this one, or the home of a mirrored team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    pub lifecycle: String,
    pub state: Option<String>,
    pub flags: Vec<MemberFlag>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialog: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_pause: Option<TurnPause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_limit: Option<UsageLimit>,
    pub activity: Option<Activity>,
    pub activity_since: Option<u64>,
    pub activity_reason: Option<String>,
    pub task: Option<String>,
    #[serde(skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
    pub unread: Option<usize>,
    pub mode: Option<String>,
    pub delivery: Option<Delivery>,
    pub delivery_point: Option<DeliveryPoint>,
    pub pane: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_hidden: bool,
    pub pid: Option<u32>,
    pub backend: Option<String>,
    pub respawns: Option<u32>,
    pub worktree: Option<PathBuf>,
    /// The branch that the worktree was created for.
    pub branch: Option<String>,
    pub color: String,
    /// The agent's environment with secrets hidden. Only loaded for the view of a single member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<BTreeMap<String, String>>,
    #[serde(skip)]
    pub environment_file: String,
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

impl MemberView {
    /// The lifecycle followed by the flags, such as `running!shutdown`.
    pub fn lifecycle_and_flags(&self) -> String {
        let flags = self.flags.iter().map(|flag| {
            match flag {
                MemberFlag::Limited => return self.limit_flag(),
                MemberFlag::AwaitingPlanApproval => "!plan",
                MemberFlag::AwaitingPermission => "!asks",
                MemberFlag::ShutdownRequested => "!shutdown",
                MemberFlag::AtDialog => "!dialog",
                MemberFlag::DialogUnknown => "?dialog",
                MemberFlag::NoOutput => "?waiting",
                MemberFlag::Paused => "!paused",
                MemberFlag::TurnsStopped => "!turns-stopped",
            }
            .to_owned()
        });
        std::iter::once(self.lifecycle.clone()).chain(flags).collect()
    }

    /// `!limited until 15:00`.
    fn limit_flag(&self) -> String {
        let time = self.usage_limit.as_ref().map(|limit| single_line(&limit.local_time));
        format!("!limited until {}", time.as_deref().unwrap_or("?"))
    }

    /// Reads the agent's environment, if its file exists.
    pub fn load_environment(&mut self, state: &StateDir) {
        let read_file = |file: &str| {
            state.open_subdir(ENVIRONMENTS_DIR).and_then(|directory| directory.read(file)).ok().flatten()
        };
        let bytes = Some(self.environment_file.as_str()).filter(|file| !file.is_empty()).and_then(read_file);
        let variables =
            bytes.and_then(|bytes| serde_json::from_slice::<BTreeMap<String, String>>(&bytes).ok());
        self.environment = variables.map(|variables| {
            let redacted =
                variables.iter().map(|(name, value)| (name.clone(), redact(name, value).to_owned()));
            redacted.collect()
        });
    }
}

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

/// Number of tasks by status, without internal tasks.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct TaskCounts {
    pub pending: usize,
    /// Without the failed ones.
    pub in_progress: usize,
    pub completed: usize,
    /// Tasks whose work failed. Their status is `in_progress`, so that no member claims them again.
    pub failed: usize,
}

/// A task in progress whose owner is no longer a member.
#[derive(Debug, PartialEq, Serialize)]
pub struct AbandonedTask {
    pub id: TaskId,
    pub subject: String,
    pub owner: MemberName,
}

/// A task whose work failed.
#[derive(Debug, PartialEq, Serialize)]
pub struct FailedTask {
    pub id: TaskId,
    pub subject: String,
    pub owner: Option<MemberName>,
    pub failure: String,
}

/// A function that counts the unread messages of a member. It returns `None`, not 0, if the inbox
/// cannot be read.
pub type UnreadCounter<'a> = dyn FnMut(&Team, &MemberName) -> Option<usize> + 'a;

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

/// The error as a message for people. `None` if the team or its config is missing, which needs no
/// message: such a team was deleted, or the daemon writes the missing config again.
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

fn member_view(team: &Team, agent: &MemberStatus, unread: &mut UnreadCounter) -> MemberView {
    MemberView {
        name: agent.name.to_string(),
        agent_id: agent.agent_id.clone(),
        host: None,
        lifecycle: agent.lifecycle.clone(),
        state: Some(agent.state.clone()),
        flags: agent.flags.clone(),
        dialog: agent.dialog.clone(),
        turn_pause: agent.turn_pause.clone(),
        usage_limit: agent.usage_limit.clone(),
        activity: Some(agent.activity).filter(|_| !has_no_hook_events(agent)),
        activity_since: Some(agent.activity_since),
        activity_reason: Some(agent.activity_reason.clone()),
        task: agent.task.clone(),
        usage: agent.usage,
        unread: unread(team, &agent.name),
        mode: agent.mode.clone(),
        delivery: Some(agent.delivery),
        delivery_point: agent.delivery_point,
        pane: agent.pane.clone(),
        is_hidden: agent.is_hidden,
        pid: agent.pid,
        backend: Some(agent.backend.clone()),
        respawns: Some(agent.respawns),
        worktree: agent.worktree.clone(),
        branch: agent.branch.clone(),
        color: agent.color.clone(),
        environment: None,
        environment_file: agent.environment_file.clone(),
    }
}

/// Whether the member's program has hooks, but the daemon has received no event from them yet. It
/// is then unknown whether the program is in a turn.
fn has_no_hook_events(agent: &MemberStatus) -> bool {
    let is_on_pull = agent.delivery_point == Some(DeliveryPoint::OnPull);
    agent.delivery == Delivery::Hook && agent.activity == Activity::Active && is_on_pull
}

/// Views of the members in config.json that the daemon does not supervise. The lead is always among
/// them.
fn unsupervised_member_views(
    team: &Team,
    config_members: &[Member],
    supervised: &[MemberStatus],
    past_members: &[PastMember],
    source: StatusSource,
    unread: &mut UnreadCounter,
) -> Vec<MemberView> {
    // A member that waits for its respawn is shown with the past members.
    let waits_for_respawn =
        |member: &Member| past_members.iter().any(|past| past.name == member.name && past.has_respawn());
    // When a member has ended, the daemon removes the member's entry from config.json. Until that
    // succeeds, for example while the disk is full, the entry does not count. An entry whose join
    // time is after the member's exit belongs to a new member of the same name.
    let has_ended = |member: &Member| {
        past_members
            .iter()
            .any(|past| past.name == member.name && (1..=past.ended_at).contains(&member.joined_at))
    };
    let unsupervised = config_members.iter().filter(|member| {
        !supervised.iter().any(|agent| agent.name == member.name) && !waits_for_respawn(member)
    });
    let hosts = source.team_status(team.name()).map_or(&[][..], |team| &team.hosts);
    unsupervised
        .cloned()
        .map(|member| MemberView {
            lifecycle: match (member.name.is_lead(), source) {
                (true, _) => "lead",
                (false, StatusSource::Roster(_)) => "unknown",
                (false, StatusSource::Daemon(_)) if member.host.is_some() => remote_lifecycle(&member, hosts),
                (false, StatusSource::Daemon(_)) if has_ended(&member) => "exited",
                (false, StatusSource::Daemon(_)) => "unsupervised",
            }
            .to_owned(),
            host: member.host,
            agent_id: member.agent_id,
            state: None,
            dialog: None,
            turn_pause: None,
            usage_limit: None,
            flags: Vec::new(),
            activity: member.is_active.map(|active| if active { Activity::Active } else { Activity::Idle }),
            activity_since: None,
            activity_reason: None,
            task: None,
            usage: Usage::default(),
            unread: unread(team, &member.name),
            mode: member.mode,
            delivery: None,
            delivery_point: None,
            is_hidden: false,
            pane: Some(member.tmux_pane_id).filter(|pane| pane.starts_with('%')),
            pid: None,
            backend: member.backend_type,
            respawns: None,
            worktree: member.worktree_path.map(PathBuf::from),
            branch: None,
            color: member.color.unwrap_or_default(),
            environment: None,
            environment_file: String::new(),
            name: member.name.to_string(),
        })
        .collect()
}

/// The lifecycle of a member that another host runs. Without contact, it is unknown.
fn remote_lifecycle(member: &Member, hosts: &[HostStatus]) -> &'static str {
    // After a move of the home, nothing here says how its members are.
    if hosts.iter().any(|host| matches!(host.contact, HostContact::IsHome { .. })) {
        return "unknown";
    }
    let host = hosts.iter().find(|host| member.host.as_deref() == Some(host.host.as_str()));
    match host.map(|host| &host.contact) {
        Some(HostContact::NoContact { .. }) => "unknown",
        _ => "running",
    }
}

/// Counts the unread messages in a member's inbox, without a cache. Returns `None`, not 0, if the
/// inbox cannot be read.
pub fn count_unread(team: &Team, name: &MemberName) -> Option<usize> {
    team.inbox(name).count_unread().ok()
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

fn count_tasks(tasks: &[Task]) -> TaskCounts {
    let mut counts = TaskCounts::default();
    for task in tasks.iter().filter(|task| !task.is_internal()) {
        match task.status {
            TaskStatus::Pending => counts.pending += 1,
            TaskStatus::InProgress if task.failure().is_some() => counts.failed += 1,
            TaskStatus::InProgress => counts.in_progress += 1,
            TaskStatus::Completed => counts.completed += 1,
            _ => {}
        }
    }
    counts
}

fn tasks_in_progress<T: Borrow<Task>>(tasks: &[T]) -> impl Iterator<Item = &Task> {
    tasks
        .iter()
        .map(Borrow::borrow)
        .filter(|task| !task.is_internal() && task.status == TaskStatus::InProgress)
}

/// The tasks in progress whose owner is not one of `workers`. Failed tasks are listed separately.
pub fn abandoned_tasks<T: Borrow<Task>>(tasks: &[T], workers: &[MemberName]) -> Vec<AbandonedTask> {
    let to_abandoned_task = |task: &Task| {
        let owner = task.owner.clone().filter(|owner| !workers.contains(owner))?;
        Some(AbandonedTask { id: task.id, subject: task.subject.clone(), owner })
    };
    tasks_in_progress(tasks).filter(|task| task.failure().is_none()).filter_map(to_abandoned_task).collect()
}

fn failed_tasks(tasks: &[Task]) -> Vec<FailedTask> {
    let to_failed_task = |task: &Task| {
        let failure = task.failure()?.to_owned();
        Some(FailedTask { id: task.id, subject: task.subject.clone(), owner: task.owner.clone(), failure })
    };
    tasks_in_progress(tasks).filter_map(to_failed_task).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
