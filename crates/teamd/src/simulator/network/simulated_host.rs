//! One host: its files, its daemon with the links, and the watcher of its files.

use crate::core::core_event::CoreEvent;
use crate::core::jobs::host_jobs::{HostEvent, LinkId};
use crate::core::state::logged_tasks_messages_and_requests::EventLogCursor;
use crate::io::files::changes_since_last_rescan::RescanCache;
use crate::io::files::simulated_files_thread::SimulatedFilesThread;
use crate::io::hosts::simulated_link_end::{SimulatedLinkEnd, SimulatedLinkFiles, SpoolAtKill};
use crate::simulator::disk::SimulatedDisk;
use crate::simulator::network::host_conditions::{HostConditions, HostSimulation};
use crate::simulator::scan_memory::{TeamFile, WatcherEvent};
use crate::simulator::simulation::Simulation;
use protocol::control_socket::HomeId;
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use store::{Durability, Root, StateDir, Team};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub(super) fn team_name() -> TeamName {
    TeamName::parse("survey").expect("the name is valid")
}

/// The host `index`: the home, or an annex.
pub(super) fn host_name(index: usize) -> HostName {
    HostName::parse(&format!("box{index}")).expect("the name is valid")
}

pub(super) struct SimulatedHost {
    pub(super) root: Root,
    state_path: PathBuf,
    link_files: SimulatedLinkFiles,
    /// The annexes in `hosts.json`.
    pub(super) used_annexes: BTreeSet<HostName>,
    pub(super) simulation: HostSimulation,
    /// The links of the running daemon.
    pub(super) links: BTreeMap<LinkId, SimulatedLinkEnd>,
    event_sender: UnboundedSender<CoreEvent>,
    events: UnboundedReceiver<CoreEvent>,
    watcher: RescanCache,
}

impl SimulatedHost {
    pub(super) fn new(index: usize, dir: &Path, rng: fastrand::Rng) -> SimulatedHost {
        let (root_path, state_path) = (dir.join("root"), dir.join("state"));
        let root = Root::open(&root_path, &state_path, Durability::Process).expect("the root can be made");
        let home = HomeId::parse(&format!("root-{index}")).expect("the identity is valid");
        let link_files = SimulatedLinkFiles::new(root.clone(), state_path.clone(), home);
        let conditions = HostConditions::new(rng, root.clone());
        let (event_sender, events) = unbounded_channel();
        SimulatedHost {
            root,
            state_path,
            link_files,
            used_annexes: BTreeSet::new(),
            simulation: Simulation::new(conditions, SimulatedDisk::with_event_log()),
            links: BTreeMap::new(),
            event_sender,
            events,
            watcher: RescanCache::default(),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.simulation.daemon.is_some()
    }

    /// The team or its mirror. `None` if the host has none.
    pub(super) fn team(&self) -> Option<Team> {
        self.root.team(&team_name()).ok()
    }

    /// Starts the daemon, which opens the links of the last daemon.
    pub(super) fn start(&mut self) {
        (self.event_sender, self.events) = unbounded_channel();
        let homes = self.link_files.known_homes().expect("the directory can be read");
        let annexes = self.used_annexes.iter().cloned().map(LinkId::ToAnnex);
        let known: Vec<LinkId> = homes.into_iter().chain(annexes).collect();
        known.into_iter().for_each(|link| self.open_link(link));
        let links = self.links.iter().map(|(id, end)| (id.clone(), end.team_states())).collect();
        self.simulation.conditions.links_at_start = links;
        let log = self.simulation.disk.log.iter().flatten().map(String::as_bytes);
        let logged_counts = EventLogCursor::from_lines(log).inboxes.clone();
        let state_dir = StateDir::open(&self.state_path).expect("the directory can be opened");
        let files = SimulatedFilesThread::new(self.root.clone(), state_dir, team_name(), logged_counts);
        self.simulation.conditions.files = Some(files);
        // Changes while no daemon runs cause no file events.
        self.watcher.diff(self.root.path(), &[team_name()]);
        self.simulation.start();
    }

    /// Opens a link, or replaces its open end.
    pub(super) fn open_link(&mut self, link: LinkId) {
        let earlier = self.links.remove(&link);
        let jobs = earlier.map(|end| {
            let jobs = end.take_mirror_jobs();
            // The storage thread finishes its jobs.
            end.kill(SpoolAtKill::Written, usize::MAX);
            jobs
        });
        let log = self.simulation.disk.log.as_deref().unwrap_or_default();
        let end =
            self.link_files.open(&link, self.event_sender.clone(), log).expect("the files can be opened");
        jobs.into_iter().flatten().for_each(|job| end.push_mirror_job(job));
        self.links.insert(link, end);
    }

    /// Kills the daemon at a random place of its writes.
    pub(super) fn kill(&mut self) {
        self.simulation.kill_daemon();
        let rng = &mut self.simulation.conditions.rng;
        for end in std::mem::take(&mut self.links).into_values() {
            let spool = if rng.bool() { SpoolAtKill::Written } else { SpoolAtKill::NotWritten };
            end.kill(spool, rng.usize(..4));
        }
    }

    /// Passes the reports of the links to the event loop. Returns the annexes that have lost their
    /// connection.
    pub(super) fn deliver_reports(&mut self) -> Vec<HostName> {
        let mut lost = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            if let CoreEvent::HostReported {
                link: LinkId::ToAnnex(host),
                event: HostEvent::Disconnected { .. },
            } = &event
            {
                lost.push(host.clone());
            }
            self.simulation.send_event(event);
        }
        lost
    }

    /// Queues an event for each file that has changed since the last call, as the real watcher
    /// does. Drops an event if `is_lost` returns true. Returns whether config.json has changed.
    pub(super) fn watch_files(&mut self, mut is_lost: impl FnMut() -> bool) -> bool {
        let mut changes: Vec<(TeamName, TeamFile)> =
            self.watcher.diff(self.root.path(), &[team_name()]).iter().filter_map(changed_file).collect();
        changes.sort_unstable();
        let has_config_changed = changes.iter().any(|(_, file)| *file == TeamFile::Config);
        for (team, file) in changes {
            let event = WatcherEvent::Changed(team, file);
            if self.is_running() && !is_lost() && !self.simulation.disk.pending_events.contains(&event) {
                self.simulation.disk.pending_events.push_back(event);
            }
        }
        has_config_changed
    }
}

fn changed_file(event: &CoreEvent) -> Option<(TeamName, TeamFile)> {
    match event {
        CoreEvent::ConfigChanged { team } => Some((team.clone(), TeamFile::Config)),
        CoreEvent::TaskChanged { team, task } => Some((team.clone(), TeamFile::Task(*task))),
        CoreEvent::InboxChanged { team, inbox, .. } => {
            Some((team.clone(), TeamFile::Inbox(MemberName::new_unchecked(inbox))))
        }
        _ => None,
    }
}
