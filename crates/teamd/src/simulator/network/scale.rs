//! Measures what many agents on many hosts cost their home. `scripts/scale` runs this.
//!
//! The home is real as in the other simulations, with its links, mirrors and files. Each annex is a
//! [`ScriptedAnnex`]. The simulated watcher reports each change at once. The results are CPU times
//! of the home, because elapsed times would depend on other programs on the machine. `scale_faults`
//! injects faults.

use crate::core::jobs::host_jobs::{HostJob, LinkId, MirrorJob};
use crate::io::hosts::simulated_link_end::LinkEndAction;
use crate::simulator::network::connections::HOME;
use crate::simulator::network::cpu_clock::{CpuTimes, Part};
use crate::simulator::network::host_conditions::{FaultPhase, NetworkCaller};
use crate::simulator::network::scripted_annex::ScriptedAnnex;
use crate::simulator::network::simulated_host::{SimulatedHost, host_name, team_name};
use crate::simulator::scan_memory::{TeamFile, WatcherEvent};
use link::{LinkEffect, LinkEvent, LinkTime};
use protocol::annex_link::{FrameDecoder, ItemPayload, LinkFrame, TaskChange, encode_frame};
use protocol::control_socket::{CreateTeamRequest, Request, UseHostRequest};
use protocol::inbox_file::Message;
use protocol::member_color::Color;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use protocol::team_config::{Member, TeammateEntry};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use store::{NewTask, Team};

/// Milliseconds of an hour.
const HOUR: u64 = 60 * 60 * 1_000;
/// The time between two steps of the clock in milliseconds: that of the keep-alives.
const TICK: u64 = 15_000;
/// Of so many agents, one does a task in a day.
const AGENTS_PER_TASK: usize = 5;
/// Of so many agents, one asks the lead to approve a plan in a day.
const AGENTS_PER_REQUEST: usize = 10;
/// How many members are started one by one after all others.
const LATE_MEMBERS: usize = 5;

/// The home with its annexes, and the time that the parts of the home have taken.
pub(super) struct MeasuredHome {
    pub(super) host: SimulatedHost,
    pub(super) annexes: Vec<ScriptedAnnex>,
    pub(super) decoders: Vec<FrameDecoder>,
    links: BTreeMap<LinkId, usize>,
    pub(super) now: u64,
    pub(super) times: CpuTimes,
    /// The links that may have something to do.
    pub(super) busy: BTreeSet<usize>,
    /// The annexes without a connection. The connect commands fail.
    pub(super) unreachable: BTreeSet<usize>,
}

pub(super) fn member(index: usize) -> MemberName {
    MemberName::parse(&format!("agent{index}")).expect("the name is valid")
}

fn fields_of_member(index: usize) -> Map<String, Value> {
    let entry = TeammateEntry {
        name: member(index),
        agent_type: None,
        model: "default".to_owned(),
        prompt: "Do the tasks of the list, and report what you have found.".to_owned(),
        color: Color::for_joined_count(1),
        plan_mode_required: false,
        joined_at: 2,
        tmux_pane_id: "%1".to_owned(),
        cwd: "/srv/project".to_owned(),
        backend_type: "tmux".to_owned(),
        worktree_path: None,
    };
    let member = serde_json::to_value(Member::teammate(&team_name(), entry));
    member.ok().and_then(|member| member.as_object().cloned()).expect("a member is an object")
}

impl MeasuredHome {
    fn new(dir: &std::path::Path, annexes: usize) -> MeasuredHome {
        let mut host = SimulatedHost::new(HOME, dir, fastrand::Rng::with_seed(1));
        host.simulation.conditions.phase = FaultPhase::Healed;
        host.start();
        let annex = |index: usize| ScriptedAnnex::new("root-0", &host_name(index + 1));
        MeasuredHome {
            host,
            annexes: (0..annexes).map(annex).collect(),
            decoders: (0..annexes).map(|_| FrameDecoder::default()).collect(),
            links: (0..annexes).map(|annex| (link_of(annex), annex)).collect(),
            now: 1_000,
            times: CpuTimes::default(),
            busy: (0..annexes).collect(),
            unreachable: BTreeSet::new(),
        }
    }

    fn team(&self) -> Team {
        self.host.team().expect("the home has the team")
    }

    /// Lets the home and all annexes do everything that is due. All links run first, and then the
    /// core handles the changes that they have reported.
    pub(super) fn run(&mut self) {
        loop {
            self.run_daemon();
            let busy = std::mem::take(&mut self.busy);
            if busy.is_empty() {
                return;
            }
            busy.into_iter().for_each(|annex| self.run_link(annex));
        }
    }

    fn run_daemon(&mut self) {
        loop {
            let Some(run) = self.host.simulation.due_daemon_actions().into_iter().next() else { return };
            let simulation = &mut self.host.simulation;
            self.times.time(Part::Core, || run(simulation));
            let files = std::mem::take(&mut self.host.simulation.conditions.files_time);
            self.times.move_time((Part::Core, Part::FileJobs), files);
            self.host.simulation.conditions.replies.clear();
            while let Some(job) = self.host.simulation.conditions.host_jobs.pop_front() {
                self.run_host_job(job);
            }
        }
    }

    fn run_host_job(&mut self, job: HostJob) {
        let (link, job) = match job {
            HostJob::UseHost { host, team, barrier, .. } => {
                self.host.used_annexes.insert(host.clone());
                let link = LinkId::ToAnnex(host);
                self.host.open_link(link.clone());
                (link, MirrorJob::AddTeam { team, barrier })
            }
            HostJob::Mirror { link, job } => (link, job),
            HostJob::AcceptHome { .. } | HostJob::ForgetHost(_) => return,
        };
        if let (Some(annex), Some(end)) = (self.links.get(&link), self.host.links.get_mut(&link)) {
            end.push_mirror_job(job);
            self.busy.insert(*annex);
        }
    }

    /// Runs the ends of one link until neither has anything to do.
    fn run_link(&mut self, annex: usize) {
        let now = LinkTime { ms: self.now, random: 7 };
        loop {
            self.annexes[annex].run(now);
            while let Some(bytes) = self.annexes[annex].frames.pop_front() {
                self.receive(annex, &bytes);
            }
            if !self.step_link(annex, now) {
                break;
            }
        }
        self.host.deliver_reports();
    }

    fn receive(&mut self, annex: usize, bytes: &[u8]) {
        let decoder = &mut self.decoders[annex];
        let frame = self.times.time(Part::Links, || {
            decoder.push(bytes);
            decoder.next_frame().expect("only frames are sent")
        });
        let connection = self.annexes[annex].connection_of_home();
        if let (Some((frame, bytes)), Some(end)) = (frame, self.host.links.get_mut(&link_of(annex))) {
            end.events.push_back(LinkEvent::Received { connection, frame, bytes });
        }
    }

    /// Does one step of the home's end. Returns false if none is due.
    fn step_link(&mut self, annex: usize, now: LinkTime) -> bool {
        let Some(end) = self.host.links.get_mut(&link_of(annex)) else { return false };
        if end.state.deadline().is_some_and(|deadline| deadline <= self.now) && end.events.is_empty() {
            end.events.push_back(LinkEvent::Deadline);
        }
        let Some(action) = end.due_actions().next() else { return false };
        let applied: Vec<TeamFile> = match action {
            LinkEndAction::FinishApply => {
                end.items_to_apply().iter().filter_map(|item| changed_file(&item.payload)).collect()
            }
            _ => Vec::new(),
        };
        let is_of_mirror = !applied.is_empty() || action == LinkEndAction::RunMirrorJob;
        let part = if is_of_mirror { Part::Mirrors } else { Part::Links };
        let effect = self.times.time(part, || end.run(action, now));
        match effect {
            Some(LinkEffect::Connect { connection }) => self.connect(annex, connection),
            Some(LinkEffect::Send { frame, .. }) => self.send(annex, frame),
            _ => {}
        }
        applied.into_iter().for_each(|file| self.report_change(file));
        true
    }

    fn connect(&mut self, annex: usize, connection: u64) {
        let Some(end) = self.host.links.get_mut(&link_of(annex)) else { return };
        end.events.push_back(if self.unreachable.contains(&annex) {
            LinkEvent::Closed { connection, reason: "no route".to_owned() }
        } else {
            self.annexes[annex].open(connection);
            self.decoders[annex] = FrameDecoder::default();
            LinkEvent::Opened { connection }
        });
    }

    fn send(&mut self, annex: usize, frame: LinkFrame) {
        let bytes = self.times.time(Part::Links, || encode_frame(&frame).map_or(0, |bytes| bytes.len()));
        self.annexes[annex].receive(frame, bytes);
    }

    /// The watcher reports a changed file.
    pub(super) fn report_change(&mut self, file: TeamFile) {
        self.host.simulation.disk.pending_events.push_back(WatcherEvent::Changed(team_name(), file));
    }

    /// Lets something happen, and runs until everything has followed from it.
    pub(super) fn measure(&mut self, kind: &'static str, happen: impl FnOnce(&mut MeasuredHome)) {
        let before = self.times.total();
        happen(self);
        self.run();
        self.times.add_event(kind, before);
    }

    fn submit(&mut self, annex: usize, item: ItemPayload) {
        self.annexes[annex].submit(item);
        self.busy.insert(annex);
    }

    fn call(&mut self, request: Request) {
        self.host.simulation.send_call_as(NetworkCaller::Person, None, request);
        self.run();
    }

    /// The annex reports that it runs these members.
    pub(super) fn report_members(&mut self, annex: usize, members: impl Iterator<Item = usize>) {
        let members = members.map(fields_of_member).collect();
        let created_at = self.created_at();
        self.submit(annex, ItemPayload::Members { team: team_name(), created_at, members });
    }

    fn created_at(&self) -> u64 {
        self.team().config().expect("the config can be read").created_at
    }

    /// A member and the lead send each other a message.
    fn exchange_messages(&mut self, annex: usize, index: usize) {
        let (name, lead, at) = (member(index), MemberName::lead(), self.now);
        let created_at = self.created_at();
        let message = Message::new(&name, format!("Found {index} places that need work."), at);
        self.measure("message to the lead", |home| {
            home.submit(annex, ItemPayload::Message { team: team_name(), created_at, to: lead, message });
        });
        self.measure("message to a member", |home| {
            let message = Message::new(&MemberName::lead(), format!("Look at part {index} too."), at);
            home.team().inbox(&name).append(&message).expect("the inbox can be written");
            home.report_change(TeamFile::Inbox(name));
        });
    }

    /// A person creates a task, and a member claims and completes it.
    fn do_task(&mut self, annex: usize, index: usize) {
        let mut id = None;
        self.measure("new task", |home| {
            let task = NewTask::new(&format!("part {index}"), &MemberName::lead());
            let task = home.team().tasks().create(task).expect("the task can be written");
            home.report_change(TeamFile::Task(task.id));
            id = Some(task.id);
        });
        let Some(id) = id else { return };
        let created_at = self.created_at();
        for (kind, status) in [("claim", TaskStatus::InProgress), ("completion", TaskStatus::Completed)] {
            let before = self.team().tasks().get(&id).expect("the task exists");
            let after = Task { owner: Some(member(index)), status, ..before.clone() };
            let change = TaskChange::between(Some(&before.to_fields()), Some(&after.to_fields()));
            let Some(change) = change else { return };
            self.measure(kind, |home| {
                home.submit(annex, ItemPayload::TaskChange { team: team_name(), created_at, id, change });
            });
        }
    }

    /// A member without contact to the home sends the lead a message.
    fn queue_message(&mut self, annex: usize, index: usize) {
        let message = Message::new(&member(index), format!("Found {index} places."), self.now);
        let (created_at, to) = (self.created_at(), MemberName::lead());
        self.submit(annex, ItemPayload::Message { team: team_name(), created_at, to, message });
    }

    /// A member asks the lead to approve a plan, and the lead does.
    fn request_approval(&mut self, annex: usize, index: usize) {
        let (name, lead, at) = (member(index), MemberName::lead(), self.now);
        let id = format!("plan-{index}-{at}");
        let request = json!({"type": "plan_approval_request", "from": name, "timestamp": "", "planFilePath": "plan.md",
            "planContent": "Read it all first.", "requestId": id});
        let message = Message::new(&name, request.to_string(), at);
        let created_at = self.created_at();
        self.measure("request to the lead", |home| {
            home.submit(annex, ItemPayload::Message { team: team_name(), created_at, to: lead, message });
        });
        let answer =
            json!({"type": "plan_approval_response", "requestId": id, "approved": true, "timestamp": ""});
        self.measure("answer to a member", |home| {
            let message = Message::new(&MemberName::lead(), answer.to_string(), at);
            home.team().inbox(&name).append(&message).expect("the inbox can be written");
            home.report_change(TeamFile::Inbox(name));
        });
    }

    /// Advances the clock. The keep-alives and the rescans that are due count as "idle time".
    pub(super) fn tick(&mut self) {
        self.now += TICK;
        self.host.simulation.advance_clock(self.now.saturating_sub(self.host.simulation.now.mono));
        self.reconnect();
        self.busy.extend(0..self.annexes.len());
        self.measure("15 s without events", |_| {});
    }
}

pub(super) fn link_of(annex: usize) -> LinkId {
    LinkId::ToAnnex(host_name(annex + 1))
}

fn changed_file(item: &ItemPayload) -> Option<TeamFile> {
    match item {
        ItemPayload::Members { .. } => Some(TeamFile::Config),
        ItemPayload::Message { to, .. } => Some(TeamFile::Inbox(to.clone())),
        ItemPayload::Read { owner, .. } => Some(TeamFile::Inbox(owner.clone())),
        ItemPayload::TaskChange { id, .. } => Some(TeamFile::Task(TaskId::clone(id))),
        _ => None,
    }
}

/// Starts a team of `agents` members on `annexes` hosts.
fn start_team(home: &mut MeasuredHome, agents: usize) {
    home.call(Request::CreateTeam(CreateTeamRequest::new(team_name(), "/".into())));
    for annex in 0..home.annexes.len() {
        let (team, host) = (team_name(), host_name(annex + 1));
        home.call(Request::UseHost(UseHostRequest { team, host, command: vec!["ssh".to_owned()] }));
    }
    let annexes = home.annexes.len();
    home.measure("all members at once", |home| {
        (0..annexes).for_each(|annex| home.report_members(annex, (annex..agents).step_by(annexes)));
    });
    for late in 1..=LATE_MEMBERS {
        home.measure("one more member", |home| {
            home.report_members(0, (0..agents).step_by(annexes).chain(agents..agents + late));
        });
    }
}

/// Simulates the first `hours` of a day. Over a whole day, each member exchanges a message with the
/// lead, some members do a task or ask for an approval, and the faults of `scale_faults` happen,
/// all at regular intervals.
fn live(home: &mut MeasuredHome, agents: usize, hours: usize) {
    let ticks_per_hour = (HOUR / TICK) as usize;
    let ticks_of_day = 24 * ticks_per_hour;
    for tick in 0..hours * ticks_per_hour {
        for index in tick * agents / ticks_of_day..(tick + 1) * agents / ticks_of_day {
            let annex = index % home.annexes.len();
            if home.unreachable.contains(&annex) {
                home.queue_message(annex, index);
                continue;
            }
            home.exchange_messages(annex, index);
            if index % AGENTS_PER_TASK == 0 {
                home.do_task(annex, index);
            }
            if index % AGENTS_PER_REQUEST == 0 {
                home.request_approval(annex, index);
            }
        }
        home.inject_faults(agents, (tick, ticks_of_day));
        home.tick();
        if (tick + 1) % ticks_per_hour == 0 {
            print_figures(home, agents, (tick + 1) / ticks_per_hour);
        }
    }
}

/// Prints a line of JSON.
fn print_figures(home: &MeasuredHome, agents: usize, hours: usize) {
    let dropped: u64 = home.host.links.values().map(|end| end.too_long_items).sum();
    let sent: u64 = home.annexes.iter().map(|annex| annex.received_bytes).sum();
    let members = home.team().config().map_or(0, |config| config.members.len());
    println!(
        "{}",
        json!({"agents": agents, "hosts": home.annexes.len(), "hours": hours, "members": members,
            "kinds": home.times.kinds(), "parts_ms": home.times.parts(), "too_long_items": dropped,
            "sent_bytes": sent, "peak_kb": peak_memory_kb()})
    );
}

/// One run with `AGENTS`, `HOSTS` and `HOURS`. Prints a line of JSON after the start and each hour.
#[test]
#[ignore = "scripts/scale runs it"]
fn day_of_a_large_team() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
    let (agents, hosts) = (number("AGENTS").unwrap_or(10), number("HOSTS").unwrap_or(1));
    let hours = number("HOURS").unwrap_or(24);
    let dir = tempfile::tempdir().expect("a directory can be made");
    let mut home = MeasuredHome::new(dir.path(), hosts);
    start_team(&mut home, agents);
    print_figures(&home, agents, 0);
    live(&mut home, agents, hours);
}

/// The largest memory of this process so far. Linux gives it in KiB.
fn peak_memory_kb() -> u64 {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF);
    usage.map_or(0, |usage| usage.max_rss().unsigned_abs())
}
