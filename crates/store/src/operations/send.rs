//! Messages: to one member, or to all. A send is one append; a broadcast is one for each, so some may have it and
//! others not, and the result says which.
//!
//! Two things never get further than here: a text too long for an inbox, and a teammate's text that would be read as
//! a protocol message. With the latter an agent could be talked into ending or approving in words.

use super::caller::Caller;
use crate::error::Error;
use crate::inbox::MESSAGE_LIMIT;
use crate::team::Team;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::message::Message;
use protocol::name::{AgentName, strip_team};
use protocol::payload::Payload;
use protocol::team_config::TeamConfig;
use serde::Serialize;
use serde_json::{Value, json};

/// A message that is stored.
#[derive(Debug, Clone)]
pub struct SentMessage {
    /// As it was written.
    pub message: Message,
    /// To whom, as the team spells it.
    pub recipient: AgentName,
    color: Option<String>,
}

/// A member whose inbox did not take it.
#[derive(Debug, Clone)]
pub struct FailedRecipient {
    /// Whose.
    pub name: AgentName,
    /// Why.
    pub error: ErrorReport,
}

/// A message to all, as far as it came.
#[derive(Debug, Clone)]
pub struct BroadcastResult {
    /// As it was written.
    pub message: Message,
    /// Those that have it.
    pub stored: Vec<AgentName>,
    /// Those that have not.
    pub failed: Vec<FailedRecipient>,
}

/// Who said what to whom, as docs/protocol.md section 7 gives it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Routing<'a> {
    sender: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_color: Option<&'a str>,
    target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_color: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
    content: &'a str,
}

impl SentMessage {
    /// `Message sent to NAME's inbox`
    pub fn sentence(&self) -> String {
        format!("Message sent to {}'s inbox", self.recipient)
    }

    /// success, message, routing.
    pub fn to_json(&self) -> Value {
        let routing = routing(&self.message, self.recipient.as_str(), self.color.as_deref());
        json!({"success": true, "message": self.sentence(), "routing": routing})
    }
}

impl BroadcastResult {
    /// success, message, recipients, routing; where some have not got it also `failed`.
    pub fn to_json(&self) -> Value {
        if self.stored.is_empty() && self.failed.is_empty() {
            let none: [&str; 0] = [];
            return json!({"success": true, "message": "No teammates to broadcast to", "recipients": none});
        }
        let names: Vec<&str> = self.stored.iter().map(AgentName::as_str).collect();
        let sentence = format!("Message broadcast to {} teammate(s): {}", names.len(), names.join(", "));
        let mut result = json!({"success": self.failed.is_empty(), "message": sentence, "recipients": names});
        result["routing"] = json!(routing(&self.message, "team", None));
        if let Some(fault) = self.partial_error() {
            let failed = self.failed.iter().map(|m| json!({"name": m.name, "message": m.error.message}));
            result["failed"] = failed.collect();
            result["error"] = json!(fault);
        }
        result
    }

    /// Some have not got it.
    pub fn partial_error(&self) -> Option<ErrorReport> {
        let names: Vec<&str> = self.failed.iter().map(|missed| missed.name.as_str()).collect();
        let message = || format!("cannot reach {}; the others have it", names.join(", "));
        (!names.is_empty()).then(|| ErrorReport::new(ErrorKind::Partial, message()))
    }
}

fn routing<'a>(message: &'a Message, target: &str, target_color: Option<&'a str>) -> Routing<'a> {
    Routing {
        sender: &message.from,
        sender_color: message.color.as_deref(),
        target: format!("@{target}"),
        target_color,
        summary: message.summary.as_deref(),
        content: &message.text,
    }
}

impl Caller {
    /// Stores one message in the inbox of `to`, `NAME` or `NAME@TEAM`.
    ///
    /// # Errors
    /// `Usage` for nobody or a text too long, `NotFound` with the nearest names, `NotPermitted` for a teammate's text
    /// that is no plain text, and what the files say.
    pub fn send(
        &self,
        to: &str,
        text: String,
        summary: Option<&str>,
        at_ms: u64,
    ) -> Result<SentMessage, ErrorReport> {
        let text = check_text(&self.name, text)?;
        let config = self.team.config();
        let message = self.new_message_with_config(config.as_ref().ok(), text, at_ms);
        self.append_to_inbox(config, to, Message { summary: summary.map(str::to_owned), ..message })
    }

    /// The same, as if a person typed it to the agent.
    ///
    /// # Errors
    /// As [`Caller::send`]; `NotPermitted` for a teammate.
    pub fn send_as_user(
        &self,
        to: &str,
        text: String,
        summary: Option<&str>,
        at_ms: u64,
    ) -> Result<SentMessage, ErrorReport> {
        super::caller::require_lead(&self.name, "send as the user")?;
        let message = Message::new(&AgentName::new_unchecked("user"), check_text(&self.name, text)?, at_ms);
        self.append_to_inbox(
            self.team.config(),
            to,
            Message { summary: summary.map(str::to_owned), ..message },
        )
    }

    fn append_to_inbox(
        &self,
        config: Result<TeamConfig, Error>,
        to: &str,
        message: Message,
    ) -> Result<SentMessage, ErrorReport> {
        let (to, color) = resolve_recipient(&self.team, config, to)?;
        self.team.inbox(&to).append(&message)?;
        Ok(SentMessage { message, recipient: to, color })
    }

    /// Stores one message in the inbox of every member but the caller.
    ///
    /// # Errors
    /// As [`Caller::send`]; the first of them where nobody could be reached.
    pub fn broadcast(
        &self,
        text: String,
        summary: Option<&str>,
        at_ms: u64,
    ) -> Result<BroadcastResult, ErrorReport> {
        let text = check_text(&self.name, text)?;
        let config = self.team.config()?;
        let mut message = self.new_message_with_config(Some(&config), text, at_ms);
        message.summary = summary.map(str::to_owned);
        let (mut reached, mut missed) = (Vec::new(), Vec::new());
        let members = config.members.into_iter().map(|member| member.name);
        for name in members.filter(|name| *name != self.name) {
            match self.team.inbox(&name).append(&message) {
                Ok(()) => reached.push(name),
                Err(error) => missed.push(FailedRecipient { name, error: error.into() }),
            }
        }
        match missed.first() {
            Some(first) if reached.is_empty() => Err(first.error.clone()),
            _ => Ok(BroadcastResult { message, stored: reached, failed: missed }),
        }
    }
}

fn resolve_recipient(
    team: &Team,
    config: Result<TeamConfig, Error>,
    address: &str,
) -> Result<(AgentName, Option<String>), ErrorReport> {
    let plain = strip_team(address, team.name());
    if plain.trim().is_empty() {
        let nobody = ErrorReport::new(ErrorKind::Usage, "cannot send to nobody: the recipient is empty");
        return Err(nobody.with_help("name a member; those there are: teamctl status"));
    }
    match config.and_then(|config| team.find_member(&config, address)) {
        Ok(member) => Ok((member.name, member.color)),
        // A team that another program made may not list its lead; it has an inbox all the same.
        Err(Error::NoSuchMember { .. }) if is_lead(team, address) => Ok((AgentName::lead(), None)),
        // Its config is a session's own to be in the middle of writing: who has an inbox can be written to.
        Err(Error::Corrupt { .. }) if has_inbox(team, plain) => Ok((AgentName::new_unchecked(plain), None)),
        Err(error) => Err(error.into()),
    }
}

fn has_inbox(team: &Team, plain: &str) -> bool {
    team.name().is_claude_session() && team.inbox(&AgentName::new_unchecked(plain)).path().exists()
}

fn is_lead(team: &Team, address: &str) -> bool {
    AgentName::new_unchecked(strip_team(address, team.name())).is_lead()
}

/// The text, if an inbox takes it and it is one that `me` may send.
///
/// # Errors
/// `Usage` for one that is too long; `NotPermitted` for a teammate's that would be read as a protocol message.
pub fn check_text(me: &AgentName, text: String) -> Result<String, ErrorReport> {
    if text.len() > MESSAGE_LIMIT {
        let message = format!("cannot send a text of {} bytes: {MESSAGE_LIMIT} is the limit", text.len());
        return Err(ErrorReport::new(ErrorKind::Usage, message)
            .with_help("put it into a file and send the file's path"));
    }
    match Payload::detect_type(&text) {
        Some(kind) if !me.is_lead() => Err(payload_text_error(kind)),
        _ => Ok(text),
    }
}

fn payload_text_error(kind: &str) -> ErrorReport {
    let message = format!("cannot send this text: it would be read as a {kind}");
    ErrorReport::new(ErrorKind::NotPermitted, message)
        .with_help("answer a shutdown request with: teamctl respond ID; work on tasks with: teamctl task")
}
