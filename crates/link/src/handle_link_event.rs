//! Passes each event to its handler, and starts what has become possible.

use crate::disconnect_reason::DisconnectReason;
use crate::event_and_effect::{ConnectionNumber, LinkEffect, LinkEvent, LinkReport, LinkTime};
use crate::link_phase::LinkPhase;
use crate::link_state::{LinkContext, LinkState};
use crate::write_in_progress::WriteReport;
use protocol::annex_link::LinkFrame;

impl LinkState {
    /// Handles one event: changes the state, and returns the effects in the order in which they
    /// must be carried out.
    pub fn handle(&mut self, event: LinkEvent, now: LinkTime) -> Vec<LinkEffect> {
        let mut context = LinkContext { link: self, now, effects: Vec::new() };
        context.dispatch(event);
        context.start_writes();
        context.send_items();
        context.effects
    }
}

impl LinkContext<'_> {
    fn dispatch(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Deadline => self.handle_deadline(),
            LinkEvent::Opened { connection } => self.handle_opened(connection),
            LinkEvent::Received { connection, frame, bytes } if self.connection() == Some(connection) => {
                self.handle_frame(connection, frame, bytes);
            }
            LinkEvent::Received { connection, frame, .. } if self.is_attempt(connection) => {
                self.handle_first_frame(connection, frame);
            }
            // The connection was given up.
            LinkEvent::Received { .. } => {}
            LinkEvent::Closed { connection, reason } => self.handle_closed(connection, reason),
            LinkEvent::Submitted(submission) => self.link.outgoing.submit(submission),
            LinkEvent::Spooled => self.handle_spooled(),
            LinkEvent::SpoolFailed { reason } => self.handle_spool_failed(reason),
            LinkEvent::Applied => self.handle_applied(),
            LinkEvent::ApplyFailed { reason } => self.handle_apply_failed(reason),
            LinkEvent::SpawnStarted(spawn) => self.link.incoming.add_spawn(&spawn),
        }
    }

    /// Handles a frame on the connection that works.
    fn handle_frame(&mut self, connection: ConnectionNumber, frame: LinkFrame, bytes: usize) {
        let now = self.now.ms;
        self.link.phase = match self.link.phase {
            LinkPhase::Connected { sent_at, .. } => {
                LinkPhase::Connected { connection, received_at: now, sent_at }
            }
            LinkPhase::Disconnected { .. } => return,
        };
        let result = match frame {
            LinkFrame::Item(item) => self.link.incoming.receive(item, bytes),
            LinkFrame::Ack { number } => self.link.outgoing.acknowledge(number),
            LinkFrame::KeepAlive => Ok(()),
            LinkFrame::Storage { error } => {
                self.handle_storage_there(error);
                Ok(())
            }
            LinkFrame::Hello(_) => Err("the other end said hello twice".to_owned()),
            LinkFrame::Refused(refusal) => {
                return self.disconnect(DisconnectReason::RefusedByOther(refusal));
            }
        };
        if let Err(reason) = result {
            self.disconnect(DisconnectReason::Ended(reason));
        }
    }

    fn handle_storage_there(&mut self, error: Option<String>) {
        if std::mem::replace(&mut self.link.storage_error_there, error.clone()) != error {
            self.report(match error {
                Some(reason) => LinkReport::StorageFailedThere { reason },
                None => LinkReport::StorageWorksThere,
            });
        }
    }

    /// Tells the other end why this end cannot write its files. `None` tells it that this end can
    /// write them again. The error is sent again after each failed retry, because the other end may
    /// have connected since the last time.
    fn send_storage(&mut self, error: Option<&str>) {
        if let Some(connection) = self.connection() {
            self.send(connection, LinkFrame::Storage { error: error.map(str::to_owned) });
        }
    }

    fn report(&mut self, report: LinkReport) {
        self.effects.push(LinkEffect::Report(report));
    }

    fn handle_spooled(&mut self) {
        let Some((number, report)) = self.link.outgoing.finish_write() else { return };
        if report == WriteReport::Changed {
            self.send_storage(None);
            self.report(LinkReport::SpoolWorks);
        }
        self.report(LinkReport::Accepted { number });
    }

    fn handle_spool_failed(&mut self, reason: String) {
        self.send_storage(Some(&reason));
        let retry_at = self.now.ms + self.link.settings.write_pause_ms;
        if let Some((_, WriteReport::Changed)) = self.link.outgoing.writes.fail(retry_at) {
            self.report(LinkReport::SpoolFailed { reason });
        }
    }

    /// The application has stored items, so they are acknowledged.
    fn handle_applied(&mut self) {
        let Some(change) = self.link.incoming.finish_apply() else { return };
        if change.report == WriteReport::Changed {
            self.send_storage(None);
            self.report(LinkReport::ApplyWorks);
        }
        if let Some(total) = change.dropped_total {
            self.report(LinkReport::Dropped { total });
        }
        if let Some(connection) = self.connection() {
            self.send(connection, LinkFrame::Ack { number: change.position.number });
        }
        self.accept_if_epoch_is_stored();
    }

    fn handle_apply_failed(&mut self, reason: String) {
        self.send_storage(Some(&reason));
        let retry_at = self.now.ms + self.link.settings.write_pause_ms;
        if self.link.incoming.fail_apply(retry_at) == Some(WriteReport::Changed) {
            self.report(LinkReport::ApplyFailed { reason });
        }
    }

    /// Starts up to two writes: submitted items go to the spool, and received items to the
    /// application. No write starts while an earlier write of the same kind is in progress. Items
    /// that arrive in the meantime are written together by the next write, with one flush.
    fn start_writes(&mut self) {
        let slack = self.link.settings.spool_slack_bytes;
        if let Some(write) = self.link.outgoing.next_write(self.now.ms, slack) {
            self.effects.push(LinkEffect::Spool(write));
        }
        if let Some((items, position)) = self.link.incoming.next_apply(self.now.ms) {
            self.effects.push(LinkEffect::Apply { items, position });
        }
    }

    /// Sends spooled items as far as the window allows.
    fn send_items(&mut self) {
        let Some(connection) = self.connection() else { return };
        while let Some(item) = self.link.outgoing.next_to_send() {
            self.send(connection, LinkFrame::Item(item));
        }
    }
}
