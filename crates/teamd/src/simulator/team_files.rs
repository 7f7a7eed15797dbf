//! The simulated files of a team: members, inboxes, requests with their answers, and tasks.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use protocol::inbox_file::{InboxEntry, Message};
use protocol::inbox_message_payload::Payload;
use protocol::member_request::{Answer, answered_request};
use protocol::member_task_and_request_ids::{RequestId, TaskId};
use protocol::permission_mode::PermissionMode;
use protocol::policy::{AnsweredBy, Policy};
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{AnsweredRequest, OpenRequest, RequestScanResult};

/// One entry of an inbox.
#[derive(Debug, Clone)]
pub(super) struct SimulatedMessage {
    pub(super) from: MemberName,
    pub(super) payload: Option<Payload>,
    pub(super) is_read: bool,
    /// Whether the message was delivered to the owner of the inbox. Only delivered messages may be
    /// marked as read.
    pub(super) is_delivered: bool,
    pub(super) id: u64,
    /// The request in the message, if it has one.
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

/// The files of one team.
#[derive(Debug, Default)]
pub(super) struct SimulatedTeamFiles {
    pub(super) members: BTreeMap<MemberName, SimulatedMember>,
    pub(super) inboxes: BTreeMap<MemberName, Vec<SimulatedMessage>>,
    pub(super) tasks: Vec<Arc<Task>>,
    /// Answers to requests in the daemon's own answer log, and whether each is an approval.
    pub(super) recorded_answers: BTreeMap<RequestId, (bool, AnsweredBy)>,
    pub(super) policy: Policy,
    /// Shutdown requests in members' inboxes.
    pub(super) shutdown_requests: BTreeMap<MemberName, Vec<RequestId>>,
    /// Answers to shutdown requests in the lead's inbox: the member, and the reason of a rejection.
    pub(super) shutdown_answers: BTreeMap<RequestId, (MemberName, Option<String>)>,
    /// The hidden panes in config.json.
    pub(super) hidden_panes: Vec<String>,
    pub(super) message_count: u64,
    /// The number of the last task that the random simulation has added.
    #[cfg(test)]
    pub(super) last_task_number: u32,
}

/// The state of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestState {
    Open,
    Answered(bool, AnsweredBy),
    Withdrawn,
    /// The member has left the team, or has been spawned again since the request.
    AskerGone,
}

impl SimulatedTeamFiles {
    pub(super) fn add_message(
        &mut self,
        to: &MemberName,
        from: &MemberName,
        payload: Option<Payload>,
        at: u64,
    ) {
        self.message_count += 1;
        let open_request =
            payload.as_ref().filter(|_| to.is_lead()).and_then(|payload| parse_request(from, payload, at));
        let message = SimulatedMessage {
            from: from.clone(),
            payload,
            is_read: false,
            is_delivered: false,
            id: (at << 12) + self.message_count,
            open_request,
        };
        self.inboxes.entry(to.clone()).or_default().push(message);
    }

    pub(super) fn unread(&self, name: &MemberName) -> impl Iterator<Item = &SimulatedMessage> {
        self.inboxes.get(name).into_iter().flatten().filter(|message| !message.is_read)
    }

    /// Marks messages as delivered to the owner of the inbox.
    pub(super) fn mark_delivered(&mut self, name: &MemberName, ids: &[u64]) {
        let messages = self.inboxes.get_mut(name).into_iter().flatten();
        messages.filter(|message| ids.contains(&message.id)).for_each(|message| message.is_delivered = true);
    }

    /// Marks messages as read. Panics if one was not delivered.
    pub(super) fn mark_read(&mut self, name: &MemberName, ids: &[u64]) {
        let messages = self.inboxes.get_mut(name).into_iter().flatten();
        for message in messages.filter(|message| ids.contains(&message.id)) {
            assert!(message.is_delivered, "marked as read and never delivered to {name}: {message:?}");
            message.is_read = true;
        }
    }

    // Requests.

    /// The requests in the lead's inbox.
    fn requests(&self) -> impl Iterator<Item = &OpenRequest> {
        let lead = self.inboxes.get(&MemberName::lead()).into_iter().flatten();
        lead.filter_map(|message| message.open_request.as_deref())
    }

    pub(super) fn request_state(&self, request: &OpenRequest) -> RequestState {
        let id = request.request.id();
        if self.members.get(&request.from).is_none_or(|member| request.asked_at < member.spawned_at) {
            return RequestState::AskerGone;
        }
        if let Some((approved, by)) = self.recorded_answers.get(id) {
            return RequestState::Answered(*approved, *by);
        }
        let inbox = self.inboxes.get(&request.from).into_iter().flatten();
        let responses =
            inbox.filter_map(|message| Some((&message.from, answered_request(message.payload.as_ref()?)?)));
        let responses: Vec<_> = responses.filter(|(_, (request_id, _))| request_id == id).collect();
        match responses.iter().find(|(from, _)| from.is_lead()) {
            Some((_, (_, approved))) => RequestState::Answered(*approved, AnsweredBy::Lead),
            None if responses.is_empty() => RequestState::Open,
            None => RequestState::Withdrawn,
        }
    }

    pub(super) fn open_requests(&self) -> Vec<OpenRequest> {
        let open = self.requests().filter(|request| self.request_state(request) == RequestState::Open);
        open.cloned().collect()
    }

    /// The result of a request scan, as the store returns it.
    pub(super) fn scan_requests(&self) -> RequestScanResult {
        let (mut answered, mut withdrawn, mut timeout_counts) = (Vec::new(), Vec::new(), BTreeMap::new());
        for request in self.requests() {
            let (member, id) = (request.from.clone(), request.request.id().clone());
            let timeout_count: &mut u32 = timeout_counts.entry(member.clone()).or_default();
            match self.request_state(request) {
                RequestState::Answered(approved, by) => {
                    *timeout_count =
                        if (approved, by) == (false, AnsweredBy::Timeout) { *timeout_count + 1 } else { 0 };
                    answered.push(AnsweredRequest {
                        member,
                        request_id: id,
                        approved,
                        answered_by: by,
                        last_asked_at: request.asked_at,
                    });
                }
                RequestState::Withdrawn => withdrawn.push((member, id)),
                RequestState::Open | RequestState::AskerGone => {}
            }
        }
        let plans_timed_out_twice: BTreeSet<MemberName> =
            timeout_counts.into_iter().filter(|(_, count)| *count >= 2).map(|(name, _)| name).collect();
        RequestScanResult {
            open: self.open_requests(),
            suspended: Vec::new(),
            answered,
            withdrawn,
            plans_timed_out_twice,
        }
    }

    /// Adds an answer to an open request. Returns the earlier state of the request.
    pub(super) fn add_answer(
        &mut self,
        request: &OpenRequest,
        answer: &Answer,
        by: AnsweredBy,
        at: u64,
    ) -> RequestState {
        let state = self.request_state(request);
        if state == RequestState::Open {
            let payload = request.request.response(answer, PermissionMode::Default, at);
            self.add_message(&request.from, &MemberName::lead(), Some(payload), at);
            self.recorded_answers
                .insert(request.request.id().clone(), (matches!(answer, Answer::Approve(_)), by));
        }
        state
    }

    // Tasks.

    pub(super) fn change_task(&mut self, id: TaskId, change: impl FnOnce(&mut Task)) -> bool {
        let Some(task) = self.tasks.iter_mut().find(|task| task.id == id) else { return false };
        change(Arc::make_mut(task));
        true
    }

    /// Whether a member can claim this task, or continue with it.
    pub(super) fn can_take_task(&self, name: &MemberName, id: TaskId) -> bool {
        let is_task = |task: &&Arc<Task>| task.id == id;
        self.tasks.iter().find(is_task).is_some_and(|task| {
            let is_own = task.owner.as_ref() == Some(name);
            let is_resumable = is_own && task.status == TaskStatus::InProgress && task.failure().is_none();
            let is_startable = (is_own || task.owner.is_none()) && task.is_startable(&self.tasks);
            is_startable || is_resumable && task.open_blockers(&self.tasks).is_empty()
        })
    }

    /// The next task for the member `name`, except tasks in `excluded`. A task that the member left
    /// in progress comes first, then a task that the member owns, then an available task.
    pub(super) fn next_task(&self, name: &MemberName, excluded: &BTreeSet<TaskId>) -> Option<TaskId> {
        let all = &self.tasks;
        let is_own = |task: &&Arc<Task>| task.owner.as_ref() == Some(name) && !excluded.contains(&task.id);
        let is_resumable = |task: &&Arc<Task>| {
            is_own(task)
                && task.status == TaskStatus::InProgress
                && task.failure().is_none()
                && task.open_blockers(all).is_empty()
        };
        let find_own = || all.iter().find(|task| is_own(task) && task.is_startable(all));
        let find_available = || all.iter().find(|task| task.is_available(all));
        all.iter().find(is_resumable).or_else(find_own).or_else(find_available).map(|task| task.id)
    }
}

fn parse_request(from: &MemberName, payload: &Payload, at: u64) -> Option<Box<OpenRequest>> {
    if !matches!(payload, Payload::PlanApprovalRequest(_) | Payload::PermissionRequest(_)) {
        return None;
    }
    let message = Message::new(from, payload.to_text(), at);
    OpenRequest::from_entry(InboxEntry { index: 0, raw: String::new(), message: Ok(message) }).map(Box::new)
}
