//! The invariants of a simulation. Some are checked at each step, the others at the end, when the
//! faults are over and nothing happens any more.

use crate::simulator::network::connections::{HOME, HostIndex};
use crate::simulator::network::members::members_of;
use crate::simulator::network::network_simulation::NetworkSimulation;
use crate::simulator::network::simulated_host::host_name;
use crate::simulator::shim::SimulatedShim;
use protocol::event_log_line::{Event, EventKind};
use protocol::inbox_message_payload::Payload;
use protocol::task::Task;
use protocol::team_and_member_names::MemberName;
use protocol::team_config::{Member, TeamConfig};
use std::collections::{BTreeMap, BTreeSet};
use store::Team;

impl NetworkSimulation {
    /// The shim of the running agent of a member.
    pub(super) fn running_agent(&self, host: HostIndex, name: &MemberName) -> Option<u32> {
        let mut running = self.hosts[host].simulation.running_shims();
        let is_of_member = |(_, shim): &(&u32, &SimulatedShim)| {
            shim.identity.as_ref().is_some_and(|identity| identity.name == *name)
        };
        running.find(is_of_member).map(|(pid, _)| *pid)
    }

    fn config(&self, host: HostIndex) -> Option<TeamConfig> {
        self.hosts[host].team()?.config().ok()
    }

    /// An agent starts only if the roster on disk and config.json of its host have it.
    pub(super) fn check_started_agents(&mut self, host: HostIndex) {
        for pid in std::mem::take(&mut self.hosts[host].simulation.conditions.started) {
            self.check_registered(host, pid);
        }
    }

    fn check_registered(&self, host: HostIndex, pid: u32) {
        let simulation = &self.hosts[host].simulation;
        let shim = &simulation.shims[&pid];
        let name = &shim.identity.as_ref().expect("the agent runs").name;
        let is_recorded = simulation.disk.roster.records.iter().any(|record| record.spawn_id == shim.spawn);
        let config = self.config(host);
        let member = config.as_ref().and_then(|config| config.member(name));
        let is_listed = member.is_some_and(|member| member.host.is_none());
        assert!(is_recorded && is_listed, "host {host}: the agent {pid} of {name} is not registered");
    }

    /// The home lists a member of an annex until its agent ends, whether there is contact or not.
    pub(super) fn check_listed_members(&mut self) {
        let Some(config) = self.config(HOME) else { return };
        let mut listed = BTreeMap::new();
        for annex in self.annexes() {
            for name in members_of(annex) {
                let before = self.ledger.listed.get(name.as_str());
                match config.member(&name).filter(|member| is_on_host(member, annex)) {
                    Some(member) => drop(listed.insert(name.to_string(), member.joined_at)),
                    None => {
                        let is_running = before.is_some_and(|at| self.is_running(annex, &name, *at));
                        assert!(!is_running, "{name} runs and was reported as ended without contact");
                    }
                }
            }
        }
        self.ledger.listed = listed;
    }

    /// Whether the agent of the spawn at this time runs, in milliseconds since the epoch.
    fn is_running(&self, host: HostIndex, name: &MemberName, spawned_at: u64) -> bool {
        let Some(pid) = self.running_agent(host, name) else { return false };
        let simulation = &self.hosts[host].simulation;
        let spawn = &simulation.shims[&pid].spawn;
        let mut records = simulation.disk.roster.records.iter();
        records.any(|record| record.spawn_id == *spawn && record.spawned_at == spawned_at)
    }

    /// Checks a simulation that is quiet after its faults.
    pub(super) fn check_quiet(&mut self) {
        self.check_listed_members();
        for host in 0..self.hosts.len() {
            let pids: Vec<u32> = self.hosts[host].simulation.running_shims().map(|(pid, _)| *pid).collect();
            pids.into_iter().for_each(|pid| self.check_registered(host, pid));
        }
        self.check_members();
        self.check_messages();
        self.check_tasks();
        self.check_exit_messages();
        self.check_events();
    }

    /// The home's event log has each event that an annex has sent once, in the order of the annex.
    fn check_events(&self) {
        let at_home = self.events(HOME);
        for annex in self.annexes() {
            let name = host_name(annex);
            let sent = self.events(annex).into_iter().filter(|event| event.number.is_some());
            let sent: Vec<(Option<u64>, EventKind)> = sent.map(|event| (event.number, event.kind)).collect();
            let logged = at_home.iter().filter(|event| event.on_host.as_deref() == Some(name.as_str()));
            let logged: Vec<(Option<u64>, EventKind)> =
                logged.map(|event| (event.number, event.kind.clone())).collect();
            let differing = sent.iter().zip(&logged).find(|(sent, logged)| sent != logged);
            assert!(
                sent.len() == logged.len() && differing.is_none(),
                "the events of host {annex}: {} sent, {} logged at the home, differing: {differing:?}",
                sent.len(),
                logged.len()
            );
        }
    }

    /// The event log of a host.
    fn events(&self, host: HostIndex) -> Vec<Event> {
        let lines = self.hosts[host].simulation.disk.log.iter().flatten();
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The configs of all hosts list the same members, and each is listed where it runs.
    fn check_members(&self) {
        for host in 0..self.hosts.len() {
            let config = self.config(host).expect("each host has the team");
            for other in 0..self.hosts.len() {
                for name in members_of(other) {
                    let member = config.member(&name);
                    let is_right = member.is_some_and(|member| lists_right_host(member, host, other));
                    assert!(is_right, "host {host} lists {name} of host {other} as {member:?}");
                }
            }
            let names: BTreeSet<&MemberName> = config.members.iter().map(|member| &member.name).collect();
            assert_eq!(names.len(), 1 + 2 * self.hosts.len(), "the members at host {host}: {names:?}");
        }
    }

    /// The home and the host of the recipient both have each message once, and the messages of one
    /// sender in the order in which they were sent.
    fn check_messages(&self) {
        let hosts = 0..self.hosts.len();
        let members = hosts.flat_map(|host| members_of(host).map(|name| (host, name)));
        for (host, to) in members.chain([(HOME, MemberName::lead())]) {
            for at in BTreeSet::from([HOME, host]) {
                let team = self.hosts[at].team().expect("each host has the team");
                let mut received: BTreeMap<String, Vec<String>> = BTreeMap::new();
                for (from, text) in
                    texts(&team, &to).into_iter().filter(|(_, text)| text.starts_with("message "))
                {
                    received.entry(from).or_default().push(text);
                }
                let sent = self.ledger.sent.iter().filter(|((_, recipient), _)| to.as_str() == recipient);
                let sent: BTreeMap<String, Vec<String>> =
                    sent.map(|((from, _), texts)| (from.clone(), texts.clone())).collect();
                for from in sent.keys().chain(received.keys()) {
                    assert_eq!(
                        received.get(from),
                        sent.get(from),
                        "messages from {from} to {to} at host {at}; left: received, right: sent"
                    );
                }
            }
            let [at_home, there] = [HOME, host]
                .map(|at| self.hosts[at].team().and_then(|team| team.inbox(&to).count_unread().ok()));
            assert_eq!(at_home, there, "unread messages to {to}; left: at the home, right: at host {host}");
        }
    }

    /// All hosts have the same tasks, none is lost or doubled, and the home's owner has begun it.
    fn check_tasks(&self) {
        let tasks = |host: HostIndex| {
            let team = self.hosts[host].team().expect("each host has the team");
            let mut tasks = team.tasks().list().expect("the tasks can be read");
            // Each host has its own tasks that track its members.
            tasks.retain(|task| !task.is_internal());
            tasks
        };
        let at_home = tasks(HOME);
        for annex in self.annexes() {
            let there = tasks(annex);
            let differing = |one: &[Task], other: &[Task]| {
                let differing = one.iter().filter(|task| !other.contains(task));
                differing.cloned().collect::<Vec<Task>>()
            };
            let differing = [differing(&there, &at_home), differing(&at_home, &there)];
            let is_equal = differing.iter().all(Vec::is_empty);
            assert!(is_equal, "the tasks of host {annex} and of the home differ: {differing:?}");
        }
        let mut subjects: Vec<&String> = at_home.iter().map(|task| &task.subject).collect();
        subjects.sort_unstable();
        let created: Vec<&String> = self.ledger.created.iter().collect();
        assert_eq!(subjects, created, "the tasks of the home; right: created");
        for task in &at_home {
            let starts = self.ledger.starts.get(&task.subject).into_iter().flatten();
            let other = starts
                .map(|start| &start.member)
                .find(|member| task.owner.as_ref().is_none_or(|owner| owner.as_str() != member.as_str()));
            assert_eq!(
                other, None,
                "the task {:?} was begun by another than its owner {:?}",
                task.subject, task.owner
            );
        }
    }

    /// The lead gets one message for each exit of a member, and none for a member that has not
    /// ended.
    fn check_exit_messages(&self) {
        let team = self.hosts[HOME].team().expect("each host has the team");
        let entries = team.inbox(&MemberName::lead()).read().expect("the inbox can be read");
        let mut reported = BTreeSet::new();
        for message in entries.into_iter().filter_map(|entry| entry.message.ok()) {
            if matches!(Payload::parse(&message.text), Some(Payload::TeammateTerminated(_))) {
                let key = (message.from.clone(), message.timestamp.clone());
                assert!(reported.insert(key), "the exit of {} is reported twice", message.from);
            }
        }
        for (name, _) in &reported {
            let reports = reported.iter().filter(|(other, _)| other == name).count();
            let ended = self.ended_shims(name);
            assert!(reports <= ended, "{reports} exits of {name} are reported, and {ended} happened");
        }
    }

    /// The number of a member's shims whose agent has ended. The lead may get at most as many
    /// messages about exits of the member.
    ///
    /// A shim that never had an agent may belong to any member of its host, so it counts for each
    /// of them.
    fn ended_shims(&self, member: &str) -> usize {
        let has_member = |host: HostIndex| members_of(host).iter().any(|name| name.as_str() == member);
        let hosts = (0..self.hosts.len()).filter(|host| has_member(*host));
        let shims = hosts.flat_map(|host| self.hosts[host].simulation.shims.values());
        let may_be_of_member = |shim: &&SimulatedShim| {
            shim.identity.as_ref().is_none_or(|identity| identity.name.as_str() == member)
        };
        shims.filter(|shim| shim.agent_pid().is_none()).filter(may_be_of_member).count()
    }
}

fn is_on_host(member: &Member, annex: HostIndex) -> bool {
    member.host.as_deref() == Some(host_name(annex).as_str())
}

/// Whether the config of `host` says rightly that the member runs on the host `other`.
fn lists_right_host(member: &Member, host: HostIndex, other: HostIndex) -> bool {
    match member.host.as_deref() {
        None => host == other,
        Some(named) if other == HOME => host != HOME && named == protocol::hosts_file_entry::HOME_HOST,
        Some(named) => host != other && named == host_name(other).as_str(),
    }
}

/// The messages of an inbox: senders and texts, in order.
fn texts(team: &Team, owner: &MemberName) -> Vec<(String, String)> {
    let entries = team.inbox(owner).read().unwrap_or_default();
    let messages = entries.into_iter().filter_map(|entry| entry.message.ok());
    messages.map(|message| (message.from, message.text)).collect()
}
