//! The threads of the simulated daemon: they run jobs on the simulated disk, tmux server and git,
//! and report file events.

use crate::core::core_event::CoreEvent;
use crate::core::effect::Wake;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_watcher_command::WatcherCommand;
use crate::core::jobs::queue_and_batch_of_file_job::Lane;
use crate::core::jobs::worktree_jobs::{WorktreeJob, WorktreeResult};
use crate::simulator::chance::Chance;
use crate::simulator::scan_memory::{TeamFile, WatcherEvent, change_event};
use crate::simulator::shim::SimulatedShim;
use crate::simulator::simulation::{Conditions, Simulation};
use crate::simulator::tmux::PaneJobOutcome;
use std::collections::{BTreeSet, VecDeque};

impl<C: Conditions> Simulation<C> {
    /// A files thread runs its next job.
    pub(super) fn run_file_job(&mut self) {
        let Some(daemon) = &mut self.daemon else { return };
        let Some(job) = take_file_job(&mut daemon.files, &mut self.conditions) else { return };
        let line = self.log_line(|| format!("files: {job:?}"));
        self.conditions.file_job_starts(&job, &self.disk);
        let job = C::run_file_job_elsewhere(self, job);
        let Some(daemon) = &mut self.daemon else { return };
        job.into_iter().for_each(|job| self.disk.run_job(job, &mut daemon.scans, &mut daemon.results));
        C::file_job_ended(self);
        self.log(|| line);
    }

    pub(super) fn send_to_watcher(&mut self, command: WatcherCommand) {
        self.daemon.iter_mut().for_each(|daemon| daemon.watch_commands.push_back(command.clone()));
    }

    /// The watcher thread runs its next command.
    pub(super) fn run_watch_command(&mut self) {
        let Some(daemon) = &mut self.daemon else { return };
        match daemon.watch_commands.pop_front() {
            Some(WatcherCommand::WatchRoot) => daemon.scans.watched.clear(),
            Some(WatcherCommand::WatchTeam(team)) => drop(daemon.scans.watched.insert(team)),
            Some(WatcherCommand::UnwatchTeam(team)) => drop(daemon.scans.watched.remove(&team)),
            Some(WatcherCommand::CreateBarrier(_)) if self.conditions.barrier_fails() => {
                self.send_event(CoreEvent::BarrierFailed);
            }
            Some(WatcherCommand::CreateBarrier(barrier)) => {
                self.disk.pending_events.push_back(WatcherEvent::Barrier(barrier));
            }
            Some(WatcherCommand::ConfirmWatches(purpose)) => {
                self.send_event(CoreEvent::WatchesAdded(purpose));
            }
            None => {}
        }
    }

    /// The watcher reports the next file event, and wakes the owner of a changed inbox.
    pub(super) fn run_watcher(&mut self) {
        let Some(change) = self.disk.pending_events.pop_front() else { return };
        let Some(daemon) = &mut self.daemon else { return };
        let change = match change {
            WatcherEvent::Barrier(barrier) => {
                return daemon.events.push_back(CoreEvent::BarrierReached { barrier });
            }
            WatcherEvent::Changed(team, part) => (team, part),
        };
        if !self.disk.is_reporting_changes || !daemon.scans.watched.contains(&change.0) {
            return;
        }
        let mut event = change_event(&change);
        if let (CoreEvent::InboxChanged { owner_wake, .. }, (team, TeamFile::Inbox(name))) =
            (&mut event, &change)
            && let Some(agent) = daemon.state.member(team, name)
            && daemon.wake_sockets.contains(&agent.record.spawn_id)
        {
            *owner_wake = Wake::Done;
            let own_shims = self.shims.values_mut().filter(|shim| shim.spawn == agent.record.spawn_id);
            own_shims
                .filter_map(|shim| shim.turn_agent.as_mut())
                .for_each(|turn_agent| turn_agent.is_awake = true);
        }
        daemon.events.push_back(event);
    }

    /// The panes thread runs its next job.
    pub(super) fn run_pane_job(&mut self) {
        let (pid, mono) = (self.next_pid(), self.now.mono);
        let Some(daemon) = &mut self.daemon else { return };
        let Some(job) = daemon.panes.pop_front() else { return };
        self.conditions.pane_job_starts(&job);
        let line = self.log_line(|| format!("panes: {job:?}"));
        let (result, outcome) = self.tmux.run_job(job, pid);
        if let Some(daemon) = &mut self.daemon {
            daemon.results.extend(result);
        }
        match outcome {
            PaneJobOutcome::Nothing => {}
            PaneJobOutcome::Started { spawn, pid, pane } => {
                let pane = Some((self.tmux.server, pane));
                self.shims.insert(pid, SimulatedShim::new(spawn, pane, mono));
            }
            PaneJobOutcome::Closed(pid) => self.hang_up_terminal(pid),
        }
        self.log(|| line);
    }

    /// A git job ends. Git jobs may end in another order than they started.
    pub(super) fn run_worktree_job(&mut self) {
        let Some(daemon) = self.daemon.as_mut().filter(|daemon| !daemon.worktrees.is_empty()) else { return };
        let index = self.conditions.choose_index(daemon.worktrees.len());
        let Some(job) = daemon.worktrees.remove(index) else { return };
        let line = self.log_line(|| format!("git: {job:?}"));
        let result = self.end_worktree_job(job);
        self.log(|| line);
        self.send_event(CoreEvent::WorktreeJobDone(result));
    }

    pub(super) fn end_worktree_job(&mut self, job: WorktreeJob) -> WorktreeResult {
        self.conditions.worktree_job_starts(&job, &self.disk);
        self.disk.worktrees.run_job(&mut self.conditions, job)
    }
}

/// Takes the next file job. Each team has a lane, a queue of its file jobs, and the daemon's own
/// files have another. `chance` chooses the lane, and its first job is taken. A job of a team must
/// wait for all earlier jobs that save the roster or the environment of an agent.
fn take_file_job(files: &mut VecDeque<FileJob>, chance: &mut impl Chance) -> Option<FileJob> {
    let mut lanes = BTreeSet::new();
    let mut has_save = false;
    let mut runnable = Vec::new();
    for (index, job) in files.iter().enumerate() {
        let lane = job.lane();
        if lanes.insert(lane.clone()) && (lane == Lane::Daemon || !has_save) {
            runnable.push(index);
        }
        has_save |= job.is_save();
    }
    if runnable.is_empty() { None } else { files.remove(runnable[chance.choose_index(runnable.len())]) }
}
