//! What must hold in each simulation.
//!
//! The item with the number N of a host has the text N, so lost, repeated and exchanged items are
//! found by number and text.

use crate::event_and_effect::{LinkEffect, LinkEvent, LinkReport};
use crate::link_phase::LinkPhase;
use crate::settings_and_identity::LinkRole;
use crate::simulator::host::{ANNEX, HostIndex};
use crate::simulator::simulation::Simulation;
use crate::test_items::count;
use protocol::annex_link::{LinkFrame, WINDOW_BYTES, WINDOW_ITEMS};

impl Simulation {
    /// Checks an effect before it is carried out.
    pub(super) fn check_effect(&mut self, host: HostIndex, effect: &LinkEffect) {
        let disk = &self.hosts[host].disk;
        match effect {
            LinkEffect::Send { frame: LinkFrame::Item(item), .. } => {
                let last = disk.spool_last;
                assert!(item.number <= last, "item {} is sent, and the spool ends at {last}", item.number);
            }
            LinkEffect::Send { frame: LinkFrame::Ack { number }, .. } => {
                let stored = disk.position.number;
                assert!(*number <= stored, "item {number} is acknowledged, and {stored} is stored");
            }
            LinkEffect::Send { frame: LinkFrame::Hello(hello), .. } => {
                let stored = disk.position;
                assert!(hello.received <= stored.number, "{hello:?}, and {stored:?} is stored");
                assert!(host != ANNEX || hello.epoch <= stored.epoch, "{hello:?}, and {stored:?} is stored");
            }
            LinkEffect::Report(LinkReport::Accepted { number }) => {
                let last = disk.spool_last;
                assert!(*number <= last, "item {number} is accepted, and the spool ends at {last}");
            }
            LinkEffect::Apply { .. } => self.check_apply(host, effect),
            _ => {}
        }
    }

    /// Items come from the current home, none is missing, and none is of an earlier start.
    fn check_apply(&mut self, host: HostIndex, effect: &LinkEffect) {
        let LinkEffect::Apply { items, position } = effect else { return };
        let stored = self.hosts[host].disk.position;
        let generation = self.hosts[host].process.as_ref().unwrap().generation;
        let sender = &self.hosts[if host == ANNEX { self.home() } else { ANNEX }];
        let mut numbers = items.iter().map(|item| item.number).peekable();
        assert!(position.epoch >= stored.epoch, "epoch {} after {}", position.epoch, stored.epoch);
        for number in stored.number + 1..=position.number {
            let spawn = sender.submitted.get(&number).copied().flatten();
            let is_stale = spawn.is_some_and(|spawn| spawn < generation);
            let is_applied = numbers.next_if_eq(&number).is_some();
            assert_eq!(is_applied, !is_stale, "item {number} of start {spawn:?}; the last is {generation}");
        }
        assert_eq!(numbers.next(), None, "an item is repeated or out of order");
        let epochs = &self.hosts[host].process.as_ref().unwrap().epochs;
        let is_of_earlier_home = |number: u64| host == ANNEX && epochs[&number] != position.epoch;
        let earlier = items.iter().find(|item| is_of_earlier_home(item.number));
        assert!(earlier.is_none(), "an earlier home has sent item {earlier:?}");
        let wrong = items.iter().find(|item| count(item) != sender.first_count + item.number);
        assert!(wrong.is_none(), "the item has come from an earlier home: {wrong:?}");
    }

    /// Follows which start of the member the link of a host knows, and from which home items come.
    pub(super) fn note_arrival(&mut self, host: HostIndex, event: &LinkEvent) {
        if let LinkEvent::Received { connection, frame: LinkFrame::Item(item), .. } = event
            && host == ANNEX
            && let home = self.network.homes[connection]
            && let LinkRole::Home { epoch } = self.hosts[home].role
        {
            self.hosts[host].process.as_mut().unwrap().epochs.insert(item.number, epoch);
        }
        let process = self.hosts[host].process.as_mut().unwrap();
        let known = match event {
            LinkEvent::SpawnStarted(spawn) => Some(spawn.generation),
            LinkEvent::Received { connection, frame: LinkFrame::Item(item), .. } if matches!(process.state.phase(), LinkPhase::Connected { connection: current, .. } if current == connection) => {
                item.spawn.as_ref().map(|spawn| spawn.generation)
            }
            _ => None,
        };
        process.generation = known.unwrap_or(0).max(process.generation);
    }

    /// Checks that the memory of a link is bounded. The limits count acknowledged items too: after
    /// a start, a link has all items of the spool in memory, and some of them may be acknowledged.
    pub(super) fn check_memory(&self, host: HostIndex) {
        let (state, settings) = (&self.hosts[host].process.as_ref().unwrap().state, &self.settings);
        let (item_bytes, shortest_item) = (1_000 + self.padding.len(), 100);
        assert!(state.unstored_items() <= WINDOW_ITEMS);
        let acknowledged_items = settings.queue_items + settings.spool_slack_bytes / shortest_item;
        assert!(state.outgoing.len() <= settings.queue_items + acknowledged_items);
        let acknowledged_bytes = settings.queue_bytes + item_bytes + settings.spool_slack_bytes;
        assert!(state.outgoing.bytes() <= settings.queue_bytes + item_bytes + acknowledged_bytes);
        let queued = self.network.connections.values().flat_map(|both| [&both.to_annex, &both.to_home]);
        let longest_queue = queued.map(|pipe| pipe.bytes.len()).max().unwrap_or(0);
        assert!(longest_queue < WINDOW_BYTES + item_bytes + WINDOW_ITEMS * 100, "{longest_queue}");
    }

    /// Whether everything was delivered.
    pub(super) fn is_complete(&self) -> bool {
        let all_received = |from: HostIndex, to: HostIndex| {
            let process = self.hosts[from].process.as_ref();
            self.hosts[to].disk.position.number == self.hosts[from].wanted
                && process.is_some_and(|process| process.state.outgoing.len() == 0)
        };
        all_received(ANNEX, self.home()) && all_received(self.home(), ANNEX)
    }

    /// Every item is received once and in order, except for items of earlier starts.
    pub(super) fn check_received(&self) {
        for (from, to) in [(ANNEX, self.home()), (self.home(), ANNEX)] {
            let counts: Vec<u64> = self.hosts[to].disk.received().iter().map(|item| count(item)).collect();
            assert!(counts.is_sorted_by(|one, next| one < next), "host {to} has received {counts:?}");
            let has_spawn = |number: &u64| self.hosts[from].submitted[number].is_some();
            let missing =
                (1..=self.hosts[from].wanted).filter(|number| counts.binary_search(number).is_err());
            let lost: Vec<u64> = missing.filter(|number| !has_spawn(number)).collect();
            assert!(lost.is_empty(), "host {to} has lost {lost:?}");
        }
    }
}
