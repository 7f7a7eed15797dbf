//! Carries out the built-in defect of a simulation.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::io::hosts::simulated_link_end::{LinkEndAction, SimulatedLinkEnd};
use crate::simulator::network::connections::{HOME, HostIndex};
use crate::simulator::network::defect::Defect;
use crate::simulator::network::network_simulation::{NetworkSimulation, link_id};
use crate::simulator::network::simulated_host::host_name;
use crate::simulator::shim::SimulatedShim;
use protocol::annex_link::ItemPayload;
use protocol::hosts_file_entry::HostName;
use protocol::inbox_file::Message;
use protocol::team_and_member_names::MemberName;

/// An item without effect.
const PLACEHOLDER: ItemPayload = ItemPayload::BarrierReached { number: 0 };

impl NetworkSimulation {
    /// Some simulations have a built-in defect, to test that the invariants find it. If this
    /// simulation has one that concerns links, carries out the defect just before the link's step
    /// `action`.
    ///
    /// If the defect is that messages are stored twice, only returns the messages and their
    /// recipients. After the step, the caller stores a copy of each message.
    pub(super) fn inject_defect(
        &mut self,
        host: HostIndex,
        annex: HostIndex,
        action: LinkEndAction,
    ) -> Vec<(MemberName, Message)> {
        let Some(end) = self.hosts[host].links.get_mut(&link_id(host, annex)) else { return Vec::new() };
        match (self.defect, action) {
            (Some(Defect::LosesMessages), LinkEndAction::Submit) if self.rng.u8(..) < 60 => {
                replace_first(end, |item| matches!(item, ItemPayload::Message { .. }));
            }
            (Some(Defect::ForgetsTasks), LinkEndAction::Submit) if host == HOME && self.rng.bool() => {
                replace_first(end, |item| matches!(item, ItemPayload::Task { .. }));
            }
            (Some(Defect::LosesEvents), LinkEndAction::Submit) if self.rng.u8(..) < 60 => {
                replace_first(end, |item| matches!(item, ItemPayload::Events { .. }));
            }
            (Some(Defect::ReordersMessages), LinkEndAction::Submit) => reorder(end),
            // An annex does not double: otherwise the copies would go to and fro for ever.
            (Some(Defect::DoublesMessages), LinkEndAction::FinishApply) if host == HOME => {
                let items = end.items_to_apply().iter();
                return items.filter_map(|item| message_of(&item.payload)).collect();
            }
            _ => {}
        }
        Vec::new()
    }

    /// Stores a copy of a message with another time, so that it counts as another message.
    pub(super) fn store_copy(&mut self, host: HostIndex, to: &MemberName, message: &Message) {
        let timestamp = format!("{}0", message.timestamp);
        let copy = Message { timestamp, ..message.clone() };
        let inbox = self.hosts[host].team().map(|team| team.inbox(to));
        inbox.map_or(Ok(()), |inbox| inbox.append(&copy)).ok();
    }

    /// The home has lost the connection to an annex.
    pub(super) fn handle_lost_contact(&mut self, lost: &HostName) {
        self.ledger.cover("contact lost");
        let home = self.hosts[HOME].team().filter(|_| self.defect == Some(Defect::EndsMembersWithoutContact));
        let Some((team, config)) = home.and_then(|team| Some((team.clone(), team.config().ok()?))) else {
            return;
        };
        let is_there = |host: Option<&str>| host == Some(lost.as_str());
        let members = config.members.into_iter().filter(|member| is_there(member.host.as_deref()));
        let names: Vec<MemberName> = members.map(|member| member.name).collect();
        team.remove_members(&names).ok();
    }

    /// An annex starts an agent of which its daemon does not know.
    pub(super) fn start_unregistered_agent(&mut self) {
        let annex = self.rng.usize(self.annexes());
        let simulation = &mut self.hosts[annex].simulation;
        let running = simulation.running_shims().next();
        let Some((stage, identity)) = running.map(|(_, shim)| (shim.stage.clone(), shim.identity.clone()))
        else {
            return;
        };
        let mut shim = SimulatedShim::new(SpawnId::generate(), None, simulation.now.mono);
        (shim.stage, shim.identity, shim.is_disowned) = (stage, identity, true);
        let pid = simulation.next_pid();
        simulation.shims.insert(pid, shim);
        self.log(|| format!("{} runs an unregistered agent", host_name(annex)));
    }
}

/// Replaces the next item for the link, if it is such an item.
fn replace_first(end: &mut SimulatedLinkEnd, is_replaced: impl Fn(&ItemPayload) -> bool) {
    end.items.front_mut().filter(|item| is_replaced(item)).into_iter().for_each(|item| *item = PLACEHOLDER);
}

/// Exchanges the first two waiting messages of one sender to one recipient.
fn reorder(end: &mut SimulatedLinkEnd) {
    let key = |item: &ItemPayload| message_of(item).map(|(to, message)| (to, message.from));
    let Some(first) = end.items.front().and_then(key) else { return };
    let second = end.items.iter().skip(1).position(|item| key(item).as_ref() == Some(&first));
    if let Some(second) = second {
        end.items.swap(0, second + 1);
    }
}

fn message_of(item: &ItemPayload) -> Option<(MemberName, Message)> {
    match item {
        ItemPayload::Message { to, message, .. } => Some((to.clone(), message.clone())),
        _ => None,
    }
}
