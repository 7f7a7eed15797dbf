//! What members ask their lead, and the answers to it.
//!
//! A request in the lead's inbox is open, read or not, while whoever asked is on the team in the life in which it asked,
//! and neither its inbox nor our own record holds an answer. An answer is stored in one step with the look whether there
//! is one already, so that of a person, the lead and the daemon one answers; then it is noted, and the request marked
//! read. A member takes back what it asked by an answer of its own in its own inbox, by the same step: of the two one
//! counts.

use crate::answer_log::AnsweredRequest;
use crate::error::Error;
use crate::inbox::{ANSWER_LIMIT, Inbox, MESSAGE_LIMIT};
use crate::team::Team;
use protocol::id::RequestId;
use protocol::member_request::{Answer, MemberRequest, parse_answer};
use protocol::message::{InboxEntry, Message};
use protocol::name::AgentName;
use protocol::payload::{Payload, PermissionOutcome, PermissionResponse};
use protocol::permission_mode::PermissionMode;
use protocol::policy::AnsweredBy;
use protocol::team_config::TeamConfig;
use protocol::timestamp::parse_iso8601;
use std::collections::{BTreeMap, BTreeSet};

/// The requests of one team.
#[derive(Debug, Clone)]
pub struct MemberRequests(Team);

/// A request that can be answered.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenRequest {
    /// What is asked.
    pub request: MemberRequest,
    /// Who asks: a member.
    pub from: AgentName,
    /// Since when, ms since the epoch; 0 where the message does not tell.
    pub asked_at: u64,
    /// When it was asked last: some ask twice.
    last_asked_at: u64,
    /// Where the member works, as its entry says; for rules about directories.
    pub cwd: String,
    /// The message's text, as it stands.
    pub text: String,
    /// Its entries in the lead's inbox.
    entries: Vec<InboxEntry>,
}

/// All that a team's members have asked in this life.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestScanResult {
    /// Those that wait for an answer, oldest first.
    pub open: Vec<OpenRequest>,
    /// What the others were answered. By hand in an inbox: as the lead.
    pub answered: Vec<AnsweredRequest>,
    /// Those that their askers have taken back.
    pub withdrawn: Vec<(AgentName, RequestId)>,
    /// Whose last two plans were refused because their time was over: its next one waits, as another such no would only
    /// make it plan again.
    pub plans_timed_out_twice: BTreeSet<AgentName>,
}

/// A request of the lead's inbox, and how it stands.
struct ScannedRequest {
    request: OpenRequest,
    state: RequestState,
}

#[derive(Clone, Copy, PartialEq)]
enum RequestState {
    Open,
    Answered { approved: bool, by: AnsweredBy },
    Withdrawn,
    AskerGone,
}

impl Team {
    /// What its members ask.
    pub fn requests(&self) -> MemberRequests {
        MemberRequests(self.clone())
    }
}

impl MemberRequests {
    /// Those that wait for an answer, oldest first.
    pub fn open_requests(&self) -> Result<Vec<OpenRequest>, Error> {
        Ok(into_open(self.scan_all()?))
    }

    /// Those, and what the others were answered.
    pub fn scan(&self) -> Result<RequestScanResult, Error> {
        let all = self.scan_all()?;
        let answered = all.iter().filter_map(ScannedRequest::to_answered).collect();
        let taken_back = |found: &&ScannedRequest| found.state == RequestState::Withdrawn;
        let withdrawn = all.iter().filter(taken_back).map(ScannedRequest::key).collect();
        let overlooked = members_timed_out_twice(&all);
        Ok(RequestScanResult { open: into_open(all), answered, withdrawn, plans_timed_out_twice: overlooked })
    }

    /// The plan of a member that has no answer, whoever has read it.
    pub fn open_plan_request(&self, member: &AgentName) -> Result<Option<RequestId>, Error> {
        let waits = |found: &ScannedRequest| {
            let plan = matches!(found.request.request, MemberRequest::Plan(_));
            plan && found.state == RequestState::Open && found.request.from == *member
        };
        let found = self.scan_all()?.into_iter().rev().find(waits);
        Ok(found.map(|found| found.request.request.id().clone()))
    }

    /// The text of a plan that a member handed in; none where its request is gone.
    pub fn plan_text(&self, id: &RequestId) -> Result<Option<String>, Error> {
        let all = self.scan_all()?.into_iter();
        Ok(all.map(|found| found.request.request).find_map(|asked| match asked {
            MemberRequest::Plan(plan) if plan.request_id == *id => Some(plan.plan_content),
            _ => None,
        }))
    }

    /// The request of that id, or the only one whose id begins so.
    ///
    /// # Errors
    /// `NoSuchRequest`, `ManyRequests`, `Answered`, `AskerGone`, `TakenBack`, or what reading came to.
    pub fn find(&self, id: &str) -> Result<OpenRequest, Error> {
        let (same, others): (Vec<ScannedRequest>, Vec<ScannedRequest>) =
            self.scan_all()?.into_iter().partition(|found| found.request.request.id().as_str() == id);
        if !same.is_empty() {
            return single_open(id, same);
        }
        let begins =
            |found: &ScannedRequest| !id.is_empty() && found.request.request.id().as_str().starts_with(id);
        let (near, rest): (Vec<ScannedRequest>, Vec<ScannedRequest>) = others.into_iter().partition(begins);
        if !near.is_empty() {
            return single_open(id, near);
        }
        let open = into_open(rest).into_iter().map(|request| request.request.id().to_string()).collect();
        Err(Error::NoSuchRequest { id: id.to_owned(), open })
    }

    /// Stores the answer in the member's inbox at `at_ms` (ms since the epoch), notes whose it is, and marks the request
    /// read. A plan that is approved without a mode goes on in the lead's own, where its program is known to have none
    /// such in `default`.
    ///
    /// # Errors
    /// `Unfit`; `Beyond` for what its program is known not to follow; `Answered` or `TakenBack` where somebody was faster; else what writing came to. A failure to note it or to
    /// mark the request read is none: it is answered.
    pub fn answer(
        &self,
        request: &OpenRequest,
        answer: &Answer,
        by: AnsweredBy,
        at_ms: u64,
    ) -> Result<(), Error> {
        let id = request.request.id();
        if let Some(why) = request.request.check_answer(answer) {
            return Err(Error::AnswerNotApplicable { id: id.to_string(), reason: why });
        }
        let ability = self.0.member_capabilities(&request.from);
        if let Some(beyond) = ability.check_answer(&request.request, answer) {
            return Err(Error::UnsupportedAnswer { id: id.to_string(), unsupported_answer: beyond });
        }
        let mode = ability.supported_mode(self.lead_mode()?);
        let payload = request.request.response(answer, mode, at_ms);
        let message = Message::new(&AgentName::lead(), payload.to_text(), at_ms);
        let inbox = self.0.inbox(&request.from);
        if let Some(standing) = self.recorded_state(request) {
            return Err(standing.to_error(request));
        }
        if !inbox
            .append_unless(&message, ANSWER_LIMIT, |entries| closing_state(entries, request).is_some())?
        {
            let standing =
                closing_state(&possible_answers(&inbox)?, request).or_else(|| self.recorded_state(request));
            return Err(standing.unwrap_or(RequestState::AskerGone).to_error(request));
        }
        let (to, approved) = (request.from.clone(), matches!(answer, Answer::Approve(_)));
        let answered = AnsweredRequest {
            member: to,
            request_id: id.clone(),
            approved,
            answered_by: by,
            asked_at: request.last_asked_at,
        };
        self.0.answer_log().append(self.0.name(), &answered).ok();
        // In a team of Claude Code's it is its lead that marks, or removes, what it has read.
        if !self.0.name().is_claude_session() {
            self.0.inbox(&AgentName::lead()).mark_read(&request.entries).ok();
        }
        Ok(())
    }

    /// Takes back what `from` asked, at `at_ms` (ms since the epoch): nobody waits for the answer. What was answered
    /// stays so.
    ///
    /// # Errors
    /// What writing into its own inbox came to.
    pub fn withdraw(&self, from: &AgentName, ids: &[RequestId], at_ms: u64) -> Result<(), Error> {
        let inbox = self.0.inbox(from);
        for id in ids {
            let outcome =
                PermissionOutcome::Error { error: "taken back: the turn that asked is over".to_owned() };
            let response = PermissionResponse { request_id: id.clone(), outcome };
            let text = Payload::PermissionResponse(response).to_text();
            let message = Message { read: true, ..Message::new(from, text, at_ms) };
            let closed = |entries: &[InboxEntry]| find_answer(entries, id, AgentName::is_lead).is_some();
            inbox.append_unless(&message, MESSAGE_LIMIT, closed)?;
        }
        Ok(())
    }

    /// What our own record says of it.
    fn recorded_state(&self, request: &OpenRequest) -> Option<RequestState> {
        find_recorded(&self.0.answer_log().read_team(self.0.name()), request)
    }

    /// What the lead hands on with an approval; `default` where it is a person who set none.
    fn lead_mode(&self) -> Result<PermissionMode, Error> {
        let config = self.0.cached_config()?;
        let mode = config.member(&AgentName::lead()).and_then(|lead| lead.mode.as_deref());
        let mode = mode.and_then(|mode| mode.parse::<PermissionMode>().ok());
        Ok(mode.map_or(PermissionMode::Default, PermissionMode::for_approved_member))
    }

    /// Every request there is in the lead's inbox, and how it stands.
    fn scan_all(&self) -> Result<Vec<ScannedRequest>, Error> {
        let asked = self.0.inbox(&AgentName::lead()).fold(|asked, entry| {
            OpenRequest::from_entry(entry).into_iter().for_each(|request| merge_repeat(asked, request));
        })?;
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        self.determine_states(asked)
    }

    fn determine_states(&self, asked: Vec<OpenRequest>) -> Result<Vec<ScannedRequest>, Error> {
        let (config, answers) = (self.0.cached_config()?, self.0.answer_log().read_team(self.0.name()));
        let mut inboxes: BTreeMap<AgentName, Vec<InboxEntry>> = BTreeMap::new();
        let mut all = Vec::with_capacity(asked.len());
        for mut request in asked {
            let standing = match joined_at(&config, &mut request) {
                None => RequestState::AskerGone,
                Some(since) if request.last_asked_at > 0 && request.last_asked_at < since => {
                    RequestState::AskerGone
                }
                Some(_) => match find_recorded(&answers, &request) {
                    Some(answered) => answered,
                    None => {
                        if !inboxes.contains_key(&request.from) {
                            let words = possible_answers(&self.0.inbox(&request.from))?;
                            inboxes.insert(request.from.clone(), words);
                        }
                        let entries = inboxes.get(&request.from).map(Vec::as_slice).unwrap_or_default();
                        closing_state(entries, &request).unwrap_or(RequestState::Open)
                    }
                },
            };
            all.push(ScannedRequest { request, state: standing });
        }
        Ok(all)
    }
}

impl ScannedRequest {
    fn key(&self) -> (AgentName, RequestId) {
        (self.request.from.clone(), self.request.request.id().clone())
    }

    fn to_answered(&self) -> Option<AnsweredRequest> {
        let RequestState::Answered { approved, by } = self.state else { return None };
        let (to, request) = (self.request.from.clone(), self.request.request.id().clone());
        Some(AnsweredRequest {
            member: to,
            request_id: request,
            approved,
            answered_by: by,
            asked_at: self.request.last_asked_at,
        })
    }
}

impl RequestState {
    /// Why a request that stands so takes no answer.
    fn to_error(self, request: &OpenRequest) -> Error {
        let (id, from) = (request.request.id().to_string(), request.from.clone());
        match self {
            RequestState::Answered { approved, .. } => Error::AlreadyAnswered { id, approved },
            RequestState::Withdrawn => Error::Withdrawn { id, from },
            RequestState::Open | RequestState::AskerGone => Error::AskerGone { id, from },
        }
    }
}

/// Whose last two plans nobody has answered in time.
fn members_timed_out_twice(all: &[ScannedRequest]) -> BTreeSet<AgentName> {
    let mut in_a_row: BTreeMap<&AgentName, u32> = BTreeMap::new();
    for found in all.iter().filter(|found| matches!(found.request.request, MemberRequest::Plan(_))) {
        let count = in_a_row.entry(&found.request.from).or_default();
        match found.state {
            RequestState::Answered { approved: false, by: AnsweredBy::Timeout } => *count += 1,
            RequestState::Answered { .. } => *count = 0,
            RequestState::Open | RequestState::Withdrawn | RequestState::AskerGone => {}
        }
    }
    in_a_row.into_iter().filter(|(_, count)| *count >= 2).map(|(name, _)| name.clone()).collect()
}

fn into_open(all: Vec<ScannedRequest>) -> Vec<OpenRequest> {
    let open = all.into_iter().filter(|found| found.state == RequestState::Open);
    open.map(|found| found.request).collect()
}

fn find_recorded(answers: &[AnsweredRequest], request: &OpenRequest) -> Option<RequestState> {
    let is = |answered: &&AnsweredRequest| {
        answered.member == request.from
            && answered.request_id == *request.request.id()
            && answered.asked_at >= request.last_asked_at
    };
    let answered = answers.iter().rfind(is)?;
    Some(RequestState::Answered { approved: answered.approved, by: answered.answered_by })
}

/// Since when the asker is on the team, ms since the epoch; none where it is not. Fills in where it works.
fn joined_at(config: &TeamConfig, request: &mut OpenRequest) -> Option<u64> {
    let member = config.member(&request.from).filter(|member| !member.name.is_lead())?;
    request.from = member.name.clone();
    request.cwd.clone_from(&member.cwd);
    Some(member.joined_at)
}

impl OpenRequest {
    /// What an entry of the lead's inbox asks, if it does. Where its member works is not known from that.
    pub fn from_entry(entry: InboxEntry) -> Option<OpenRequest> {
        let message = entry.message.as_ref().ok()?;
        let asked = MemberRequest::parse(&message.text)?;
        let since = parse_iso8601(&message.timestamp).unwrap_or(0);
        let (from, text) = (AgentName::new_unchecked(&message.from), message.text.clone());
        Some(OpenRequest {
            request: asked,
            from,
            asked_at: since,
            last_asked_at: since,
            cwd: String::new(),
            text,
            entries: vec![entry],
        })
    }
}

/// A request that was asked twice is one.
fn merge_repeat(asked: &mut Vec<OpenRequest>, request: OpenRequest) {
    let same =
        |known: &&mut OpenRequest| known.from == request.from && known.request.id() == request.request.id();
    match asked.iter_mut().find(same) {
        Some(known) => {
            known.last_asked_at = known.last_asked_at.max(request.last_asked_at);
            known.entries.extend(request.entries);
        }
        None => asked.push(request),
    }
}

/// What of an inbox may be an answer.
fn possible_answers(inbox: &Inbox) -> Result<Vec<InboxEntry>, Error> {
    inbox.fold(|words: &mut Vec<InboxEntry>, entry| words.extend(Some(entry).filter(can_be_answer)))
}

/// Most messages need not be parsed.
fn can_be_answer(entry: &InboxEntry) -> bool {
    entry.message.as_ref().is_ok_and(|message| message.text.contains("_response"))
}

/// How what its asker's inbox holds has closed it: of several answers a yes counts, and any before what the asker says.
fn closing_state(entries: &[InboxEntry], request: &OpenRequest) -> Option<RequestState> {
    let id = request.request.id();
    let answer = find_answer(entries, id, AgentName::is_lead);
    let taken = || find_answer(entries, id, |from| *from == request.from);
    let answered = answer.map(|approved| RequestState::Answered { approved, by: AnsweredBy::Lead });
    answered.or_else(|| taken().map(|_| RequestState::Withdrawn))
}

/// Whether they hold an answer to that request of whoever `is`, and which.
fn find_answer(entries: &[InboxEntry], id: &RequestId, is: impl Fn(&AgentName) -> bool) -> Option<bool> {
    let near =
        entries.iter().filter(|entry| can_be_answer(entry)).filter_map(|entry| entry.message.as_ref().ok());
    let theirs = near.filter(|message| is(&AgentName::new_unchecked(&message.from)));
    let answers = theirs.filter_map(|message| parse_answer(&message.text)).filter(|(of, _)| of == id);
    answers.map(|(_, approved)| approved).reduce(|one, other| one || other)
}

/// The one of `found` that can be answered, else why not.
fn single_open(id: &str, found: Vec<ScannedRequest>) -> Result<OpenRequest, Error> {
    let (open, closed): (Vec<ScannedRequest>, Vec<ScannedRequest>) =
        found.into_iter().partition(|found| found.state == RequestState::Open);
    let name = |found: &ScannedRequest| format!("{} of {}", found.request.request.id(), found.request.from);
    match (open.len(), closed.last()) {
        (0, Some(ScannedRequest { request, state: standing })) => Err(standing.to_error(request)),
        (1, _) => Ok(open.into_iter().next().expect("there is one").request),
        _ => Err(Error::AmbiguousRequest { id: id.to_owned(), candidates: open.iter().map(name).collect() }),
    }
}
