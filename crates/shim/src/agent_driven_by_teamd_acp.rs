//! An agent whose program is driven by `teamd-acp`, the driver. The driver normally runs for the
//! whole spawn. If it exits, it is started again for the next turn. After [`MAX_FAILURES_IN_ROW`]
//! exits without a successful turn between them, the agent fails.

use crate::acp_driver_socket::DriverStream;
use crate::output_pty::OutputPty;
use crate::signal_escalation::SignalStage;
use crate::start_child_processes::{self, PaneMode};
use crate::turns::turn_executor_trait::{StartError, TurnEndKind};
use nix::poll::PollFlags;
use protocol::acp_driver_protocol::{
    FromDriver, PermissionAnswer, PermissionQuestion, ToDriver, TurnEndReason,
};
use protocol::control_socket::{ExitReport, StartAgent};
use protocol::permission_mode::PermissionMode;
use protocol::token_and_cost_usage::Usage;
use protocol::worker_or_program_that_runs_turns::DrivenProgram;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How often the driver may exit without a successful turn in between.
const MAX_FAILURES_IN_ROW: u32 = 3;
/// How long the program may take to end a cancelled turn. After that the driver is ended.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// An agent behind a driver, and its current turn.
#[derive(Debug)]
pub(crate) struct DrivenAgent {
    agent: DrivenProgram,
    /// The id of the session that the driver has open, or that it resumes at its next start.
    session: Option<String>,
    /// Whether the turn loop does not know the session id yet.
    is_session_unreported: bool,
    driver: Option<DriverProcess>,
    turn: Option<DrivenTurn>,
    /// The agent's reply in its last turn.
    reply: String,
    open_questions: VecDeque<PermissionQuestion>,
    /// The number of driver exits since the last successful turn.
    failures_in_row: u32,
    /// Why the driver exited last, as a sentence for people.
    last_failure: String,
}

/// The driver's process. It either runs, or has exited but was not cleaned up yet.
#[derive(Debug)]
struct DriverProcess {
    pid: u32,
    stream: DriverStream,
    is_ready: bool,
    status: Option<ExitStatus>,
    /// The reason that the driver itself gave for its exit.
    failed: Option<String>,
    /// How far the shim has come in ending the processes that an exited driver left behind in its
    /// process session: SIGTERM sent, SIGKILL sent, or done. `None` while the driver runs.
    session_cleanup: Option<SignalStage>,
}

#[derive(Debug, Default)]
struct DrivenTurn {
    interrupt: Option<SignalStage>,
    end: Option<TurnEndKind>,
    usage: Option<Usage>,
}

/// An event that the turn loop must handle.
#[derive(Debug)]
pub(crate) enum DriverEvent {
    Session(String),
    PermissionAsked(PermissionQuestion),
    /// The turn has ended, with its usage if the program reported it.
    TurnEnded(TurnEndKind, Option<Usage>),
    /// The driver exited between two turns; the reason.
    Exited(String),
}

impl DrivenAgent {
    pub(crate) fn new(agent: DrivenProgram, session: Option<String>) -> DrivenAgent {
        DrivenAgent {
            agent,
            session,
            is_session_unreported: false,
            driver: None,
            turn: None,
            reply: String::new(),
            open_questions: VecDeque::new(),
            failures_in_row: 0,
            last_failure: String::new(),
        }
    }

    /// Starts the driver, unless it is already running.
    ///
    /// # Errors
    ///
    /// `Permanent` if the driver has exited too often without a successful turn.
    pub(crate) fn ensure_started(
        &mut self,
        start: &StartAgent,
        pane_mode: PaneMode,
        output: &OutputPty,
    ) -> Result<(), StartError> {
        self.discard_ended_driver();
        if self.driver.is_some() {
            return Ok(());
        }
        if self.failures_in_row >= MAX_FAILURES_IN_ROW {
            let times = self.failures_in_row;
            return Err(StartError::Permanent(format!(
                "it ended {times} times in a row; the last time: {}",
                self.last_failure
            )));
        }
        let failed = |error| StartError::Transient(format!("cannot make a socket to the driver: {error}"));
        let (stream, driver_socket) = DriverStream::pair().map_err(failed)?;
        let pid = start_child_processes::start_driver(
            start,
            &self.driver_args(),
            driver_socket,
            pane_mode,
            output,
        )?
        .id();
        self.driver = Some(DriverProcess {
            pid,
            stream,
            is_ready: false,
            status: None,
            failed: None,
            session_cleanup: None,
        });
        Ok(())
    }

    /// If the driver has exited, kills the processes that it left behind in its process session. A
    /// new driver can then be started for the next turn. SIGKILL is sent at once, because the turn
    /// cannot wait until the processes have handled SIGTERM.
    fn discard_ended_driver(&mut self) {
        if let Some(driver) = self.driver.take_if(|driver| driver.status.is_some()) {
            crate::end_descendants::signal_session(driver.pid, rustix::process::Signal::KILL);
            self.record_failure(driver);
        }
    }

    fn driver_args(&self) -> Vec<String> {
        let option = |name: &str, value: &Option<String>| {
            let args = value.iter().flat_map(|value| [name.to_owned(), value.clone()]);
            args.collect::<Vec<_>>()
        };
        let mut args = self.agent.driver.clone();
        args.extend(option("--mode", &self.agent.initial_mode));
        args.extend(option("--plan-mode", &self.agent.mode_ids.get(PermissionMode::Plan.as_str()).cloned()));
        args.extend(option("--session", &self.session));
        args.push("--".to_owned());
        args.extend_from_slice(&self.agent.argv);
        args
    }

    /// Whether the driver can take a turn.
    pub(crate) fn is_ready(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.is_ready)
    }

    /// Sends the text of a turn to the driver. Returns the driver's pid, or `None` if no driver
    /// runs.
    pub(crate) fn start_turn(&mut self, text: &str) -> Option<u32> {
        let driver = self.driver.as_mut()?;
        self.open_questions.clear();
        self.turn = Some(DrivenTurn::default());
        driver
            .stream
            .send(&ToDriver::Prompt { text: text.to_owned(), prefix: self.agent.prompt_prefix.clone() });
        Some(driver.pid)
    }

    pub(crate) fn answer(&mut self, question_id: u64, answer: PermissionAnswer) {
        self.send(&ToDriver::AnswerPermission { question_id, answer });
    }

    /// Asks the program to change to the permission mode `mode`.
    ///
    /// # Errors
    ///
    /// A sentence for people, if the profile does not map `mode` to one of the program's own modes.
    pub(crate) fn change_mode(&mut self, mode: &str) -> Result<(), String> {
        let id = self.agent.mode_ids.get(mode).cloned();
        let id = id.ok_or_else(|| format!("its profile names no mode of the program for {mode}"))?;
        self.send(&ToDriver::SetMode { id });
        Ok(())
    }

    fn send(&mut self, message: &ToDriver) {
        self.driver.iter_mut().for_each(|driver| driver.stream.send(message));
    }

    /// Asks the program to end the current turn. Returns false if no turn is running.
    pub(crate) fn interrupt(&mut self) -> bool {
        let Some(turn) = &mut self.turn else { return false };
        if turn.interrupt.is_none() {
            turn.interrupt = Some(SignalStage::IntSent(Instant::now() + CANCEL_TIMEOUT));
            self.send(&ToDriver::Cancel);
        }
        true
    }

    pub(crate) fn watched_descriptor(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        self.driver.as_ref().and_then(|driver| driver.stream.watched_descriptor())
    }

    /// When the shim must send the next signal, to interrupt a turn or to end the processes that
    /// the driver has left behind. `None` if there is no signal to send.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let cleanup = self.driver.as_ref().and_then(|driver| driver.session_cleanup.as_ref());
        let turn = self.turn.as_ref().and_then(|turn| turn.interrupt.as_ref());
        cleanup.or(turn).and_then(SignalStage::deadline)
    }

    /// The driver's pid. `None` if no driver runs.
    pub(crate) fn running_pid(&self) -> Option<u32> {
        self.driver.as_ref().filter(|driver| driver.status.is_none()).map(|driver| driver.pid)
    }

    /// Whether a turn is running.
    pub(crate) fn is_in_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// Records the exit of a child, if that child is the driver.
    pub(crate) fn note_exit(&mut self, pid: u32, status: ExitStatus) {
        self.driver
            .iter_mut()
            .filter(|driver| driver.pid == pid)
            .for_each(|driver| driver.status = Some(status));
    }

    /// Exchanges messages with the driver. Ends the driver if an interrupted turn takes too long.
    pub(crate) fn advance(&mut self) {
        let Some(driver) = &mut self.driver else { return };
        driver.stream.flush();
        let messages = driver.stream.read_messages();
        if driver.status.is_none()
            && let Some(turn) = &mut self.turn
            && let Some(interrupt) = turn.interrupt.take()
        {
            turn.interrupt = Some(interrupt.escalate(driver.pid));
        }
        messages.into_iter().for_each(|message| self.handle_message(message));
    }

    fn handle_message(&mut self, message: FromDriver) {
        match message {
            FromDriver::Ready { session_id: session, .. } => {
                self.is_session_unreported = true;
                self.session = Some(session);
                self.driver.iter_mut().for_each(|driver| driver.is_ready = true);
            }
            FromDriver::PermissionAsked(question) => self.open_questions.push_back(question),
            FromDriver::TurnEnded { end_reason, reply, usage } => {
                self.reply = reply;
                if let Some(turn) = &mut self.turn {
                    (turn.end, turn.usage) = (Some(turn_end_kind(end_reason)), usage);
                }
            }
            FromDriver::Failed { message } => {
                self.driver.iter_mut().for_each(|driver| driver.failed = Some(message.clone()));
            }
            FromDriver::ModeSet { id, error: None } => self.agent.initial_mode = Some(id),
            // The driver prints the error itself.
            FromDriver::ModeSet { error: Some(_), .. } => {}
        }
    }

    /// The agent's reply in its last turn.
    pub(crate) fn reply(&self) -> &str {
        &self.reply
    }

    /// The next event for the turn loop. `None` if there is none.
    pub(crate) fn next_event(&mut self) -> Option<DriverEvent> {
        let ended_turn = self.turn.take_if(|turn| turn.end.is_some());
        if ended_turn.is_none() && self.turn.is_some() && std::mem::take(&mut self.is_session_unreported) {
            return self.session.clone().map(DriverEvent::Session);
        }
        if let Some(DrivenTurn { interrupt, end: Some(end), usage }) = ended_turn {
            self.open_questions.clear();
            if matches!(end, TurnEndKind::Completed) {
                self.failures_in_row = 0;
            }
            return Some(DriverEvent::TurnEnded(
                if interrupt.is_some() { TurnEndKind::Interrupted } else { end },
                usage,
            ));
        }
        if self.has_ended_completely() {
            return self.driver_exit_event();
        }
        self.open_questions.pop_front().map(DriverEvent::PermissionAsked)
    }

    /// Whether the driver has exited and its session has no processes left.
    fn has_ended_completely(&mut self) -> bool {
        let Some(driver) = self.driver.as_mut().filter(|driver| driver.status.is_some()) else {
            return false;
        };
        let cleanup = driver.session_cleanup.take().unwrap_or_else(|| SignalStage::IntSent(Instant::now()));
        matches!(driver.session_cleanup.insert(cleanup.end_descendants(driver.pid)), SignalStage::Done)
    }

    fn driver_exit_event(&mut self) -> Option<DriverEvent> {
        self.driver.take().into_iter().for_each(|driver| self.record_failure(driver));
        self.open_questions.clear();
        Some(match self.turn.take() {
            Some(DrivenTurn { interrupt: Some(_), .. }) => {
                // The shim ended this driver itself, so its exit does not count as a failure.
                self.failures_in_row -= 1;
                DriverEvent::TurnEnded(TurnEndKind::Interrupted, None)
            }
            Some(_) => DriverEvent::TurnEnded(TurnEndKind::Failed(self.last_failure.clone()), None),
            None => DriverEvent::Exited(self.last_failure.clone()),
        })
    }

    fn record_failure(&mut self, driver: DriverProcess) {
        self.failures_in_row += 1;
        let exit_report = ExitReport::from_status(driver.status.unwrap_or_default());
        self.last_failure = driver.failed.unwrap_or_else(|| format!("its driver has ended: {exit_report}"));
    }
}

fn turn_end_kind(reason: TurnEndReason) -> TurnEndKind {
    match reason {
        TurnEndReason::Completed => TurnEndKind::Completed,
        TurnEndReason::Cancelled => TurnEndKind::Failed("cancelled".to_owned()),
        TurnEndReason::Failed(reason) => TurnEndKind::Failed(reason),
    }
}
