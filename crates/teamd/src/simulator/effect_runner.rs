//! Runs the effects of the core in the simulation.

use crate::core::connection_spawn_and_watch_ids::WatchId;
use crate::core::core_event::CoreEvent;
use crate::core::effect::{Effect, Wake};
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_watcher_command::WatcherCommand;
use crate::simulator::shim::SimulatedShim;
use crate::simulator::simulation::{Conditions, Simulation};
use std::collections::VecDeque;

impl<C: Conditions> Simulation<C> {
    /// Runs effects in order.
    pub(super) fn run_effects(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.conditions.effect_starts(&effect);
            if matches!(effect, Effect::Exit) {
                return self.stop_daemon();
            }
            self.run_effect(effect);
        }
    }

    fn run_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Reply { client, response } => self.receive_reply(client, &response),
            Effect::SendToShim { conn, message } => {
                let shim = self.shims.values_mut().find(|shim| shim.conn == Some(conn) && shim.is_alive());
                shim.into_iter().for_each(|shim| shim.inbox.push_back(message.clone()));
            }
            Effect::CloseConnection { conn } => {
                self.shims
                    .values_mut()
                    .filter(|shim| shim.conn == Some(conn))
                    .for_each(|shim| shim.conn = None);
            }
            Effect::SuperviseShim { spawn, process, .. } => {
                self.daemon.iter_mut().for_each(|daemon| {
                    daemon.wake_sockets.insert(spawn.clone());
                });
                self.run_effect(Effect::WatchProcess { watch: WatchId::Shim(spawn), process });
            }
            Effect::WatchProcess { watch, process } => {
                let is_alive = self.is_process_alive(process.pid);
                let Some(daemon) = &mut self.daemon else { return };
                match is_alive {
                    true => drop(daemon.watched.insert(watch, process.pid)),
                    false => daemon.events.push_back(CoreEvent::ProcessDied { watch }),
                }
            }
            Effect::KillShim { spawn } => {
                let is_wanted = |shim: &SimulatedShim| shim.spawn == spawn && shim.is_alive();
                let pid = self.shims.iter().find(|(_, shim)| is_wanted(shim)).map(|(pid, _)| *pid);
                pid.into_iter().for_each(|pid| self.exit(pid));
            }
            Effect::CloseHandles { spawn } => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.wake_sockets.remove(&spawn);
                    daemon.watched.remove(&WatchId::Shim(spawn));
                }
            }
            Effect::UnwatchProcess { watch } => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.watched.remove(&watch);
                }
            }
            Effect::CreateBarrier { barrier } => self.send_to_watcher(WatcherCommand::CreateBarrier(barrier)),
            Effect::File(job) => {
                if let Some(daemon) = &mut self.daemon {
                    push_file_job(&mut daemon.files, job);
                }
            }
            Effect::Pane(job) => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.panes.push_back(job);
                }
            }
            // The result of the job in the queue is random anyway.
            Effect::CancelSetup { .. } => {}
            Effect::Worktree(job) => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.worktrees.push_back(job);
                }
            }
            Effect::StartShim { spawn, .. } => {
                let (pid, mono) = (self.next_pid(), self.now.mono);
                self.shims.insert(pid, SimulatedShim::new(spawn.clone(), None, mono));
                self.send_event(CoreEvent::ShimStarted { spawn, result: Ok(pid) });
            }
            Effect::ShowNotice { .. } if self.conditions.is_first_outcome() => {}
            Effect::ShowNotice { .. } => {
                self.send_event(CoreEvent::NotificationFailed { reason: "exit 3".to_owned() });
            }
            Effect::FetchBranch { team, member, .. } => {
                let failure = (!self.conditions.is_first_outcome()).then(|| "no route".to_owned());
                self.send_event(CoreEvent::BranchFetched { team, member, failure });
            }
            Effect::WatchRoot => self.send_to_watcher(WatcherCommand::WatchRoot),
            Effect::WatchTeam { team } => self.send_to_watcher(WatcherCommand::WatchTeam(team)),
            Effect::ConfirmWatches(purpose) => {
                self.send_to_watcher(WatcherCommand::ConfirmWatches(purpose));
            }
            Effect::UnwatchTeam { team } => self.send_to_watcher(WatcherCommand::UnwatchTeam(team)),
            Effect::Log(event) if self.disk.log.is_some() => {
                let line = serde_json::to_string(&event).expect("an event is serializable");
                self.run_effect(Effect::File(FileJob::AppendEvent(line)));
            }
            Effect::WakeAgent { spawn, wake: Wake::Needed } => {
                let has_socket =
                    self.daemon.as_ref().is_some_and(|daemon| daemon.wake_sockets.contains(&spawn));
                let own_shims = self.shims.values_mut().filter(|shim| has_socket && shim.spawn == spawn);
                own_shims
                    .filter_map(|shim| shim.turn_agent.as_mut())
                    .for_each(|turn_agent| turn_agent.is_awake = true);
            }
            Effect::Host(job) => C::start_host_job(self, job),
            Effect::WakeAgent { wake: Wake::Done, .. }
            | Effect::RetryProcessWatches
            | Effect::Log(_)
            | Effect::CheckSocket
            | Effect::Exit => {}
        }
    }
}

/// Adds a file job to the queue. A new roster replaces an older roster that still waits in the
/// queue. `JobSender::push` in the real daemon does the same.
fn push_file_job(files: &mut VecDeque<FileJob>, job: FileJob) {
    let waiting = files.iter_mut().find(|waiting| matches!(waiting, FileJob::SaveRoster(_)));
    match (waiting, job) {
        (Some(waiting), newest @ FileJob::SaveRoster(_)) => *waiting = newest,
        (_, job) => files.push_back(job),
    }
}
