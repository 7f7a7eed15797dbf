//! Writes the roster and leads.json to the state directory.

use crate::core::roster::Roster;
use crate::io::files::files_thread::FilesThread;
use protocol::control_socket::{LeadProcess, LeadsFile};
use protocol::error_kind_and_report::ErrorReport;
use protocol::state_file_names::{LEADS, ROSTER};
use store::Error;

impl FilesThread {
    /// Writes roster.json and leads.json, and removes files with environments of members that the
    /// roster does not have any more.
    ///
    /// If the write fails, tries once more immediately. If the second try fails too, no member can
    /// be registered or deregistered until a later write succeeds.
    pub(super) fn save_roster(&mut self, roster: &Roster) -> Result<(), ErrorReport> {
        let written = self.write_roster(roster).or_else(|_| self.write_roster(roster));
        let written = written.map_err(ErrorReport::from);
        self.shared.saves().roster_error = written.err();
        self.check_saved()?;
        let removed = self.remove_unused_environments(roster);
        self.log_error("remove an unused environment", removed);
        Ok(())
    }

    /// Checks that the last write of the roster succeeded. Otherwise the next daemon might not know
    /// every agent.
    ///
    /// # Errors
    ///
    /// The error of the last write of roster.json or leads.json.
    pub(super) fn check_saved(&self) -> Result<(), ErrorReport> {
        self.shared.saves().roster_error.clone().map_or(Ok(()), Err)
    }

    fn write_roster(&mut self, roster: &Roster) -> Result<(), Error> {
        let bytes = serde_json::to_vec(roster).expect("a roster has nothing that JSON cannot hold");
        self.state.replace(ROSTER, &bytes)?;
        self.write_leads(&roster.lead_sessions)
    }

    /// Writes leads.json, the list of the programs that lead a team. Hooks read it to find out
    /// whether their program leads a team. If there are no lead sessions, the file is removed.
    fn write_leads(&mut self, leads: &[LeadProcess]) -> Result<(), Error> {
        if self.leads.as_deref() == Some(leads) {
            return Ok(());
        }
        let file = LeadsFile { leads: leads.to_vec() };
        let bytes = serde_json::to_vec(&file).expect("leads have nothing that JSON cannot hold");
        match leads.is_empty() {
            true => self.state.remove(LEADS)?,
            false => self.state.replace(LEADS, &bytes)?,
        }
        self.leads = Some(file.leads);
        Ok(())
    }
}
