//! The caller of an operation: a member or the lead, on one team.

use crate::state_dir::StateDir;
use crate::team::Team;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::message::Message;
use protocol::name::AgentName;
use protocol::policy::Policy;
use protocol::team_config::TeamConfig;
use std::path::PathBuf;

/// Who acts, on which team.
#[derive(Debug, Clone)]
pub struct Caller {
    pub(super) team: Team,
    pub(super) name: AgentName,
    /// Where our own files for this root are.
    state: PathBuf,
}

impl Caller {
    /// `me` at `team`; `state` is the root's state directory, where the team's policy lies.
    pub fn new(team: Team, me: AgentName, state: PathBuf) -> Caller {
        Caller { team, name: me, state }
    }

    /// The team.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// Who acts.
    pub fn name(&self) -> &AgentName {
        &self.name
    }

    /// The member of that name, as the team spells it.
    pub fn resolve_member(&self, name: &str) -> Result<AgentName, ErrorReport> {
        Ok(self.team.member(name)?.name)
    }

    /// A message of the caller's, with its colour, if it is a member that has one.
    pub(super) fn new_message(&self, text: String, at_ms: u64) -> Message {
        self.new_message_with_config(self.team.config().ok().as_ref(), text, at_ms)
    }

    /// The same, where the config was read.
    pub(super) fn new_message_with_config(
        &self,
        config: Option<&TeamConfig>,
        text: String,
        at_ms: u64,
    ) -> Message {
        let mut message = Message::new(&self.name, text, at_ms);
        message.color = config.and_then(|config| config.member(&self.name)?.color.clone());
        message
    }

    /// The team's policy, as the daemon wrote it down; where it did not, the usual one.
    pub fn policy(&self) -> Result<Policy, ErrorReport> {
        let bytes = StateDir::open(&self.state)?.read(&Policy::file_name(self.team.name()))?;
        Ok(Policy::parse_or_default(bytes.as_deref()))
    }
}

/// Refuses what is for the lead or a person alone; `what` completes "cannot …".
pub fn require_lead(me: &AgentName, what: &str) -> Result<(), ErrorReport> {
    if me.is_lead() {
        return Ok(());
    }
    let message = format!("cannot {what} as {me}: that is for the lead or a person");
    Err(ErrorReport::new(ErrorKind::NotPermitted, message)
        .with_help("ask the lead: teamctl send team-lead TEXT"))
}
