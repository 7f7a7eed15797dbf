//! Whose hook this is: an agent's, known by its environment; or that of a session that leads a team, known by the
//! first process of its terminal.

use client::lead_session::led_by_this_session;
use client::team_context::TeamContext;
use protocol::control::LeadProcess;
use protocol::error::ErrorReport;
use protocol::name::{AgentName, TeamName};
use store::env_var;

/// Whose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HookOwner {
    /// An agent's that teamd started.
    Teammate,
    /// A session's that leads.
    Lead(Box<LeadProcess>),
}

impl HookOwner {
    /// The team that it leads.
    pub(super) fn led_team(&self) -> Option<TeamName> {
        match self {
            HookOwner::Teammate => None,
            HookOwner::Lead(lead) => Some(lead.team.clone()),
        }
    }

    /// Its name on its team.
    pub(super) fn name(&self, context: &TeamContext) -> AgentName {
        match self {
            HookOwner::Teammate => context.caller_name(),
            HookOwner::Lead(_) => AgentName::lead(),
        }
    }
}

/// Nobody's, in most sessions of most programs.
pub(crate) fn hook_owner(context: &TeamContext) -> Result<Option<HookOwner>, ErrorReport> {
    if context.token().is_some() && env_var("TEAMD_AGENT").is_some() {
        return Ok(Some(HookOwner::Teammate));
    }
    Ok(led_by_this_session(&context.directories()?).map(|lead| HookOwner::Lead(Box::new(lead))))
}
