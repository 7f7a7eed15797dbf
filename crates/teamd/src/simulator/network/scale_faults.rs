//! The faults of a day in the measurement of a large team.

use crate::simulator::network::cpu_clock::Part;
use crate::simulator::network::scale::{MeasuredHome, link_of};
use link::{LinkEvent, LinkPhase};

/// How often each host loses its connection in a day.
const CUTS_OF_HOST: usize = 2;
/// After how many ticks a cut connection works again: two minutes.
const TICKS_OF_CUT: usize = 8;
/// Of so many agents, one ends and starts again in a day.
const AGENTS_PER_END: usize = 100;
/// How often the home's daemon is killed in a day.
const KILLS_OF_HOME: usize = 2;

impl MeasuredHome {
    /// Injects the faults of this tick.
    pub(super) fn inject_faults(&mut self, agents: usize, (tick, ticks_of_day): (usize, usize)) {
        let due = |count: usize, tick: usize| tick * count / ticks_of_day..(tick + 1) * count / ticks_of_day;
        let hosts = self.annexes.len();
        let cuts = hosts * CUTS_OF_HOST;
        if let Some(healed_tick) = tick.checked_sub(TICKS_OF_CUT) {
            let healed = due(cuts, healed_tick).map(|cut| cut % hosts);
            healed.for_each(|annex| self.unreachable.retain(|unreachable| *unreachable != annex));
        }
        due(cuts, tick).for_each(|cut| self.cut(cut % hosts));
        for ended in due(agents / AGENTS_PER_END, tick) {
            self.restart_member(agents, ended * AGENTS_PER_END);
        }
        // The first kill is after half an hour, so that also a part of a day has one.
        if due(KILLS_OF_HOME, tick + ticks_of_day / KILLS_OF_HOME - ticks_of_day / 48).count() > 0 {
            self.restart_daemon();
        }
    }

    /// The connection ends. The home finds that out at once.
    fn cut(&mut self, annex: usize) {
        self.unreachable.insert(annex);
        self.measure("lost connection", |home| home.close(annex));
    }

    fn close(&mut self, annex: usize) {
        let connection = self.annexes[annex].close();
        if let Some(end) = self.host.links.get_mut(&link_of(annex)) {
            end.events.push_back(LinkEvent::Closed { connection, reason: "cut".to_owned() });
        }
        self.busy.insert(annex);
    }

    /// A member ends, and starts again.
    fn restart_member(&mut self, agents: usize, index: usize) {
        let hosts = self.annexes.len();
        let annex = index % hosts;
        if self.unreachable.contains(&annex) {
            return;
        }
        let members = move || (annex..agents).step_by(hosts);
        self.measure("member ends", |home| {
            home.report_members(annex, members().filter(|member| *member != index));
        });
        self.measure("member starts", |home| home.report_members(annex, members()));
    }

    /// The home's daemon is killed, and starts again at once.
    fn restart_daemon(&mut self) {
        self.host.kill();
        for annex in &mut self.annexes {
            annex.close();
        }
        self.measure("restart of the home", |home| {
            let host = &mut home.host;
            home.times.time(Part::Mirrors, || host.start());
            home.busy.extend(0..home.annexes.len());
        });
    }

    /// Lets each link without a connection try to connect, if its next attempt is due. The CPU time
    /// of each attempt that succeeds is recorded.
    pub(super) fn reconnect(&mut self) {
        for annex in 0..self.annexes.len() {
            if !self.is_connected(annex) {
                let before = self.times.total();
                self.busy.insert(annex);
                self.run();
                if self.is_connected(annex) {
                    self.times.add_event("connection after a fault", before);
                }
            }
        }
    }

    fn is_connected(&self, annex: usize) -> bool {
        let end = self.host.links.get(&link_of(annex));
        end.is_some_and(|end| matches!(end.state.phase(), LinkPhase::Connected { .. }))
    }
}
