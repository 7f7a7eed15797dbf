//! At the home: moves the home of a team to the annex, in two steps. First, [`Mirror::begin_move`]
//! stops all changes of the team here, and sends the annex what it lacks. Then
//! [`Mirror::offer_home`] asks the annex to become the home. From then on, the file `teams.json` at
//! the annex says which host is the home. The annex answers that it is the home now, or that it
//! declines.

use crate::json_fields::to_fields;
use crate::mirror::{Mirror, MirrorSide};
use crate::output::{MirrorNotice, MirrorOutput};
use protocol::annex_link::{HomeHandover, ItemPayload};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::task::TaskStatus;
use protocol::team_and_member_names::TeamName;
use protocol::team_home::{HomeState, HomeUsage, MoveStep, MovingHome, TeamHome};
use store::{Error, Team, now};

/// Maximum number of answers that are handed over: the last ones.
const MAX_ANSWERS: usize = 1_000;

impl Mirror {
    /// At the home: begins to move the home to the annex. Sends what the annex lacks, and then a
    /// barrier: an item that the annex answers once it has handled all earlier items.
    ///
    /// # Errors
    ///
    /// If the team is not mirrored, its home was moved or is being moved, or one of its files can't
    /// be read. After an error, the caller cancels the move.
    pub fn begin_move(&mut self, team: &TeamName, barrier: u64) -> Result<MirrorOutput, ErrorReport> {
        let annex = match &self.side {
            MirrorSide::Home { annex } if self.teams.active.contains(team) => annex.clone(),
            MirrorSide::Home { annex } => return Err(no_mirror_error(team, annex)),
            MirrorSide::Annex => return Err(not_home_error(team)),
        };
        let existing = self.root.team(team)?;
        existing.check_home_is_here()?;
        check_readable(&existing, team)?;
        let home = existing.home()?;
        let created_at = existing.config()?.created_at;
        let (epoch, step) = (home.epoch + 1, MoveStep::Exchanging);
        let (since, usage) = (now(), HomeUsage::default());
        let moving = MovingHome { host: annex, epoch, since, created_at, step, usage };
        self.root.set_team_home(team, &TeamHome { state: HomeState::Moving(moving), ..home })?;
        self.compare_team(team)?;
        Ok(self.send_barrier(barrier))
    }

    /// At the home: cancels a move, unless its offer was sent. The field `offered` says whether it
    /// was sent. The record may say so although the offer then failed.
    ///
    /// # Errors
    ///
    /// If the record can't be read or written.
    pub fn cancel_move(&mut self, team: &TeamName) -> Result<MirrorOutput, ErrorReport> {
        if self.move_to_annex(team)?.is_some() && !self.offered.contains(team) {
            let epoch = self.root.team_home(team)?.epoch;
            self.root.set_team_home(team, &TeamHome::with_epoch(epoch))?;
        }
        Ok(self.take_output())
    }

    /// At the home: hands over what only this host has, and tells the annex to be the home. From
    /// now on, only the annex ends the move: [`MirrorNotice::HomeMoved`] or
    /// [`MirrorNotice::HomeDeclined`] follows. `usage` is what the team has used.
    ///
    /// # Errors
    ///
    /// If files can't be read or written. The home was not offered then, and the caller cancels the
    /// move.
    pub fn offer_home(&mut self, team: &TeamName, usage: HomeUsage) -> Result<MirrorOutput, ErrorReport> {
        if let Some(moving) = self.move_to_annex(team)? {
            self.send_offer(team, MovingHome { step: MoveStep::Offered, usage, ..moving })?;
        }
        Ok(self.take_output())
    }

    /// At the home: offers the home to the annex again, because a crash may have lost the earlier
    /// offer. The new offer has a higher epoch. So if the earlier offer has arrived after all and
    /// the annex declines it, this host does not mistake that for an answer to the new offer.
    pub(crate) fn offer_again(&mut self, team: &TeamName) -> Result<(), Error> {
        let MirrorSide::Home { .. } = &self.side else { return Ok(()) };
        if self.offered.contains(team) {
            return Ok(());
        }
        let Some(moving) = self.move_to_annex(team)? else { return Ok(()) };
        if moving.step == MoveStep::Offered {
            self.send_offer(team, MovingHome { epoch: moving.epoch + 1, ..moving })?;
        }
        Ok(())
    }

    /// Sends what the annex lacks, records the move, and sends the offer. The record is written
    /// after all other steps that can fail, because a failed move is cancelled. It is written
    /// before the offer is sent, because an offer that was sent can't be cancelled.
    fn send_offer(&mut self, team: &TeamName, moving: MovingHome) -> Result<(), Error> {
        if self.offered.contains(team) {
            return Ok(());
        }
        self.compare_team(team)?;
        self.hand_over_inboxes(team)?;
        let MovingHome { created_at, epoch, usage, .. } = moving;
        let handover = Box::new(read_handover(&self.root.team(team)?, usage)?);
        let home = self.root.team_home(team)?;
        self.root.set_team_home(team, &TeamHome { state: HomeState::Moving(moving), ..home })?;
        self.send(ItemPayload::HomeOffered { team: team.clone(), created_at, epoch, handover });
        self.offered.insert(team.clone());
        Ok(())
    }

    /// The move of the team's home to this annex. `None` if there is none.
    fn move_to_annex(&self, team: &TeamName) -> Result<Option<MovingHome>, Error> {
        let MirrorSide::Home { annex } = &self.side else { return Ok(None) };
        let moving = match self.root.team(team) {
            Ok(existing) => existing.home()?.moving(),
            Err(Error::NoSuchTeam { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(moving.filter(|moving| moving.host == *annex))
    }

    /// At the home: the annex has declined the offer, so this host stays the home and may change
    /// the team again. It takes the epoch of the offer. So if the annex receives the same offer
    /// once more, the offer has no effect.
    pub(crate) fn note_home_declined(
        &mut self,
        team: &TeamName,
        epoch: u64,
        error: &ErrorReport,
    ) -> Result<(), Error> {
        if let Some(moving) = self.move_to_annex(team)?.filter(|moving| moving.epoch == epoch) {
            self.root.set_team_home(team, &TeamHome::with_epoch(epoch))?;
            self.offered.remove(team);
            let message = format!("cannot move {team} to {}: {}", moving.host, error.message);
            let error = ErrorReport { message, ..error.clone() };
            self.notify(MirrorNotice::HomeDeclined { team: team.clone(), error });
        }
        Ok(())
    }
}

/// Checks that all files of the team can be read. The annex would lack the others.
fn check_readable(existing: &Team, team: &TeamName) -> Result<(), ErrorReport> {
    for owner in existing.inbox_owners()? {
        existing.inbox(&owner).read()?;
    }
    let unreadable =
        existing.tasks().list()?.into_iter().find(
            |task| matches!(&task.status, TaskStatus::Other(status) if status == store::UNREADABLE_STATUS),
        );
    unreadable.map_or(Ok(()), |task| {
        let message = format!("cannot move {team}: its task {} cannot be read: {}", task.id, task.subject);
        Err(ErrorReport::new(ErrorKind::InvalidData, message).with_help("what is damaged: teamctl doctor"))
    })
}

fn read_handover(existing: &Team, usage: HomeUsage) -> Result<HomeHandover, Error> {
    let mut answers = existing.requests().scan()?.answered;
    let answers = answers.split_off(answers.len().saturating_sub(MAX_ANSWERS));
    Ok(HomeHandover {
        policy: existing.policy()?,
        usage,
        last_task_id: existing.tasks().last_id()?,
        answers: answers.iter().map(to_fields).collect(),
    })
}

fn no_mirror_error(team: &TeamName, annex: &HostName) -> ErrorReport {
    let message = format!("cannot move {team} to {annex}: {annex} has no mirror of it");
    ErrorReport::new(ErrorKind::Refused, message).with_help("see the hosts: teamctl hosts")
}

fn not_home_error(team: &TeamName) -> ErrorReport {
    ErrorReport::new(ErrorKind::Refused, format!("cannot move {team}: its home is not this machine"))
}
