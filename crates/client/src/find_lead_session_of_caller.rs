//! Finds the lead session that the caller runs in.

use crate::find_terminal_and_ancestors_of_caller::controlling_terminal;
use protocol::control_socket::LeadProcess;
use protocol::state_and_runtime_directories::Directories;
use store::read_leads_file;

/// The lead session (an agent program, such as Claude Code, that leads a team) in whose terminal
/// the caller runs. `None` if the caller's terminal belongs to no lead session, or if leads.json
/// cannot be read.
pub fn find_lead_session(directories: &Directories) -> Option<LeadProcess> {
    let leads = read_leads_file(&directories.state_dir).leads;
    if leads.is_empty() {
        return None;
    }
    let first = controlling_terminal().first_process()?;
    leads.into_iter().find(|lead| (lead.pid, lead.start_time) == (first.pid, first.start))
}
