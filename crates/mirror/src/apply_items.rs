//! Stores the items of the other end.

use crate::barriers::BarrierAnswer;
use crate::items_awaiting_acceptance::OnAcceptance;
use crate::json_fields::Fields;
use crate::mirror::{Mirror, MirrorSide};
use crate::output::{MirrorNotice, MirrorOutput};
use crate::tasks_at_annex::Replaced;
use protocol::annex_link::ItemPayload;
use protocol::error_kind_and_report::ErrorReport;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::TeamName;
use store::Error;

impl MirrorSide {
    /// Whether this end accepts an item with this payload from the other end. Only the home sends
    /// decisions. The annex sends reports and proposals.
    fn accepts(&self, payload: &ItemPayload) -> bool {
        let is_home = matches!(self, MirrorSide::Home { .. });
        match payload {
            ItemPayload::Team { .. }
            | ItemPayload::TeamChange { .. }
            | ItemPayload::TeamDeleted { .. }
            | ItemPayload::Budget { .. }
            | ItemPayload::HomeOffered { .. }
            | ItemPayload::OtherHome { .. }
            | ItemPayload::Task { .. }
            | ItemPayload::TaskIds { .. }
            | ItemPayload::TaskChangeAnswer { .. } => !is_home,
            ItemPayload::TeamRefused { .. }
            | ItemPayload::TeamWanted { .. }
            | ItemPayload::HomeMoved { .. }
            | ItemPayload::HomeDeclined { .. }
            | ItemPayload::Members { .. }
            | ItemPayload::Events { .. }
            | ItemPayload::TaskChange { .. } => is_home,
            ItemPayload::Message { .. }
            | ItemPayload::Read { .. }
            | ItemPayload::Barrier { .. }
            | ItemPayload::BarrierReached { .. } => true,
        }
    }
}

/// Whether both items are messages to one inbox, which [`Mirror::apply_group`] stores in one write.
pub fn are_messages_to_one_inbox(first: &ItemPayload, next: &ItemPayload) -> bool {
    match (first, next) {
        (
            ItemPayload::Message { team, to, .. },
            ItemPayload::Message { team: next_team, to: next_owner, .. },
        ) => team == next_team && to == next_owner,
        _ => false,
    }
}

impl Mirror {
    /// Stores an item of the other end. After a crash, the other end may send the same item again.
    ///
    /// # Errors
    ///
    /// If files can't be read or written. The caller must apply the item again.
    pub fn apply(&mut self, payload: &ItemPayload) -> Result<MirrorOutput, ErrorReport> {
        if !self.side.accepts(payload) {
            tracing::warn!(?payload, "dropped an item that this end does not take");
            return Ok(self.take_output());
        }
        if self.is_of_earlier_team(payload)? {
            tracing::info!(?payload, "dropped an item of an earlier team of this name");
            return Ok(self.take_output());
        }
        match payload {
            ItemPayload::Barrier { number } => self.send(ItemPayload::BarrierReached { number: *number }),
            ItemPayload::BarrierReached { number } => self.finish_barrier(*number),
            ItemPayload::Team { team, config, version, epoch } => {
                self.store_config_of_home(team, config, (*version, *epoch))?;
            }
            ItemPayload::TeamChange { team, change } => self.store_config_change(team, change)?,
            ItemPayload::HomeMoved { team, created_at, epoch, home, work } => {
                self.note_home_moved(team, (*created_at, *epoch), (home.as_ref(), *work))?;
            }
            ItemPayload::OtherHome { team, created_at, epoch, home } => {
                self.note_other_home(team, (*created_at, *epoch), home)?;
            }
            ItemPayload::HomeOffered { team, created_at, epoch, handover } => {
                self.answer_offer(team, (*created_at, *epoch), handover)?;
            }
            ItemPayload::HomeDeclined { team, epoch, error } => {
                self.note_home_declined(team, *epoch, error)?;
            }
            ItemPayload::TeamDeleted { team } => self.end_team(team)?,
            ItemPayload::TeamRefused { team, error, .. } => {
                self.forget_team(team)?;
                self.notify(MirrorNotice::TeamRefused { team: team.clone(), error: error.clone() });
            }
            ItemPayload::TaskChangeAnswer { team, id, change, .. } => {
                self.note_answered(team, *id, change)?;
                if self.is_mirrored(team)? {
                    self.apply_to_team(team, payload)?;
                }
            }
            ItemPayload::TeamWanted { team }
            | ItemPayload::Members { team, .. }
            | ItemPayload::Message { team, .. }
            | ItemPayload::Read { team, .. }
            | ItemPayload::Events { team, .. }
            | ItemPayload::Budget { team, .. }
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

    /// Stores one item, or several messages to one inbox in one write. Several items must be such
    /// messages: [`are_messages_to_one_inbox`].
    ///
    /// # Errors
    ///
    /// As for [`Mirror::apply`]. The caller must apply all items again.
    pub fn apply_group(&mut self, items: &[&ItemPayload]) -> Result<MirrorOutput, ErrorReport> {
        match items {
            [item] => self.apply(item),
            messages => self.apply_messages(messages),
        }
    }

    fn apply_messages(&mut self, items: &[&ItemPayload]) -> Result<MirrorOutput, ErrorReport> {
        let mut inbox = None;
        let mut messages = Vec::new();
        for item in items {
            let ItemPayload::Message { team, to, message, .. } = item else { continue };
            if !self.is_of_earlier_team(item)? {
                inbox = Some((team, to));
                messages.push(message);
            }
        }
        if let Some((team, to)) = inbox
            && self.is_mirrored(team)?
        {
            self.mirror(team)?.store_messages(to, &messages)?;
        }
        Ok(self.take_output())
    }

    /// At the home: whether the item is about a team that was deleted, although a newer team with
    /// the same name exists now. The two teams differ in the time of their creation.
    fn is_of_earlier_team(&self, payload: &ItemPayload) -> Result<bool, Error> {
        let (Some(team), Some(created_at)) = (payload.team(), payload.created_at()) else { return Ok(false) };
        if self.side == MirrorSide::Annex {
            return Ok(false);
        }
        match self.root.team(team) {
            // A damaged config says nothing about the team.
            Ok(existing) => {
                Ok(existing.cached_config_if_valid().is_some_and(|config| config.created_at != created_at))
            }
            Err(Error::NoSuchTeam { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn finish_barrier(&mut self, number: u64) {
        match self.barriers.note_answer(number) {
            BarrierAnswer::TooEarly => {
                self.barriers.note_sent(number);
                self.send(ItemPayload::Barrier { number });
            }
            BarrierAnswer::InTime => self.notify(MirrorNotice::BarrierReached { number }),
        }
    }

    fn apply_to_team(&mut self, team: &TeamName, payload: &ItemPayload) -> Result<(), Error> {
        let side = self.side.clone();
        let is_home = side != MirrorSide::Annex;
        let (mirror, state) = self.mirror_and_state(team)?;
        match payload {
            ItemPayload::TeamWanted { .. } => self.send_wanted_team(team),
            ItemPayload::Message { to, message, .. } => mirror.store_messages(to, &[message]),
            // An annex reads only for its own members, and the home only for all others.
            ItemPayload::Read { owner, .. } if mirror.members.contains_key(owner) != is_home => Ok(()),
            ItemPayload::Read { owner, messages, .. } => mirror.mark_read(owner, messages),
            ItemPayload::Events { events, .. } => self.apply_events(team, events),
            ItemPayload::Budget { budget, .. } => self.store_budget(team, budget),
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
            | ItemPayload::TeamChange { .. }
            | ItemPayload::TeamDeleted { .. }
            | ItemPayload::TeamRefused { .. }
            | ItemPayload::HomeOffered { .. }
            | ItemPayload::HomeDeclined { .. }
            | ItemPayload::HomeMoved { .. }
            | ItemPayload::OtherHome { .. }
            | ItemPayload::Barrier { .. }
            | ItemPayload::BarrierReached { .. } => Ok(()),
        }
    }

    /// At the annex: replaces a task by the home's version. Before that, sends the home the changes
    /// that programs have made to the task here. If a program creates a task with this id between
    /// these two steps, both steps are repeated.
    fn store_task(&mut self, team: &TeamName, id: TaskId, at_home: Option<&Fields>) -> Result<(), Error> {
        loop {
            self.compare_task(team, id)?;
            let (mirror, state) = self.mirror_and_state(team)?;
            if mirror.store_task(state, id, at_home)? == Replaced::Yes {
                return Ok(());
            }
        }
    }

    /// At the annex: asks the daemon to delete the mirror of a team. First records that the mirror
    /// must be deleted, so that the daemon is asked again after a crash.
    pub(crate) fn end_team(&mut self, team: &TeamName) -> Result<(), Error> {
        if self.teams.active.contains(team) {
            self.teams.ended.insert(team.clone());
            self.teams.save(&self.state)?;
            self.notify(MirrorNotice::TeamEnded { team: team.clone() });
        }
        Ok(())
    }
}
