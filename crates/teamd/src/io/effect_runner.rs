//! Runs the effects that the core returns, in order.
//!
//! File jobs are an exception: all file jobs of one event are sent to the files threads together,
//! after the other effects of this event. The effect runner owns the daemon's connections, sockets
//! and other file descriptors; the core's state has none.

use crate::core::connection_spawn_and_watch_ids::WatchId;
use crate::core::core_event::CoreEvent;
use crate::core::effect::{Effect, Wake};
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_watcher_command::WatcherCommand;
use crate::core::jobs::pane_jobs::PaneJob;
use crate::io::cancel_worktree_setups::CancelledSetups;
use crate::io::control_connections::Connections;
use crate::io::files::file_job_queues::JobSender;
use crate::io::headless_shim_processes::HeadlessShims;
use crate::io::hosts::link_handles::LinkHandles;
use crate::io::keep_control_socket_at_path::ControlListener;
use crate::io::print_events_on_daemon_terminal::DaemonTerminal;
use crate::io::process_watcher::{ProcessWatcher, WatchOutcome};
use crate::io::run_teamctl::run_teamctl;
use crate::io::run_worktree_jobs;
use crate::io::wake_sockets::{WakeSocket, WakeSockets};
use crate::io::watcher::file_watcher::OverflowFlag;
use protocol::control_socket::Process;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::mpsc::Sender;
use tokio::sync::mpsc::UnboundedSender;

/// Everything that is needed to run an effect: connections, queues of threads, processes.
#[derive(Debug)]
pub(crate) struct EffectRunner {
    pub(crate) connections: Connections,
    pub(crate) files: JobSender,
    pub(crate) panes: Sender<PaneJob>,
    pub(crate) watcher: Sender<WatcherCommand>,
    pub(crate) overflow: OverflowFlag,
    pub(crate) events: UnboundedSender<CoreEvent>,
    pub(crate) wake_sockets: WakeSockets,
    pub(crate) processes: ProcessWatcher,
    pub(crate) headless_shims: HeadlessShims,
    pub(crate) links: LinkHandles,
    pub(crate) setups: CancelledSetups,
    /// Processes that could not be watched. [`Effect::RetryProcessWatches`] tries again to watch
    /// them.
    pub(crate) unwatched_processes: HashMap<WatchId, Process>,
    /// The terminal that the daemon runs in.
    pub(crate) terminal: DaemonTerminal,
    pub(crate) listener: ControlListener,
}

impl EffectRunner {
    /// Runs one effect. `wall` is the time for entries of the event log, in milliseconds since the
    /// epoch.
    ///
    /// Returns `Break` for [`Effect::Exit`], after which the daemon exits.
    pub(crate) fn run(&mut self, effect: Effect, wall: u64) -> ControlFlow<()> {
        failpoint::hit(effect.failpoint());
        match effect {
            Effect::Reply { client, response } => {
                self.connections.send(client, &response);
                match response.keeps_connection() {
                    false => self.connections.close(client),
                    true if self.connections.is_open(client) => {}
                    // It was closed before the reservation was made, so this must end it.
                    true => drop(self.events.send(CoreEvent::ConnectionClosed { conn: client })),
                }
            }
            Effect::SendToShim { conn, message } => self.connections.send(conn, &message),
            Effect::CloseConnection { conn } => self.connections.close(conn),
            Effect::SuperviseShim { conn, spawn, team, name, process } => {
                if let Some(fd) = self.connections.take_wake_socket(conn) {
                    self.wake_sockets.insert(spawn.clone(), WakeSocket { team, name, fd });
                }
                self.watch_process(WatchId::Shim(spawn), process);
            }
            Effect::WatchProcess { watch, process } => self.watch_process(watch, process),
            Effect::UnwatchProcess { watch } => self.unwatch_process(&watch),
            Effect::RetryProcessWatches => {
                self.headless_shims.reap();
                let failed_watches: Vec<_> = self.unwatched_processes.drain().collect();
                failed_watches.into_iter().for_each(|(watch, process)| self.watch_process(watch, process));
            }
            Effect::WakeAgent { spawn, wake: Wake::Needed } => self.wake_sockets.wake(&spawn),
            Effect::WakeAgent { wake: Wake::Done, .. } => {}
            Effect::KillShim { spawn } => self.processes.kill(&WatchId::Shim(spawn)),
            Effect::CloseHandles { spawn } => {
                self.wake_sockets.remove(&spawn);
                self.headless_shims.reap_shim(&spawn);
                self.unwatch_process(&WatchId::Shim(spawn));
            }
            // Sending to the watcher cannot fail: its thread runs as long as the daemon.
            Effect::WatchRoot => drop(self.watcher.send(WatcherCommand::WatchRoot)),
            Effect::WatchTeam { team } => drop(self.watcher.send(WatcherCommand::WatchTeam(team))),
            Effect::UnwatchTeam { team } => {
                self.files.close_lane(&team);
                drop(self.watcher.send(WatcherCommand::UnwatchTeam(team)));
            }
            Effect::ConfirmWatches(purpose) => {
                drop(self.watcher.send(WatcherCommand::ConfirmWatches(purpose)));
            }
            Effect::CreateBarrier { barrier } => {
                drop(self.watcher.send(WatcherCommand::CreateBarrier(barrier)));
            }
            Effect::File(job) => self.files.push(job),
            Effect::Pane(job) => drop(self.panes.send(job)),
            Effect::Host(job) => self.links.run(job, &mut self.connections),
            Effect::Worktree(job) => run_worktree_jobs::begin(job, self.events.clone(), &self.setups),
            Effect::CancelSetup { worktree } => self.setups.cancel(worktree),
            Effect::StartShim { spawn, argv, log } => {
                let result = self.headless_shims.start_shim(&spawn, &argv, &log);
                self.events.send(CoreEvent::ShimStarted { spawn, result }).ok();
            }
            Effect::ShowNotice { text, argv } => {
                self.terminal.show_notice(&text);
                let events = self.events.clone();
                let report = move |failure: Option<String>| {
                    let event = failure.map(|reason| CoreEvent::NotificationFailed { reason });
                    event.into_iter().for_each(|event| drop(events.send(event)));
                };
                run_teamctl(&argv, report).unwrap_or_else(|reason| tracing::warn!("cannot notify: {reason}"));
            }
            Effect::FetchBranch { team, member, record, argv } => {
                let events = self.events.clone();
                let report = move |failure| {
                    events.send(CoreEvent::BranchFetched { team, member, failure }).ok();
                };
                match record.exists() {
                    true => self.fetch_branch(&argv, report),
                    false => report(None),
                }
            }
            Effect::Log(event) => self.log(event.with_time(wall)),
            Effect::CheckSocket => self.listener.ensure_bound(),
            Effect::Exit => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    /// Ends the threads before the daemon exits. Removes the control socket and waits for the last
    /// writes of the links and of the files threads. The panes thread and the watcher thread end
    /// too, because their queues are closed.
    pub(crate) async fn finish(self) {
        let EffectRunner { files, listener, links, .. } = self;
        listener.remove();
        links.finish().await;
        files.finish();
    }

    /// If teamctl can't be started, `report` gets the reason at once.
    fn fetch_branch(&self, argv: &[String], report: impl FnOnce(Option<String>) + Clone + Send + 'static) {
        if let Err(reason) = run_teamctl(argv, report.clone()) {
            report(Some(reason));
        }
    }

    fn unwatch_process(&mut self, watch: &WatchId) {
        self.processes.unwatch(watch);
        self.unwatched_processes.remove(watch);
    }

    /// Starts to watch a process, or reports its exit if it has exited.
    fn watch_process(&mut self, watch: WatchId, process: Process) {
        if self.processes.is_watching(&watch) {
            return;
        }
        match self.processes.watch(&watch, process) {
            WatchOutcome::Alive => drop(self.unwatched_processes.remove(&watch)),
            WatchOutcome::Dead => {
                self.unwatched_processes.remove(&watch);
                self.events.send(CoreEvent::ProcessDied { watch }).ok();
            }
            WatchOutcome::Unknown(error) => {
                tracing::warn!("cannot watch process {}, and try again later: {error}", process.pid);
                self.unwatched_processes.insert(watch, process);
            }
        }
    }

    /// Writes an event to the log file, the event log and the daemon's terminal. Long texts in the
    /// event come from agents and other programs. They are shortened first, because they would push
    /// older events out of the event log.
    fn log(&mut self, event: protocol::event_log_line::Event) {
        let event = event.with_short_texts();
        let line = event.to_text();
        tracing::info!("{line}");
        let clock = event.time.get(11..19).unwrap_or_default();
        self.terminal.print_line(format!("{clock} {line}"));
        let json = serde_json::to_string(&event).expect("an event has nothing that JSON cannot hold");
        self.files.push(FileJob::AppendEvent(json));
    }
}
