//! The part of the daemon's roster.json that clients read: capabilities, spawns and panes of
//! members, suspended members, and the usage and worktrees of teams.
//!
//! Clients read the file if no daemon runs, or if a command works without the daemon.

use crate::check_program_supports_answer::Capabilities;
use crate::control_socket::{PastMember, PlanStage, TeamStatus, WorktreeStatus};
use crate::delivery_kind::Delivery;
use crate::member_task_and_request_ids::RequestId;
use crate::team_and_member_names::{MemberName, TeamName};
use crate::token_and_cost_usage::Usage;
use crate::worker_or_program_that_runs_turns::TurnProgram;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The part of roster.json that clients read.
#[derive(Default, Deserialize)]
pub struct RosterFile {
    version: u32,
    #[serde(default)]
    records: Vec<RosterRecord>,
    #[serde(default)]
    past_members: BTreeMap<TeamName, Vec<PastMember>>,
    #[serde(default)]
    pending_respawns: Vec<RecordedRespawn>,
    #[serde(default)]
    worktrees: BTreeMap<TeamName, Vec<RosterWorktree>>,
    #[serde(default)]
    usage: BTreeMap<TeamName, RecordedUsage>,
}

/// The worktree of a current or past member.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RosterWorktree {
    /// Name of the member.
    pub member: MemberName,
    /// The record of the worktree, in the format of the crate `worktree`.
    pub record: serde_json::Value,
}

/// Tokens and cost of a team, as its programs reported them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TeamUsageRecord {
    /// The usage of all members that the team has ever had.
    pub total: Usage,
    /// The usage of each current and past member that has reported any. If several members had the
    /// same name, one after the other, only the usage of the last one is here.
    pub members: BTreeMap<MemberName, Usage>,
}

/// The part of a team's or member's usage that clients read.
#[derive(Debug, Default, Deserialize)]
struct RecordedUsage {
    #[serde(default)]
    usage: Usage,
    /// What the members on other hosts have used, by host.
    #[serde(default)]
    annexes: BTreeMap<String, RecordedAnnexUsage>,
}

/// The part of the usage on another host that clients read.
#[derive(Debug, Default, Deserialize)]
struct RecordedAnnexUsage {
    #[serde(default)]
    members: BTreeMap<MemberName, Usage>,
}

/// The value of the field `start` in the record of a suspended member. It says that the member's
/// next spawn waits until the member is resumed.
pub const RESUMED_START: &str = "when_resumed";

/// The part of a suspended member's record that clients read.
#[derive(Debug, Deserialize)]
struct RecordedRespawn {
    request: TeamOfRequest,
    respawn: PlanOfRespawn,
    /// [`RESUMED_START`], or what else the next spawn waits for.
    #[serde(default)]
    start: serde_json::Value,
}

#[derive(Debug, Deserialize)]
struct TeamOfRequest {
    team: TeamName,
}

#[derive(Debug, Deserialize)]
struct PlanOfRespawn {
    #[serde(default)]
    plan: Option<PlanStage>,
}

/// The part of a worktree's record that clients read.
#[derive(Debug, Deserialize)]
struct RecordOfWorktree {
    path: PathBuf,
    branch: String,
    common_git_dir: PathBuf,
}

/// The part of a member's record that clients read. It has no `Debug`, because the token is secret.
#[derive(Deserialize)]
struct RosterRecord {
    spawn_id: String,
    #[serde(default)]
    token: String,
    #[serde(default)]
    respawn: UsageOfSpawns,
    request: RecordedRequest,
    pane: Option<RecordedPane>,
    lifecycle: RecordedLifecycle,
}

#[derive(Debug, Default, Deserialize)]
struct UsageOfSpawns {
    #[serde(default)]
    usage: RecordedUsage,
}

#[derive(Debug, Deserialize)]
struct RecordedPane {
    server_epoch: String,
}

/// The part of a spawn request that clients read.
#[derive(Debug, Deserialize)]
struct RecordedRequest {
    team: TeamName,
    name: MemberName,
    delivery: Delivery,
    #[serde(default)]
    turns: Option<TurnProgram>,
    #[serde(default)]
    launches_after_approval: BTreeMap<String, IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordedLifecycle {
    Running(IgnoredAny),
    Stopping(IgnoredAny),
    Exited(IgnoredAny),
}

/// Why a roster cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum RosterFileError {
    /// It is not a valid roster.
    #[error(transparent)]
    Invalid(#[from] serde_json::Error),
    /// It has another version of the format.
    #[error("it has version {version}, and this release reads version {}", RosterFile::VERSION)]
    OtherVersion {
        /// The version.
        version: u32,
    },
}

impl RosterFile {
    /// Version of the file's format. Neither the daemon nor a client reads another version.
    pub const VERSION: u32 = 2;

    /// Parses a roster.
    ///
    /// # Errors
    ///
    /// [`RosterFileError`] if `bytes` is not a valid roster of this version.
    pub fn parse(bytes: &[u8]) -> Result<RosterFile, RosterFileError> {
        let roster: RosterFile = serde_json::from_slice(bytes)?;
        match roster.version {
            Self::VERSION => Ok(roster),
            version => Err(RosterFileError::OtherVersion { version }),
        }
    }

    /// What the program of the member `name` can do. If no such member runs, all capabilities are
    /// unknown.
    pub fn member_capabilities(&self, team: &TeamName, name: &MemberName) -> Capabilities {
        self.running_record(team, name).map_or_else(Capabilities::default, RosterRecord::capabilities)
    }

    /// Whether the member begins a task of a mirrored team only after the team's home has agreed.
    /// True if teamd gives the member its tasks. False if no such member runs.
    pub fn confirms_claims(&self, team: &TeamName, name: &MemberName) -> bool {
        self.running_record(team, name).is_some_and(|record| {
            matches!(record.request.delivery, Delivery::Turn | Delivery::Acp | Delivery::Hook)
        })
    }

    fn running_record(&self, team: &TeamName, name: &MemberName) -> Option<&RosterRecord> {
        self.records.iter().rev().find(|record| record.is_running_member(team, name))
    }

    /// Whether the member `name` is a built-in worker that runs the command of each task. Such a
    /// worker cannot do a task without a command. False if no such member runs.
    pub fn needs_task_commands(&self, team: &TeamName, name: &MemberName) -> bool {
        let program = self.running_record(team, name).and_then(|record| record.request.turns.as_ref());
        matches!(program, Some(TurnProgram::Worker(worker)) if worker.run.is_none())
    }

    /// Ids of all spawns that have a record.
    pub fn spawn_ids(&self) -> Vec<String> {
        self.records.iter().map(|record| record.spawn_id.clone()).collect()
    }

    /// Whether the spawn with the token `token` has ended and another spawn of the member `name`
    /// runs. False if the roster has no spawn of the member: the roster may have been lost, and an
    /// agent that still runs must not be stopped because of that.
    pub fn is_superseded(&self, team: &TeamName, name: &MemberName, token: &str) -> bool {
        let is_known = self.records.iter().any(|record| record.token == token);
        !is_known && self.records.iter().any(|record| record.is_running_member(team, name))
    }

    /// Epochs of the tmux servers of all panes, without duplicates.
    pub fn server_epochs(&self) -> BTreeSet<String> {
        let epochs =
            self.records.iter().filter_map(|record| Some(record.pane.as_ref()?.server_epoch.clone()));
        // A session of iTerm2 has none.
        epochs.filter(|epoch| !epoch.is_empty()).collect()
    }

    /// The teams that have suspended members, in the format of the daemon's status. Each team lists
    /// only its suspended members.
    pub fn suspended_teams(&self) -> Vec<TeamStatus> {
        let teams = self.past_members.iter().map(|(name, members)| TeamStatus {
            name: name.clone(),
            members: Vec::new(),
            past_members: members.iter().filter(|member| member.is_suspended).cloned().collect(),
            worktrees: Vec::new(),
            budget: None,
            lead_session_ended_at: None,
            record: None,
            hosts: Vec::new(),
        });
        teams.filter(|team| !team.past_members.is_empty()).collect()
    }

    /// Whether the member is suspended.
    pub fn is_suspended(&self, team: &TeamName, name: &MemberName) -> bool {
        let members = self.past_members.get(team).into_iter().flatten();
        members.into_iter().any(|member| member.is_suspended && member.name == *name)
    }
}

impl RosterFile {
    /// Ids of the requests that the team's suspended members made for the approval of their plans.
    /// A member sends its request again, with the same id, when the member is resumed.
    pub fn plans_to_resubmit(&self, team: &TeamName) -> BTreeSet<RequestId> {
        let is_suspended = |pending: &&RecordedRespawn| pending.start.as_str() == Some(RESUMED_START);
        let of_team = self.pending_respawns.iter().filter(|pending| pending.request.team == *team);
        let plan = |pending: &RecordedRespawn| match &pending.respawn.plan {
            Some(PlanStage::AwaitingApproval { request_id, .. }) => Some(request_id.clone()),
            _ => None,
        };
        of_team.filter(is_suspended).filter_map(plan).collect()
    }
}

impl RosterFile {
    /// Tokens and cost of the team, in all and for each member.
    pub fn team_usage(&self, team: &TeamName) -> TeamUsageRecord {
        let past_members = self.past_members.get(team).into_iter().flatten();
        let past = past_members.map(|member| (member.name.clone(), member.usage));
        let records = self.records.iter().filter(|record| record.request.team == *team);
        let current = records.map(|record| (record.request.name.clone(), record.respawn.usage.usage));
        let recorded = self.usage.get(team);
        let annexes = recorded.into_iter().flat_map(|usage| usage.annexes.values());
        let elsewhere = annexes.flat_map(|annex| annex.members.clone());
        // The record of a running member replaces an entry of a past member with the same name,
        // because the record has the usage of all spawns of its member. So `current` comes last.
        let members = elsewhere.chain(past).chain(current).filter(|(_, usage)| !usage.is_zero()).collect();
        TeamUsageRecord { total: recorded.map(|team| team.usage).unwrap_or_default(), members }
    }

    /// The worktrees of the team's current and past members that are not removed yet.
    pub fn worktrees(&self, team: &TeamName) -> &[RosterWorktree] {
        self.worktrees.get(team).map_or(&[], Vec::as_slice)
    }

    /// Where the worktrees of the team's members are, oldest first. A record that cannot be read is
    /// left out.
    pub fn worktree_statuses(&self, team: &TeamName) -> Vec<WorktreeStatus> {
        let status = |worktree: &RosterWorktree| {
            let record: RecordOfWorktree = serde_json::from_value(worktree.record.clone()).ok()?;
            Some(WorktreeStatus {
                member: worktree.member.clone(),
                path: record.path,
                branch: record.branch,
                repository: record.common_git_dir,
            })
        };
        self.worktrees(team).iter().filter_map(status).collect()
    }
}

impl RosterRecord {
    fn is_running_member(&self, team: &TeamName, name: &MemberName) -> bool {
        self.request.team == *team
            && self.request.name == *name
            && !matches!(self.lifecycle, RecordedLifecycle::Exited(_))
    }

    fn capabilities(&self) -> Capabilities {
        let RecordedRequest { delivery, turns, launches_after_approval, .. } = &self.request;
        let modes = match delivery {
            Delivery::Native => Vec::new(),
            Delivery::Turn | Delivery::Acp => turns.as_ref().map(TurnProgram::modes).unwrap_or_default(),
            Delivery::Hook | Delivery::Pull => launches_after_approval.keys().cloned().collect(),
        };
        Capabilities::new(*delivery, modes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member_request::{Answer, Approval, MemberRequest};
    use crate::permission_mode::PermissionMode;
    use crate::worker_or_program_that_runs_turns::{DrivenProgram, PerTurnProgram};
    use serde_json::{Value, json};

    fn roster(request: Value, lifecycle: &str) -> RosterFile {
        let mut full_request = json!({"team": "survey", "name": "ann"});
        full_request.as_object_mut().unwrap().extend(request.as_object().unwrap().clone());
        let record = json!({"spawn_id": "s-1", "token": "t-1", "request": full_request, "pane": null, "lifecycle": {lifecycle: {}}});
        let bytes = json!({"version": RosterFile::VERSION, "records": [record]}).to_string();
        RosterFile::parse(bytes.as_bytes()).unwrap()
    }

    fn capabilities(request: Value, lifecycle: &str) -> Capabilities {
        let team = TeamName::parse("survey").unwrap();
        roster(request, lifecycle).member_capabilities(&team, &MemberName::new_unchecked("ann"))
    }

    fn ann_capabilities(request: Value) -> Capabilities {
        capabilities(request, "running")
    }

    /// The spawn request for a program that runs one process per turn and has these permission
    /// modes.
    fn turn_request(delivery: &str) -> Value {
        let program = PerTurnProgram {
            mode_args: ["", "plan", "acceptEdits"].map(|mode| (mode.to_owned(), Vec::new())).into(),
            ..PerTurnProgram::default()
        };
        json!({"delivery": delivery, "turns": TurnProgram::PerTurn(program)})
    }

    fn check_answer(capabilities: &Capabilities, request: Value, approval: Approval) -> Option<String> {
        let request = MemberRequest::parse(&request.to_string()).unwrap();
        capabilities.check_answer(&request, &Answer::Approve(approval)).map(|unsupported| unsupported.help)
    }

    fn plan(capabilities: &Capabilities, mode: PermissionMode) -> Option<String> {
        let request = json!({"type": "plan_approval_request", "from": "ann", "timestamp": "", "planFilePath": "p",
            "planContent": "c", "requestId": "plan-1"});
        check_answer(capabilities, request, Approval { mode: Some(mode), ..Approval::default() })
    }

    #[test]
    fn spawn_is_superseded_if_another_spawn_of_its_member_runs() {
        let team = TeamName::parse("survey").unwrap();
        let is_superseded = |name: &str, token: &str, lifecycle: &str| {
            let roster = roster(json!({"delivery": "pull"}), lifecycle);
            roster.is_superseded(&team, &MemberName::new_unchecked(name), token)
        };
        assert!(is_superseded("ann", "t-0", "running"));
        assert!(!is_superseded("ann", "t-1", "running"), "its own record");
        assert!(!is_superseded("bob", "t-0", "running"), "nobody else has the name");
        assert!(!is_superseded("ann", "t-0", "exited"));
    }

    #[test]
    fn modes_are_refused_only_if_known_to_be_missing() {
        let driven = DrivenProgram {
            mode_ids: ["plan", "acceptEdits"].map(|mode| (mode.to_owned(), mode.to_owned())).into(),
            ..DrivenProgram::default()
        };
        for request in [
            turn_request("turn"),
            json!({"delivery": "acp", "turns": TurnProgram::Driven(driven)}),
            json!({"delivery": "hook", "launches_after_approval": {"default": {}, "acceptEdits": {}}}),
        ] {
            let capabilities = ann_capabilities(request);
            assert_eq!(
                plan(&capabilities, PermissionMode::DontAsk).as_deref(),
                Some("it has: default, acceptEdits")
            );
            assert_eq!(capabilities.supported_mode(PermissionMode::DontAsk), PermissionMode::Default);
            for mode in [PermissionMode::AcceptEdits, PermissionMode::Default] {
                assert_eq!((plan(&capabilities, mode), capabilities.supported_mode(mode)), (None, mode));
            }
        }
        for capabilities in
            [ann_capabilities(json!({"delivery": "native"})), capabilities(turn_request("turn"), "exited")]
        {
            assert_eq!(plan(&capabilities, PermissionMode::DontAsk), None);
            assert_eq!(capabilities.supported_mode(PermissionMode::DontAsk), PermissionMode::DontAsk);
        }
    }

    #[test]
    fn changed_input_is_refused_if_the_input_is_fixed() {
        let request = || {
            json!({"type": "permission_request", "request_id": "perm-1", "agent_id": "ann", "tool_name": "Bash",
                "input": {"command": "ls"}})
        };
        let check_input = |delivery: &str, input: Value| {
            let approval = Approval { input: Some(input), ..Approval::default() };
            check_answer(&ann_capabilities(json!({"delivery": delivery})), request(), approval)
        };
        assert!(check_input("acp", json!({"command": "ls -l"})).is_some());
        assert_eq!(check_input("acp", json!({"command": "ls"})), None, "the input is unchanged");
        assert_eq!(check_input("acp", json!({})), None);
        assert_eq!(check_input("native", json!({"command": "ls -l"})), None);
    }

    #[test]
    fn invalid_roster_gives_unknown_capabilities() {
        for bytes in
            [&b""[..], b"{", b"{\"records\": 3}", b"{\"version\": 1}", b"{\"version\": 3, \"records\": []}"]
        {
            assert!(RosterFile::parse(bytes).is_err());
        }
        let team = TeamName::parse("survey").unwrap();
        let capabilities =
            RosterFile::default().member_capabilities(&team, &MemberName::new_unchecked("ann"));
        assert_eq!(capabilities, Capabilities::default());
    }

    #[test]
    fn only_suspended_past_members_are_listed() {
        let past = |name: &str, is_suspended: bool| json!({"name": name, "outcome": "killed", "description": "", "ended_at": 1, "is_suspended": is_suspended});
        let roster = json!({
            "version": RosterFile::VERSION,
            "past_members": {"survey": [past("ann", true), past("bob", false)], "other": [past("cy", false)]},
        });
        let roster = roster.to_string();
        let roster = RosterFile::parse(roster.as_bytes()).unwrap();
        let teams = roster.suspended_teams();
        assert_eq!((teams.len(), teams[0].name.as_str()), (1, "survey"));
        assert_eq!(teams[0].past_members.iter().map(|past| past.name.as_str()).collect::<Vec<_>>(), ["ann"]);
        let is_suspended = |name: &str| roster.is_suspended(&teams[0].name, &MemberName::new_unchecked(name));
        assert_eq!(["Ann", "bob", "cy"].map(is_suspended), [true, false, false]);
        assert!(RosterFile::default().suspended_teams().is_empty());
    }

    #[test]
    fn worktrees_are_those_of_the_team() {
        let record =
            json!({"path": "/w/ann", "branch": "teamd/t/ann", "common_git_dir": "/r/.git", "inode": 1});
        let worktrees = json!({"t": [{"member": "ann", "record": record}]});
        let roster = json!({"version": RosterFile::VERSION, "worktrees": worktrees}).to_string();
        let roster = RosterFile::parse(roster.as_bytes()).unwrap();
        let worktrees_of = |team: &str| roster.worktree_statuses(&TeamName::parse(team).unwrap());
        let [worktree] = &worktrees_of("t")[..] else { panic!("there is one worktree") };
        assert_eq!((worktree.member.as_str(), worktree.branch.as_str()), ("ann", "teamd/t/ann"));
        assert!(worktrees_of("u").is_empty());
    }

    #[test]
    fn plans_that_wait_for_approval_are_submitted_again() {
        let plan = |id: &str| json!({"awaiting_approval": {"request_id": id, "file": "f"}});
        let pending = |team: &str, plan: serde_json::Value| {
            let start = RESUMED_START;
            json!({"request": {"team": team}, "respawn": {"plan": plan}, "start": start})
        };
        let mut respawning = pending("t", plan("p-3"));
        respawning["start"] = json!({"at": 5});
        let roster = json!({
            "version": RosterFile::VERSION,
            "pending_respawns": [pending("t", plan("p-1")), pending("t", json!("planning")), pending("u", plan("p-2")), respawning],
        });
        let roster = RosterFile::parse(roster.to_string().as_bytes()).unwrap();
        let plans = roster.plans_to_resubmit(&TeamName::parse("t").unwrap());
        assert_eq!(plans.iter().map(RequestId::as_str).collect::<Vec<_>>(), ["p-1"]);
    }
    #[test]
    fn usage_and_worktrees_of_a_team_are_listed() {
        let past = |name: &str, tokens: u64| json!({"name": name, "outcome": "failed", "description": "", "ended_at": 1, "usage": {"tokens": tokens}});
        let request = json!({"team": "t", "name": "ann", "delivery": "turn"});
        let ann = json!({"spawn_id": "s", "request": request, "lifecycle": {"running": {}},
            "respawn": {"usage": {"usage": {"tokens": 30}}}});
        let roster = json!({
            "version": RosterFile::VERSION,
            "records": [ann],
            "past_members": {"t": [past("ann", 20), past("bob", 5), past("cy", 0)]},
            "usage": {"t": {"turns": 4, "usage": {"tokens": 35}, "started_at": 1}},
            "worktrees": {"t": [{"member": "ann", "record": {"path": "/w"}}]},
        });
        let roster = RosterFile::parse(roster.to_string().as_bytes()).unwrap();
        let team = TeamName::parse("t").unwrap();
        let usage = roster.team_usage(&team);
        let members: Vec<(&str, u64)> =
            usage.members.iter().map(|(name, usage)| (name.as_str(), usage.tokens)).collect();
        assert_eq!((usage.total.tokens, members), (35, vec![("ann", 30), ("bob", 5)]));
        assert_eq!(roster.worktrees(&team)[0].record["path"], "/w");
        let other = TeamName::parse("u").unwrap();
        assert_eq!((roster.team_usage(&other), roster.worktrees(&other).len()), Default::default());
    }
}
