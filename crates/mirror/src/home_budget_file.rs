//! The budget of a team as its home has told it to this annex. A file keeps it, so that a new daemon
//! of the annex knows it before there is contact.

use crate::mirror::Mirror;
use crate::output::{MirrorNotice, MirrorOutput};
use protocol::annex_link::{HomeBudget, ItemPayload};
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;
use store::{Error, StateDir};

impl Mirror {
    /// At the home: sends the budget of a team to the annex. The caller repeats it after each
    /// connection, because a crash can lose it.
    ///
    /// # Errors
    ///
    /// If the team can't be read.
    pub fn send_budget(&mut self, team: &TeamName, budget: &HomeBudget) -> Result<MirrorOutput, ErrorReport> {
        if self.is_mirrored(team)? {
            self.send(ItemPayload::Budget { team: team.clone(), budget: budget.clone() });
        }
        Ok(self.take_output())
    }

    /// At the annex: stores the budget of a team.
    pub(crate) fn store_budget(&mut self, team: &TeamName, budget: &HomeBudget) -> Result<(), Error> {
        if read_home_budget(&self.state, team)? != *budget {
            let text = serde_json::to_vec(budget).expect("a budget has string keys");
            self.state.replace(&home_budget_file(team), &text)?;
        }
        self.notify(MirrorNotice::BudgetChanged { team: team.clone(), budget: budget.clone() });
        Ok(())
    }
}

/// Reads the budget of a team. A missing or damaged file counts as no budget: the home sends it
/// again.
pub(crate) fn read_home_budget(state: &StateDir, team: &TeamName) -> Result<HomeBudget, Error> {
    let bytes = state.read(&home_budget_file(team))?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
}

/// The name of the file with the budget of a team.
pub(crate) fn home_budget_file(team: &TeamName) -> String {
    format!("{team}.budget")
}
