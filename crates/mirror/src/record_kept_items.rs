//! Records which items have reached the link's spool, so that after a crash nothing is sent twice
//! and nothing is lost.

use crate::items_awaiting_acceptance::OnAcceptance;
use crate::known_messages::message_key;
use crate::mirror::Mirror;
use crate::sent_events::last_number;
use protocol::annex_link::{ItemPayload, LinkItem, TaskChange};
use protocol::error_kind_and_report::ErrorReport;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::TeamName;
use std::sync::Arc;
use store::{Error, message_id};

impl Mirror {
    /// After a start: records as sent the items that are in the link's spool. An earlier process
    /// may have crashed before it recorded them.
    pub(crate) fn note_kept_items(&mut self, kept: &[Arc<LinkItem>]) -> Result<(), Error> {
        for item in kept {
            if let ItemPayload::HomeDeclined { team, epoch, .. } = &item.payload {
                self.forget_declined_offer(team, *epoch)?;
            }
            let Some(team) = item.payload.team().filter(|team| self.teams.active.contains(*team)) else {
                continue;
            };
            if !self.is_mirrored(team)? {
                continue;
            }
            let (mirror, state) = self.mirror_and_state(team)?;
            if item.payload.created_at().is_some_and(|created_at| created_at != mirror.created_at) {
                continue;
            }
            match &item.payload {
                ItemPayload::HomeOffered { team, .. } => drop(self.offered.insert(team.clone())),
                ItemPayload::Message { to, message, .. } => {
                    mirror.known_messages.record(&[message_key(to, &message_id(message))])?;
                }
                ItemPayload::TaskChange { id, change, .. } => {
                    mirror.tasks.entry(*id).or_default().changes.add_kept(item.number, change);
                    mirror.save_task(state, *id)?;
                }
                ItemPayload::TaskChangeAnswer { .. } => {
                    mirror.stored_answers.remove_if_oldest(&item.payload)?;
                }
                ItemPayload::Events { team, events, .. } => {
                    let number = last_number(events).unwrap_or_default();
                    mirror.sent_events.note_kept(state, team, number)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Sends again each answer and each change of a task that the link may have lost in a crash.
    pub(crate) fn send_again(&mut self) -> Result<(), Error> {
        self.send_declined_offers();
        for team in self.teams() {
            if self.is_mirrored(&team)? {
                let mirror = self.mirror(&team)?;
                let (answers, changes) = (mirror.stored_answers.all(), mirror.changes_to_send_again());
                for answer in answers {
                    self.send_and_record(answer, OnAcceptance::ForgetAnswer { team: team.clone() });
                }
                changes.into_iter().for_each(|change| self.send_task(&team, change));
                self.notify_of_unlogged_events(&team)?;
            }
        }
        Ok(())
    }

    /// Records that the items up to `number` have reached the link's spool. They now arrive even
    /// after a crash.
    ///
    /// # Errors
    ///
    /// If the state can't be written.
    pub fn note_accepted(&mut self, number: u64) -> Result<(), ErrorReport> {
        while let Some((item, accepted)) = self.awaiting.next_due(number) {
            self.record_accepted(accepted, item)?;
            self.awaiting.remove_next();
        }
        Ok(())
    }

    fn record_accepted(&mut self, accepted: OnAcceptance, number: u64) -> Result<(), Error> {
        match accepted {
            OnAcceptance::RecordMessage { team, key } => {
                let mirror = self.mirrors.get_mut(&team);
                mirror.map_or(Ok(()), |mirror| mirror.known_messages.record(&[key]))
            }
            OnAcceptance::RecordChange { team, id, change } => {
                self.record_change(&team, (id, &change), number)
            }
            OnAcceptance::RecordEvents { team, number } => {
                let mirror = self.mirrors.get_mut(&team);
                mirror.map_or(Ok(()), |mirror| mirror.sent_events.note_kept(&self.state, &team, number))
            }
            OnAcceptance::ForgetAnswer { team } => {
                let mirror = self.mirrors.get_mut(&team);
                mirror.map_or(Ok(()), |mirror| mirror.stored_answers.remove_oldest())
            }
            OnAcceptance::ForgetDeclinedOffer { team, epoch } => self.forget_declined_offer(&team, epoch),
            OnAcceptance::ForgetTeam { team } => {
                self.teams.ended.remove(&team);
                self.teams.save(&self.state)
            }
        }
    }

    fn record_change(
        &mut self,
        team: &TeamName,
        (id, change): (TaskId, &TaskChange),
        number: u64,
    ) -> Result<(), Error> {
        let Some(mirror) = self.mirrors.get_mut(team) else { return Ok(()) };
        if let Some(task) = mirror.tasks.get_mut(&id) {
            task.changes.note_kept(number, change);
        }
        mirror.save_task(&self.state, id)
    }

    /// Records that a change has reached the link's spool, because the home has answered it.
    pub(crate) fn note_answered(
        &mut self,
        team: &TeamName,
        id: TaskId,
        change: &TaskChange,
    ) -> Result<(), ErrorReport> {
        let change = OnAcceptance::RecordChange { team: team.clone(), id, change: change.clone() };
        self.awaiting.number_of(&change).map_or(Ok(()), |number| self.note_accepted(number))
    }
}
