//! What members ask their lead, and the answers to it.
//!
//! A request is open while it is unread in the lead's inbox, whoever asked is on the team in the life in which it asked,
//! and its inbox holds no answer. An answer is stored in one step with the look whether there is one already, so that
//! of a person, the lead and the daemon one answers; then the request is marked read. A crash between the two leaves a
//! request that is not open any more.

use crate::error::Error;
use crate::team::Team;
use protocol::asked::{Answer, Asked, answer_in};
use protocol::config::TeamConfig;
use protocol::id::RequestId;
use protocol::message::{Entry, Message};
use protocol::mode::PermissionMode;
use protocol::name::AgentName;
use protocol::time::parse_iso8601;
use std::collections::BTreeMap;

/// The requests of one team.
#[derive(Debug, Clone)]
pub struct Requests(Team);

/// A request that can be answered.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenRequest {
    /// What is asked.
    pub asked: Asked,
    /// Who asks: a member.
    pub from: AgentName,
    /// Since when, ms since the epoch; 0 where the message does not tell.
    pub since: u64,
    /// Where the member works, as its entry says; for rules about directories.
    pub cwd: String,
    /// The message's text, as it stands.
    pub text: String,
    /// Its entries in the lead's inbox: some ask twice.
    entries: Vec<Entry>,
}

/// A request of the lead's inbox, and how it stands.
struct Found {
    request: OpenRequest,
    unread: bool,
    standing: Standing,
}

#[derive(Clone, Copy, PartialEq)]
enum Standing {
    Open,
    Answered { approved: bool },
    Gone,
}

impl Team {
    /// What its members ask.
    pub fn requests(&self) -> Requests {
        Requests(self.clone())
    }
}

impl Requests {
    /// Those that wait for an answer, oldest first.
    pub fn open(&self) -> Result<Vec<OpenRequest>, Error> {
        Ok(self.open_of(self.all()?))
    }

    fn open_of(&self, all: Vec<Found>) -> Vec<OpenRequest> {
        let open = all.into_iter().filter(|found| found.standing == Standing::Open && found.unread);
        open.map(|found| found.request).collect()
    }

    /// The plan of a member that has no answer, whoever has read it.
    pub fn plan_of(&self, member: &AgentName) -> Result<Option<RequestId>, Error> {
        let waits = |found: &Found| {
            let plan = matches!(found.request.asked, Asked::Plan(_));
            plan && found.standing == Standing::Open && found.request.from == *member
        };
        let found = self.all()?.into_iter().rev().find(waits);
        Ok(found.map(|found| found.request.asked.id().clone()))
    }

    /// The text of a plan that a member handed in; none where its request is gone.
    pub fn plan_text(&self, id: &RequestId) -> Result<Option<String>, Error> {
        let all = self.all()?.into_iter();
        Ok(all.map(|found| found.request.asked).find_map(|asked| match asked {
            Asked::Plan(plan) if plan.request_id == *id => Some(plan.plan_content),
            _ => None,
        }))
    }

    /// The request of that id, or the only one whose id begins so. One that was read without being answered counts.
    ///
    /// # Errors
    /// `NoSuchRequest`, `ManyRequests`, `Answered`, `AskerGone`, or what reading came to.
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
        let open = self.open_of(rest).into_iter().map(|request| request.asked.id().to_string()).collect();
        Err(Error::NoSuchRequest { id: id.to_owned(), open })
    }

    /// Stores the answer in the member's inbox at `at_ms` (ms since the epoch), then marks the request read. A plan that
    /// is approved without a mode goes on in the lead's own.
    ///
    /// # Errors
    /// `Unfit`; `Answered` where somebody was faster; else what writing came to. A failure to mark it read is none: the
    /// request is answered.
    pub fn answer(&self, request: &OpenRequest, answer: &Answer, at_ms: u64) -> Result<(), Error> {
        let id = request.asked.id();
        if let Some(why) = request.asked.refuses(answer) {
            return Err(Error::Unfit { id: id.to_string(), why });
        }
        let payload = request.asked.answered(answer, self.lead_mode()?, at_ms);
        let message = Message::new(&AgentName::lead(), payload.to_text(), at_ms);
        let inbox = self.0.inbox(&request.from);
        if !inbox.append_unless(&message, |entries| answer_to(entries, id).is_some())? {
            let approved = answer_to(&inbox.read()?, id).unwrap_or_default();
            return Err(Error::Answered { id: id.to_string(), approved });
        }
        // In a team of Claude Code's it is its lead that marks, or removes, what it has read.
        if !self.0.name().is_foreign() {
            self.0.inbox(&AgentName::lead()).mark_read(&request.entries).ok();
        }
        Ok(())
    }

    /// What the lead hands on with an approval; `default` where it is a person who set none.
    fn lead_mode(&self) -> Result<PermissionMode, Error> {
        let config = self.0.config()?;
        let mode = config.member(&AgentName::lead()).and_then(|lead| lead.mode.as_deref());
        let mode = mode.and_then(|mode| mode.parse::<PermissionMode>().ok());
        Ok(mode.map_or(PermissionMode::Default, PermissionMode::handed_on))
    }

    /// Every request there is in the lead's inbox, and how it stands.
    fn all(&self) -> Result<Vec<Found>, Error> {
        let mut asked: Vec<(OpenRequest, bool)> = Vec::new();
        for entry in self.0.inbox(&AgentName::lead()).read()? {
            let Some((request, unread)) = asks(entry) else { continue };
            let same = |known: &&mut (OpenRequest, bool)| {
                known.0.from == request.from && known.0.asked.id() == request.asked.id()
            };
            match asked.iter_mut().find(same) {
                Some((known, known_unread)) => {
                    known.entries.extend(request.entries);
                    *known_unread |= unread;
                }
                None => asked.push((request, unread)),
            }
        }
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        self.standings(asked)
    }

    fn standings(&self, asked: Vec<(OpenRequest, bool)>) -> Result<Vec<Found>, Error> {
        let config = self.0.config()?;
        let mut inboxes: BTreeMap<AgentName, Vec<Entry>> = BTreeMap::new();
        let mut all = Vec::with_capacity(asked.len());
        for (mut request, unread) in asked {
            let standing = match joined(&config, &mut request) {
                None => Standing::Gone,
                Some(since) if request.since > 0 && request.since < since => Standing::Gone,
                Some(_) => {
                    if !inboxes.contains_key(&request.from) {
                        inboxes.insert(request.from.clone(), self.0.inbox(&request.from).read()?);
                    }
                    let entries = inboxes.get(&request.from).map(Vec::as_slice).unwrap_or_default();
                    answer_to(entries, request.asked.id())
                        .map_or(Standing::Open, |approved| Standing::Answered { approved })
                }
            };
            all.push(Found { request, unread, standing });
        }
        Ok(all)
    }
}

/// Since when the asker is on the team, ms since the epoch; none where it is not. Fills in where it works.
fn joined(config: &TeamConfig, request: &mut OpenRequest) -> Option<u64> {
    let member = config.member(&request.from).filter(|member| !member.name.is_lead())?;
    request.from = member.name.clone();
    request.cwd.clone_from(&member.cwd);
    Some(member.joined_at)
}

fn asks(entry: Entry) -> Option<(OpenRequest, bool)> {
    let message = entry.message.as_ref().ok()?;
    let asked = Asked::parse(&message.text)?;
    let request = OpenRequest {
        asked,
        from: AgentName::foreign(&message.from),
        since: parse_iso8601(&message.timestamp).unwrap_or(0),
        cwd: String::new(),
        text: message.text.clone(),
        entries: Vec::new(),
    };
    let unread = !message.read;
    Some((OpenRequest { entries: vec![entry], ..request }, unread))
}

/// Whether the inbox holds an answer to that request, and which: of several a yes counts.
fn answer_to(entries: &[Entry], id: &RequestId) -> Option<bool> {
    let messages = entries.iter().filter_map(|entry| entry.message.as_ref().ok());
    // Most messages need not be parsed.
    let near = messages.filter(|message| message.text.contains("_response"));
    let from_lead = near.filter(|message| AgentName::foreign(&message.from).is_lead());
    let answers = from_lead.filter_map(|message| answer_in(&message.text)).filter(|(of, _)| of == id);
    answers.map(|(_, approved)| approved).reduce(|one, other| one || other)
}

/// The one of `found` that can be answered, else why not.
fn one(id: &str, found: Vec<Found>) -> Result<OpenRequest, Error> {
    let (open, closed): (Vec<Found>, Vec<Found>) =
        found.into_iter().partition(|found| found.standing == Standing::Open);
    let name = |found: &Found| format!("{} of {}", found.request.asked.id(), found.request.from);
    match (open.len(), closed.last()) {
        (0, Some(Found { standing: Standing::Answered { approved }, request, .. })) => {
            Err(Error::Answered { id: request.asked.id().to_string(), approved: *approved })
        }
        (0, Some(Found { request, .. })) => {
            Err(Error::AskerGone { id: request.asked.id().to_string(), from: request.from.clone() })
        }
        (1, _) => Ok(open.into_iter().next().expect("there is one").request),
        _ => Err(Error::ManyRequests { id: id.to_owned(), several: open.iter().map(name).collect() }),
    }
}
