//! Finds the lead session that the caller runs in.

use crate::find_terminal_and_ancestors_of_caller::controlling_terminal;
use protocol::control_socket::LeadProcess;
use protocol::state_and_runtime_directories::Directories;
use store::read_leads_file;

/// Returns the lead session in whose terminal the caller runs. A lead session is an agent program,
/// such as Claude Code, that leads a team. `None` if no lead session runs in the caller's terminal,
/// or if leads.json cannot be read.
pub fn find_lead_session(directories: &Directories) -> Option<LeadProcess> {
    let leads = read_leads_file(&directories.state_dir).leads;
    if leads.is_empty() {
        return None;
    }
    let first = controlling_terminal().first_process()?;
    leads.into_iter().find(|lead| (lead.pid, lead.start_time) == (first.pid, first.start))
}
