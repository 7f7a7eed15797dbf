//! Makes the annex the home of a team. The move happens when the annex writes the record in
//! `teams.json`. After that, the annex accepts nothing about this team from the old home. At each
//! comparison of all files, it tells the old home that the home has moved.

use crate::mirror::{Mirror, MirrorSide};
use crate::mirrored_teams::TakenTeam;
use crate::output::{MirrorNotice, MirrorOutput};
use crate::team_mirror::remove_state;
use protocol::annex_link::{HomeHandover, ItemPayload};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_config::TeamConfig;
use protocol::team_home::{HomeNameSource, HomeState, LocalWork, MoveStep, MovedHome, MovingHome, TeamHome};
use serde_json::Value;
use store::{AnsweredRequest, Error, Team};

/// Which host is the home of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HomeOfTeam {
    Here,
    Sender,
}

impl Mirror {
    /// At the annex: makes this host the home of the team. Members on other hosts are removed from
    /// the team. What this host has not sent to the old home is kept here.
    ///
    /// # Errors
    ///
    /// `Refused` if the team is not mirrored. After any other error, the caller must repeat the
    /// call.
    pub fn take_team(&mut self, team: &TeamName) -> Result<MirrorOutput, ErrorReport> {
        // A team that is still mirrored was not taken yet. The record of taken teams does not show
        // this, because it may be about an earlier team of the same name.
        if self.side == MirrorSide::Annex && self.is_mirrored(team)? {
            let created_at = self.root.team(team)?.config()?.created_at;
            let epoch = self.root.team_home(team)?.epoch + 1;
            self.record_taken(team, TakenTeam { created_at, epoch, handover: None })?;
        } else if !self.has_taken(team)? {
            return Err(no_mirror_error(team));
        }
        self.send_taken_teams()?;
        Ok(self.take_output())
    }

    fn has_taken(&self, team: &TeamName) -> Result<bool, Error> {
        let Some(taken) = self.teams.taken.get(team) else { return Ok(false) };
        Ok(self.root.team(team)?.config()?.created_at == taken.created_at)
    }

    /// At the annex: answers the home's offer that this host becomes the home. After a crash, the
    /// home may repeat the offer, with a higher epoch. If this host has accepted the earlier offer,
    /// it completes the move with the earlier epoch, and answers again. If a person has taken the
    /// home here already, the handover is not stored, and the answer says
    /// [`LocalWork::OnlyHere`].
    pub(crate) fn answer_offer(
        &mut self,
        team: &TeamName,
        (created_at, epoch): (u64, u64),
        handover: &HomeHandover,
    ) -> Result<(), ErrorReport> {
        // If another host had become the home since, its config would have removed this record.
        let is_taken = |taken: &TakenTeam| taken.created_at == created_at;
        if !self.teams.taken.get(team).is_some_and(is_taken) {
            if !self.is_mirrored(team)?
                || self.root.team(team)?.config()?.created_at != created_at
                || self.root.team_home(team)?.epoch >= epoch
            {
                let error = ErrorReport::new(ErrorKind::Refused, "it has no mirror of the team");
                return Ok(self.decline_offer(team, epoch, error)?);
            }
            // Afterwards, the records have all changes that the home has not answered.
            self.compare_tasks(team)?;
            let handover = Some(Box::new(handover.clone()));
            self.record_taken(team, TakenTeam { created_at, epoch, handover })?;
        }
        Ok(self.send_taken_teams()?)
    }

    fn record_taken(&mut self, team: &TeamName, taken: TakenTeam) -> Result<(), Error> {
        self.teams.taken.insert(team.clone(), taken);
        self.teams.active.remove(team);
        let saved = self.teams.save(&self.state);
        if saved.is_err() {
            self.teams.taken.remove(team);
            self.teams.active.insert(team.clone());
        }
        saved
    }

    /// At the annex: completes moves to this host that a crash has interrupted. Also tells each old
    /// home which teams it must not change any more.
    pub(crate) fn send_taken_teams(&mut self) -> Result<(), Error> {
        for (team, taken) in self.teams.taken.clone() {
            match self.root.team(&team) {
                Ok(existing) if existing.is_mirror() => self.finish_taking(&existing, &taken)?,
                Ok(_) | Err(Error::NoSuchTeam { .. }) => {}
                Err(error) => return Err(error),
            }
            let work = taken.handover.map_or(LocalWork::OnlyHere, |_| LocalWork::HandedOver);
            let TakenTeam { created_at, epoch, .. } = taken;
            self.send(ItemPayload::HomeMoved { team, created_at, epoch, home: None, work });
        }
        Ok(())
    }

    /// The mark of the mirror is removed last, because it says that this is not complete.
    fn finish_taking(&mut self, existing: &Team, taken: &TakenTeam) -> Result<(), Error> {
        let (team, config, epoch) = (existing.name(), existing.config()?, taken.epoch);
        if config.created_at != taken.created_at || !self.is_own(existing)? {
            return Ok(());
        }
        // The ids of the old home come first, because new tasks need higher ones.
        if let Some(handover) = &taken.handover {
            store_handover(existing, handover)?;
        }
        self.mirror(team)?.create_unanswered_tasks()?;
        existing.remove_lost_members(&members_elsewhere(&config))?;
        if config.member(&MemberName::lead()).is_some_and(|lead| lead.host.is_some()) {
            existing.set_member_fields(&MemberName::lead(), &[("host", Value::Null)])?;
        }
        self.root.set_team_home(team, &TeamHome::with_epoch(epoch))?;
        self.mirrors.remove(team);
        remove_state(&self.state, team)?;
        self.root.unmark_mirror(team)?;
        let handover = taken.handover.clone();
        self.notify(MirrorNotice::HomeTaken { team: team.clone(), epoch, handover });
        Ok(())
    }

    /// At the annex: decides whether this host or the sender of a team's config is the home.
    /// `epoch` is the sender's epoch. This host stays the home only if its epoch is higher.
    /// Otherwise it forgets that it was the home.
    pub(crate) fn decide_home(
        &mut self,
        team: &TeamName,
        created_at: u64,
        epoch: u64,
    ) -> Result<HomeOfTeam, Error> {
        match self.teams.taken.get(team) {
            Some(taken) if taken.created_at == created_at && taken.epoch > epoch => Ok(HomeOfTeam::Here),
            Some(taken) if taken.created_at == created_at => {
                self.teams.taken.remove(team);
                self.teams.save(&self.state).map(|()| HomeOfTeam::Sender)
            }
            _ => Ok(HomeOfTeam::Sender),
        }
    }

    /// On a host that was neither the old nor the new home: whether the team here is a mirror of
    /// the old home. `epoch` is the epoch of the new home.
    pub(crate) fn is_mirror_of_earlier_home(
        &self,
        existing: &Team,
        created_at: u64,
        epoch: u64,
    ) -> Result<bool, Error> {
        let is_same = existing.is_mirror() && self.created_at(existing)? == created_at;
        Ok(is_same && self.root.team_home(existing.name())?.epoch < epoch)
    }

    /// At the home: handles the annex's report that the team has a new home. If the report names
    /// another host, `home`, that host is the new home; if not, the annex is. `work` says whether
    /// the new home has what was done here.
    ///
    /// Records the new home, and then forgets that the team was mirrored to the annex. The record
    /// is written first, so that this host does not change the team after a crash.
    pub(crate) fn note_home_moved(
        &mut self,
        team: &TeamName,
        (created_at, epoch): (u64, u64),
        (home, work): (Option<&HostName>, LocalWork),
    ) -> Result<(), Error> {
        let MirrorSide::Home { annex } = self.side.clone() else { return Ok(()) };
        let existing = match self.root.team(team) {
            Err(Error::NoSuchTeam { .. }) => return Ok(()),
            existing => existing?,
        };
        let record = self.root.team_home(team)?;
        // If this host is an annex of the new home already, an old report says nothing new.
        if existing.is_mirror() || record.epoch > epoch || existing.config()?.created_at != created_at {
            return Ok(());
        }
        let host = home.unwrap_or(&annex).clone();
        match &record.state {
            _ if record.epoch == epoch => self.note_equal_home(team, &record, host),
            // The offered host has not answered yet. Only its own report says whether it has the
            // work of this host.
            HomeState::Moving(MovingHome { step: MoveStep::Offered, .. }) if home.is_some() => {}
            HomeState::Moved(moved) if moved.epoch >= epoch => {
                match home {
                    None if moved.epoch == epoch && moved.named_by == HomeNameSource::Machine => {
                        let moved = MovedHome { host, work, ..moved.clone() };
                        self.name_new_home(team, &record, moved)?;
                    }
                    None => self.answer_second_home(team, moved, (host, epoch)),
                    Some(_) => {}
                }
                if self.teams.active.contains(team) {
                    self.leave_moved_team(team, moved.clone())?;
                }
            }
            _ => {
                let named_by = home.map_or(HomeNameSource::HostsFile, |_| HomeNameSource::Machine);
                let moved = MovedHome { host, named_by, epoch, since: store::now(), created_at, work };
                let home = TeamHome { epoch: record.epoch, state: HomeState::Moved(moved.clone()) };
                self.root.set_team_home(team, &home)?;
                self.leave_moved_team(team, moved)?;
            }
        }
        Ok(())
    }

    fn leave_moved_team(&mut self, team: &TeamName, moved: MovedHome) -> Result<(), Error> {
        self.forget_team(team)?;
        self.notify(MirrorNotice::HomeMoved { team: team.clone(), moved });
        Ok(())
    }
}

fn no_mirror_error(team: &TeamName) -> ErrorReport {
    ErrorReport::new(ErrorKind::Refused, format!("cannot take {team}: it has no mirror here"))
}

/// Stores what only the old home had.
fn store_handover(team: &Team, handover: &HomeHandover) -> Result<(), Error> {
    let HomeHandover { policy, last_task_id, answers, .. } = handover;
    team.set_policy(policy)?;
    team.tasks().reserve_ids(*last_task_id)?;
    let parsed = answers.iter().cloned().map(|answer| serde_json::from_value(Value::Object(answer)));
    let answers: Vec<AnsweredRequest> = parsed.filter_map(Result::ok).collect();
    team.add_answers(&answers)
}

/// The members of a mirror that do not run at the annex.
fn members_elsewhere(config: &TeamConfig) -> Vec<MemberName> {
    let elsewhere = config.members.iter().filter(|member| member.host.is_some() && !member.name.is_lead());
    elsewhere.map(|member| member.name.clone()).collect()
}
