//! What of the daemon itself goes to the disk: the roster, and who leads.

use crate::core::roster::Roster;
use crate::io::files::thread::{FilesThread, ROSTER_FILE};
use protocol::control::{LeadProcess, LeadsFile};
use protocol::error::ErrorReport;
use store::Error;

impl FilesThread {
    /// The roster; and what nobody in it has any more goes.
    pub(super) fn save_roster(&mut self, roster: &Roster) -> Result<(), ErrorReport> {
        self.roster_error = self.write_roster(roster).map_err(ErrorReport::from).err();
        self.check_saved()?;
        let dropped = self.remove_unused_environments(roster);
        self.log_error("remove the environment of an agent that is gone", dropped);
        Ok(())
    }

    /// Whether the next daemon would know all that this one knows.
    pub(super) fn check_saved(&self) -> Result<(), ErrorReport> {
        self.roster_error.clone().map_or(Ok(()), Err)
    }

    fn write_roster(&mut self, roster: &Roster) -> Result<(), Error> {
        let bytes = serde_json::to_vec(roster).expect("a roster has nothing that JSON cannot hold");
        self.state.replace(ROSTER_FILE, &bytes)?;
        self.write_leads(&roster.lead_sessions)
    }

    /// For the hooks of other programs: most of them belong to no team, and find no such file.
    fn write_leads(&mut self, leads: &[LeadProcess]) -> Result<(), Error> {
        if self.leads.as_deref() == Some(leads) {
            return Ok(());
        }
        let all = LeadsFile { leads: leads.to_vec() };
        let bytes = serde_json::to_vec(&all).expect("leads have nothing that JSON cannot hold");
        match leads.is_empty() {
            true => self.state.remove(LeadsFile::FILE_NAME)?,
            false => self.state.replace(LeadsFile::FILE_NAME, &bytes)?,
        }
        self.leads = Some(all.leads);
        Ok(())
    }
}
