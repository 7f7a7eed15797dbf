//! The state of a simulation of several hosts, and the steps of their daemons and connections.

use crate::core::deadlines::next_deadline;
use crate::core::jobs::host_jobs::{ConnectAttempt, HostJob, LinkId, MirrorJob};
use crate::io::hosts::simulated_link_end::LinkEndAction;
use crate::simulator::network::agent_work::AgentWork;
use crate::simulator::network::connections::{Arrival, Connection, HOME, HostIndex};
use crate::simulator::network::defect::Defect;
use crate::simulator::network::host_conditions::{FaultPhase, HostSimulation, NetworkCaller};
use crate::simulator::network::ledger::Ledger;
use crate::simulator::network::simulated_host::{SimulatedHost, host_name};
use crate::simulator::shim::{START_TIMEOUT, ShimStage};
use link::{LinkEffect, LinkEvent, LinkTime};
use protocol::control_socket::{ConnectHomeRequest, HomeId, Request};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

/// How many log lines are kept.
const LOG_LINES: usize = 400;

/// Parts of log lines that are left out, because they are frequent and routine.
const ROUTINE: [&str; 7] =
    ["Rescan", "ListTeams", "TeamsListed", "DeadlineReached", "KeepAlive", "ProbeWatcher", "ScanTasks"];

pub(super) struct NetworkSimulation {
    pub(super) rng: fastrand::Rng,
    /// Milliseconds of the monotonic clock.
    pub(super) now: u64,
    /// The home, and the annexes.
    pub(super) hosts: Vec<SimulatedHost>,
    pub(super) connections: BTreeMap<u64, Connection>,
    last_connection: u64,
    /// The annexes that no frame reaches or leaves.
    pub(super) partitioned: BTreeSet<HostIndex>,
    /// The longest time of a frame on its way, in milliseconds.
    pub(super) longest_delay: u64,
    pub(super) phase: FaultPhase,
    pub(super) defect: Option<Defect>,
    pub(super) ledger: Ledger,
    /// What each agent works on, by its host and shim.
    pub(super) work: BTreeMap<(HostIndex, u32), AgentWork>,
    pub(super) log: Option<VecDeque<String>>,
}

/// Something that can happen now.
#[derive(Clone, Copy)]
pub(super) enum Action {
    Daemon(HostIndex, fn(&mut HostSimulation)),
    Shim(HostIndex, u32),
    /// A step of the link between the home and an annex, at this host.
    Link {
        host: HostIndex,
        annex: HostIndex,
        action: LinkEndAction,
    },
    /// The next frame of a connection arrives at this host.
    Deliver {
        connection: u64,
        host: HostIndex,
    },
}

/// The link of `host` to or from the annex.
pub(super) fn link_id(host: HostIndex, annex: HostIndex) -> LinkId {
    match host {
        HOME => LinkId::ToAnnex(host_name(annex)),
        _ => LinkId::ToHome(home_request(annex)),
    }
}

fn home_request(annex: HostIndex) -> ConnectHomeRequest {
    let home = HomeId::parse(&format!("root-{HOME}")).expect("the identity is valid");
    ConnectHomeRequest { home, annex: host_name(annex), generation: 1 }
}

impl NetworkSimulation {
    pub(super) fn new(seed: u64, annexes: usize, dir: &Path) -> NetworkSimulation {
        let mut rng = fastrand::Rng::with_seed(seed);
        let hosts = (0..=annexes)
            .map(|index| SimulatedHost::new(index, &dir.join(format!("host{index}")), rng.fork()))
            .collect();
        NetworkSimulation {
            rng,
            now: 1_000,
            hosts,
            connections: BTreeMap::new(),
            last_connection: 0,
            partitioned: BTreeSet::new(),
            longest_delay: 0,
            phase: FaultPhase::Faults,
            defect: None,
            ledger: Ledger::default(),
            work: BTreeMap::new(),
            log: None,
        }
    }

    pub(super) fn annexes(&self) -> std::ops::Range<HostIndex> {
        1..self.hosts.len()
    }

    pub(super) fn log(&mut self, line: impl FnOnce() -> String) {
        let Some(log) = &mut self.log else { return };
        let line = line();
        if ROUTINE.iter().any(|routine| line.contains(routine)) {
            return;
        }
        if log.len() == LOG_LINES {
            log.pop_front();
        }
        log.push_back(format!("{:>8} {}", self.now, line.chars().take(400).collect::<String>()));
    }

    /// The actions that can happen now.
    pub(super) fn due_actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (host, simulated) in self.hosts.iter().enumerate() {
            let simulation = &simulated.simulation;
            actions.extend(simulation.due_daemon_actions().into_iter().map(|run| Action::Daemon(host, run)));
            actions.extend(simulation.due_shims().map(|pid| Action::Shim(host, pid)));
            for annex in self.annexes() {
                let end = simulated.links.get(&link_id(host, annex));
                let due = end.into_iter().flat_map(|end| {
                    let is_overdue = end.state.deadline().is_some_and(|deadline| deadline <= self.now);
                    end.due_actions()
                        .chain((is_overdue && end.events.is_empty()).then_some(LinkEndAction::Step))
                });
                actions.extend(due.map(|action| Action::Link { host, annex, action }));
            }
        }
        let arrivals = self.arrivals().filter(|(at, ..)| *at <= self.now);
        actions.extend(arrivals.map(|(_, connection, host)| Action::Deliver { connection, host }));
        actions
    }

    /// When the next frame of each pipe arrives, with its connection and the receiving host.
    fn arrivals(&self) -> impl Iterator<Item = (u64, u64, HostIndex)> {
        let open = self.connections.iter().filter(|(_, both)| !self.partitioned.contains(&both.annex));
        open.flat_map(|(number, both)| {
            // The annex reads a connection once it has accepted it.
            let to_annex = both.number_at_annex.and_then(|_| both.to_annex.next_arrival());
            let to_home = both.to_home.next_arrival();
            let to_annex = to_annex.map(|at| (at, *number, both.annex));
            to_annex.into_iter().chain(to_home.map(|at| (at, *number, HOME)))
        })
    }

    pub(super) fn run(&mut self, action: Action) {
        let host = match action {
            Action::Daemon(host, run) => {
                run(&mut self.hosts[host].simulation);
                host
            }
            Action::Shim(host, pid) => {
                self.hosts[host].simulation.run_shim(pid);
                host
            }
            Action::Link { host, annex, action } => {
                if action != LinkEndAction::Step {
                    self.log(|| format!("host {host}: {action:?} of the link to annex {annex}"));
                }
                self.run_link(host, annex, action);
                host
            }
            Action::Deliver { connection, host } => {
                self.deliver(connection, host);
                host
            }
        };
        self.finish_step(host);
    }

    fn run_link(&mut self, host: HostIndex, annex: HostIndex, action: LinkEndAction) {
        let copies = self.inject_defect(host, annex, action);
        let now = LinkTime { ms: self.now, random: self.rng.u64(..) };
        let Some(end) = self.hosts[host].links.get_mut(&link_id(host, annex)) else { return };
        if end.events.is_empty() && end.state.deadline().is_some_and(|deadline| deadline <= self.now) {
            end.events.push_back(LinkEvent::Deadline);
        }
        match end.run(action, now) {
            Some(LinkEffect::Connect { connection }) => self.connect(annex, connection),
            Some(LinkEffect::Send { connection, frame }) => {
                self.log(|| format!("host {host} sends {frame:?}"));
                let arrives_at = self.now + self.rng.u64(..=self.longest_delay);
                if let Some(both) = self.connection(host, annex, connection) {
                    both.pipe_from(host).write(&frame, arrives_at);
                }
            }
            Some(LinkEffect::Close { connection }) => {
                if let Some(both) = self.connection(host, annex, connection) {
                    both.close_at(host, usize::MAX);
                }
            }
            _ => {}
        }
        copies.into_iter().for_each(|(to, message)| self.store_copy(host, &to, &message));
    }

    /// The connection that the link of `host` knows by `number`.
    fn connection(&mut self, host: HostIndex, annex: HostIndex, number: u64) -> Option<&mut Connection> {
        let is_wanted = |both: &&mut Connection| {
            let own_number = if host == HOME { Some(both.number_at_home) } else { both.number_at_annex };
            both.annex == annex && own_number == Some(number)
        };
        self.connections.values_mut().find(is_wanted)
    }

    /// The connect command of the home runs, and reaches the annex, fails, or hangs.
    fn connect(&mut self, annex: HostIndex, number_at_home: u64) {
        self.connections.retain(|_, both| !both.is_over());
        let call = Request::ConnectHome(home_request(annex));
        let caller = NetworkCaller::Home(self.last_connection + 1);
        let is_reachable = !self.partitioned.contains(&annex);
        let client = is_reachable.then(|| self.hosts[annex].simulation.send_call_as(caller, None, call));
        let hangs = self.phase == FaultPhase::Faults && self.rng.bool();
        let event = match client.flatten() {
            Some(client) => {
                self.ledger.cover("connected");
                self.last_connection += 1;
                let connection = Connection::new(annex, number_at_home, client);
                self.connections.insert(self.last_connection, connection);
                LinkEvent::Opened { connection: number_at_home }
            }
            None if hangs => return self.ledger.cover("connect hangs"),
            None => LinkEvent::Closed { connection: number_at_home, reason: "no route".to_owned() },
        };
        let end = self.hosts[HOME].links.get_mut(&link_id(HOME, annex));
        if let Some(end) = end {
            end.events.push_back(event);
        }
    }

    fn deliver(&mut self, connection: u64, host: HostIndex) {
        let Some(both) = self.connections.get_mut(&connection) else { return };
        let annex = both.annex;
        let number = if host == HOME { Some(both.number_at_home) } else { both.number_at_annex };
        let (Some(number), Some(arrival)) = (number, both.pipe_to(host).read()) else { return };
        let event = match arrival {
            Arrival::Frame(frame, bytes) => LinkEvent::Received { connection: number, frame, bytes },
            Arrival::Closed => LinkEvent::Closed { connection: number, reason: "cut".to_owned() },
        };
        self.log(|| format!("host {host} gets {event:?}"));
        if let Some(end) = self.hosts[host].links.get_mut(&link_id(host, annex)) {
            end.events.push_back(event);
        }
    }

    /// After each step of a host: passes the reports of its links to the event loop, and handles
    /// the jobs and replies that the step has left for the network.
    pub(super) fn finish_step(&mut self, host: HostIndex) {
        let lost = self.hosts[host].deliver_reports();
        lost.iter().for_each(|annex| self.handle_lost_contact(annex));
        let rng = &mut self.rng;
        let loss_rate = if self.phase == FaultPhase::Faults { 20 } else { 0 };
        let has_config_changed = self.hosts[host].watch_files(|| rng.u8(..) < loss_rate);
        self.take_log(host);
        self.check_started_agents(host);
        if has_config_changed && host == HOME {
            self.check_listed_members();
        }
        while let Some(job) = self.hosts[host].simulation.conditions.host_jobs.pop_front() {
            self.run_host_job(host, job);
        }
        while let Some((caller, response)) = self.hosts[host].simulation.conditions.replies.pop_front() {
            match caller {
                NetworkCaller::Person => {}
                NetworkCaller::Claimant { shim_pid, task } => {
                    self.handle_confirmation(host, shim_pid, task, &response);
                }
                NetworkCaller::Home(connection) => {
                    let both = self.connections.get_mut(&connection);
                    both.into_iter().for_each(|both| both.close_at(host, usize::MAX));
                }
            }
        }
        self.hosts[host].deliver_reports();
    }

    fn take_log(&mut self, host: HostIndex) {
        let Some(lines) = self.hosts[host].simulation.conditions.log.as_mut().map(std::mem::take) else {
            return;
        };
        lines.into_iter().for_each(|line| self.log(|| format!("host {host}: {line}")));
    }

    /// Does the same as `LinkHandles::run`.
    fn run_host_job(&mut self, host: HostIndex, job: HostJob) {
        match job {
            HostJob::UseHost { host: annex, attempt, team, barrier, .. } => {
                let link = LinkId::ToAnnex(annex.clone());
                let is_new = self.hosts[host].used_annexes.insert(annex.clone());
                if is_new || attempt == ConnectAttempt::Now {
                    let connections = self.connections.values_mut();
                    let own = connections.filter(|both| host_name(both.annex) == annex);
                    own.for_each(|both| both.close_at(HOME, usize::MAX));
                    self.hosts[host].open_link(link.clone());
                }
                self.push_mirror_job(host, &link, MirrorJob::AddTeam { team, barrier });
            }
            HostJob::AcceptHome { client, home } => {
                self.hosts[host].simulation.clients.remove(&client);
                let link = LinkId::ToHome(home);
                if !self.hosts[host].links.contains_key(&link) {
                    self.hosts[host].open_link(link.clone());
                }
                let is_wanted = |both: &&mut Connection| both.annex == host && both.client == client;
                let connection = self.connections.values_mut().find(is_wanted);
                if let (Some(both), Some(end)) = (connection, self.hosts[host].links.get_mut(&link)) {
                    both.number_at_annex = Some(end.open_incoming());
                }
            }
            // The simulation forgets no host. An end-to-end test does.
            HostJob::ForgetHost(_) => {}
            HostJob::Mirror { link, job } => self.push_mirror_job(host, &link, job),
        }
    }

    fn push_mirror_job(&mut self, host: HostIndex, link: &LinkId, job: MirrorJob) {
        if let Some(end) = self.hosts[host].links.get_mut(link) {
            end.push_mirror_job(job);
        }
    }

    pub(super) fn start_host(&mut self, host: HostIndex) {
        self.log(|| format!("host {host}: a daemon starts"));
        self.hosts[host].start();
        self.finish_step(host);
    }

    /// Kills the daemon of a host. Its connections end at a random byte.
    pub(super) fn kill_host(&mut self, host: HostIndex) {
        self.ledger.cover(if host == HOME { "home killed" } else { "annex killed" });
        self.log(|| format!("host {host}: the daemon is killed"));
        self.hosts[host].kill();
        let rng = &mut self.rng;
        for both in self.connections.values_mut().filter(|both| host == HOME || both.annex == host) {
            let sent = both.pipe_from(host).length();
            both.close_at(host, rng.usize(..=sent));
        }
        let own = self.work.iter_mut().filter(|((other, _), _)| *other == host);
        own.for_each(|(_, work)| work.asked = None);
    }

    /// Advances the clocks of all hosts to `time`.
    pub(super) fn advance_to(&mut self, time: u64) {
        self.now = self.now.max(time);
        for host in &mut self.hosts {
            let elapsed = self.now.saturating_sub(host.simulation.now.mono);
            host.simulation.advance_clock(elapsed);
        }
    }

    /// When something happens by itself next.
    pub(super) fn next_deadline(&self) -> u64 {
        let hosts = self.hosts.iter().map(|host| {
            let simulation = &host.simulation;
            let daemon = simulation.daemon.as_ref().map(|daemon| next_deadline(&daemon.state));
            let waiting = simulation.shims.values().filter(|shim| shim.stage == ShimStage::Waiting);
            let shims = waiting.map(|shim| shim.started_at + START_TIMEOUT);
            let links = host.links.values().filter_map(|end| end.state.deadline());
            shims.chain(links).chain(daemon).min().unwrap_or(u64::MAX)
        });
        hosts.chain(self.arrivals().map(|(at, ..)| at)).min().unwrap_or(u64::MAX)
    }
}
