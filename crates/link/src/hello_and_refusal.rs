//! How two ends introduce themselves, and accept or refuse each other.

use crate::disconnect_reason::DisconnectReason;
use crate::event_and_effect::{ConnectionNumber, LinkEffect, LinkReport};
use crate::link_phase::{AttemptStage, LinkPhase};
use crate::link_state::LinkContext;
use protocol::annex_link::{LINK_VERSION, LinkFrame, LinkHello, LinkRefusal};

impl LinkContext<'_> {
    pub(crate) fn own_hello(&self) -> LinkHello {
        let identity = &self.link.identity;
        LinkHello {
            version: LINK_VERSION,
            program_version: identity.program_version.clone(),
            root: identity.root.clone(),
            epoch: self.link.incoming.epoch(),
            annex: identity.annex.clone(),
            received: self.link.incoming.stored().number,
        }
    }

    /// Handles a frame of an end that was not accepted yet.
    pub(crate) fn handle_first_frame(&mut self, connection: ConnectionNumber, frame: LinkFrame) {
        let stage = self.link.attempt.as_ref().map(|attempt| &attempt.stage);
        match (stage, frame) {
            (Some(AttemptStage::AwaitingHello), LinkFrame::Hello(hello)) => {
                self.handle_hello(connection, hello);
            }
            (_, LinkFrame::Refused(refusal)) => self.end_attempt(DisconnectReason::RefusedByOther(refusal)),
            _ => self.end_attempt(DisconnectReason::Ended("the other end did not say hello".to_owned())),
        }
    }

    fn handle_hello(&mut self, connection: ConnectionNumber, hello: LinkHello) {
        if let Some(refusal) = self.find_refusal(&hello) {
            self.send(connection, LinkFrame::Refused(refusal.clone()));
            self.effects.push(LinkEffect::Report(LinkReport::Refused(refusal.clone())));
            return self.end_attempt(DisconnectReason::Refused(refusal));
        }
        // The epoch may be known already and not stored, if the home has connected a second time.
        if self.is_home() || hello.epoch <= self.link.incoming.stored().epoch {
            return self.accept(connection, hello);
        }
        self.disconnect(DisconnectReason::Refused(LinkRefusal::EpochFenced { epoch: hello.epoch }));
        self.link.incoming.raise_epoch(hello.epoch);
        if let Some(attempt) = &mut self.link.attempt {
            attempt.stage = AttemptStage::StoringEpoch(hello);
        }
    }

    /// Returns why this end must refuse the connection, or `None` if there is no reason. A home
    /// with a lower epoch than its annex is refused. A home may have a higher epoch: the annex then
    /// stores that epoch before it accepts the home.
    fn find_refusal(&self, hello: &LinkHello) -> Option<LinkRefusal> {
        let (identity, epoch) = (&self.link.identity, self.link.incoming.epoch());
        let (acknowledged, last) = (self.link.outgoing.acknowledged(), self.link.outgoing.last());
        if hello.version != LINK_VERSION {
            let program_version = identity.program_version.clone();
            return Some(LinkRefusal::Version { version: LINK_VERSION, program_version });
        }
        if (&hello.root, &hello.annex) != (&identity.root, &identity.annex) {
            return Some(LinkRefusal::UnknownAnnex);
        }
        let home_epoch = if self.is_home() { epoch } else { hello.epoch };
        let highest_epoch = epoch.max(hello.epoch);
        if home_epoch < highest_epoch {
            return Some(LinkRefusal::EpochFenced { epoch: highest_epoch });
        }
        let can_resume = self.link.outgoing.can_resume_after(hello.received);
        (!can_resume).then_some(LinkRefusal::NumbersDiffer { acknowledged, last })
    }

    /// If the application has stored the epoch of the home, accepts the home.
    pub(crate) fn accept_if_epoch_is_stored(&mut self) {
        let stored = self.link.incoming.stored().epoch;
        let Some(attempt) = &self.link.attempt else { return };
        match &attempt.stage {
            AttemptStage::StoringEpoch(hello) if hello.epoch <= stored => {
                self.accept(attempt.connection, hello.clone());
            }
            _ => {}
        }
    }

    /// Makes the attempt the connection of the link. At the annex, it replaces the earlier one.
    fn accept(&mut self, connection: ConnectionNumber, hello: LinkHello) {
        self.link.attempt = None;
        if let Some(earlier) = self.connection() {
            self.effects.push(LinkEffect::Close { connection: earlier });
        }
        if !self.is_home() {
            let own = self.own_hello();
            self.send(connection, LinkFrame::Hello(own));
        }
        self.link.outgoing.resume_after(hello.received);
        let now = self.now.ms;
        self.link.phase = LinkPhase::Connected { connection, received_at: now, sent_at: now };
        self.link.storage_error_there = None;
        let program_version = hello.program_version;
        self.effects.push(LinkEffect::Report(LinkReport::Connected { program_version }));
    }
}
