//! At the annex: declines an offer to be the home of a team. The answer is sent again after a
//! crash, because only an answer ends the move.

use crate::items_awaiting_acceptance::OnAcceptance;
use crate::mirror::Mirror;
use crate::mirrored_teams::DeclinedOffer;
use protocol::annex_link::ItemPayload;
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;
use store::Error;

impl Mirror {
    /// Declines an offer with this epoch.
    pub(crate) fn decline_offer(
        &mut self,
        team: &TeamName,
        epoch: u64,
        error: ErrorReport,
    ) -> Result<(), Error> {
        let declined = DeclinedOffer { epoch, error };
        self.teams.declined.insert(team.clone(), declined.clone());
        self.teams.save(&self.state)?;
        self.send_declined_offer(team.clone(), declined);
        Ok(())
    }

    /// Sends the answers that a crash may have lost.
    pub(crate) fn send_declined_offers(&mut self) {
        for (team, declined) in self.teams.declined.clone() {
            self.send_declined_offer(team, declined);
        }
    }

    fn send_declined_offer(&mut self, team: TeamName, declined: DeclinedOffer) {
        let DeclinedOffer { epoch, error } = declined;
        let item = ItemPayload::HomeDeclined { team: team.clone(), epoch, error };
        self.send_and_record(item, OnAcceptance::ForgetDeclinedOffer { team, epoch });
    }

    /// Deletes the record of a declined offer: the link has stored the answer, so no crash loses
    /// it.
    pub(crate) fn forget_declined_offer(&mut self, team: &TeamName, epoch: u64) -> Result<(), Error> {
        if self.teams.declined.get(team).is_some_and(|declined| declined.epoch == epoch) {
            self.teams.declined.remove(team);
            self.teams.save(&self.state)?;
        }
        Ok(())
    }
}
