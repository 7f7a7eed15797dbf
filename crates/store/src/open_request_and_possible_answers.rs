//! One request of a member: which answers it can have, and which message is its answer.

use crate::answer_log::AnsweredRequest;
use crate::error::Error;
use crate::inbox::Inbox;
use protocol::inbox_file::InboxEntry;
use protocol::member_request::{MemberRequest, parse_answer};
use protocol::member_task_and_request_ids::RequestId;
use protocol::policy::AnsweredBy;
use protocol::team_and_member_names::MemberName;
use protocol::timestamp::parse_iso8601;

/// A request that waits for an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenRequest {
    /// The content of the request.
    pub request: MemberRequest,
    /// The member that made the request.
    pub from: MemberName,
    /// When the request was made, in ms since the epoch. 0 if the message has no valid timestamp.
    pub asked_at: u64,
    /// When the member last repeated the request, in ms since the epoch. Some programs ask twice, and a
    /// resumed member submits its plan again.
    pub last_asked_at: u64,
    /// The member's working directory, for policy rules about directories.
    pub cwd: String,
    /// The text of the message, unchanged.
    pub text: String,
    /// The entries of this request in the lead's inbox.
    pub(crate) entries: Vec<InboxEntry>,
}

/// A request in the lead's inbox and its state.
pub(crate) struct ScannedRequest {
    pub(crate) request: OpenRequest,
    pub(crate) state: RequestState,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum RequestState {
    Open,
    Answered { approved: bool, by: AnsweredBy },
    Withdrawn,
    AskerGone,
    AskerSuspended,
}

impl ScannedRequest {
    pub(crate) fn key(&self) -> (MemberName, RequestId) {
        (self.request.from.clone(), self.request.request.id().clone())
    }

    pub(crate) fn to_answered(&self) -> Option<AnsweredRequest> {
        let RequestState::Answered { approved, by } = self.state else { return None };
        let (member, request) = (self.request.from.clone(), self.request.request.id().clone());
        Some(AnsweredRequest {
            member,
            request_id: request,
            approved,
            answered_by: by,
            last_asked_at: self.request.last_asked_at,
        })
    }
}

impl RequestState {
    /// The error for an answer to a request in this state.
    pub(crate) fn to_error(self, request: &OpenRequest) -> Error {
        let (id, from) = (request.request.id().to_string(), request.from.clone());
        match self {
            RequestState::Answered { approved, .. } => Error::AlreadyAnswered { id, approved },
            RequestState::Withdrawn => Error::Withdrawn { id, from },
            RequestState::AskerSuspended => Error::AskerSuspended { id, from },
            RequestState::Open | RequestState::AskerGone => Error::AskerGone { id, from },
        }
    }
}

pub(crate) fn is_plan(request: &OpenRequest) -> bool {
    matches!(request.request, MemberRequest::Plan(_))
}

pub(crate) fn into_open(requests: Vec<ScannedRequest>) -> Vec<OpenRequest> {
    let open_requests = requests.into_iter().filter(|request| request.state == RequestState::Open);
    open_requests.map(|request| request.request).collect()
}

impl OpenRequest {
    /// Parses an entry of the lead's inbox as a request. `None` if the entry is not a request. The
    /// field `cwd` stays empty.
    pub fn from_entry(entry: InboxEntry) -> Option<OpenRequest> {
        let message = entry.message.as_ref().ok()?;
        let request = MemberRequest::parse(&message.text)?;
        let asked_at = parse_iso8601(&message.timestamp).unwrap_or(0);
        let (from, text) = (MemberName::new_unchecked(&message.from), message.text.clone());
        Some(OpenRequest {
            request,
            from,
            asked_at,
            last_asked_at: asked_at,
            cwd: String::new(),
            text,
            entries: vec![entry],
        })
    }
}

/// Adds a request, or merges it with the earlier request that it repeats.
pub(crate) fn merge_repeat(requests: &mut Vec<OpenRequest>, request: OpenRequest) {
    let is_same_request = |earlier: &&mut OpenRequest| {
        earlier.from == request.from && earlier.request.id() == request.request.id()
    };
    match requests.iter_mut().find(is_same_request) {
        Some(earlier) => {
            earlier.last_asked_at = earlier.last_asked_at.max(request.last_asked_at);
            earlier.entries.extend(request.entries);
        }
        None => requests.push(request),
    }
}

/// The entries of an inbox that may be answers.
pub(crate) fn possible_answers(inbox: &Inbox) -> Result<Vec<InboxEntry>, Error> {
    inbox.fold(|candidates: &mut Vec<InboxEntry>, entry| candidates.extend(Some(entry).filter(can_be_answer)))
}

/// Whether an entry may be an answer. The check saves parsing of most messages.
fn can_be_answer(entry: &InboxEntry) -> bool {
    entry.message.as_ref().is_ok_and(|message| message.text.contains("_response"))
}

/// The state of an answered or withdrawn request, according to the member's inbox. `None` if the
/// inbox has no answer. An approval takes precedence over a rejection, and any answer of the lead
/// takes precedence over a withdrawal.
pub(crate) fn closing_state(entries: &[InboxEntry], request: &OpenRequest) -> Option<RequestState> {
    let id = request.request.id();
    let answer = find_answer(entries, id, MemberName::is_lead);
    let find_withdrawal = || find_answer(entries, id, |from| *from == request.from);
    let answered = answer.map(|approved| RequestState::Answered { approved, by: AnsweredBy::Lead });
    answered.or_else(|| find_withdrawal().map(|_| RequestState::Withdrawn))
}

/// Finds answers to the request `id` from senders that `is_sender` accepts. Returns true if any of
/// these answers approves, false if all reject, and `None` if there are no such answers.
pub(crate) fn find_answer(
    entries: &[InboxEntry],
    id: &RequestId,
    is_sender: impl Fn(&MemberName) -> bool,
) -> Option<bool> {
    let candidates =
        entries.iter().filter(|entry| can_be_answer(entry)).filter_map(|entry| entry.message.as_ref().ok());
    let from_senders = candidates.filter(|message| is_sender(&MemberName::new_unchecked(&message.from)));
    let answers = from_senders
        .filter_map(|message| parse_answer(&message.text))
        .filter(|(request_id, _)| request_id == id);
    answers.map(|(_, approved)| approved).reduce(|first, second| first || second)
}
