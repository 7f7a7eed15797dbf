//! Starts one agent, supervises it, and reports how it ended.
//!
//! The shim connects to the daemon and waits for the message that starts the agent. Then the shim
//! starts the agent's program, or runs the agent's turns itself. After the agent has ended, the
//! shim ends the agent's remaining descendants, reports to the daemon, and exits.
//!
//! While the agent runs, the daemon may exit and be started again. The agent does not notice this.
//! The agent is connected to the daemon only by its wake socket, and the shim keeps the daemon's
//! end of this socket open.

use crate::args::ShimArgs;
use crate::catch_signals::ShimSignals;
use crate::close_own_pane::close_own_pane;
use crate::daemon_connection::{DaemonConnection, ShimEvent};
use crate::end_descendants::{Remaining, end_all, reap};
use crate::iterm2_color::set_session_color;
use crate::orphans_without_subreaper;
use crate::output_pty::OutputPty;
use crate::start_child_processes;
use crate::start_child_processes::{NO_SUCH_PROGRAM, PaneMode};
use crate::turn_executor_with_one_poll::{self, ExecutorParts, StartReport};
use crate::turns::turn_loop::TurnLoopEnd;
use nix::sys::signal::Signal;
use protocol::control_socket::{ExitReport, FromShim, StartAgent, ToShim, TurnSetup};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::state_file_names;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};
use store::reached_process_limit;

/// How long the shim waits for the message that starts the agent. After this time the shim closes
/// its pane and exits.
const START_TIMEOUT: Duration = Duration::from_secs(15);
/// The time between SIGTERM and SIGKILL for the processes that an agent leaves behind.
pub(crate) const DESCENDANT_GRACE: Duration = Duration::from_millis(500);
/// How long the daemon may take to acknowledge a report of the shim.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs one agent. Returns the exit code of the shim: the agent's exit code, 75 if the shim got no
/// message that starts an agent, or 72 if the agent could not be started.
pub(crate) fn run(args: &ShimArgs) -> Result<ExitCode, ErrorReport> {
    if args.headless.is_some() {
        // A shim without a pane is a child of the daemon, and inherits descriptors that the daemon
        // itself has inherited. The shim closes them. For a shim in a pane, tmux has already closed
        // them.
        platform::close_inherited_descriptors::close_inherited_descriptors();
    }
    // The wake socket is opened first, so that it gets descriptor 3. An agent may be a shell script
    // that reads from the descriptor, and some shells accept only one digit in a redirection.
    let (agent_socket, daemon_socket) = UnixStream::pair()
        .map_err(|error| ErrorReport::new(ErrorKind::Io, format!("cannot make a wake socket: {error}")))?;
    if args.headless.is_some() {
        // A shim without a pane starts a new process session, so that the daemon's terminal does
        // not become the agent's terminal. `setsid` fails only for the leader of a process group,
        // and a child of the daemon does not lead one.
        nix::unistd::setsid().ok();
    }
    let mut shim = Shim {
        log: args.headless.as_deref(),
        signals: ShimSignals::install()?,
        connection: DaemonConnection::new(args, daemon_socket.into()),
    };
    adopt_orphans(format!("TEAMD_SPAWN={}", args.spawn))?;
    failpoint::hit("shim.begin");
    let Some(start) = shim.wait_for_start_agent() else {
        failpoint::hit("shim.refused");
        // No agent is started, so the pane is not needed. The shim closes the pane itself, because
        // the daemon that opened the pane may have been killed before it recorded the shim.
        close_own_pane(&args.spawn);
        return Ok(ExitCode::from(75));
    };
    failpoint::hit("shim.start-agent");
    start.iterm2_color.into_iter().for_each(set_session_color);
    let result = match &start.turn_setup {
        Some(setup) => shim.run_turn_agent(&start, setup, agent_socket),
        None => shim.run_long_lived_agent(&start, agent_socket),
    };
    Ok(result.unwrap_or_else(|message| shim.report_start_failure(message)))
}

/// Makes the shim the parent of its orphaned descendants. If the system cannot do that, the shim
/// finds orphans by their process sessions, or by `environment_entry` in their environment.
pub(crate) fn adopt_orphans(environment_entry: String) -> Result<(), ErrorReport> {
    match platform::system().adopt_orphans() {
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
            orphans_without_subreaper::start_tracking(environment_entry);
            Ok(())
        }
        Err(error) => {
            let message = format!("cannot become the parent of orphans: {error}");
            Err(ErrorReport::new(ErrorKind::Internal, message))
        }
        Ok(()) => Ok(()),
    }
}

/// The supervisor of one agent.
struct Shim<'a> {
    connection: DaemonConnection,
    signals: ShimSignals,
    /// The log file that gets the output of an agent without a pane. `None` for an agent in a pane.
    log: Option<&'a Path>,
}

impl Shim<'_> {
    /// Waits for the message that starts the agent. `None` if the daemon refuses or ends this shim,
    /// if [`START_TIMEOUT`] passes, or if SIGHUP or SIGTERM arrives.
    fn wait_for_start_agent(&mut self) -> Option<Box<StartAgent>> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            match self.connection.next_event(&self.signals, Some(deadline), &[]) {
                ShimEvent::Message(ToShim::StartAgent(start)) => return Some(start),
                ShimEvent::Message(ToShim::Refused | ToShim::End { .. }) | ShimEvent::Deadline => {
                    return None;
                }
                ShimEvent::Signal if self.signals.is_hung_up() || self.signals.is_terminated() => {
                    return None;
                }
                ShimEvent::Message(_) | ShimEvent::Signal | ShimEvent::DescriptorReady => {}
            }
        }
    }

    /// Reports to the daemon that no agent was started.
    fn report_start_failure(&mut self, message: String) -> ExitCode {
        let spawn = self.connection.spawn_id().to_owned();
        // After the report of the failed start, the shim waits for the daemon's reply, at most for
        // `REPORT_TIMEOUT`. So the daemon reads the report before it notices that the shim has
        // exited.
        match self.connection.send(&FromShim::Failed(start_error(&message))) {
            true => {
                let deadline = Instant::now() + REPORT_TIMEOUT;
                self.connection.next_event_on_connection(&self.signals, deadline);
            }
            false => close_own_pane(&spawn),
        }
        ExitCode::from(72)
    }

    /// Runs an agent whose program keeps running and runs its turns itself. Returns when the agent
    /// has ended.
    ///
    /// # Errors
    ///
    /// Why the program was not started, as a sentence for people.
    fn run_long_lived_agent(
        &mut self,
        start: &StartAgent,
        wake_socket: UnixStream,
    ) -> Result<ExitCode, String> {
        let mut output = self.log.map(OutputPty::to_log).transpose().map_err(pty_error)?;
        let pid = start_child_processes::start_agent(start, &wake_socket.into(), output.as_ref())?.id();
        failpoint::hit("shim.agent-started");
        self.connection.agent = Some(pid);
        self.connection.send(&FromShim::Started { pid });
        failpoint::hit("shim.start-reported");
        let mut agent = SupervisedAgent { pid, status: None };
        let grace = self.wait_for_end(&mut agent, &mut output);
        let remaining = end_all(
            &self.signals,
            grace,
            &self.connection.exempt_processes(),
            &mut |pid, status| agent.note_exit(pid, status),
            &mut || output.iter_mut().for_each(OutputPty::copy_available),
        );
        output.iter_mut().for_each(|output| drop(output.drain_and_take_tail()));
        let exit = match self.signals.is_hung_up() {
            // After SIGHUP, the exit report says that the terminal is gone, and not how the agent's
            // process ended. A shim that loses its terminal always gets SIGHUP before it notices
            // the agent's exit.
            true => ExitReport::TerminalGone,
            false => agent.exit_report(),
        };
        self.report_unless_descendants_remain(remaining, &start.state_dir, &exit);
        Ok(agent.exit_code())
    }

    /// Runs an agent that gets each turn from the shim, instead of running its turns itself.
    /// Returns when the agent has ended.
    ///
    /// # Errors
    ///
    /// Why the agent was not started, as a sentence for people.
    fn run_turn_agent(
        &mut self,
        start: &StartAgent,
        setup: &TurnSetup,
        wake_socket: UnixStream,
    ) -> Result<ExitCode, String> {
        let (files, builder) =
            turn_executor_with_one_poll::prepare(start, setup, self.connection.next_task_client())?;
        let output = self.log.map_or_else(OutputPty::to_pane, OutputPty::to_log).map_err(pty_error)?;
        wake_socket.set_nonblocking(true).map_err(pty_error)?;
        let parts = ExecutorParts {
            connection: &mut self.connection,
            signals: &self.signals,
            start,
            pane_mode: if self.log.is_some() { PaneMode::Headless } else { PaneMode::Pane },
            output,
            wake_socket,
        };
        let mut exit = turn_executor_with_one_poll::run_turns(parts, setup, files, builder);
        let remaining = end_all(
            &self.signals,
            exit.grace.unwrap_or(DESCENDANT_GRACE),
            &self.connection.exempt_processes(),
            &mut |_, _| {},
            &mut || exit.output.copy_available(),
        );
        let last_lines = exit.output.drain_and_take_tail();
        if let (StartReport::NotSent, TurnLoopEnd::NotStarted(reason)) = (&exit.start_report, &exit.end) {
            let without_output = last_lines.is_empty();
            return Err(if without_output { reason.clone() } else { format!("{reason}: {last_lines}") });
        }
        let (report, code) = match exit.end {
            _ if self.signals.is_hung_up() => (ExitReport::TerminalGone, 129),
            TurnLoopEnd::ShutdownApproved => (ExitReport::Exit(0), 0),
            TurnLoopEnd::Terminated => (ExitReport::Signal(Signal::SIGTERM as i32), 143),
            TurnLoopEnd::NotStarted(reason) => (ExitReport::TurnNotStarted(reason), 72),
        };
        self.report_unless_descendants_remain(remaining, &start.state_dir, &report);
        Ok(ExitCode::from(code))
    }

    /// Waits until the agent exits, or until the daemon or a signal demands its end. Returns the
    /// grace period: how long the caller waits after SIGTERM before it sends SIGKILL to the
    /// processes that still run.
    fn wait_for_end(&mut self, agent: &mut SupervisedAgent, output: &mut Option<OutputPty>) -> Duration {
        loop {
            output.iter_mut().for_each(OutputPty::copy_available);
            let watched: Vec<_> = output.iter().map(OutputPty::watched_descriptor).collect();
            match self.connection.next_event(&self.signals, None, &watched) {
                ShimEvent::Message(ToShim::End { grace_ms }) => return Duration::from_millis(grace_ms),
                ShimEvent::Message(ToShim::Interrupt) => {
                    // This agent's program runs its turns itself, so the shim has no turn that it
                    // could interrupt.
                    self.connection.send(&FromShim::Interrupted { was_in_turn: false });
                }
                ShimEvent::Message(_) | ShimEvent::DescriptorReady | ShimEvent::Deadline => {}
                ShimEvent::Signal => {
                    reap(&mut |pid, status| agent.note_exit(pid, status));
                    if agent.status.is_some() || self.signals.is_hung_up() || self.signals.is_terminated() {
                        return DESCENDANT_GRACE;
                    }
                }
            }
        }
    }

    /// Reports how the agent ended, unless one of its descendants could not be killed. When the
    /// shim exits without a report, the daemon looks for remaining descendants itself.
    fn report_unless_descendants_remain(
        &mut self,
        remaining: Remaining,
        state_dir: &Path,
        exit: &ExitReport,
    ) {
        if remaining == Remaining::Nothing {
            self.report_exit(state_dir, exit);
        }
    }

    /// Sends the exit report to the daemon.
    ///
    /// The report is first stored in a file, so that a later daemon can find it. The file is
    /// removed when the daemon has acknowledged the report. Until then the shim cannot know whether
    /// the report has arrived. If the daemon refused the shim before its agent was started, no file
    /// is stored.
    fn report_exit(&mut self, state_dir: &Path, exit: &ExitReport) {
        failpoint::hit("shim.report-exit");
        let json = serde_json::to_vec(exit).expect("an exit report is valid JSON");
        let file = state_file_names::exit_report(self.connection.spawn_id());
        let state = store::StateDir::open(state_dir);
        if !self.connection.is_refused_before_start() {
            // If the file cannot be written, a daemon that is connected still gets the report.
            state.iter().for_each(|state| drop(state.overwrite(&file, &json)));
        }
        failpoint::hit("shim.exit-saved");
        let acknowledgement = self.wait_until_exit_recorded(exit);
        failpoint::hit("shim.exit-reported");
        if acknowledgement == Acknowledgement::Received || self.connection.is_refused_before_start() {
            state.iter().for_each(|state| drop(state.remove(&file)));
        }
        if acknowledgement == Acknowledgement::Missing && *exit != ExitReport::TerminalGone {
            failpoint::hit("shim.close-pane");
            close_own_pane(self.connection.spawn_id());
        }
    }

    fn wait_until_exit_recorded(&mut self, exit: &ExitReport) -> Acknowledgement {
        let deadline = Instant::now() + REPORT_TIMEOUT;
        if self.connection.send(&FromShim::Exited(exit.clone())) {
            while let ShimEvent::Message(message) =
                self.connection.next_event_on_connection(&self.signals, deadline)
            {
                if matches!(message, ToShim::ExitRecorded) {
                    return Acknowledgement::Received;
                }
            }
        }
        Acknowledgement::Missing
    }
}

/// Whether the daemon confirmed that it recorded the exit report.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Acknowledgement {
    Received,
    Missing,
}

/// The error for an agent that was not started. If a limit of the kernel, such as the number of
/// processes, has been reached, the error names the limit.
fn start_error(message: &str) -> ErrorReport {
    let may_be_limit = !message.ends_with(NO_SUCH_PROGRAM);
    match may_be_limit.then(reached_process_limit).flatten() {
        Some(limit) => store::process_limit_error(&limit, message),
        None => ErrorReport::new(ErrorKind::MissingPath, message)
            .with_help("is it installed, and in the PATH of the caller?"),
    }
}

fn pty_error(error: std::io::Error) -> String {
    format!("cannot open a terminal for the agent: {error}")
}

/// The process of an agent that is one process for the whole spawn.
struct SupervisedAgent {
    pid: u32,
    /// How the process has ended. `None` while it runs.
    status: Option<ExitStatus>,
}

impl SupervisedAgent {
    /// Records the exit of a child, if that child is the agent.
    fn note_exit(&mut self, pid: u32, status: ExitStatus) {
        if pid == self.pid {
            self.status = Some(status);
        }
    }

    fn exit_report(&self) -> ExitReport {
        self.status.map_or(ExitReport::ShimKilled, ExitReport::from_status)
    }

    fn exit_code(&self) -> ExitCode {
        let status = self.status.unwrap_or_default();
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        ExitCode::from(u8::try_from(code).unwrap_or(1))
    }
}
