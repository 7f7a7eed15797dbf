//! The daemon of a simulation: how it starts, handles its events and ends.

use crate::core::connection_spawn_and_watch_ids::WatchId;
use crate::core::core_event::CoreEvent;
use crate::core::deadlines::next_deadline;
use crate::core::dispatch_core_events::handle_event;
use crate::core::event_time::Now;
use crate::core::recovery::recover;
use crate::core::state::core_state::State;
use crate::core::state::daemon_settings::DaemonSettings;
use crate::core::state::logged_tasks_messages_and_requests::EventLogCursor;
use crate::simulator::scan_memory::ScanMemory;
use crate::simulator::shim::SimulatedShim;
use crate::simulator::simulation::{Conditions, SimulatedDaemon, Simulation};
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The settings of the daemon. Nothing is at the paths.
fn simulated_settings() -> DaemonSettings {
    DaemonSettings {
        root: "/root".into(),
        socket: "/run/control.sock".into(),
        tmux_socket: Some("/tmp/tmux".into()),
        shim_program: "/bin/teamd-shim".into(),
        teamctl_program: "/bin/teamctl".into(),
        state_dir: "/state".into(),
        pid: 1,
        // Short, so that simulations reach the time at which missing output is reported.
        no_output_after_ms: Some(1_000),
        lease_ms: Some(2_000),
    }
}

impl<C: Conditions> Simulation<C> {
    /// Starts a daemon, which reads its state from the disk.
    pub(super) fn start(&mut self) {
        self.log(|| "a daemon starts".to_owned());
        let mut roster = self.disk.read_roster();
        for (team, files) in &self.disk.teams {
            roster.joined_counts.entry(team.clone()).or_insert(files.members.len() as u64);
        }
        self.conditions.complete_roster(&mut roster);
        let environments = &self.disk.environments;
        roster.load_environments(|file| environments.get(file).cloned().unwrap_or_default());
        let lines = self.disk.log.iter().flatten().map(String::as_bytes);
        let cursor = EventLogCursor::from_lines(lines);
        let scans = ScanMemory { logged_counts: cursor.inboxes.clone(), ..ScanMemory::default() };
        let mut state = State::new(simulated_settings(), roster, cursor);
        let active = |team: &TeamName, name: &MemberName| {
            Some(self.disk.teams.get(team)?.members.get(name)?.is_active)
        };
        state.restore_activity(active);
        state.load_policies(|team| {
            self.disk.teams.get(team).map(|files| files.policy.clone()).unwrap_or_default()
        });
        self.conditions.complete_state(&mut state, self.now);
        self.disk.pending_events.clear();
        let effects = recover(&mut state, self.now);
        self.daemon = Some(SimulatedDaemon {
            state,
            // The control client's own session is reported, too.
            events: VecDeque::from([CoreEvent::OwnTmuxSessionsUsed]),
            files: VecDeque::new(),
            panes: VecDeque::new(),
            worktrees: VecDeque::new(),
            scans,
            watch_commands: VecDeque::new(),
            results: VecDeque::new(),
            wake_sockets: BTreeSet::new(),
            watched: BTreeMap::new(),
        });
        C::effects_decided(self, &effects);
        self.run_effects(effects);
    }

    /// Kills the daemon with SIGKILL. Its queued jobs are lost and its connections close.
    pub(super) fn kill_daemon(&mut self) {
        self.log(|| "the daemon is killed".to_owned());
        let jobs = self.daemon.take().map(|daemon| daemon.worktrees);
        self.clients.clear();
        C::daemon_killed(self, jobs.unwrap_or_default());
        for shim in self.shims.values_mut() {
            shim.conn = None;
            shim.inbox.clear();
            let querying = shim.turn_agent.iter_mut().filter(|turn_agent| turn_agent.is_querying);
            querying.for_each(|turn_agent| (turn_agent.is_querying, turn_agent.is_awake) = (false, true));
        }
    }

    /// Stops the daemon in the regular way: its threads finish their queued jobs first.
    pub(super) fn stop_daemon(&mut self) {
        while self.daemon.as_ref().is_some_and(|daemon| !daemon.files.is_empty()) {
            self.run_file_job();
        }
        while self.daemon.as_ref().is_some_and(|daemon| !daemon.panes.is_empty()) {
            self.run_pane_job();
        }
        self.kill_daemon();
    }

    /// The event loop handles the next event, or a deadline if there is no event.
    pub(super) fn run_event(&mut self) {
        let Some(daemon) = &mut self.daemon else { return };
        let event = daemon.events.pop_front().unwrap_or(CoreEvent::DeadlineReached);
        if matches!(event, CoreEvent::DeadlineReached) {
            // Each spawn must get its own start time.
            self.now = Now { mono: self.now.mono + 1, wall: self.now.wall + 1 };
        }
        let line = self.log_line(|| format!("{event:?}"));
        self.conditions.event_starts(&event);
        let Some(daemon) = &mut self.daemon else { return };
        let effects = handle_event(&mut daemon.state, event, self.now);
        self.log(|| line);
        C::effects_decided(self, &effects);
        self.run_effects(effects);
    }

    /// What the daemon and its threads can do now.
    pub(super) fn due_daemon_actions(&self) -> Vec<fn(&mut Simulation<C>)> {
        let mut due: Vec<fn(&mut Simulation<C>)> = Vec::new();
        if self.has_event() {
            due.push(Simulation::run_event);
        }
        if let Some(daemon) = &self.daemon {
            if !daemon.files.is_empty() {
                due.push(Simulation::run_file_job);
            }
            if !daemon.panes.is_empty() {
                due.push(Simulation::run_pane_job);
            }
            if !daemon.worktrees.is_empty() {
                due.push(Simulation::run_worktree_job);
            }
            if !daemon.watch_commands.is_empty() {
                due.push(Simulation::run_watch_command);
            }
            if !self.disk.pending_events.is_empty() {
                due.push(Simulation::run_watcher);
            }
            if !daemon.results.is_empty() {
                due.push(Simulation::deliver_result);
            }
        }
        if self.unreported_death().is_some() {
            due.push(Simulation::report_death);
        }
        due
    }

    /// Whether the event loop has an event or a passed deadline to handle.
    pub(super) fn has_event(&self) -> bool {
        let is_due = |daemon: &SimulatedDaemon| next_deadline(&daemon.state) <= self.now.mono;
        self.daemon.as_ref().is_some_and(|daemon| !daemon.events.is_empty() || is_due(daemon))
    }

    /// The event loop receives the next result of a job.
    pub(super) fn deliver_result(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            daemon.events.extend(daemon.results.pop_front());
        }
    }

    /// The process watcher reports the exit of a watched process.
    pub(super) fn report_death(&mut self) {
        let Some(watch) = self.unreported_death().cloned() else { return };
        if let Some(daemon) = &mut self.daemon {
            daemon.watched.remove(&watch);
            daemon.events.push_back(CoreEvent::ProcessDied { watch });
        }
    }

    fn unreported_death(&self) -> Option<&WatchId> {
        let mut watched = self.daemon.as_ref()?.watched.iter();
        watched.find(|(_, pid)| !self.is_process_alive(**pid)).map(|(watch, _)| watch)
    }

    pub(super) fn is_process_alive(&self, pid: u32) -> bool {
        let shim = self.shims.get(&pid).map(SimulatedShim::is_alive);
        shim.unwrap_or_else(|| self.conditions.is_lead_alive(pid))
    }
}
