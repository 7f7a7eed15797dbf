//! The member that calls an operation: a teammate or the lead of one team.

use crate::team_handle::Team;
use protocol::error_kind_and_report::ErrorReport;
use protocol::inbox_file::Message;
use protocol::policy::Policy;
use protocol::team_and_member_names::MemberName;
use protocol::team_config::TeamConfig;

/// The member or lead that performs operations on a team.
#[derive(Debug, Clone)]
pub struct Caller {
    pub(super) team: Team,
    pub(super) name: MemberName,
}

impl Caller {
    /// The member or lead `member` of `team`.
    pub fn new(team: Team, member: MemberName) -> Caller {
        Caller { team, name: member }
    }

    /// The team in which the caller acts.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// The name of the member or lead.
    pub fn name(&self) -> &MemberName {
        &self.name
    }

    /// The member of this name, in the spelling of the team's config.
    pub fn resolve_member(&self, name: &str) -> Result<MemberName, ErrorReport> {
        Ok(self.team.member(name)?.name)
    }

    /// Creates a message from the caller. If the caller is a member that has a color, the message
    /// has this color.
    pub(super) fn new_message(&self, text: String, at_ms: u64) -> Message {
        self.new_message_with_config(self.team.config().ok().as_ref(), text, at_ms)
    }

    /// A new message like [`Caller::new_message`], with the color from `config`.
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

    /// The team's policy. See [`Team::policy`].
    pub fn policy(&self) -> Result<Policy, ErrorReport> {
        Ok(self.team.policy()?)
    }
}
