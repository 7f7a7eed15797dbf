//! Runs the turns of one agent for the turn loop (`turns/turn_loop.rs`). One poll(2) waits for all
//! events: wakes, messages of the daemon, signals, and the output and exit of the turn's process. A
//! wake is a byte on the agent's wake socket, which says that there may be a message or a task.

use crate::agent_driven_by_teamd_acp::{DrivenAgent, DriverEvent};
use crate::catch_signals::ShimSignals;
use crate::daemon_connection::{DaemonConnection, ShimEvent, WatchedDescriptor};
use crate::end_descendants;
use crate::output_pty::OutputPty;
use crate::signal_escalation::{SignalStage, signal_group};
use crate::start_child_processes::{self, PaneMode};
use crate::turn_process::{PendingStdin, TurnProcess};
use crate::turns::agent_team_files::AgentTeamFiles;
use crate::turns::scan_output_for_session_and_usage::OutputFields;
use crate::turns::turn_command_builder::TurnBuilder;
use crate::turns::turn_executor_trait::{
    ExecutorEvent, StartError, TurnCommand, TurnEndKind, TurnExecutor, TurnInput, TurnResult,
};
use crate::turns::turn_loop::{InitialState, TurnLoop, TurnLoopEnd};
use client::ask_daemon_for_next_task::NextTaskClient;
use nix::poll::PollFlags;
use protocol::acp_driver_protocol::PermissionAnswer;
use protocol::control_socket::{FromShim, StartAgent, ToShim, TurnSetup, TurnStatus};
use protocol::error_kind_and_report::ErrorReport;
use protocol::token_and_cost_usage::{UsageReading, UsageScope};
use protocol::worker_or_program_that_runs_turns::TurnProgram;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use store::{Durability, Root};

/// The parts from which a [`ShimExecutor`] is built.
pub(crate) struct ExecutorParts<'a> {
    pub(crate) connection: &'a mut DaemonConnection,
    pub(crate) signals: &'a ShimSignals,
    pub(crate) start: &'a StartAgent,
    pub(crate) pane_mode: PaneMode,
    pub(crate) output: OutputPty,
    /// The agent's end of the wake socket.
    pub(crate) wake_socket: UnixStream,
}

/// The state of an agent whose turns the shim runs.
pub(crate) struct ShimExecutor<'a> {
    parts: ExecutorParts<'a>,
    /// The process of the current turn. `None` between turns, and always `None` for an agent with a
    /// driver.
    turn: Option<TurnProcess>,
    /// The driver and its program. `None` if each turn is a process of its own.
    driven: Option<DrivenAgent>,
    /// An event that arrived before the turn loop asked for it.
    pending: Option<ExecutorEvent>,
    /// The time between SIGTERM and SIGKILL for the processes that the agent leaves behind. `None`
    /// if the daemon has not set this time.
    grace: Option<Duration>,
    /// Since when the home of the team has no contact, if no new turn begins because of that.
    no_contact_since: Option<u64>,
}

/// How the turn loop ended, and the values that the caller needs to clean up.
pub(crate) struct TurnLoopExit {
    pub(crate) end: TurnLoopEnd,
    pub(crate) output: OutputPty,
    pub(crate) grace: Option<Duration>,
    pub(crate) start_report: StartReport,
}

/// Whether the shim has reported to the daemon that the agent runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StartReport {
    Sent,
    NotSent,
}

/// Opens the team files, and checks that the agent's programs exist. These are the driver and its
/// program, or the programs for the first turn and for later turns. The caller does this before it
/// reports to the daemon that the agent runs.
///
/// # Errors
///
/// A sentence that says which file or program is missing.
pub(crate) fn prepare(
    start: &StartAgent,
    setup: &TurnSetup,
    next_task_client: NextTaskClient,
) -> Result<(AgentTeamFiles, TurnBuilder), String> {
    let programs = match &setup.program {
        TurnProgram::Worker(_) => [None, None],
        TurnProgram::PerTurn(agent) => [agent.first_argv.first(), agent.later_argv.first()],
        TurnProgram::Driven(agent) => [agent.driver.first(), agent.argv.first()],
    };
    programs
        .into_iter()
        .flatten()
        .try_for_each(|program| start_child_processes::check_program_exists(start, program))?;
    let durability = Durability::from_env_value(start.env.get("TEAMD_DURABILITY").map(String::as_str));
    let durability = durability.map_err(|error| error.message)?;
    let root = Root::open(&setup.root, &start.state_dir, durability);
    let team =
        root.and_then(|root| root.team(&setup.team)).map_err(|error| ErrorReport::from(error).message)?;
    let owner = format!("{}@{}", setup.name, setup.team);
    let builder =
        TurnBuilder::new(setup.program.clone(), setup.session_id.clone(), start.state_dir.clone(), &owner);
    let color = setup.color.map(|color| color.to_string());
    let files = AgentTeamFiles::new(team, setup.name.clone(), color).with_next_task_client(next_task_client);
    Ok((files, builder))
}

/// Runs the agent's turns until the agent ends.
pub(crate) fn run_turns(
    parts: ExecutorParts<'_>,
    setup: &TurnSetup,
    files: AgentTeamFiles,
    builder: TurnBuilder,
) -> TurnLoopExit {
    let driven = match &setup.program {
        TurnProgram::Driven(agent) => Some(DrivenAgent::new(agent.clone(), setup.session_id.clone())),
        _ => None,
    };
    let mut executor =
        ShimExecutor { parts, turn: None, driven, pending: None, grace: None, no_contact_since: None };
    if let Err(end) = executor.open_driven_agent() {
        return executor.into_exit(end, StartReport::NotSent);
    }
    let pid = std::process::id();
    executor.parts.connection.agent = Some(pid);
    executor.parts.connection.send(&FromShim::Started { pid });
    failpoint::hit("shim.start-reported");
    let initial_state = InitialState {
        prompt: setup.prompt.clone(),
        is_respawn: setup.is_respawn,
        mode: setup.mode,
        plan: setup.plan_stage.clone(),
    };
    let turn_loop = TurnLoop::new(executor, files, builder);
    let (executor, end) = turn_loop.with_limit_patterns(setup.limit_patterns.clone()).run(initial_state);
    executor.into_exit(end, StartReport::Sent)
}

impl TurnExecutor for ShimExecutor<'_> {
    fn start_turn(&mut self, input: &TurnInput) -> Result<u32, StartError> {
        self.handle_pending_events();
        // This interrupt was meant for the previous turn.
        self.parts.signals.take_interrupt();
        match input {
            TurnInput::Command(command) => self.start_process(command),
            TurnInput::Text(text) => self.give_text_to_driver(text),
        }
    }

    fn no_contact_since(&mut self) -> Option<u64> {
        // The end of the last turn comes as a signal, which is handled before the daemon's message
        // that no further turn may begin.
        self.handle_pending_events();
        self.no_contact_since
    }

    fn answer_permission(&mut self, question_id: u64, answer: PermissionAnswer) {
        self.driven.iter_mut().for_each(|driven| driven.answer(question_id, answer.clone()));
    }

    fn change_mode(&mut self, mode: &str) -> Result<(), String> {
        self.driven.as_mut().ok_or("the driver is not running")?.change_mode(mode)
    }

    fn next_event(&mut self, deadline: Option<Instant>) -> ExecutorEvent {
        if let Some(event) = self.pending.take() {
            return event;
        }
        loop {
            self.parts.output.copy_available();
            if let Some(event) = self.turn_event().or_else(|| self.driver_event()) {
                return event;
            }
            let event = self.wait_for_event(deadline);
            if let Some(event) = self.handle_event(event, deadline) {
                return event;
            }
        }
    }

    fn start_capture(&mut self) {
        // The output of an agent with a driver is not captured, because the driver reports the
        // agent's reply in a message.
        if self.driven.is_none() {
            self.parts.output.start_capture();
        }
    }

    fn captured_output(&mut self) -> Vec<u8> {
        match &self.driven {
            Some(driven) => driven.reply().as_bytes().to_vec(),
            None => self.parts.output.take_captured(),
        }
    }

    fn report_status(&mut self, status: &TurnStatus) {
        failpoint::hit("turn.report");
        self.parts.connection.turn = Some(status.clone());
        self.parts.connection.send(&FromShim::TurnStatus(status.clone()));
    }

    fn confirm_interrupt(&mut self) {
        self.parts.connection.send(&FromShim::Interrupted { was_in_turn: true });
    }

    fn print_line(&mut self, text: &str) {
        self.parts.output.print_line(&protocol::escape_control_chars::visible(text));
    }
}

impl ShimExecutor<'_> {
    fn into_exit(self, end: TurnLoopEnd, start_report: StartReport) -> TurnLoopExit {
        TurnLoopExit { end, output: self.parts.output, grace: self.grace, start_report }
    }

    /// Starts the driver of an agent that has one, and waits until the driver is ready. The caller
    /// does this before it reports to the daemon that the agent runs.
    ///
    /// # Errors
    ///
    /// `NotStarted` with the reason why the driver did not become ready. `Terminated` if the daemon
    /// or a signal ended the agent first.
    fn open_driven_agent(&mut self) -> Result<(), TurnLoopEnd> {
        let Some(driven) = &mut self.driven else { return Ok(()) };
        driven.ensure_started(self.parts.start, self.parts.pane_mode, &self.parts.output).map_err(
            |error| match error {
                StartError::Permanent(reason) | StartError::Transient(reason) => {
                    TurnLoopEnd::NotStarted(reason)
                }
            },
        )?;
        loop {
            self.parts.output.copy_available();
            match self.driven.as_mut().and_then(DrivenAgent::next_event) {
                Some(DriverEvent::Exited(reason)) => {
                    return Err(TurnLoopEnd::NotStarted(format!("cannot start: {reason}")));
                }
                _ if self.driven.as_ref().is_none_or(DrivenAgent::is_ready) => return Ok(()),
                _ => {}
            }
            let event = self.wait_for_event(None);
            if matches!(event, ShimEvent::Message(ToShim::Refused)) {
                // The new daemon has no record of this spawn, so it cannot supervise the agent.
                return Err(TurnLoopEnd::NotStarted("teamd does not know it any more".to_owned()));
            }
            match self.handle_event(event, None) {
                Some(ExecutorEvent::Terminate) => return Err(TurnLoopEnd::Terminated),
                Some(ExecutorEvent::Wake) => self.pending = Some(ExecutorEvent::Wake),
                _ => {}
            }
        }
    }

    fn start_process(&mut self, command: &TurnCommand) -> Result<u32, StartError> {
        self.parts.output.start_program_output(command.output_fields.clone());
        failpoint::hit("turn.start");
        let mut child = start_child_processes::start_turn(
            self.parts.start,
            command,
            self.parts.pane_mode,
            &self.parts.output,
        )?;
        failpoint::hit("turn.started");
        let stdin = child
            .stdin
            .take()
            .zip(command.stdin.clone())
            .and_then(|(pipe, text)| PendingStdin::new(pipe, text));
        self.turn =
            Some(TurnProcess { pid: child.id(), status: None, stdin, interrupt: None, output_tail: None });
        Ok(child.id())
    }

    fn give_text_to_driver(&mut self, text: &str) -> Result<u32, StartError> {
        let not_running =
            || StartError::Permanent("cannot begin a turn: the driver is not running".to_owned());
        let driven = self.driven.as_mut().ok_or_else(not_running)?;
        self.parts.output.start_program_output(OutputFields::default());
        driven.ensure_started(self.parts.start, self.parts.pane_mode, &self.parts.output)?;
        driven.start_turn(text).ok_or_else(not_running)
    }

    /// Handles the events that have arrived, up to the first one for the turn loop.
    fn handle_pending_events(&mut self) {
        while self.pending.is_none() {
            match self.parts.connection.next_event(self.parts.signals, Some(Instant::now()), &[]) {
                ShimEvent::Deadline => break,
                event => self.pending = self.handle_event(event, None),
            }
        }
    }

    /// Waits for the next event from any source.
    fn wait_for_event(&mut self, deadline: Option<Instant>) -> ShimEvent {
        let turn = self.turn.as_ref();
        let interrupt = turn.and_then(|turn| turn.interrupt.as_ref()).and_then(SignalStage::deadline);
        let mut watched: Vec<WatchedDescriptor<'_>> =
            vec![self.parts.output.watched_descriptor(), (self.parts.wake_socket.as_fd(), PollFlags::POLLIN)];
        let stdin = turn.and_then(|turn| turn.stdin.as_ref());
        watched.extend(stdin.map(|stdin| (stdin.pipe.as_fd(), PollFlags::POLLOUT)));
        watched.extend(self.driven.as_ref().and_then(DrivenAgent::watched_descriptor));
        let driver = self.driven.as_ref().and_then(DrivenAgent::deadline);
        self.parts.connection.next_event(
            self.parts.signals,
            [deadline, interrupt, driver].into_iter().flatten().min(),
            &watched,
        )
    }

    /// Handles one input of the shim, such as a message of the daemon or the exit of a process.
    /// Returns the event for the turn loop, or `None` if the turn loop has nothing to do.
    fn handle_event(&mut self, event: ShimEvent, deadline: Option<Instant>) -> Option<ExecutorEvent> {
        self.turn.iter_mut().for_each(TurnProcess::advance);
        self.driven.iter_mut().for_each(DrivenAgent::advance);
        match event {
            ShimEvent::Message(ToShim::End { grace_ms }) => {
                self.grace = Some(Duration::from_millis(grace_ms));
                return Some(ExecutorEvent::Terminate);
            }
            ShimEvent::Message(ToShim::Interrupt) => self.interrupt(),
            // The connection to the daemon was lost and is open again. In the meantime, the daemon
            // could not wake the agent. So the turn loop gets a wake now, and scans the inbox and
            // the task list.
            ShimEvent::Message(ToShim::Adopted) => return Some(ExecutorEvent::Wake),
            ShimEvent::Message(ToShim::HoldTurns { no_contact_since }) => {
                self.no_contact_since = Some(no_contact_since);
                return Some(ExecutorEvent::Wake);
            }
            ShimEvent::Message(ToShim::ContinueTurns) => {
                self.no_contact_since = None;
                return Some(ExecutorEvent::Wake);
            }
            ShimEvent::Message(_) => {}
            ShimEvent::Signal => return self.handle_signal(),
            ShimEvent::DescriptorReady => return self.drain_wakes().then_some(ExecutorEvent::Wake),
            ShimEvent::Deadline => {
                return deadline
                    .is_some_and(|deadline| deadline <= Instant::now())
                    .then_some(ExecutorEvent::Deadline);
            }
        }
        None
    }

    fn handle_signal(&mut self) -> Option<ExecutorEvent> {
        let (turn, driven) = (&mut self.turn, &mut self.driven);
        end_descendants::reap(&mut |pid, status| {
            driven.iter_mut().for_each(|driven| driven.note_exit(pid, status));
            if let Some(turn) = turn.as_mut().filter(|turn| turn.pid == pid) {
                turn.status = Some(status);
            }
        });
        if self.parts.signals.is_hung_up() || self.parts.signals.is_terminated() {
            return Some(ExecutorEvent::Terminate);
        }
        if self.parts.signals.take_resize() {
            self.parts.output.resize();
            // The turn's process gets SIGWINCH from the shim. The pane's terminal sends the signal
            // only to its foreground process group, to which the turn's process does not belong.
            self.running_pid().iter().for_each(|pid| signal_group(*pid, nix::sys::signal::Signal::SIGWINCH));
        }
        let in_turn = self.turn.as_ref().is_some_and(|turn| turn.status.is_none())
            || self.driven.as_ref().is_some_and(DrivenAgent::is_in_turn);
        if self.parts.signals.take_interrupt() && in_turn {
            self.interrupt();
        }
        None
    }

    /// The pid of the process that writes to the pseudo-terminal: the process of the current turn,
    /// or the driver. `None` if neither runs.
    fn running_pid(&self) -> Option<u32> {
        let turn = self.turn.as_ref().filter(|turn| turn.status.is_none()).map(|turn| turn.pid);
        turn.or_else(|| self.driven.as_ref().and_then(DrivenAgent::running_pid))
    }

    fn interrupt(&mut self) {
        if self.driven.as_mut().is_some_and(DrivenAgent::interrupt) {
            return;
        }
        match &mut self.turn {
            // The turn's process had exited before the interrupt arrived. So only the remaining
            // descendants of this process are ended. The turn loop confirms the interrupt to the
            // daemon at the end of the turn.
            Some(turn) if turn.interrupt.is_none() && turn.status.is_some() => {
                turn.interrupt = Some(SignalStage::IntSent(Instant::now()));
            }
            Some(turn) if turn.interrupt.is_none() => turn.interrupt = Some(SignalStage::start(turn.pid)),
            Some(_) => {}
            None => {
                self.parts.connection.send(&FromShim::Interrupted { was_in_turn: false });
            }
        }
    }

    /// Reads all wakes from the wake socket. Returns false if there were none.
    fn drain_wakes(&self) -> bool {
        let (mut bytes, mut any) = ([0; 64], false);
        while matches!((&self.parts.wake_socket).read(&mut bytes), Ok(read) if read > 0) {
            any = true;
        }
        any
    }

    fn driver_event(&mut self) -> Option<ExecutorEvent> {
        match self.driven.as_mut()?.next_event()? {
            DriverEvent::Session(session) => Some(ExecutorEvent::SessionStarted(session)),
            DriverEvent::PermissionAsked(question) => Some(ExecutorEvent::PermissionAsked(question)),
            DriverEvent::TurnEnded(end, usage) => {
                let last_lines = self.parts.output.drain_and_take_tail();
                let usage = usage.map(|usage| UsageReading { usage, scope: UsageScope::Turn });
                Some(ExecutorEvent::TurnEnded(TurnResult { end, last_lines, usage }))
            }
            DriverEvent::Exited(reason) => {
                self.print_line(&format!("{reason}; it is started again for the next turn"));
                None
            }
        }
    }

    /// The next event of the turn's process, for the turn loop. When the process has exited, all
    /// its output is read first, because the last line of the output may contain the session id.
    fn turn_event(&mut self) -> Option<ExecutorEvent> {
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.output_tail.is_none())
            && turn.is_finished()
        {
            turn.output_tail = Some(self.parts.output.drain_and_take_tail());
        }
        if let Some(session) = self.parts.output.take_session_id() {
            return Some(ExecutorEvent::SessionStarted(session));
        }
        let turn = self.turn.take_if(|turn| turn.is_finished())?;
        let end = match (turn.interrupt, turn.status) {
            (None, Some(status)) => TurnEndKind::Exited(status),
            _ => TurnEndKind::Interrupted,
        };
        Some(ExecutorEvent::TurnEnded(TurnResult {
            end,
            last_lines: turn.output_tail.unwrap_or_default(),
            usage: self.parts.output.usage(),
        }))
    }
}
