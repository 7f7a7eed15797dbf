//! Whose hook this is: an agent's, known by its environment; or that of a session that leads a team, known by the
//! first process of its terminal.

use super::ancestors::terminal;
use crate::here::{Here, variable};
use protocol::control::{LeadProcess, LeadsFile};
use protocol::error::ErrorReport;
use protocol::name::{AgentName, TeamName};

/// Whose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// An agent's that teamd started.
    Teammate,
    /// A session's that leads.
    Lead(Box<LeadProcess>),
}

impl Caller {
    /// The team that it leads.
    pub(super) fn lead(&self) -> Option<TeamName> {
        match self {
            Caller::Teammate => None,
            Caller::Lead(lead) => Some(lead.team.clone()),
        }
    }

    /// Its name on its team.
    pub(super) fn name(&self, here: &Here) -> AgentName {
        match self {
            Caller::Teammate => here.me(),
            Caller::Lead(_) => AgentName::lead(),
        }
    }
}

/// Nobody's, in most sessions of most programs.
pub(crate) fn caller(here: &Here) -> Result<Option<Caller>, ErrorReport> {
    if here.token().is_some() && variable("TEAMD_AGENT").is_some() {
        return Ok(Some(Caller::Teammate));
    }
    Ok(led_here(here)?.map(|lead| Caller::Lead(Box::new(lead))))
}

/// The lead whose terminal this is. Of a file that can't be read nobody is one.
pub(crate) fn led_here(here: &Here) -> Result<Option<LeadProcess>, ErrorReport> {
    let leads = leads(here)?;
    if leads.leads.is_empty() {
        return Ok(None);
    }
    let Some(first) = terminal().first() else { return Ok(None) };
    Ok(leads.leads.into_iter().find(|lead| (lead.pid, lead.start_time) == (first.pid, first.start)))
}

/// Who leads teams from a session.
pub(crate) fn leads(here: &Here) -> Result<LeadsFile, ErrorReport> {
    Ok(view::team_view::read_leads_file(&here.place()?.state_dir))
}
