//! Finds out which agent or lead session a hook belongs to. A hook of an agent has teamd's
//! environment variables. A hook of a lead session has none. It is recognized by the terminal in
//! which it runs: the file leads.json lists the terminals of the lead sessions.

use client::find_lead_session_of_caller::find_lead_session;
use client::root_socket_team_and_caller::TeamContext;
use protocol::control_socket::LeadProcess;
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::{MemberName, TeamName};
use store::env_var;

/// The agent or lead session that a hook belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HookOwner {
    /// An agent that teamd started.
    Teammate,
    /// A session that leads a team.
    Lead(Box<LeadProcess>),
}

impl HookOwner {
    /// The team that the owner leads. `None` for an agent.
    pub(super) fn led_team(&self) -> Option<TeamName> {
        match self {
            HookOwner::Teammate => None,
            HookOwner::Lead(lead) => Some(lead.team.clone()),
        }
    }

    /// The owner's name in its team.
    pub(super) fn name(&self, context: &TeamContext) -> MemberName {
        match self {
            HookOwner::Teammate => context.caller_name(),
            HookOwner::Lead(_) => MemberName::lead(),
        }
    }
}

/// The owner of the hook that this process runs. `None` if the program's session belongs to no
/// team. This is the usual case, because a user's hooks run in every session.
pub(crate) fn hook_owner(context: &TeamContext) -> Result<Option<HookOwner>, ErrorReport> {
    if context.token().is_some() && env_var("TEAMD_MEMBER").is_some() {
        return Ok(Some(HookOwner::Teammate));
    }
    Ok(find_lead_session(&context.directories()?).map(|lead| HookOwner::Lead(Box::new(lead))))
}
