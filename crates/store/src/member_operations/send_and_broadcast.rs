//! Sends messages to one member or to all members. A broadcast appends the message to each member's
//! inbox separately. If the broadcast fails for some members, the result lists them.
//!
//! A text that is too long for an inbox is rejected. A teammate's text is also rejected if it has
//! the form of a protocol message, such as an approval. Otherwise an agent that was tricked by a
//! malicious text could end other agents or approve requests.

use super::calling_member::Caller;
use crate::error::Error;
use crate::inbox::MESSAGE_LIMIT;
use crate::team_handle::Team;
use protocol::allowed_callers::AllowedCallers;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::inbox_file::Message;
use protocol::inbox_message_payload::Payload;
use protocol::team_and_member_names::{MemberName, strip_team};
use protocol::team_config::TeamConfig;
use serde::Serialize;
use serde_json::{Value, json};

/// A message that was stored.
#[derive(Debug, Clone)]
pub struct SentMessage {
    /// The stored message.
    pub message: Message,
    /// The recipient, in the spelling of the team's config.
    pub recipient: MemberName,
    color: Option<String>,
}

/// A member whose inbox could not be written.
#[derive(Debug, Clone)]
pub struct FailedRecipient {
    /// Name of the member.
    pub name: MemberName,
    /// The error of the write.
    pub error: ErrorReport,
}

/// The result of a broadcast.
#[derive(Debug, Clone)]
pub struct BroadcastResult {
    /// The message, as each recipient got it.
    pub message: Message,
    /// The members that got the message.
    pub stored: Vec<MemberName>,
    /// The members that did not get it.
    pub failed: Vec<FailedRecipient>,
}

/// Sender, recipient and text of a message, in the form of section 7 of docs/protocol.md.
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
    /// The text `Message sent to NAME's inbox`.
    pub fn sentence(&self) -> String {
        format!("Message sent to {}'s inbox", self.recipient)
    }

    /// The result of a sent message: a JSON object with the fields success, message and routing.
    pub fn to_json(&self) -> Value {
        let routing = routing(&self.message, self.recipient.as_str(), self.color.as_deref());
        json!({"success": true, "message": self.sentence(), "routing": routing})
    }
}

impl BroadcastResult {
    /// The result of a broadcast: a JSON object with the fields `success`, `message` and
    /// `recipients`. If the team has a member besides the sender, the object has the field
    /// `routing`. If the broadcast failed for some members, it has the fields `failed` and `error`.
    pub fn to_json(&self) -> Value {
        if self.stored.is_empty() && self.failed.is_empty() {
            let no_recipients: [&str; 0] = [];
            return json!({"success": true, "message": "No teammates to broadcast to", "recipients": no_recipients});
        }
        let recipients: Vec<&str> = self.stored.iter().map(MemberName::as_str).collect();
        let text =
            format!("Message broadcast to {} teammate(s): {}", recipients.len(), recipients.join(", "));
        let mut result =
            json!({"success": self.failed.is_empty(), "message": text, "recipients": recipients});
        result["routing"] = json!(routing(&self.message, "team", None));
        if let Some(error) = self.partial_error() {
            let failed = self.failed.iter().map(|m| json!({"name": m.name, "message": m.error.message}));
            result["failed"] = failed.collect();
            result["error"] = json!(error);
        }
        result
    }

    /// The error that names the members that did not get the message. `None` if all got it.
    pub fn partial_error(&self) -> Option<ErrorReport> {
        let names: Vec<&str> = self.failed.iter().map(|failed| failed.name.as_str()).collect();
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
    /// Appends a message to the inbox of `to`, which is `NAME` or `NAME@TEAM`.
    ///
    /// # Errors
    /// `Usage` for an empty recipient or a text that is too long. `NotFound` for an unknown
    /// recipient, with the most similar names. `NotPermitted` for a teammate's text that would be
    /// parsed as a protocol message. Errors of the files.
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

    /// Appends a message like [`Caller::send`], but with the sender `user`, as if a person had
    /// typed the message.
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
        AllowedCallers::LeadOrPerson.check("send as the user", &self.name)?;
        let message = Message::new(&MemberName::new_unchecked("user"), check_text(&self.name, text)?, at_ms);
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
        self.team.change_at_home(|| {
            let (to, color) = resolve_recipient(&self.team, config, to)?;
            self.team.inbox(&to).append(&message)?;
            Ok(SentMessage { message, recipient: to, color })
        })
    }

    /// Appends a message to the inbox of every member except the caller.
    ///
    /// # Errors
    /// As [`Caller::send`]. If no inbox could be written, the error of the first member.
    pub fn broadcast(
        &self,
        text: String,
        summary: Option<&str>,
        at_ms: u64,
    ) -> Result<BroadcastResult, ErrorReport> {
        self.team.change_at_home(|| self.append_to_all(text, summary, at_ms))
    }

    fn append_to_all(
        &self,
        text: String,
        summary: Option<&str>,
        at_ms: u64,
    ) -> Result<BroadcastResult, ErrorReport> {
        let text = check_text(&self.name, text)?;
        let config = self.team.config()?;
        let mut message = self.new_message_with_config(Some(&config), text, at_ms);
        message.summary = summary.map(str::to_owned);
        let (mut stored, mut failed) = (Vec::new(), Vec::new());
        let members = config.members.into_iter().map(|member| member.name);
        for name in members.filter(|name| *name != self.name) {
            match self.team.inbox(&name).append(&message) {
                Ok(()) => stored.push(name),
                Err(error) => failed.push(FailedRecipient { name, error: error.into() }),
            }
        }
        match failed.first() {
            Some(first) if stored.is_empty() => Err(first.error.clone()),
            _ => Ok(BroadcastResult { message, stored, failed }),
        }
    }
}

fn resolve_recipient(
    team: &Team,
    config: Result<TeamConfig, Error>,
    address: &str,
) -> Result<(MemberName, Option<String>), ErrorReport> {
    let plain = strip_team(address, team.name());
    if plain.trim().is_empty() {
        let error = ErrorReport::new(ErrorKind::Usage, "cannot send: the recipient is empty");
        return Err(error.with_help("name a member; list them with: teamctl status"));
    }
    match config.and_then(|config| team.find_member(&config, address)) {
        Ok(member) => Ok((member.name, member.color)),
        // A team that another program created may not list its lead, but the lead has an inbox.
        Err(Error::NoSuchMember { .. }) if is_lead(team, address) => Ok((MemberName::lead(), None)),
        // While Claude Code writes the config of a session team, the config can't be parsed. During
        // this time, every recipient that has an inbox is accepted.
        Err(Error::Corrupt { .. }) if has_inbox(team, plain) => Ok((MemberName::new_unchecked(plain), None)),
        Err(error) => Err(error.into()),
    }
}

fn has_inbox(team: &Team, plain: &str) -> bool {
    team.name().is_claude_session() && team.inbox(&MemberName::new_unchecked(plain)).path().exists()
}

fn is_lead(team: &Team, address: &str) -> bool {
    MemberName::new_unchecked(strip_team(address, team.name())).is_lead()
}

/// Returns the text if it fits into an inbox and the member `me` may send it.
///
/// # Errors
/// `Usage` if the text is too long; `NotPermitted` if `me` is a teammate and the text would be
/// parsed as a protocol message.
pub fn check_text(me: &MemberName, text: String) -> Result<String, ErrorReport> {
    if text.len() > MESSAGE_LIMIT {
        let message = format!("cannot send a text of {} bytes: {MESSAGE_LIMIT} is the limit", text.len());
        return Err(ErrorReport::new(ErrorKind::Usage, message)
            .with_help("put it into a file and send the file's path"));
    }
    if text.trim().is_empty() {
        return Err(ErrorReport::new(ErrorKind::Usage, "cannot send an empty text")
            .with_help("give a text, or - for standard input"));
    }
    match Payload::detect_type(&text) {
        Some(kind) if !me.is_lead() => Err(payload_text_error(kind)),
        _ => Ok(text),
    }
}

fn payload_text_error(kind: &str) -> ErrorReport {
    let message = format!("cannot send this text: it would be read as a {kind}");
    ErrorReport::new(ErrorKind::NotPermitted, message).with_help(
        "answer a shutdown request with: teamctl answer-shutdown ID; work on tasks with: teamctl task",
    )
}
