//! Whose hook this is: an agent's, known by its environment; or that of a session that leads a team, known by the
//! first process of its terminal.

use super::controlling_terminal::controlling_terminal;
use crate::context::{CommandContext, env_var};
use protocol::control::{LeadProcess, LeadsFile};
use protocol::error::ErrorReport;
use protocol::name::{AgentName, TeamName};

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
    pub(super) fn name(&self, here: &CommandContext) -> AgentName {
        match self {
            HookOwner::Teammate => here.caller_name(),
            HookOwner::Lead(_) => AgentName::lead(),
        }
    }
}

/// Nobody's, in most sessions of most programs.
pub(crate) fn hook_owner(here: &CommandContext) -> Result<Option<HookOwner>, ErrorReport> {
    if here.token().is_some() && env_var("TEAMD_AGENT").is_some() {
        return Ok(Some(HookOwner::Teammate));
    }
    Ok(led_by_this_session(here)?.map(|lead| HookOwner::Lead(Box::new(lead))))
}

/// The lead whose terminal this is. Of a file that can't be read nobody is one.
pub(crate) fn led_by_this_session(here: &CommandContext) -> Result<Option<LeadProcess>, ErrorReport> {
    let leads = read_leads_file(here)?;
    if leads.leads.is_empty() {
        return Ok(None);
    }
    let Some(first) = controlling_terminal().first_process() else { return Ok(None) };
    Ok(leads.leads.into_iter().find(|lead| (lead.pid, lead.start_time) == (first.pid, first.start)))
}

/// Who leads teams from a session.
pub(crate) fn read_leads_file(here: &CommandContext) -> Result<LeadsFile, ErrorReport> {
    Ok(client::team_view::read_leads_file(&here.directories()?.state_dir))
}
