//! What members ask their lead, and the answers to it.
//!
//! A request in the lead's inbox is open, read or not, while whoever asked is on the team in the life in which it asked,
//! and neither its inbox nor our own record holds an answer. An answer is stored in one step with the look whether there
//! is one already, so that of a person, the lead and the daemon one answers; then it is noted, and the request marked
//! read. A member takes back what it asked by an answer of its own in its own inbox, by the same step: of the two one
//! counts.

use crate::answers::Answered;
use crate::config::Config;
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
use std::sync::Arc;

/// The requests of one team, and how its config is read.
#[derive(Debug, Clone)]
pub struct Requests(Team, fn(&Team) -> Result<Arc<Config>, Error>);

/// A request that can be answered.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenRequest {
    /// What is asked.
    pub asked: MemberRequest,
    /// Who asks: a member.
    pub from: AgentName,
    /// Since when, ms since the epoch; 0 where the message does not tell.
    pub since: u64,
    /// When it was asked last: some ask twice.
    last: u64,
    /// Where the member works, as its entry says; for rules about directories.
    pub cwd: String,
    /// The message's text, as it stands.
    pub text: String,
    /// Its entries in the lead's inbox.
    entries: Vec<InboxEntry>,
}

/// All that a team's members have asked in this life.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Asking {
    /// Those that wait for an answer, oldest first.
    pub open: Vec<OpenRequest>,
    /// What the others were answered. By hand in an inbox: as the lead.
    pub answered: Vec<Answered>,
    /// Those that their askers have taken back.
    pub withdrawn: Vec<(AgentName, RequestId)>,
    /// Whose last two plans were refused because their time was over: its next one waits, as another such no would only
    /// make it plan again.
    pub overlooked: BTreeSet<AgentName>,
}

/// A request of the lead's inbox, and how it stands.
struct Found {
    request: OpenRequest,
    standing: Standing,
}

#[derive(Clone, Copy, PartialEq)]
enum Standing {
    Open,
    Answered { approved: bool, by: AnsweredBy },
    TakenBack,
    Gone,
}

impl Team {
    /// What its members ask.
    pub fn requests(&self) -> Requests {
        Requests(self.clone(), Team::config_mended)
    }

    /// The same for whoever mends its config, and would wait for itself: as [`Team::config_of_ours`].
    pub fn requests_of_ours(&self) -> Requests {
        Requests(self.clone(), Team::config_of_ours)
    }
}

impl Requests {
    /// Those that wait for an answer, oldest first.
    pub fn open(&self) -> Result<Vec<OpenRequest>, Error> {
        Ok(open_of(self.all()?))
    }

    /// Those, and what the others were answered.
    pub fn asking(&self) -> Result<Asking, Error> {
        let all = self.all()?;
        let answered = all.iter().filter_map(Found::answered).collect();
        let taken_back = |found: &&Found| found.standing == Standing::TakenBack;
        let withdrawn = all.iter().filter(taken_back).map(Found::key).collect();
        let overlooked = overlooked(&all);
        Ok(Asking { open: open_of(all), answered, withdrawn, overlooked })
    }

    /// The plan of a member that has no answer, whoever has read it.
    pub fn plan_of(&self, member: &AgentName) -> Result<Option<RequestId>, Error> {
        let waits = |found: &Found| {
            let plan = matches!(found.request.asked, MemberRequest::Plan(_));
            plan && found.standing == Standing::Open && found.request.from == *member
        };
        let found = self.all()?.into_iter().rev().find(waits);
        Ok(found.map(|found| found.request.asked.id().clone()))
    }

    /// The text of a plan that a member handed in; none where its request is gone.
    pub fn plan_text(&self, id: &RequestId) -> Result<Option<String>, Error> {
        let all = self.all()?.into_iter();
        Ok(all.map(|found| found.request.asked).find_map(|asked| match asked {
            MemberRequest::Plan(plan) if plan.request_id == *id => Some(plan.plan_content),
            _ => None,
        }))
    }

    /// The request of that id, or the only one whose id begins so.
    ///
    /// # Errors
    /// `NoSuchRequest`, `ManyRequests`, `Answered`, `AskerGone`, `TakenBack`, or what reading came to.
    pub fn find(&self, id: &str) -> Result<OpenRequest, Error> {
        let (same, others): (Vec<Found>, Vec<Found>) =
            self.all()?.into_iter().partition(|found| found.request.asked.id().as_str() == id);
        if !same.is_empty() {
            return one(id, same);
        }
        let begins = |found: &Found| !id.is_empty() && found.request.asked.id().as_str().starts_with(id);
        let (near, rest): (Vec<Found>, Vec<Found>) = others.into_iter().partition(begins);
        if !near.is_empty() {
            return one(id, near);
        }
        let open = open_of(rest).into_iter().map(|request| request.asked.id().to_string()).collect();
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
        let id = request.asked.id();
        if let Some(why) = request.asked.check_answer(answer) {
            return Err(Error::Unfit { id: id.to_string(), why });
        }
        let ability = self.0.answers().ability(self.0.name(), &request.from);
        if let Some(beyond) = ability.check_answer(&request.asked, answer) {
            return Err(Error::Beyond { id: id.to_string(), beyond });
        }
        let mode = ability.supported_mode(self.lead_mode()?);
        let payload = request.asked.response(answer, mode, at_ms);
        let message = Message::new(&AgentName::lead(), payload.to_text(), at_ms);
        let inbox = self.0.inbox(&request.from);
        if let Some(standing) = self.noted(request) {
            return Err(standing.refusal(request));
        }
        if !inbox.append_unless(&message, ANSWER_LIMIT, |entries| closed_by(entries, request).is_some())? {
            let standing = closed_by(&words_in(&inbox)?, request).or_else(|| self.noted(request));
            return Err(standing.unwrap_or(Standing::Gone).refusal(request));
        }
        let (to, approved) = (request.from.clone(), matches!(answer, Answer::Approve(_)));
        let answered = Answered { to, request: id.clone(), approved, by, asked: request.last };
        self.0.answers().add(self.0.name(), &answered).ok();
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
    pub fn take_back(&self, from: &AgentName, ids: &[RequestId], at_ms: u64) -> Result<(), Error> {
        let inbox = self.0.inbox(from);
        for id in ids {
            let outcome =
                PermissionOutcome::Error { error: "taken back: the turn that asked is over".to_owned() };
            let response = PermissionResponse { request_id: id.clone(), outcome };
            let text = Payload::PermissionResponse(response).to_text();
            let message = Message { read: true, ..Message::new(from, text, at_ms) };
            let closed = |entries: &[InboxEntry]| word_to(entries, id, AgentName::is_lead).is_some();
            inbox.append_unless(&message, MESSAGE_LIMIT, closed)?;
        }
        Ok(())
    }

    /// What our own record says of it.
    fn noted(&self, request: &OpenRequest) -> Option<Standing> {
        noted_in(&self.0.answers().of(self.0.name()), request)
    }

    /// What the lead hands on with an approval; `default` where it is a person who set none.
    fn lead_mode(&self) -> Result<PermissionMode, Error> {
        let config = (self.1)(&self.0)?;
        let mode = config.member(&AgentName::lead()).and_then(|lead| lead.mode.as_deref());
        let mode = mode.and_then(|mode| mode.parse::<PermissionMode>().ok());
        Ok(mode.map_or(PermissionMode::Default, PermissionMode::for_approved_member))
    }

    /// Every request there is in the lead's inbox, and how it stands.
    fn all(&self) -> Result<Vec<Found>, Error> {
        let asked = self.0.inbox(&AgentName::lead()).fold(|asked, entry| {
            OpenRequest::of(entry).into_iter().for_each(|request| join(asked, request));
        })?;
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        self.standings(asked)
    }

    fn standings(&self, asked: Vec<OpenRequest>) -> Result<Vec<Found>, Error> {
        let (config, answers) = ((self.1)(&self.0)?, self.0.answers().of(self.0.name()));
        let mut inboxes: BTreeMap<AgentName, Vec<InboxEntry>> = BTreeMap::new();
        let mut all = Vec::with_capacity(asked.len());
        for mut request in asked {
            let standing = match joined(&config, &mut request) {
                None => Standing::Gone,
                Some(since) if request.last > 0 && request.last < since => Standing::Gone,
                Some(_) => match noted_in(&answers, &request) {
                    Some(answered) => answered,
                    None => {
                        if !inboxes.contains_key(&request.from) {
                            let words = words_in(&self.0.inbox(&request.from))?;
                            inboxes.insert(request.from.clone(), words);
                        }
                        let entries = inboxes.get(&request.from).map(Vec::as_slice).unwrap_or_default();
                        closed_by(entries, &request).unwrap_or(Standing::Open)
                    }
                },
            };
            all.push(Found { request, standing });
        }
        Ok(all)
    }
}

impl Found {
    fn key(&self) -> (AgentName, RequestId) {
        (self.request.from.clone(), self.request.asked.id().clone())
    }

    fn answered(&self) -> Option<Answered> {
        let Standing::Answered { approved, by } = self.standing else { return None };
        let (to, request) = (self.request.from.clone(), self.request.asked.id().clone());
        Some(Answered { to, request, approved, by, asked: self.request.last })
    }
}

impl Standing {
    /// Why a request that stands so takes no answer.
    fn refusal(self, request: &OpenRequest) -> Error {
        let (id, from) = (request.asked.id().to_string(), request.from.clone());
        match self {
            Standing::Answered { approved, .. } => Error::Answered { id, approved },
            Standing::TakenBack => Error::TakenBack { id, from },
            Standing::Open | Standing::Gone => Error::AskerGone { id, from },
        }
    }
}

/// Whose last two plans nobody has answered in time.
fn overlooked(all: &[Found]) -> BTreeSet<AgentName> {
    let mut in_a_row: BTreeMap<&AgentName, u32> = BTreeMap::new();
    for found in all.iter().filter(|found| matches!(found.request.asked, MemberRequest::Plan(_))) {
        let count = in_a_row.entry(&found.request.from).or_default();
        match found.standing {
            Standing::Answered { approved: false, by: AnsweredBy::Timeout } => *count += 1,
            Standing::Answered { .. } => *count = 0,
            Standing::Open | Standing::TakenBack | Standing::Gone => {}
        }
    }
    in_a_row.into_iter().filter(|(_, count)| *count >= 2).map(|(name, _)| name.clone()).collect()
}

fn open_of(all: Vec<Found>) -> Vec<OpenRequest> {
    let open = all.into_iter().filter(|found| found.standing == Standing::Open);
    open.map(|found| found.request).collect()
}

fn noted_in(answers: &[Answered], request: &OpenRequest) -> Option<Standing> {
    let is = |answered: &&Answered| {
        answered.to == request.from
            && answered.request == *request.asked.id()
            && answered.asked >= request.last
    };
    let answered = answers.iter().rfind(is)?;
    Some(Standing::Answered { approved: answered.approved, by: answered.by })
}

/// Since when the asker is on the team, ms since the epoch; none where it is not. Fills in where it works.
fn joined(config: &TeamConfig, request: &mut OpenRequest) -> Option<u64> {
    let member = config.member(&request.from).filter(|member| !member.name.is_lead())?;
    request.from = member.name.clone();
    request.cwd.clone_from(&member.cwd);
    Some(member.joined_at)
}

impl OpenRequest {
    /// What an entry of the lead's inbox asks, if it does. Where its member works is not known from that.
    pub fn of(entry: InboxEntry) -> Option<OpenRequest> {
        let message = entry.message.as_ref().ok()?;
        let asked = MemberRequest::parse(&message.text)?;
        let since = parse_iso8601(&message.timestamp).unwrap_or(0);
        let (from, text) = (AgentName::new_unchecked(&message.from), message.text.clone());
        Some(OpenRequest { asked, from, since, last: since, cwd: String::new(), text, entries: vec![entry] })
    }
}

/// A request that was asked twice is one.
fn join(asked: &mut Vec<OpenRequest>, request: OpenRequest) {
    let same =
        |known: &&mut OpenRequest| known.from == request.from && known.asked.id() == request.asked.id();
    match asked.iter_mut().find(same) {
        Some(known) => {
            known.last = known.last.max(request.last);
            known.entries.extend(request.entries);
        }
        None => asked.push(request),
    }
}

/// What of an inbox may be an answer.
fn words_in(inbox: &Inbox) -> Result<Vec<InboxEntry>, Error> {
    inbox.fold(|words: &mut Vec<InboxEntry>, entry| words.extend(Some(entry).filter(may_answer)))
}

/// Most messages need not be parsed.
fn may_answer(entry: &InboxEntry) -> bool {
    entry.message.as_ref().is_ok_and(|message| message.text.contains("_response"))
}

/// How what its asker's inbox holds has closed it: of several answers a yes counts, and any before what the asker says.
fn closed_by(entries: &[InboxEntry], request: &OpenRequest) -> Option<Standing> {
    let id = request.asked.id();
    let answer = word_to(entries, id, AgentName::is_lead);
    let taken = || word_to(entries, id, |from| *from == request.from);
    let answered = answer.map(|approved| Standing::Answered { approved, by: AnsweredBy::Lead });
    answered.or_else(|| taken().map(|_| Standing::TakenBack))
}

/// Whether they hold an answer to that request of whoever `is`, and which.
fn word_to(entries: &[InboxEntry], id: &RequestId, is: impl Fn(&AgentName) -> bool) -> Option<bool> {
    let near =
        entries.iter().filter(|entry| may_answer(entry)).filter_map(|entry| entry.message.as_ref().ok());
    let theirs = near.filter(|message| is(&AgentName::new_unchecked(&message.from)));
    let answers = theirs.filter_map(|message| parse_answer(&message.text)).filter(|(of, _)| of == id);
    answers.map(|(_, approved)| approved).reduce(|one, other| one || other)
}

/// The one of `found` that can be answered, else why not.
fn one(id: &str, found: Vec<Found>) -> Result<OpenRequest, Error> {
    let (open, closed): (Vec<Found>, Vec<Found>) =
        found.into_iter().partition(|found| found.standing == Standing::Open);
    let name = |found: &Found| format!("{} of {}", found.request.asked.id(), found.request.from);
    match (open.len(), closed.last()) {
        (0, Some(Found { request, standing })) => Err(standing.refusal(request)),
        (1, _) => Ok(open.into_iter().next().expect("there is one").request),
        _ => Err(Error::ManyRequests { id: id.to_owned(), several: open.iter().map(name).collect() }),
    }
}
