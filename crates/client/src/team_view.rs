//! What is known of teams and members, from the daemon and from the files; the keys are those of `--json`.

use protocol::control::{
    Activity, BudgetStatus, LeadsFile, MemberFlag, MemberStatus, PastMember, StatusReply, TeamStatus,
    WorktreeStatus,
};
use protocol::delivery::{Delivery, DeliveryPoint};
use protocol::id::TaskId;
use protocol::name::{AgentName, TeamName};
use protocol::redact::redact;
use protocol::task::{Task, TaskStatus};
use protocol::team_config::Member;
use protocol::usage::Usage;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::{Root, StateDir, Team};

/// One team.
#[derive(Debug, Serialize)]
pub struct TeamView {
    pub name: TeamName,
    pub members: Vec<MemberView>,
    /// Whose life has ended, the latest last.
    #[serde(rename = "past")]
    pub past_members: Vec<PastMember>,
    /// Made for its members, those that have ended too.
    pub worktrees: Vec<WorktreeStatus>,
    /// What it has used up of what its policy gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetStatus>,
    pub tasks: TaskCounts,
    /// In progress, and nobody works on them.
    #[serde(rename = "left")]
    pub abandoned_tasks: Vec<AbandonedTask>,
    #[serde(rename = "failed")]
    pub failed_tasks: Vec<FailedTask>,
}

/// One member; none is what nobody knows.
#[derive(Debug, Serialize)]
pub struct MemberView {
    pub name: String,
    pub agent_id: String,
    #[serde(rename = "phase")]
    pub lifecycle: String,
    pub state: Option<String>,
    pub flags: Vec<MemberFlag>,
    pub activity: Option<Activity>,
    #[serde(rename = "since")]
    pub activity_since: Option<u64>,
    pub evidence: Option<String>,
    pub task: Option<String>,
    #[serde(skip_serializing_if = "Usage::is_zero")]
    #[serde(rename = "used")]
    pub usage: Usage,
    pub unread: Option<usize>,
    pub mode: Option<String>,
    #[serde(rename = "feed")]
    pub delivery: Option<Delivery>,
    #[serde(rename = "reaches")]
    pub delivery_point: Option<DeliveryPoint>,
    pub pane: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "hidden")]
    pub is_hidden: bool,
    pub pid: Option<u32>,
    pub backend: Option<String>,
    #[serde(rename = "restarts")]
    pub respawns: Option<u32>,
    pub worktree: Option<PathBuf>,
    pub color: String,
    /// With secrets hidden; only where one member is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<BTreeMap<String, String>>,
    #[serde(skip)]
    pub environment_file: String,
}

impl TeamView {
    /// Its lead sits where a session has taken the lead, if one has.
    pub fn set_lead_session(&mut self, leads: &LeadsFile) {
        let lead = leads.leads.iter().find(|lead| lead.team == self.name);
        let row = self.members.iter_mut().find(|member| AgentName::new_unchecked(&member.name).is_lead());
        if let (Some(lead), Some(row)) = (lead, row) {
            (row.pane, row.pid) = (lead.pane.clone(), Some(lead.pid));
        }
    }
}

impl MemberView {
    /// Its phase, with its flags behind it: `running!shutdown`.
    pub fn lifecycle_and_flags(&self) -> String {
        let flag = |flag: &MemberFlag| match flag {
            MemberFlag::AwaitingPlanApproval => "!plan",
            MemberFlag::AwaitingPermission => "!asks",
            MemberFlag::ShutdownRequested => "!shutdown",
            MemberFlag::AtDialog => "!dialog",
            MemberFlag::DialogUnknown => "?dialog",
        };
        std::iter::once(self.lifecycle.as_str()).chain(self.flags.iter().map(flag)).collect()
    }

    /// Reads what its environment is, if the file is there.
    pub fn load_environment(&mut self, state: &StateDir) {
        let read =
            |file: &str| state.open_subdir("env").and_then(|directory| directory.read(file)).ok().flatten();
        let bytes = Some(self.environment_file.as_str()).filter(|file| !file.is_empty()).and_then(read);
        let all = bytes.and_then(|bytes| serde_json::from_slice::<BTreeMap<String, String>>(&bytes).ok());
        self.environment = all.map(|all| {
            let shown = all.iter().map(|(name, value)| (name.clone(), redact(name, value).to_owned()));
            shown.collect()
        });
    }
}

/// Who rests, as the daemon's roster tells: for whoever finds no daemon.
pub fn read_suspended_teams(state: &Path) -> Vec<TeamStatus> {
    store::read_roster_file(state).unwrap_or_default().suspended_teams()
}

/// What is told of lives.
#[derive(Debug, Clone, Copy)]
pub enum StatusSource<'a> {
    /// By the daemon.
    Daemon(&'a [TeamStatus]),
    /// By its roster, since none answers.
    Roster(&'a [TeamStatus]),
}

impl<'a> StatusSource<'a> {
    /// What a daemon has answered, else what is written.
    pub fn from_reply_or_roster(
        answer: Option<&'a StatusReply>,
        written: &'a [TeamStatus],
    ) -> StatusSource<'a> {
        answer.map_or(StatusSource::Roster(written), |status| StatusSource::Daemon(&status.teams))
    }

    /// Of that team.
    pub fn team_status(self, name: &TeamName) -> Option<&'a TeamStatus> {
        let (StatusSource::Daemon(teams) | StatusSource::Roster(teams)) = self;
        teams.iter().find(|team| team.name == *name)
    }
}

/// Of the tasks, without those that track members.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct TaskCounts {
    pub pending: usize,
    pub in_progress: usize,
    pub completed: usize,
}

/// A task whose owner is no member any more.
#[derive(Debug, PartialEq, Serialize)]
pub struct AbandonedTask {
    pub id: TaskId,
    pub subject: String,
    pub owner: AgentName,
}

/// A task whose work failed.
#[derive(Debug, PartialEq, Serialize)]
pub struct FailedTask {
    pub id: TaskId,
    pub subject: String,
    pub owner: Option<AgentName>,
    pub failure: String,
}

/// How many messages of a member are unread; none where its inbox can't be read: that is not the same as none.
pub type UnreadCounter<'a> = dyn FnMut(&Team, &AgentName) -> Option<usize> + 'a;

/// All that is known of that team.
pub fn team_view(root: &Root, name: TeamName, lives: StatusSource, unread: &mut UnreadCounter) -> TeamView {
    match root.team(&name) {
        Ok(team) => open_team_view(&team, lives, unread),
        Err(_) => {
            let told = lives.team_status(&name);
            view_without_files(name, told)
        }
    }
}

/// The same of a team that is open.
pub fn open_team_view(team: &Team, lives: StatusSource, unread: &mut UnreadCounter) -> TeamView {
    let name = team.name().clone();
    let told = lives.team_status(&name);
    let living: &[MemberStatus] = told.map_or(&[], |team| &team.members);
    let past = told.map(|team| team.past_members.clone()).unwrap_or_default();
    let mut members: Vec<MemberView> = living.iter().map(|agent| member_view(team, agent, unread)).collect();
    members.extend(unsupervised_member_views(
        team,
        living,
        &past,
        matches!(lives, StatusSource::Daemon(_)),
        unread,
    ));
    let tasks = team.tasks().list().unwrap_or_default();
    TeamView {
        abandoned_tasks: possible_workers(team, told)
            .map_or_else(Vec::new, |at_work| abandoned_tasks(&tasks, &at_work)),
        failed_tasks: failed_tasks(&tasks),
        tasks: count_tasks(&tasks),
        members,
        ..view_without_files(name, told)
    }
}

/// Of a team whose files can't be read.
fn view_without_files(name: TeamName, told: Option<&TeamStatus>) -> TeamView {
    let past = told.map(|team| team.past_members.clone()).unwrap_or_default();
    let worktrees = told.map(|team| team.worktrees.clone()).unwrap_or_default();
    let budget = told.and_then(|team| team.budget.clone());
    let (members, tasks) = (Vec::new(), TaskCounts::default());
    TeamView {
        name,
        members,
        past_members: past,
        worktrees,
        budget,
        tasks,
        abandoned_tasks: Vec::new(),
        failed_tasks: Vec::new(),
    }
}

fn member_view(team: &Team, agent: &MemberStatus, unread: &mut UnreadCounter) -> MemberView {
    MemberView {
        name: agent.name.to_string(),
        agent_id: agent.agent_id.clone(),
        lifecycle: agent.lifecycle.clone(),
        state: Some(agent.state.clone()),
        flags: agent.flags.clone(),
        activity: Some(agent.activity).filter(|_| !has_no_hook_events(agent)),
        activity_since: Some(agent.activity_since),
        evidence: Some(agent.evidence.clone()),
        task: agent.task.clone(),
        usage: agent.usage,
        unread: unread(team, &agent.name),
        mode: agent.mode.clone(),
        delivery: Some(agent.delivery),
        delivery_point: agent.delivery_point,
        pane: agent.pane.clone(),
        is_hidden: agent.hidden,
        pid: agent.pid,
        backend: Some(agent.backend.clone()),
        respawns: Some(agent.respawns),
        worktree: agent.worktree.clone(),
        color: agent.color.clone(),
        environment: None,
        environment_file: agent.environment_file.clone(),
    }
}

/// A program with hooks, none of which has said anything: whether it is in a turn, or ever was, nobody knows.
fn has_no_hook_events(agent: &MemberStatus) -> bool {
    let when_asked = agent.delivery_point == Some(DeliveryPoint::OnPull);
    agent.delivery == Delivery::Hook && agent.activity == Activity::Active && when_asked
}

/// Members that config.json has and no daemon speaks for. The lead is nobody's to supervise.
fn unsupervised_member_views(
    team: &Team,
    living: &[MemberStatus],
    past: &[PastMember],
    daemon: bool,
    unread: &mut UnreadCounter,
) -> Vec<MemberView> {
    let members = team.config().map(|config| config.members).unwrap_or_default();
    // Between two lives it is told with those that have ended, and when the next one begins.
    let is_told = |member: &Member| past.iter().any(|past| past.name == member.name && past.has_respawn());
    // Not taken off yet, for a moment or for as long as the disk is full: until then its name is not free. A namesake that
    // somebody has put there since is another.
    let has_ended = |member: &Member| {
        past.iter().any(|past| past.name == member.name && (1..=past.ended_at).contains(&member.joined_at))
    };
    let unspoken = members
        .into_iter()
        .filter(|member| !living.iter().any(|agent| agent.name == member.name) && !is_told(member));
    unspoken
        .map(|member| MemberView {
            lifecycle: match (member.name.is_lead(), daemon) {
                (true, _) => "lead".to_owned(),
                (false, true) if has_ended(&member) => "ended".to_owned(),
                (false, true) => "not ours".to_owned(),
                (false, false) => "unknown".to_owned(),
            },
            agent_id: member.agent_id,
            state: None,
            flags: Vec::new(),
            activity: member.is_active.map(|active| if active { Activity::Active } else { Activity::Idle }),
            activity_since: None,
            evidence: None,
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
            color: member.color.unwrap_or_default(),
            environment: None,
            environment_file: String::new(),
            name: member.name.to_string(),
        })
        .collect()
}

/// What is unread in an inbox, for whoever looks once; none where it can't be read: that is not the same as nothing unread.
pub fn count_unread(team: &Team, name: &AgentName) -> Option<usize> {
    Some(team.inbox(name).read_unread().ok()?.len())
}

/// Who may be at work on a task: members, whoever runs them, and those that are about to be started again.
/// None where that can't be told.
fn possible_workers(team: &Team, told: Option<&TeamStatus>) -> Option<Vec<AgentName>> {
    let members = team.config().ok()?.members.into_iter().map(|member| member.name);
    let living = told.into_iter().flat_map(|team| team.members.iter().map(|agent| agent.name.clone()));
    let again = told.into_iter().flat_map(|team| team.past_members.iter().filter(|past| past.has_respawn()));
    Some(members.chain(living).chain(again.map(|past| past.name.clone())).collect())
}

fn count_tasks(tasks: &[Task]) -> TaskCounts {
    let count =
        |status: &TaskStatus| tasks.iter().filter(|t| !t.is_internal() && t.status == *status).count();
    TaskCounts {
        pending: count(&TaskStatus::Pending),
        in_progress: count(&TaskStatus::InProgress),
        completed: count(&TaskStatus::Completed),
    }
}

fn tasks_in_progress(tasks: &[Task]) -> impl Iterator<Item = &Task> {
    tasks.iter().filter(|task| !task.is_internal() && task.status == TaskStatus::InProgress)
}

/// A failed one is nobody's to take up: that is told as a failure.
fn abandoned_tasks(tasks: &[Task], at_work: &[AgentName]) -> Vec<AbandonedTask> {
    let left = |task: &Task| {
        let owner = task.owner.clone().filter(|owner| !at_work.contains(owner))?;
        Some(AbandonedTask { id: task.id, subject: task.subject.clone(), owner })
    };
    tasks_in_progress(tasks).filter(|task| task.failure().is_none()).filter_map(left).collect()
}

fn failed_tasks(tasks: &[Task]) -> Vec<FailedTask> {
    let failed = |task: &Task| {
        let failure = task.failure()?.to_owned();
        Some(FailedTask { id: task.id, subject: task.subject.clone(), owner: task.owner.clone(), failure })
    };
    tasks_in_progress(tasks).filter_map(failed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_is_abandoned_if_no_worker_can_have_it() {
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
        let ann = AgentName::new_unchecked("ann");
        let left: Vec<String> =
            abandoned_tasks(&tasks, &[ann]).iter().map(|task| task.id.to_string()).collect();
        assert_eq!(left, ["2"]);
        let failed = failed_tasks(&tasks);
        assert_eq!((failed.len(), failed[0].failure.as_str()), (1, "exit 1\nno such file"));
        assert_eq!(count_tasks(&tasks), TaskCounts { pending: 1, in_progress: 4, completed: 1 });
    }

    #[test]
    fn respawning_members_count_as_workers() {
        let dir = tempfile::tempdir().unwrap();
        let level = store::Durability::Process;
        let root = Root::open(&dir.path().join("r"), dir.path(), level).unwrap();
        let text =
            r#"{"name":"t","members":[{"name":"team-lead"},{"name":"bob"},{"name":"cy","joinedAt":5}]}"#;
        let team = root.create_team(&protocol::team_config::TeamConfig::parse(text).unwrap()).unwrap();
        let past = |name: &str, again_at| PastMember {
            name: AgentName::new_unchecked(name),
            outcome: "failed".into(),
            description: "exit 1".into(),
            ended_at: 7,
            respawns_at: again_at,
            is_suspended: false,
            usage: Usage::default(),
        };
        let past = vec![past("ann", None), past("bob", Some(9)), past("cy", None)];
        let phases = |past: &[PastMember]| -> Vec<String> {
            let all = unsupervised_member_views(&team, &[], past, true, &mut count_unread).into_iter();
            all.map(|member| format!("{} {}", member.name, member.lifecycle)).collect()
        };
        assert_eq!(phases(&[]), ["team-lead lead", "bob not ours", "cy not ours"]);
        assert_eq!(phases(&past), ["team-lead lead", "cy ended"], "bob is between two lives");
        let before = [PastMember { ended_at: 4, ..past[2].clone() }];
        assert_eq!(phases(&before)[2], "cy not ours", "another has come by that name");
        let told = TeamStatus {
            name: team.name().clone(),
            members: Vec::new(),
            past_members: past,
            worktrees: vec![],
            budget: None,
        };
        assert_eq!(
            possible_workers(&team, Some(&told)),
            Some(["team-lead", "bob", "cy", "bob"].map(AgentName::new_unchecked).to_vec())
        );
        std::fs::remove_file(team.config_path()).unwrap();
        assert_eq!(possible_workers(&team, Some(&told)), None);
    }
}
