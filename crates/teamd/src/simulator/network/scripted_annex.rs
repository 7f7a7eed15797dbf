//! An annex without a daemon, for measurements of the home. It has only its end of the link, with
//! the spool and the stored items in memory.

use link::{
    LinkEffect, LinkEvent, LinkIdentity, LinkRole, LinkSettings, LinkState, LinkTime, ReceivedPosition,
    SpoolContents, Submission,
};
use protocol::annex_link::{ItemPayload, LinkFrame, encode_frame};
use protocol::hosts_file_entry::HostName;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct ScriptedAnnex {
    state: LinkState,
    events: VecDeque<LinkEvent>,
    /// The frames for the home, each with the length of its text in bytes.
    pub(super) frames: VecDeque<Vec<u8>>,
    connection: u64,
    connection_of_home: u64,
    /// How many bytes the home has sent.
    pub(super) received_bytes: u64,
}

impl ScriptedAnnex {
    pub(super) fn new(root: &str, name: &HostName) -> ScriptedAnnex {
        let identity = LinkIdentity {
            role: LinkRole::Annex,
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            root: root.to_owned(),
            annex: name.to_string(),
        };
        let (spool, received) = (SpoolContents::default(), ReceivedPosition::default());
        ScriptedAnnex {
            state: LinkState::new(identity, LinkSettings::default(), spool, received),
            events: VecDeque::new(),
            frames: VecDeque::new(),
            connection: 0,
            connection_of_home: 0,
            received_bytes: 0,
        }
    }

    /// The home connects. Its end knows the connection by the number `connection_of_home`.
    pub(super) fn open(&mut self, connection_of_home: u64) {
        (self.connection, self.connection_of_home) = (self.connection + 1, connection_of_home);
        self.events.push_back(LinkEvent::Opened { connection: self.connection });
    }

    /// Ends the connection. Frames on their way to the annex are lost. Returns the home's number of
    /// the connection that has ended.
    pub(super) fn close(&mut self) -> u64 {
        self.frames.clear();
        let (connection, reason) = (self.connection, "cut".to_owned());
        self.events.push_back(LinkEvent::Closed { connection, reason });
        self.connection_of_home
    }

    pub(super) fn connection_of_home(&self) -> u64 {
        self.connection_of_home
    }

    pub(super) fn receive(&mut self, frame: LinkFrame, bytes: usize) {
        self.received_bytes += bytes as u64;
        self.events.push_back(LinkEvent::Received { connection: self.connection, frame, bytes });
    }

    pub(super) fn submit(&mut self, item: ItemPayload) {
        let submission = Submission::new(None, item).expect("the item is short");
        self.events.push_back(LinkEvent::Submitted(submission));
    }

    /// Handles all events and effects. Every write is done at once.
    pub(super) fn run(&mut self, now: LinkTime) {
        if self.state.deadline().is_some_and(|deadline| deadline <= now.ms) {
            self.events.push_back(LinkEvent::Deadline);
        }
        while let Some(event) = self.events.pop_front() {
            for effect in self.state.handle(event, now) {
                self.run_effect(effect);
            }
        }
    }

    fn run_effect(&mut self, effect: LinkEffect) {
        match effect {
            LinkEffect::Send { frame, .. } => {
                self.frames.push_back(encode_frame(&frame).expect("the frame is short"));
            }
            LinkEffect::Spool(_) => self.events.push_back(LinkEvent::Spooled),
            LinkEffect::Apply { items, .. } => {
                for item in items {
                    if let ItemPayload::Barrier { number } = item.payload {
                        self.submit(ItemPayload::BarrierReached { number });
                    }
                }
                self.events.push_back(LinkEvent::Applied);
            }
            LinkEffect::Connect { .. } | LinkEffect::Close { .. } | LinkEffect::Report(_) => {}
        }
    }
}
