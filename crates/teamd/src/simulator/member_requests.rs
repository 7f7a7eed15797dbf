//! Simulates the requests of members and their answers, and random changes of team files by users.

use crate::simulator::random_calls::random_team;
use crate::simulator::scan_memory::TeamFile;
use crate::simulator::shim::AgentIdentity;
use crate::simulator::simulation::Simulation;
use protocol::control::{Request, SetModeRequest, SetPolicyRequest};
use protocol::id::RequestId;
use protocol::inbox_message_payload::{Payload, PermissionOutcome, PermissionRequest, PermissionResponse};
use protocol::member_request::{Answer, Approval, MemberRequestKind};
use protocol::name::{AgentName, TeamName};
use protocol::permission_mode::PermissionMode;
use protocol::policy::{AnsweredBy, Approver, Policy, TimeoutAction};
use protocol::task::TaskStatus;

/// A request of a member, for the check of its answer.
#[derive(Debug)]
pub(super) struct AskedRequest {
    team: TeamName,
    /// The spawn request of the member that sent the request.
    spawn_request_id: String,
    /// When the request was sent, on the monotonic clock.
    asked_at: u64,
}

impl Simulation {
    pub(super) fn request_permission(&mut self, identity: &AgentIdentity) -> Option<RequestId> {
        let id = RequestId::parse(&format!("perm-{}", self.next_pid())).ok()?;
        let request = PermissionRequest {
            request_id: id.clone(),
            agent_id: identity.name.to_string(),
            tool_name: "Bash".to_owned(),
            tool_use_id: String::new(),
            description: String::new(),
            input: serde_json::json!({"command": "ls"}),
            permission_suggestions: Vec::new(),
        };
        let (at, payload) = (self.now.wall, Payload::PermissionRequest(request));
        let is_sent = self.disk.send(&identity.team, &AgentName::lead(), &identity.name, Some(payload), at);
        self.record_request(identity, &id).filter(|()| is_sent).map(|()| id)
    }

    pub(super) fn record_request(&mut self, identity: &AgentIdentity, id: &RequestId) -> Option<()> {
        let asked_request = AskedRequest {
            team: identity.team.clone(),
            spawn_request_id: identity.spawn_request_id.clone(),
            asked_at: self.now.mono,
        };
        self.asked_requests.insert(id.clone(), asked_request);
        Some(())
    }

    /// A member withdraws its request.
    pub(super) fn withdraw_request(&mut self, identity: &AgentIdentity, id: &RequestId) {
        let outcome = PermissionOutcome::Error { error: "taken back".to_owned() };
        let response = PermissionResponse { request_id: id.clone(), outcome };
        let at = self.now.wall;
        let payload = Some(Payload::PermissionResponse(response));
        if self.disk.send(&identity.team, &identity.name, &identity.name, payload, at)
            && let Some(files) = self.disk.teams.get_mut(&identity.team)
            && let Some(message) =
                files.inboxes.get_mut(&identity.name).and_then(|messages| messages.last_mut())
        {
            (message.is_delivered, message.is_read) = (true, true);
        }
    }

    /// Checks an answer of the policy: a policy of the team allows it, and not too early.
    pub(super) fn check_policy_answer(&self, id: &RequestId, by: AnsweredBy) {
        let Some(asked_request) = self.asked_requests.get(id) else { return };
        let policies = self.policy_history.get(&asked_request.team).into_iter().flatten();
        match by {
            AnsweredBy::Auto => {
                let kind = if id.as_str().starts_with("plan") {
                    MemberRequestKind::Plan
                } else {
                    MemberRequestKind::Permission
                };
                let mut policies = policies;
                assert!(
                    policies.any(|policy| policy.approver(kind) == Approver::Auto),
                    "no policy allowed an automatic answer to {id}"
                );
            }
            AnsweredBy::Timeout => {
                let shortest = policies
                    .filter(|policy| policy.timeout_decision().is_some())
                    .filter_map(|policy| policy.answer_timeout_ms)
                    .min();
                let waited = self.now.mono - asked_request.asked_at;
                let is_early = shortest.is_none_or(|shortest| waited < shortest);
                // A new daemon knows the age of a request only by the wall clock.
                assert!(!is_early || self.was_clock_set, "{id} is answered after {waited} ms: {shortest:?}");
            }
            AnsweredBy::Lead | AnsweredBy::Rule => {}
        }
    }

    /// Records that a request was approved.
    pub(super) fn record_approval(&mut self, id: &RequestId, answer: &Answer) {
        if let (Some(asked_request), Answer::Approve(_)) = (self.asked_requests.get(id), answer) {
            self.approved_spawns.insert(asked_request.spawn_request_id.clone());
        }
    }

    /// A user or the lead answers a random open request.
    pub(super) fn answer_random_request(&mut self) {
        let team = random_team(self);
        let Some(files) = self.disk.teams.get_mut(&team).filter(|_| !self.disk.is_full) else { return };
        let open = files.open_requests();
        let Some(request) = self.rng.choice(open) else { return };
        let answer = match self.rng.u8(0..4) {
            0 => Answer::Deny { reason: "no".to_owned() },
            _ => Answer::Approve(Approval::default()),
        };
        files.add_answer(&request, &answer, AnsweredBy::Lead, self.now.wall);
        let id = request.request.id().clone();
        self.log(|| format!("a user answers {id}: {answer:?}"));
        self.record_approval(&id, &answer);
        self.disk.record_change(&team, TeamFile::Inbox(request.from));
    }

    /// Writes a random message or task, or changes a task.
    pub(super) fn write_random_file(&mut self) {
        let team = random_team(self);
        let Some(files) = self.disk.teams.get_mut(&team).filter(|_| !self.disk.is_full) else { return };
        let members: Vec<AgentName> = files.members.keys().cloned().collect();
        let member = self.rng.choice(members);
        match (self.rng.u8(0..8), member) {
            (0..=2, Some(name)) => {
                let at = self.now.wall;
                self.log(|| format!("a message for {name}@{team}"));
                self.disk.send(&team, &name, &AgentName::new_unchecked("bob"), None, at);
            }
            (3..=6, member) => {
                let owner = member.filter(|_| self.rng.u8(..) < 80);
                let blocker = files.tasks.last().map(|task| task.id).filter(|_| self.rng.u8(..) < 60);
                let id = files.add_task(owner, blocker);
                self.log(|| format!("task {id} of {team}"));
                self.disk.record_change(&team, TeamFile::Task(id));
            }
            _ => self.change_random_task(&team),
        }
    }

    /// Assigns, deletes, releases or completes a random task.
    fn change_random_task(&mut self, team: &TeamName) {
        let Some(files) = self.disk.teams.get_mut(team) else { return };
        let ids: Vec<_> = files.tasks.iter().map(|task| task.id).collect();
        let names: Vec<AgentName> = files.members.keys().cloned().collect();
        let (Some(id), name) = (self.rng.choice(ids), self.rng.choice(names)) else { return };
        self.log(|| format!("a user changes task {id} of {team}"));
        let Some(files) = self.disk.teams.get_mut(team) else { return };
        match self.rng.u8(0..4) {
            0 => files.tasks.retain(|task| task.id != id),
            1 => drop(files.change_task(id, |task| task.status = TaskStatus::Completed)),
            2 => drop(files.change_task(id, |task| {
                (task.owner, task.metadata) = (None, None);
                task.status = TaskStatus::Pending;
            })),
            _ => drop(files.change_task(id, |task| task.owner = name)),
        }
        self.disk.record_change(team, TeamFile::Task(id));
    }

    /// A request to change the policy of a team or the permission mode of a member.
    pub(super) fn random_setting(&mut self, team: TeamName, name: String) -> Request {
        if self.rng.bool() {
            return Request::SetPolicy(SetPolicyRequest { policy: self.random_policy(&team), team });
        }
        let modes = [PermissionMode::Plan, PermissionMode::AcceptEdits, PermissionMode::Default];
        let mode = modes[self.rng.usize(0..modes.len())];
        let name = if self.rng.u8(..) < 40 { "team-lead".to_owned() } else { name };
        Request::SetMode(SetModeRequest { team, name, mode })
    }

    /// A random policy. Adds it to the history of the team's policies.
    pub(super) fn random_policy(&mut self, team: &TeamName) -> Policy {
        let approvers = [Approver::Auto, Approver::Lead, Approver::Person];
        let policy = Policy {
            plan_approver: approvers[self.rng.usize(0..3)],
            permission_approver: approvers[self.rng.usize(0..3)],
            answer_timeout_ms: [None, Some(5_000), Some(20_000)][self.rng.usize(0..3)],
            on_timeout: [TimeoutAction::Wait, TimeoutAction::Deny, TimeoutAction::Approve]
                [self.rng.usize(0..3)],
            ..Policy::default()
        };
        self.policy_history.entry(team.clone()).or_default().push(policy.clone());
        policy
    }
}
