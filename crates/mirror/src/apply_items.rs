//! Stores the items of the other end.

use crate::items_awaiting_acceptance::OnAcceptance;
use crate::json_fields::Fields;
use crate::members::{create_mirror, parse_config};
use crate::mirror::{Mirror, MirrorSide};
use crate::output::{MirrorNotice, MirrorOutput};
use crate::tasks_at_annex::Replaced;
use protocol::annex_link::ItemPayload;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::TeamName;
use store::Error;

impl MirrorSide {
    /// Whether this end accepts such an item from the other end. Only the home sends decisions. The
    /// annex sends reports and proposals.
    fn accepts(&self, payload: &ItemPayload) -> bool {
        let is_home = matches!(self, MirrorSide::Home { .. });
        match payload {
            ItemPayload::Team { .. }
            | ItemPayload::TeamDeleted { .. }
            | ItemPayload::Task { .. }
            | ItemPayload::TaskIds { .. }
            | ItemPayload::TaskChangeAnswer { .. } => !is_home,
            ItemPayload::TeamRefused { .. }
            | ItemPayload::Members { .. }
            | ItemPayload::Read { .. }
            | ItemPayload::Events { .. }
            | ItemPayload::TaskChange { .. } => is_home,
            ItemPayload::Message { .. }
            | ItemPayload::Barrier { .. }
            | ItemPayload::BarrierReached { .. } => true,
        }
    }
}

impl Mirror {
    /// Stores an item of the other end. After a crash, the same item may come again.
    ///
    /// # Errors
    ///
    /// If files can't be read or written. The caller must apply the item again.
    pub fn apply(&mut self, payload: &ItemPayload) -> Result<MirrorOutput, ErrorReport> {
        if !self.side.accepts(payload) {
            tracing::warn!(?payload, "dropped an item that this end does not take");
            return Ok(self.take_output());
        }
        match payload {
            ItemPayload::Barrier { number } => self.send(ItemPayload::BarrierReached { number: *number }),
            ItemPayload::BarrierReached { number } => {
                self.notify(MirrorNotice::BarrierReached { number: *number });
            }
            ItemPayload::Team { team, config } => self.apply_config(team, config)?,
            ItemPayload::TeamDeleted { team } => self.end_team(team)?,
            ItemPayload::TeamRefused { team, error } => {
                self.forget_team(team)?;
                self.notify(MirrorNotice::TeamRefused { team: team.clone(), error: error.clone() });
            }
            ItemPayload::TaskChangeAnswer { team, id, change, .. } => {
                self.note_answered(team, *id, change)?;
                if self.is_mirrored(team)? {
                    self.apply_to_team(team, payload)?;
                }
            }
            ItemPayload::Members { team, .. }
            | ItemPayload::Message { team, .. }
            | ItemPayload::Read { team, .. }
            | ItemPayload::Events { team, .. }
            | ItemPayload::Task { team, .. }
            | ItemPayload::TaskIds { team, .. }
            | ItemPayload::TaskChange { team, .. } => {
                // The team may have been deleted after the other end had sent the item.
                if self.is_mirrored(team)? {
                    self.apply_to_team(team, payload)?;
                }
            }
        }
        Ok(self.take_output())
    }

    /// At the annex: makes the mirror, or updates the members that run elsewhere.
    fn apply_config(&mut self, team: &TeamName, config: &Fields) -> Result<(), ErrorReport> {
        let config = parse_config(config).map_err(|reason| {
            ErrorReport::new(ErrorKind::InvalidData, format!("cannot mirror {team}: {reason}"))
        })?;
        match self.root.team(team) {
            Ok(_) if self.teams.ended.contains(team) => return Err(being_deleted_error(team)),
            Ok(existing) if existing.is_mirror() && self.is_own(&existing)? => {
                self.mirror(team)?.store_config(&config)?;
            }
            Ok(_) => {
                let refused = ItemPayload::TeamRefused { team: team.clone(), error: other_team_error(team) };
                self.send(refused);
                return Ok(());
            }
            Err(Error::NoSuchTeam { .. }) => {
                self.forget_team(team)?;
                create_mirror(&self.root, &config, &self.mark(&config))?;
                self.notify(MirrorNotice::TeamMade { team: team.clone() });
            }
            Err(error) => return Err(error.into()),
        }
        Ok(self.teams.add(team, &self.state)?)
    }

    fn apply_to_team(&mut self, team: &TeamName, payload: &ItemPayload) -> Result<(), Error> {
        let side = self.side.clone();
        let (mirror, state) = self.mirror_and_state(team)?;
        match payload {
            ItemPayload::Message { to, message, .. } => mirror.store_message(to, message),
            ItemPayload::Read { owner, .. } if !mirror.members.contains_key(owner) => Ok(()),
            ItemPayload::Read { owner, messages, .. } => mirror.mark_read(owner, messages),
            ItemPayload::Events { events, .. } => self.apply_events(team, events),
            ItemPayload::Members { members, .. } => {
                let MirrorSide::Home { annex } = side else { return Ok(()) };
                mirror.store_members(&annex, members)?;
                let listed = mirror.members.keys().cloned().collect();
                self.notify(MirrorNotice::MembersListed { team: team.clone(), members: listed });
                self.compare_new_inboxes(team)
            }
            ItemPayload::Task { id, task, .. } => self.store_task(team, *id, task.as_ref()),
            ItemPayload::TaskIds { ids, .. } => {
                let deleted = mirror.tasks_deleted_at_home(ids);
                deleted.into_iter().try_for_each(|id| self.store_task(team, id, None))
            }
            ItemPayload::TaskChange { id, change, .. } => {
                let answer = mirror.decide_change(*id, change)?;
                self.send_and_record(answer, OnAcceptance::ForgetAnswer { team: team.clone() });
                Ok(())
            }
            ItemPayload::TaskChangeAnswer { id, change, task, error, .. } => {
                mirror.store_answer(state, (*id, change), (task.as_ref(), error.as_ref()))?;
                let notice =
                    MirrorNotice::TaskChangeAnswered { team: team.clone(), task: *id, error: error.clone() };
                self.notify(notice);
                self.compare_task(team, *id)
            }
            ItemPayload::Team { .. }
            | ItemPayload::TeamDeleted { .. }
            | ItemPayload::TeamRefused { .. }
            | ItemPayload::Barrier { .. }
            | ItemPayload::BarrierReached { .. } => Ok(()),
        }
    }

    /// At the annex: stores a task of the home. First sends the changes that were made here. A task
    /// that is created meanwhile is sent too.
    fn store_task(&mut self, team: &TeamName, id: TaskId, at_home: Option<&Fields>) -> Result<(), Error> {
        loop {
            self.compare_task(team, id)?;
            let (mirror, state) = self.mirror_and_state(team)?;
            if mirror.store_task(state, id, at_home)? == Replaced::Yes {
                return Ok(());
            }
        }
    }

    /// At the annex: asks the daemon to delete a mirror. The end of the team is recorded, so that
    /// the daemon is asked again after a crash.
    fn end_team(&mut self, team: &TeamName) -> Result<(), Error> {
        if self.teams.active.contains(team) {
            self.teams.ended.insert(team.clone());
            self.teams.save(&self.state)?;
            self.notify(MirrorNotice::TeamEnded { team: team.clone() });
        }
        Ok(())
    }
}

fn being_deleted_error(team: &TeamName) -> ErrorReport {
    ErrorReport::new(
        ErrorKind::Refused,
        format!("cannot mirror {team} yet: its last mirror is being deleted"),
    )
}

fn other_team_error(team: &TeamName) -> ErrorReport {
    let message = format!("cannot use this host for {team}: it has another team of that name");
    ErrorReport::new(ErrorKind::AlreadyExists, message)
        .with_help("take another name for one of them, or delete the one there")
}
