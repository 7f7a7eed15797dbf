//! A team's files: its members, their mail, what they ask and are answered, its tasks.

use crate::core::id::SpawnId;
use protocol::id::{RequestId, TaskId};
use protocol::member_request::{Answer, answered_request};
use protocol::message::{InboxEntry, Message};
use protocol::name::AgentName;
use protocol::payload::Payload;
use protocol::permission_mode::PermissionMode;
use protocol::policy::{AnsweredBy, Policy};
use protocol::task::{Task, TaskStatus};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{AnsweredRequest, OpenRequest, RequestScanResult};

/// One entry of an inbox.
#[derive(Debug, Clone)]
pub(super) struct SimulatedMessage {
    pub(super) from: AgentName,
    pub(super) payload: Option<Payload>,
    pub(super) is_read: bool,
    /// Its owner had it: what was not taken is not read.
    pub(super) is_delivered: bool,
    pub(super) id: u64,
    /// What it asks.
    open_request: Option<Box<OpenRequest>>,
}

/// A member's entry in config.json.
#[derive(Debug, Clone)]
pub(super) struct SimulatedMember {
    pub(super) spawn_id: SpawnId,
    pub(super) spawned_at: u64,
    pub(super) is_active: bool,
    pub(super) mode: Option<String>,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct SimulatedTeamFiles {
    pub(super) members: BTreeMap<AgentName, SimulatedMember>,
    pub(super) inboxes: BTreeMap<AgentName, Vec<SimulatedMessage>>,
    pub(super) tasks: Vec<Arc<Task>>,
    /// Answers to requests, as our own record has them.
    pub(super) recorded_answers: BTreeMap<RequestId, (bool, AnsweredBy)>,
    pub(super) policy: Policy,
    /// Shutdown requests that lie in members' inboxes.
    pub(super) shutdown_requests: BTreeMap<AgentName, Vec<RequestId>>,
    /// What the lead's inbox says of them: a reason where it is a no.
    pub(super) shutdown_answers: BTreeMap<RequestId, (AgentName, Option<String>)>,
    /// Panes that are out of sight, as config.json has them.
    pub(super) hidden_panes: Vec<String>,
    pub(super) message_count: u64,
    pub(super) last_task_number: u32,
}

/// How a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestState {
    Open,
    Answered(bool, AnsweredBy),
    Withdrawn,
    /// Who asked is not on the team, or in another life.
    AskerGone,
}

impl SimulatedTeamFiles {
    pub(super) fn add_message(
        &mut self,
        to: &AgentName,
        from: &AgentName,
        payload: Option<Payload>,
        at: u64,
    ) {
        self.message_count += 1;
        let asks =
            payload.as_ref().filter(|_| to.is_lead()).and_then(|payload| parse_request(from, payload, at));
        let letter = SimulatedMessage {
            from: from.clone(),
            payload,
            is_read: false,
            is_delivered: false,
            id: (at << 12) + self.message_count,
            open_request: asks,
        };
        self.inboxes.entry(to.clone()).or_default().push(letter);
    }

    pub(super) fn unread(&self, name: &AgentName) -> impl Iterator<Item = &SimulatedMessage> {
        self.inboxes.get(name).into_iter().flatten().filter(|letter| !letter.is_read)
    }

    /// The owner has these.
    pub(super) fn mark_taken(&mut self, name: &AgentName, digests: &[u64]) {
        let letters = self.inboxes.get_mut(name).into_iter().flatten();
        letters.filter(|letter| digests.contains(&letter.id)).for_each(|letter| letter.is_delivered = true);
    }

    /// Marks them read.
    pub(super) fn mark_read(&mut self, name: &AgentName, digests: &[u64]) {
        let letters = self.inboxes.get_mut(name).into_iter().flatten();
        for letter in letters.filter(|letter| digests.contains(&letter.id)) {
            assert!(letter.is_delivered, "marked read, and {name} never had it: {letter:?}");
            letter.is_read = true;
        }
    }

    // Requests.

    /// Those in the lead's inbox.
    fn requests(&self) -> impl Iterator<Item = &OpenRequest> {
        let lead = self.inboxes.get(&AgentName::lead()).into_iter().flatten();
        lead.filter_map(|letter| letter.open_request.as_deref())
    }

    pub(super) fn request_state(&self, request: &OpenRequest) -> RequestState {
        let id = request.request.id();
        if self.members.get(&request.from).is_none_or(|member| request.asked_at < member.spawned_at) {
            return RequestState::AskerGone;
        }
        if let Some((approved, by)) = self.recorded_answers.get(id) {
            return RequestState::Answered(*approved, *by);
        }
        let words = self.inboxes.get(&request.from).into_iter().flatten();
        let words =
            words.filter_map(|letter| Some((&letter.from, answered_request(letter.payload.as_ref()?)?)));
        let words: Vec<_> = words.filter(|(_, (of, _))| of == id).collect();
        match words.iter().find(|(from, _)| from.is_lead()) {
            Some((_, (_, approved))) => RequestState::Answered(*approved, AnsweredBy::Lead),
            None if words.is_empty() => RequestState::Open,
            None => RequestState::Withdrawn,
        }
    }

    pub(super) fn open_requests(&self) -> Vec<OpenRequest> {
        let open = self.requests().filter(|request| self.request_state(request) == RequestState::Open);
        open.cloned().collect()
    }

    /// What the store says of all of them.
    pub(super) fn scan_requests(&self) -> RequestScanResult {
        let (mut answered, mut withdrawn, mut in_a_row) = (Vec::new(), Vec::new(), BTreeMap::new());
        for request in self.requests() {
            let (to, id) = (request.from.clone(), request.request.id().clone());
            let overlooked: &mut u32 = in_a_row.entry(to.clone()).or_default();
            match self.request_state(request) {
                RequestState::Answered(approved, by) => {
                    *overlooked =
                        if (approved, by) == (false, AnsweredBy::Timeout) { *overlooked + 1 } else { 0 };
                    answered.push(AnsweredRequest {
                        member: to,
                        request_id: id,
                        approved,
                        answered_by: by,
                        asked_at: request.asked_at,
                    });
                }
                RequestState::Withdrawn => withdrawn.push((to, id)),
                RequestState::Open | RequestState::AskerGone => {}
            }
        }
        let overlooked: BTreeSet<AgentName> =
            in_a_row.into_iter().filter(|(_, count)| *count >= 2).map(|(name, _)| name).collect();
        RequestScanResult {
            open: self.open_requests(),
            answered,
            withdrawn,
            plans_timed_out_twice: overlooked,
        }
    }

    /// Stores an answer, unless there is one; gives how it stood.
    pub(super) fn add_answer(
        &mut self,
        request: &OpenRequest,
        answer: &Answer,
        by: AnsweredBy,
        at: u64,
    ) -> RequestState {
        let standing = self.request_state(request);
        if standing == RequestState::Open {
            let payload = request.request.response(answer, PermissionMode::Default, at);
            self.add_message(&request.from, &AgentName::lead(), Some(payload), at);
            self.recorded_answers
                .insert(request.request.id().clone(), (matches!(answer, Answer::Approve(_)), by));
        }
        standing
    }

    // Tasks.

    /// A new one.
    pub(super) fn add_task(&mut self, owner: Option<AgentName>, blocked_by: Option<TaskId>) -> TaskId {
        self.last_task_number += 1;
        let id = TaskId::from_number(self.last_task_number).expect("it is one");
        self.tasks.push(Arc::new(Task {
            id,
            subject: "count".to_owned(),
            description: String::new(),
            active_form: None,
            status: TaskStatus::Pending,
            owner,
            blocks: Vec::new(),
            blocked_by: blocked_by.into_iter().collect(),
            metadata: None,
            unknown_fields: Default::default(),
        }));
        id
    }

    pub(super) fn change_task(&mut self, id: TaskId, change: impl FnOnce(&mut Task)) -> bool {
        let Some(task) = self.tasks.iter_mut().find(|task| task.id == id) else { return false };
        change(Arc::make_mut(task));
        true
    }

    /// Whether the files give it that one.
    pub(super) fn can_take_task(&self, name: &AgentName, id: TaskId) -> bool {
        let one = |task: &&Arc<Task>| task.id == id;
        self.tasks.iter().find(one).is_some_and(|task| {
            let hers = task.owner.as_ref() == Some(name);
            let left = hers && task.status == TaskStatus::InProgress && task.failure().is_none();
            let free = (hers || task.owner.is_none()) && task.is_startable(&self.tasks);
            free || left && task.open_blockers(&self.tasks).is_empty()
        })
    }

    /// What that member would take up next: what it left, what is its own, what is anybody's.
    pub(super) fn next_task(&self, name: &AgentName, but: &BTreeSet<TaskId>) -> Option<TaskId> {
        let all = &self.tasks;
        let hers = |task: &&Arc<Task>| task.owner.as_ref() == Some(name) && !but.contains(&task.id);
        let left = |task: &&Arc<Task>| {
            hers(task)
                && task.status == TaskStatus::InProgress
                && task.failure().is_none()
                && task.open_blockers(all).is_empty()
        };
        let own = || all.iter().find(|task| hers(task) && task.is_startable(all));
        let free = || all.iter().find(|task| task.is_available(all));
        all.iter().find(left).or_else(own).or_else(free).map(|task| task.id)
    }
}

fn parse_request(from: &AgentName, payload: &Payload, at: u64) -> Option<Box<OpenRequest>> {
    if !matches!(payload, Payload::PlanApprovalRequest(_) | Payload::PermissionRequest(_)) {
        return None;
    }
    let message = Message::new(from, payload.to_text(), at);
    OpenRequest::from_entry(InboxEntry { index: 0, raw: String::new(), message: Ok(message) }).map(Box::new)
}
