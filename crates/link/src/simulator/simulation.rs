//! The state of a simulation, and the actions that can happen.

use crate::event_and_effect::{LinkEffect, LinkEvent, LinkReport, LinkTime};
use crate::settings_and_identity::{LinkRole, LinkSettings};
use crate::simulator::host::{ANNEX, ApplyJob, Host, HostIndex, ReceiverKind};
use crate::simulator::network::{Network, Pipe, PipeEnd};
use crate::submission::Submission;
use crate::test_items::{payload, spawn};
use protocol::annex_link::{LinkFrame, encode_frame};
use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many log lines are kept.
const LOG_LINES: usize = 60;

pub(super) struct Simulation {
    pub(super) rng: fastrand::Rng,
    pub(super) now_ms: u64,
    /// The annex, the earlier homes and the current home.
    pub(super) hosts: Vec<Host>,
    pub(super) network: Network,
    pub(super) settings: LinkSettings,
    /// Text that makes each item longer.
    pub(super) padding: String,
    /// What has occurred.
    pub(super) coverage: BTreeSet<&'static str>,
    /// How many effects and events the processes have handled.
    pub(super) steps: u64,
    /// How many bytes have arrived at the annex and at homes.
    pub(super) delivered: [u64; 2],
    /// The ends of the frames that were sent to the annex and to homes, in bytes since the start.
    pub(super) boundaries: [Vec<u64>; 2],
    pub(super) log_level: LogLevel,
    log: VecDeque<String>,
}

/// Something that can happen next.
#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    Step(HostIndex),
    FinishSpoolJob(HostIndex),
    FinishApplyJob(HostIndex),
    Submit(HostIndex),
    /// Deliver bytes of a connection, to the annex or to the home.
    Deliver(u64, bool),
}

/// Whether the last actions are logged. Logging would take most of the run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogLevel {
    Off,
    Tail,
}

impl Simulation {
    pub(super) fn new(seed: u64, kind: ReceiverKind, wanted: u64) -> Simulation {
        let home = Host::new(LinkRole::Home { epoch: 1 }, kind, wanted);
        Simulation {
            rng: fastrand::Rng::with_seed(seed),
            now_ms: 1_000,
            hosts: vec![Host::new(LinkRole::Annex, kind, wanted), home],
            network: Network::default(),
            settings: LinkSettings::default(),
            padding: String::new(),
            coverage: BTreeSet::new(),
            steps: 0,
            delivered: [0; 2],
            boundaries: [vec![0], vec![0]],
            log_level: LogLevel::Off,
            log: VecDeque::new(),
        }
    }

    pub(super) fn home(&self) -> HostIndex {
        self.hosts.len() - 1
    }

    pub(super) fn log_text(&self) -> String {
        self.log.iter().fold(String::new(), |text, line| text + line + "\n")
    }

    fn log(&mut self, line: impl FnOnce() -> String) {
        if self.log_level == LogLevel::Off {
            return;
        }
        if self.log.len() == LOG_LINES {
            self.log.pop_front();
        }
        self.log.push_back(format!("{:>8} {}", self.now_ms, line().chars().take(300).collect::<String>()));
    }

    pub(super) fn cover(&mut self, what: &'static str) {
        self.coverage.insert(what);
    }

    /// Removes connections that no end uses.
    fn forget_ended_connections(&mut self) {
        let is_over = |pipe: &Pipe| pipe.bytes.is_empty() && pipe.end == PipeEnd::Silent;
        self.network.connections.retain(|_, both| !is_over(&both.to_annex) || !is_over(&both.to_home));
    }

    /// The actions that are possible now.
    pub(super) fn due_actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (index, host) in self.hosts.iter().enumerate() {
            let Some(process) = &host.process else { continue };
            actions.extend(self.can_step(index).then_some(Action::Step(index)));
            actions.extend(process.spool_job.is_some().then_some(Action::FinishSpoolJob(index)));
            actions.extend(process.apply_job.is_some().then_some(Action::FinishApplyJob(index)));
            actions.extend(self.can_submit(index).then_some(Action::Submit(index)));
        }
        let connections = self.network.connections.iter().filter(|_| !self.network.is_partitioned);
        for (index, connection) in connections {
            let pipes = [(&connection.to_annex, true), (&connection.to_home, false)];
            let has_more = |pipe: &Pipe| !pipe.bytes.is_empty() || pipe.end == PipeEnd::Closed;
            let readable = pipes.into_iter().filter(|(pipe, _)| has_more(pipe));
            actions.extend(readable.map(|(_, to_annex)| Action::Deliver(*index, to_annex)));
        }
        actions
    }

    /// Runs an action. Items concern no member's start, and all bytes of a connection arrive.
    pub(super) fn run(&mut self, action: Action) {
        match action {
            Action::Step(host) => self.step(host),
            Action::FinishSpoolJob(host) => self.finish_spool_job(host),
            Action::FinishApplyJob(host) => self.finish_apply_job(host),
            Action::Submit(host) => self.submit(host, None),
            Action::Deliver(connection, to_annex) => self.deliver(connection, to_annex, usize::MAX),
        }
    }

    /// Whether the process of `host` can do something by itself.
    fn can_step(&self, host: HostIndex) -> bool {
        let process = self.hosts[host].process.as_ref();
        process.is_some_and(|process| !process.effects.is_empty() || !process.events.is_empty())
    }

    /// Carries out the next effect of a process, or handles its next event if it has no effects.
    fn step(&mut self, host: HostIndex) {
        let Some(process) = &mut self.hosts[host].process else { return };
        self.steps += 1;
        if let Some(effect) = process.effects.pop_front() {
            self.log(|| format!("host {host}: {effect:?}"));
            return self.run_effect(host, effect);
        }
        if let Some(event) = process.events.pop_front() {
            self.handle_event(host, event);
        }
    }

    fn handle_event(&mut self, host: HostIndex, event: LinkEvent) {
        self.log(|| format!("host {host} gets {event:?}"));
        self.note_arrival(host, &event);
        let now = LinkTime { ms: self.now_ms, random: self.rng.u64(..) };
        let process = self.hosts[host].process.as_mut().unwrap();
        process.effects.extend(process.state.handle(event, now));
        self.check_memory(host);
    }

    fn run_effect(&mut self, host: HostIndex, effect: LinkEffect) {
        self.check_effect(host, &effect);
        let process = self.hosts[host].process.as_mut().unwrap();
        match effect {
            LinkEffect::Connect { connection } => self.connect(host, connection),
            LinkEffect::Send { connection, frame } => self.send(host, connection, &frame),
            LinkEffect::Close { connection } => {
                if let Some(connection) = self.network.find(host, connection) {
                    connection.pipe_from(host).cut(usize::MAX, PipeEnd::Closed);
                    connection.pipe_to(host).cut(0, PipeEnd::Silent);
                }
            }
            LinkEffect::Spool(write) => process.spool_job = Some(write),
            LinkEffect::Apply { items, position } => process.apply_job = Some(ApplyJob { items, position }),
            LinkEffect::Report(report) => self.cover(report_name(&report)),
        }
    }

    /// The connect command runs, and reaches the annex, fails, or hangs.
    fn connect(&mut self, home: HostIndex, number_at_home: u64) {
        if self.hosts[ANNEX].process.is_none() || self.network.is_partitioned {
            if self.rng.bool() {
                let reason = "no route".to_owned();
                self.push_event(home, LinkEvent::Closed { connection: number_at_home, reason });
            }
            return;
        }
        self.forget_ended_connections();
        let connection = self.network.connect(home, number_at_home);
        self.push_event(ANNEX, LinkEvent::Opened { connection });
        self.push_event(home, LinkEvent::Opened { connection: number_at_home });
    }

    fn send(&mut self, host: HostIndex, connection: u64, frame: &LinkFrame) {
        if let Some(connection) = self.network.find(host, connection) {
            let bytes = encode_frame(frame).unwrap();
            connection.pipe_from(host).write(&bytes);
            let boundaries = &mut self.boundaries[usize::from(host == ANNEX)];
            boundaries.push(boundaries[boundaries.len() - 1] + bytes.len() as u64);
        }
    }

    pub(super) fn push_event(&mut self, host: HostIndex, event: LinkEvent) {
        if let Some(process) = &mut self.hosts[host].process {
            process.events.push_back(event);
        }
    }

    /// Delivers at most `bytes` bytes of a connection to one of its ends.
    pub(super) fn deliver(&mut self, index: u64, to_annex: bool, bytes: usize) {
        let connection = self.network.connections.get_mut(&index).unwrap();
        let (host, number) =
            if to_annex { (ANNEX, index) } else { (connection.home, connection.number_at_home) };
        let pipe = connection.pipe_to(host);
        let bytes: Vec<u8> = pipe.bytes.drain(..bytes.min(pipe.bytes.len())).collect();
        self.delivered[usize::from(!to_annex)] += bytes.len() as u64;
        pipe.decoder.push(&bytes);
        let mut events = Vec::new();
        while let Some((frame, bytes)) = pipe.decoder.next_frame().unwrap() {
            events.push(LinkEvent::Received { connection: number, frame, bytes });
        }
        if pipe.bytes.is_empty() && pipe.end == PipeEnd::Closed {
            pipe.end = PipeEnd::Silent;
            events.push(LinkEvent::Closed { connection: number, reason: "cut".to_owned() });
        }
        events.into_iter().for_each(|event| self.push_event(host, event));
    }

    /// Ends the write to the spool, if there is one.
    fn finish_spool_job(&mut self, host: HostIndex) {
        let Host { process: Some(process), disk, .. } = &mut self.hosts[host] else { return };
        let Some(write) = process.spool_job.take() else { return };
        let event = match disk.is_full {
            true => LinkEvent::SpoolFailed { reason: "no space".to_owned() },
            false => {
                disk.write_spool(&write, usize::MAX);
                LinkEvent::Spooled
            }
        };
        process.events.push_back(event);
        self.cover(if matches!(write, crate::SpoolWrite::Replace(_)) { "replace" } else { "append" });
    }

    /// Ends the storing of received items, if they are being stored.
    fn finish_apply_job(&mut self, host: HostIndex) {
        let Host { process: Some(process), disk, .. } = &mut self.hosts[host] else { return };
        let Some(apply) = process.apply_job.take() else { return };
        let event = match disk.is_full {
            true => LinkEvent::ApplyFailed { reason: "no space".to_owned() },
            false => {
                disk.apply(&apply, usize::MAX);
                LinkEvent::Applied
            }
        };
        process.events.push_back(event);
    }

    /// Kills the process of a host. Writes in progress are done up to `steps` bytes or items.
    pub(super) fn kill(&mut self, host: HostIndex, steps: usize) {
        let Host { process, disk, .. } = &mut self.hosts[host];
        let Some(process) = process.take() else { return };
        if let Some(write) = &process.spool_job {
            disk.write_spool(write, steps);
        }
        if let Some(apply) = &process.apply_job {
            disk.apply(apply, steps);
        }
        for connection in self.network.of_host(host) {
            connection.pipe_from(host).cut(steps, PipeEnd::Closed);
            connection.pipe_to(host).cut(0, PipeEnd::Silent);
            if host != ANNEX {
                connection.number_at_home = u64::MAX;
            }
        }
        self.log(|| format!("host {host} is killed, {steps} steps of its writes are done"));
    }

    pub(super) fn start(&mut self, host: HostIndex) {
        self.hosts[host].start(self.settings);
        self.log(|| format!("host {host} starts"));
    }

    /// Whether the application of a host can submit its next item.
    fn can_submit(&self, host: HostIndex) -> bool {
        let Host { process: Some(process), wanted, .. } = &self.hosts[host] else { return false };
        let submissions = process.events.iter().filter(|event| matches!(event, LinkEvent::Submitted(_)));
        submissions.count() == 0 && process.state.has_capacity() && process.state.last_number() < *wanted
    }

    /// Submits the next item. If a crash loses the item, the application submits it again with the
    /// same number and text.
    pub(super) fn submit(&mut self, host: HostIndex, generation: Option<u64>) {
        let simulated_host = &mut self.hosts[host];
        let number = simulated_host.process.as_ref().unwrap().state.last_number() + 1;
        simulated_host.submitted.insert(number, generation);
        let payload = payload(simulated_host.first_count + number, &self.padding);
        let submission = Submission::new(generation.map(spawn), payload).unwrap();
        self.push_event(host, LinkEvent::Submitted(submission));
    }

    /// Lets the time pass until the next deadline.
    pub(super) fn advance_time(&mut self) {
        let deadline = |host: &Host| host.process.as_ref()?.state.deadline();
        let Some(next) = self.hosts.iter().filter_map(deadline).min() else { return };
        self.now_ms = self.now_ms.max(next);
        for host in 0..self.hosts.len() {
            if deadline(&self.hosts[host]).is_some_and(|deadline| deadline <= self.now_ms) {
                self.push_event(host, LinkEvent::Deadline);
            }
        }
    }
}

/// Runs a simulation and catches the panic of a failed check.
pub(super) fn run_and_catch(
    simulation: &mut Simulation,
    scenario: impl FnOnce(&mut Simulation),
) -> Result<(), String> {
    let result = catch_unwind(AssertUnwindSafe(|| scenario(simulation)));
    let to_message = |panic: Box<dyn Any + Send>| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => {
            panic.downcast::<&str>().map_or_else(|_| "a panic".to_owned(), |text| (*text).to_owned())
        }
    };
    result.map_err(|panic| format!("{}\nEnd of the log:\n{}", to_message(panic), simulation.log_text()))
}

fn report_name(report: &LinkReport) -> &'static str {
    match report {
        LinkReport::Connected { .. } => "connected",
        LinkReport::Disconnected(reason) => match reason {
            crate::DisconnectReason::Silent => "silent",
            crate::DisconnectReason::NoHello => "no hello",
            crate::DisconnectReason::RefusedByOther(_) => "refused by other",
            _ => "disconnected",
        },
        LinkReport::Refused(_) => "refused",
        LinkReport::Accepted { .. } => "accepted",
        LinkReport::SpoolFailed { .. } => "spool failed",
        LinkReport::SpoolWorks => "spool works",
        LinkReport::ApplyFailed { .. } => "apply failed",
        LinkReport::ApplyWorks => "apply works",
        LinkReport::StorageFailedThere { .. } => "storage failed there",
        LinkReport::StorageWorksThere => "storage works there",
        LinkReport::Dropped { .. } => "dropped",
    }
}
