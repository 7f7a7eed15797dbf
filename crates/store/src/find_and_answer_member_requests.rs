//! The requests of members to their lead, and the answers.
//!
//! A request in the lead's inbox, read or unread, is open until there is an answer in the member's
//! inbox or in the answer log. A request is also no longer open when the member leaves the team or
//! is started again. A member may be suspended while it waits for the answer to a plan. When it is
//! resumed, it sends the request for this plan again, with the same id.
//!
//! A person, the lead and the daemon may answer the same request. To answer, a process checks the
//! member's inbox for an answer and appends its own answer in one step. So only the first answer is
//! stored. After that step, the answer is logged and the request is marked read.
//!
//! To withdraw a request, a member appends an answer to its own inbox, with itself as the sender.
//! If the lead answers at the same time, the answer that is stored first counts.

use crate::answer_log::AnsweredRequest;
use crate::error::Error;
use crate::inbox::{ANSWER_LIMIT, MESSAGE_LIMIT};
use crate::open_request_and_possible_answers::{
    OpenRequest, RequestState, ScannedRequest, closing_state, find_answer, into_open, is_plan, merge_repeat,
    possible_answers,
};
use crate::team_handle::Team;
use protocol::inbox_file::{InboxEntry, Message};
use protocol::inbox_message_payload::{Payload, PermissionOutcome, PermissionResponse};
use protocol::member_request::{Answer, MemberRequest};
use protocol::member_task_and_request_ids::RequestId;
use protocol::permission_mode::PermissionMode;
use protocol::policy::AnsweredBy;
use protocol::team_and_member_names::MemberName;
use protocol::team_config::TeamConfig;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// Access to the requests of one team's members.
#[derive(Debug, Clone)]
pub struct MemberRequests(Team);

/// All requests that the members made in their current spawns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestScanResult {
    /// The open requests, oldest first.
    pub open: Vec<OpenRequest>,
    /// The plans of suspended members. They are open again when the members are resumed.
    pub suspended: Vec<OpenRequest>,
    /// The answered requests. If the answer log lacks an answer, the answer counts as the lead's.
    pub answered: Vec<AnsweredRequest>,
    /// The requests that their members withdrew.
    pub withdrawn: Vec<(MemberName, RequestId)>,
    /// Members whose last two plans were rejected because of a timeout. The next plan of such a
    /// member has no timeout, but waits for a person. Otherwise the member would only plan again
    /// and again.
    pub plans_timed_out_twice: BTreeSet<MemberName>,
}

impl Team {
    /// The requests of this team's members.
    pub fn requests(&self) -> MemberRequests {
        MemberRequests(self.clone())
    }
}

impl MemberRequests {
    /// The open requests, oldest first.
    pub fn open_requests(&self) -> Result<Vec<OpenRequest>, Error> {
        Ok(into_open(self.scan_all()?))
    }

    /// All requests of the members' current spawns: open, answered and withdrawn.
    pub fn scan(&self) -> Result<RequestScanResult, Error> {
        let requests = self.scan_all()?;
        let answered = requests.iter().filter_map(ScannedRequest::to_answered).collect();
        let is_withdrawn = |request: &&ScannedRequest| request.state == RequestState::Withdrawn;
        let withdrawn = requests.iter().filter(is_withdrawn).map(ScannedRequest::key).collect();
        let plans_timed_out_twice = members_timed_out_twice(&requests);
        let (suspended, requests): (Vec<_>, Vec<_>) =
            requests.into_iter().partition(|request| request.state == RequestState::AskerSuspended);
        let suspended = suspended.into_iter().map(|request| request.request).collect();
        Ok(RequestScanResult {
            open: into_open(requests),
            suspended,
            answered,
            withdrawn,
            plans_timed_out_twice,
        })
    }

    /// The id of the member's last plan request without an answer. `None` if there is none.
    pub fn open_plan_request(&self, member: &MemberName) -> Result<Option<RequestId>, Error> {
        let is_open_plan = |request: &ScannedRequest| {
            let plan = matches!(request.request.request, MemberRequest::Plan(_));
            plan && request.state == RequestState::Open && request.request.from == *member
        };
        let request = self.scan_all()?.into_iter().rev().find(is_open_plan);
        Ok(request.map(|request| request.request.request.id().clone()))
    }

    /// The text of the plan in the request `id`. `None` if the lead's inbox no longer has the
    /// request.
    pub fn plan_text(&self, id: &RequestId) -> Result<Option<String>, Error> {
        let requests = self.scan_all()?.into_iter();
        Ok(requests.map(|request| request.request.request).find_map(|request| match request {
            MemberRequest::Plan(plan) if plan.request_id == *id => Some(plan.plan_content),
            _ => None,
        }))
    }

    /// The open request with the id `id`. If no request has this id, the only open request whose id
    /// begins with `id`.
    ///
    /// # Errors
    /// `NoSuchRequest`, `AmbiguousRequest`, `AlreadyAnswered`, `AskerGone`, `Withdrawn`, and errors
    /// of reading.
    pub fn find(&self, id: &str) -> Result<OpenRequest, Error> {
        let (exact_matches, other_requests): (Vec<ScannedRequest>, Vec<ScannedRequest>) =
            self.scan_all()?.into_iter().partition(|request| request.request.request.id().as_str() == id);
        if !exact_matches.is_empty() {
            return single_open(id, exact_matches);
        }
        let has_prefix = |request: &ScannedRequest| {
            !id.is_empty() && request.request.request.id().as_str().starts_with(id)
        };
        let (prefix_matches, other_requests): (Vec<ScannedRequest>, Vec<ScannedRequest>) =
            other_requests.into_iter().partition(has_prefix);
        if !prefix_matches.is_empty() {
            return single_open(id, prefix_matches);
        }
        let open =
            into_open(other_requests).into_iter().map(|request| request.request.id().to_string()).collect();
        Err(Error::NoSuchRequest { id: id.to_owned(), open })
    }

    /// Appends an answer to the member's inbox, adds it to the answer log, and marks the request
    /// read. `at_ms` is the current time in ms since the epoch.
    ///
    /// If the approval of a plan names no permission mode, the member continues in the lead's mode.
    /// If the member's program is known not to support the lead's mode, the member continues in the
    /// mode `default`.
    ///
    /// # Errors
    /// `AnswerNotApplicable` if the answer does not fit the request. `UnsupportedAnswer` if the
    /// member's program is known not to support the answer. `AlreadyAnswered` or `Withdrawn` if
    /// another answer came first. Errors of writing. A failure to log the answer or to mark the
    /// request read is ignored.
    pub fn answer(
        &self,
        request: &OpenRequest,
        answer: &Answer,
        by: AnsweredBy,
        at_ms: u64,
    ) -> Result<(), Error> {
        let message = self.answer_message(request, answer, at_ms)?;
        let inbox = self.0.inbox(&request.from);
        if let Some(state) = self.recorded_state(request) {
            return Err(state.to_error(request));
        }
        if !inbox
            .append_unless(&message, ANSWER_LIMIT, |entries| closing_state(entries, request).is_some())?
        {
            let state =
                closing_state(&possible_answers(&inbox)?, request).or_else(|| self.recorded_state(request));
            return Err(state.unwrap_or(RequestState::AskerGone).to_error(request));
        }
        let answered = AnsweredRequest {
            member: request.from.clone(),
            request_id: request.request.id().clone(),
            approved: matches!(answer, Answer::Approve(_)),
            answered_by: by,
            last_asked_at: request.last_asked_at,
        };
        self.0.answer_log().append(self.0.name(), &answered).ok();
        // In a session team, Claude Code marks or removes the entries that it has read.
        if !self.0.name().is_claude_session() {
            self.0.inbox(&MemberName::lead()).mark_read(&request.entries).ok();
        }
        Ok(())
    }

    /// The message that carries an answer.
    ///
    /// # Errors
    /// `AnswerNotApplicable` if the answer does not fit the request; `UnsupportedAnswer` if the
    /// member's program is known not to support the answer.
    fn answer_message(&self, request: &OpenRequest, answer: &Answer, at_ms: u64) -> Result<Message, Error> {
        let id = request.request.id();
        if let Some(reason) = request.request.check_answer(answer) {
            return Err(Error::AnswerNotApplicable { id: id.to_string(), reason });
        }
        let capabilities = self.0.member_capabilities(&request.from);
        if let Some(unsupported_answer) = capabilities.check_answer(&request.request, answer) {
            return Err(Error::UnsupportedAnswer { id: id.to_string(), unsupported_answer });
        }
        let mode = capabilities.supported_mode(self.lead_mode()?);
        let payload = request.request.response(answer, mode, at_ms);
        Ok(Message::new(&MemberName::lead(), payload.to_text(), at_ms))
    }

    /// Withdraws the requests `ids` of the member `from`. Callers do this when no program waits for
    /// the answers any longer. `at_ms` is the current time in ms since the epoch. A request that
    /// already has an answer stays answered.
    ///
    /// # Errors
    /// The errors of reading and changing the inbox of `from`.
    pub fn withdraw(&self, from: &MemberName, ids: &[RequestId], at_ms: u64) -> Result<(), Error> {
        let inbox = self.0.inbox(from);
        for id in ids {
            let outcome =
                PermissionOutcome::Error { error: "taken back: the turn that asked is over".to_owned() };
            let response = PermissionResponse { request_id: id.clone(), outcome };
            let text = Payload::PermissionResponse(response).to_text();
            let message = Message { read: true, ..Message::new(from, text, at_ms) };
            let is_answered =
                |entries: &[InboxEntry]| find_answer(entries, id, MemberName::is_lead).is_some();
            inbox.append_unless(&message, MESSAGE_LIMIT, is_answered)?;
        }
        Ok(())
    }

    /// The state of a request according to the answer log. `None` if the log has no answer.
    fn recorded_state(&self, request: &OpenRequest) -> Option<RequestState> {
        find_recorded(&self.0.answer_log().read_team(self.0.name()), request)
    }

    /// The permission mode that a member gets when the lead approves its plan. `default` if the
    /// lead has no permission mode.
    fn lead_mode(&self) -> Result<PermissionMode, Error> {
        let config = self.0.cached_config()?;
        let mode = config.member(&MemberName::lead()).and_then(|lead| lead.mode.as_deref());
        let mode = mode.and_then(|mode| mode.parse::<PermissionMode>().ok());
        Ok(mode.map_or(PermissionMode::Default, PermissionMode::for_approved_member))
    }

    /// All requests in the lead's inbox, with their states.
    fn scan_all(&self) -> Result<Vec<ScannedRequest>, Error> {
        let requests = self.0.inbox(&MemberName::lead()).fold(|requests, entry| {
            OpenRequest::from_entry(entry).into_iter().for_each(|request| merge_repeat(requests, request));
        })?;
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        self.determine_states(requests)
    }

    fn determine_states(&self, requests: Vec<OpenRequest>) -> Result<Vec<ScannedRequest>, Error> {
        let (config, answers) = (self.0.cached_config()?, self.0.answer_log().read_team(self.0.name()));
        let mut inboxes: BTreeMap<MemberName, Vec<InboxEntry>> = BTreeMap::new();
        let mut scanned = Vec::with_capacity(requests.len());
        let plans_to_resubmit = OnceCell::new();
        let plans_to_resubmit = || plans_to_resubmit.get_or_init(|| self.0.plans_to_resubmit());
        for mut request in requests {
            let state = match joined_at(&config, &mut request) {
                None if is_plan(&request) && plans_to_resubmit().contains(request.request.id()) => {
                    RequestState::AskerSuspended
                }
                None => RequestState::AskerGone,
                Some(joined_at) if request.last_asked_at > 0 && request.last_asked_at < joined_at => {
                    RequestState::AskerGone
                }
                Some(_) => match find_recorded(&answers, &request) {
                    Some(state) => state,
                    None => {
                        if !inboxes.contains_key(&request.from) {
                            let candidates = possible_answers(&self.0.inbox(&request.from))?;
                            inboxes.insert(request.from.clone(), candidates);
                        }
                        let entries = inboxes.get(&request.from).map(Vec::as_slice).unwrap_or_default();
                        closing_state(entries, &request).unwrap_or(RequestState::Open)
                    }
                },
            };
            scanned.push(ScannedRequest { request, state });
        }
        Ok(scanned)
    }
}

/// The members whose last two plans were rejected because of a timeout.
fn members_timed_out_twice(requests: &[ScannedRequest]) -> BTreeSet<MemberName> {
    let mut timeout_counts: BTreeMap<&MemberName, u32> = BTreeMap::new();
    for request in requests.iter().filter(|request| matches!(request.request.request, MemberRequest::Plan(_)))
    {
        let count = timeout_counts.entry(&request.request.from).or_default();
        match request.state {
            RequestState::Answered { approved: false, by: AnsweredBy::Timeout } => *count += 1,
            RequestState::Answered { .. } => *count = 0,
            RequestState::Open
            | RequestState::Withdrawn
            | RequestState::AskerGone
            | RequestState::AskerSuspended => {}
        }
    }
    timeout_counts.into_iter().filter(|(_, count)| *count >= 2).map(|(name, _)| name.clone()).collect()
}

fn find_recorded(answers: &[AnsweredRequest], request: &OpenRequest) -> Option<RequestState> {
    let is_answer = |answer: &&AnsweredRequest| {
        answer.member == request.from
            && answer.request_id == *request.request.id()
            && answer.last_asked_at >= request.last_asked_at
    };
    let answer = answers.iter().rfind(is_answer)?;
    Some(RequestState::Answered { approved: answer.approved, by: answer.answered_by })
}

/// Copies the name and working directory of the member that made `request` from the config into
/// `request`. Returns when the member joined the team, in ms since the epoch. `None` if the member
/// is not on the team.
fn joined_at(config: &TeamConfig, request: &mut OpenRequest) -> Option<u64> {
    let member = config.member(&request.from).filter(|member| !member.name.is_lead())?;
    request.from = member.name.clone();
    request.cwd.clone_from(&member.cwd);
    Some(member.joined_at)
}

/// The only open request among `requests`. If there is not exactly one, the error that says why.
fn single_open(id: &str, requests: Vec<ScannedRequest>) -> Result<OpenRequest, Error> {
    let (open, closed): (Vec<ScannedRequest>, Vec<ScannedRequest>) =
        requests.into_iter().partition(|requests| requests.state == RequestState::Open);
    let name =
        |requests: &ScannedRequest| format!("{} of {}", requests.request.request.id(), requests.request.from);
    match (open.len(), closed.last()) {
        (0, Some(ScannedRequest { request, state })) => Err(state.to_error(request)),
        (1, _) => Ok(open.into_iter().next().expect("there is one").request),
        _ => Err(Error::AmbiguousRequest { id: id.to_owned(), candidates: open.iter().map(name).collect() }),
    }
}
