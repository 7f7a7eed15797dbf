//! Simulates the requests of members and their answers.

use crate::simulator::random::calls::random_team;
use crate::simulator::random::conditions::RandomSimulation;
use crate::simulator::scan_memory::TeamFile;
use crate::simulator::shim::AgentIdentity;
use protocol::inbox_message_payload::{Payload, PermissionOutcome, PermissionRequest, PermissionResponse};
use protocol::member_request::{Answer, Approval, MemberRequestKind};
use protocol::member_task_and_request_ids::RequestId;
use protocol::policy::{AnsweredBy, Approver};
use protocol::team_and_member_names::{MemberName, TeamName};

/// A request of a member, for the check of its answer.
#[derive(Debug)]
pub(super) struct AskedRequest {
    team: TeamName,
    /// The spawn request of the member that sent the request.
    spawn_request_id: String,
    /// When the request was sent, on the monotonic clock.
    asked_at: u64,
}

impl RandomSimulation {
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
        let is_sent = self.disk.send(&identity.team, &MemberName::lead(), &identity.name, Some(payload), at);
        self.record_request(identity, &id);
        is_sent.then_some(id)
    }

    pub(super) fn record_request(&mut self, identity: &AgentIdentity, id: &RequestId) {
        let asked_request = AskedRequest {
            team: identity.team.clone(),
            spawn_request_id: identity.spawn_request_id.clone(),
            asked_at: self.now.mono,
        };
        self.conditions.asked_requests.insert(id.clone(), asked_request);
    }

    /// An agent requests a permission during its turn.
    pub(super) fn request_permission_in_turn(&mut self, pid: u32) {
        let Some((_, identity)) = self.turn_agent(pid).filter(|(turn_agent, _)| turn_agent.is_in_turn) else {
            return;
        };
        if let Some(id) = self.request_permission(&identity) {
            self.conditions.open_requests.entry(pid).or_default().push(id);
        }
    }

    /// An agent whose turn has ended withdraws the requests that it sent in the turn.
    pub(super) fn withdraw_requests_of_turn(&mut self, pid: u32, identity: &AgentIdentity) {
        let withdrawn = self.conditions.open_requests.remove(&pid);
        withdrawn.iter().flatten().for_each(|id| self.withdraw_request(identity, id));
    }

    /// A member withdraws its request.
    fn withdraw_request(&mut self, identity: &AgentIdentity, id: &RequestId) {
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
        let Some(asked_request) = self.conditions.asked_requests.get(id) else { return };
        let policies = self.conditions.policy_history.get(&asked_request.team).into_iter().flatten();
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
                assert!(
                    !is_early || self.conditions.was_clock_set,
                    "{id} is answered after {waited} ms: {shortest:?}"
                );
            }
            AnsweredBy::Lead | AnsweredBy::Rule => {}
        }
    }

    /// Records that a request was approved.
    pub(super) fn record_approval(&mut self, id: &RequestId, answer: &Answer) {
        if let (Some(asked_request), Answer::Approve(_)) = (self.conditions.asked_requests.get(id), answer) {
            self.conditions.approved_spawns.insert(asked_request.spawn_request_id.clone());
        }
    }

    /// A user or the lead answers a random open request.
    pub(super) fn answer_random_request(&mut self) {
        let team = random_team(self);
        let Some(files) = self.disk.teams.get_mut(&team).filter(|_| !self.disk.is_full) else { return };
        let open = files.open_requests();
        let Some(request) = self.conditions.rng.choice(open) else { return };
        let answer = match self.conditions.rng.u8(0..4) {
            0 => Answer::Deny { reason: "no".to_owned() },
            _ => Answer::Approve(Approval::default()),
        };
        files.add_answer(&request, &answer, AnsweredBy::Lead, self.now.wall);
        let id = request.request.id().clone();
        self.log(|| format!("a user answers {id}: {answer:?}"));
        self.record_approval(&id, &answer);
        self.disk.record_change(&team, TeamFile::Inbox(request.from));
    }
}
