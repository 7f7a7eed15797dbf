//! The budget of a team: the home sends it, and the annex stores it.

use crate::home_budget_file::{read_home_budget, write_home_budget};
use crate::mirror::Mirror;
use crate::output::{MirrorNotice, MirrorOutput};
use protocol::annex_link::{HomeBudget, ItemPayload};
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;
use store::Error;

impl Mirror {
    /// At the home: sends the budget of a team to the annex. The caller repeats the call whenever
    /// the link has connected, because a crash can lose the budget.
    ///
    /// # Errors
    ///
    /// If the team can't be read.
    pub fn send_budget(&mut self, team: &TeamName, budget: &HomeBudget) -> Result<MirrorOutput, ErrorReport> {
        if self.is_mirrored(team)? {
            self.mirror(team)?.sent_budget = Some(budget.clone());
            self.send(ItemPayload::Budget { team: team.clone(), budget: budget.clone() });
        }
        Ok(self.take_output())
    }

    /// At the home: sends the budget of a team again, because the annex has lost its mirror.
    pub(crate) fn send_budget_again(&mut self, team: &TeamName) -> Result<(), Error> {
        if let Some(budget) = self.mirror(team)?.sent_budget.clone() {
            self.send(ItemPayload::Budget { team: team.clone(), budget });
        }
        Ok(())
    }

    /// At the annex: stores the budget of a team.
    pub(crate) fn store_budget(&mut self, team: &TeamName, budget: &HomeBudget) -> Result<(), Error> {
        if read_home_budget(&self.state, team)? != *budget {
            write_home_budget(&self.state, team, budget)?;
        }
        self.notify(MirrorNotice::BudgetChanged { team: team.clone(), budget: budget.clone() });
        Ok(())
    }
}
