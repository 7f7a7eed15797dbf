//! The process of an agent that stands: its driver, kept for the whole life, started again for the next turn where
//! it has ended, and given up where it ends again and again.

use crate::child_process::{self, PaneMode};
use crate::driver_stream::DriverStream;
use crate::pty::OutputPty;
use crate::turn_interrupt::InterruptStage;
use crate::turns::executor::{StartError, TurnEndKind};
use nix::poll::PollFlags;
use protocol::control::{ExitReport, StartAgent};
use protocol::driver_protocol::{FromDriver, PermissionAnswer, PermissionQuestion, ToDriver, TurnEndReason};
use protocol::permission_mode::PermissionMode;
use protocol::turn_program::DrivenProgram;
use protocol::usage::Usage;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How often it may end in a row, no turn gone well in between.
const MAX_FAILURES_IN_ROW: u32 = 3;
/// How long an agent may take to end a turn that it was asked to; then its process ends.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct DrivenAgent {
    agent: DrivenProgram,
    /// The session to go on with.
    session: Option<String>,
    /// The life was not told of it yet.
    is_session_unreported: bool,
    driver: Option<DriverProcess>,
    turn: Option<DrivenTurn>,
    /// What the agent said in its last turn.
    reply: String,
    open_questions: VecDeque<PermissionQuestion>,
    /// Since a turn went well.
    failures_in_row: u32,
    /// Why it ended last.
    last_failure: String,
}

/// A driver that runs, or whose end was not dealt with yet.
#[derive(Debug)]
struct DriverProcess {
    pid: u32,
    wire: DriverStream,
    ready: bool,
    status: Option<ExitStatus>,
    /// Its own word of its end.
    failed: Option<String>,
    /// What its end left in its session, on the way out.
    unread_output: Option<InterruptStage>,
}

#[derive(Debug, Default)]
struct DrivenTurn {
    interrupt: Option<InterruptStage>,
    how: Option<TurnEndKind>,
    used: Option<Usage>,
}

/// What there is to tell.
#[derive(Debug)]
pub(crate) enum DriverEvent {
    Session(String),
    PermissionAsked(PermissionQuestion),
    /// The turn has ended.
    TurnEnded(TurnEndKind, Option<Usage>),
    /// It has ended between two turns; why.
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

    /// Starts the driver, unless one runs.
    pub(crate) fn ensure_started(
        &mut self,
        go: &StartAgent,
        place: PaneMode,
        terminal: &OutputPty,
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
        let failed = |error| StartError::Transient(format!("cannot make a line to the driver: {error}"));
        let (wire, far) = DriverStream::pair().map_err(failed)?;
        let pid = child_process::start_driver(go, &self.driver_args(), far, place, terminal)?.id();
        self.driver =
            Some(DriverProcess { pid, wire, ready: false, status: None, failed: None, unread_output: None });
        Ok(())
    }

    /// A driver whose end was not dealt with before the next turn: what it left is not waited for.
    fn discard_ended_driver(&mut self) {
        if let Some(driver) = self.driver.take_if(|driver| driver.status.is_some()) {
            crate::descendants::signal_session(driver.pid, rustix::process::Signal::KILL);
            self.record_failure(driver);
        }
    }

    fn driver_args(&self) -> Vec<String> {
        let option = |name: &str, value: &Option<String>| {
            let words = value.iter().flat_map(|value| [name.to_owned(), value.clone()]);
            words.collect::<Vec<_>>()
        };
        let mut words = self.agent.driver.clone();
        words.extend(option("--mode", &self.agent.initial_mode));
        words.extend(option("--reads", &self.agent.mode_ids.get(PermissionMode::Plan.as_str()).cloned()));
        words.extend(option("--session", &self.session));
        words.push("--".to_owned());
        words.extend_from_slice(&self.agent.argv);
        words
    }

    /// Whether it waits for a turn.
    pub(crate) fn is_ready(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.ready)
    }

    /// Gives the text to the driver, and its pid.
    pub(crate) fn start_turn(&mut self, text: &str) -> Option<u32> {
        let driver = self.driver.as_mut()?;
        self.open_questions.clear();
        self.turn = Some(DrivenTurn::default());
        driver
            .wire
            .send(&ToDriver::Prompt { text: text.to_owned(), prefix: self.agent.prompt_prefix.clone() });
        Some(driver.pid)
    }

    pub(crate) fn answer(&mut self, ask: u64, answer: PermissionAnswer) {
        self.send(&ToDriver::AnswerPermission { question_id: ask, answer });
    }

    /// Asks for another of our permission modes; else why it can't be had.
    pub(crate) fn change_mode(&mut self, mode: &str) -> Result<(), String> {
        let id = self.agent.mode_ids.get(mode).cloned();
        let id = id.ok_or_else(|| format!("its profile names no mode of the program for {mode}"))?;
        self.send(&ToDriver::SetMode { id });
        Ok(())
    }

    fn send(&mut self, word: &ToDriver) {
        self.driver.iter_mut().for_each(|driver| driver.wire.send(word));
    }

    /// Asks for the end of the turn; whether there is one.
    pub(crate) fn interrupt(&mut self) -> bool {
        let Some(turn) = &mut self.turn else { return false };
        if turn.interrupt.is_none() {
            turn.interrupt = Some(InterruptStage::IntSent(Instant::now() + CANCEL_TIMEOUT));
            self.send(&ToDriver::Cancel);
        }
        true
    }

    pub(crate) fn watched_descriptor(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        self.driver.as_ref().and_then(|driver| driver.wire.watched_descriptor())
    }

    /// When to go on, whatever happens.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let rest = self.driver.as_ref().and_then(|driver| driver.unread_output.as_ref());
        let turn = self.turn.as_ref().and_then(|turn| turn.interrupt.as_ref());
        rest.or(turn).and_then(InterruptStage::deadline)
    }

    /// The driver's pid while it is not reaped.
    pub(crate) fn running_pid(&self) -> Option<u32> {
        self.driver.as_ref().filter(|driver| driver.status.is_none()).map(|driver| driver.pid)
    }

    /// Whether a turn is on.
    pub(crate) fn is_in_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// A child of ours was reaped.
    pub(crate) fn note_exit(&mut self, pid: u32, status: ExitStatus) {
        self.driver
            .iter_mut()
            .filter(|driver| driver.pid == pid)
            .for_each(|driver| driver.status = Some(status));
    }

    /// Takes and gives what the line has, and whatever its time has come for.
    pub(crate) fn advance(&mut self) {
        let Some(driver) = &mut self.driver else { return };
        driver.wire.flush();
        let words = driver.wire.read_messages();
        if driver.status.is_none()
            && let Some(turn) = &mut self.turn
            && let Some(interrupt) = turn.interrupt.take()
        {
            turn.interrupt = Some(interrupt.escalate(driver.pid));
        }
        words.into_iter().for_each(|word| self.handle_message(word));
    }

    fn handle_message(&mut self, word: FromDriver) {
        match word {
            FromDriver::Ready { session_id: session, .. } => {
                self.is_session_unreported = true;
                self.session = Some(session);
                self.driver.iter_mut().for_each(|driver| driver.ready = true);
            }
            FromDriver::PermissionAsked(asked) => self.open_questions.push_back(asked),
            FromDriver::TurnEnded { end_reason: how, reply: said, usage: used } => {
                self.reply = said;
                if let Some(turn) = &mut self.turn {
                    (turn.how, turn.used) = (Some(turn_end_kind(how)), used);
                }
            }
            FromDriver::Failed { message } => {
                self.driver.iter_mut().for_each(|driver| driver.failed = Some(message.clone()));
            }
            FromDriver::ModeSet { id, error: None } => self.agent.initial_mode = Some(id),
            // The driver has shown it.
            FromDriver::ModeSet { error: Some(_), .. } => {}
        }
    }

    /// What the agent said in the turn that has ended.
    pub(crate) fn reply(&self) -> &str {
        &self.reply
    }

    /// What the life, or whoever opens it, has to know next.
    pub(crate) fn next_event(&mut self) -> Option<DriverEvent> {
        let over = self.turn.take_if(|turn| turn.how.is_some());
        if over.is_none() && self.turn.is_some() && std::mem::take(&mut self.is_session_unreported) {
            return self.session.clone().map(DriverEvent::Session);
        }
        if let Some(DrivenTurn { interrupt, how: Some(how), used }) = over {
            self.open_questions.clear();
            if matches!(how, TurnEndKind::Completed) {
                self.failures_in_row = 0;
            }
            return Some(DriverEvent::TurnEnded(
                if interrupt.is_some() { TurnEndKind::Interrupted } else { how },
                used,
            ));
        }
        if self.has_ended_completely() {
            return self.driver_exit_event();
        }
        self.open_questions.pop_front().map(DriverEvent::PermissionAsked)
    }

    /// It has ended, with all that was in its session.
    fn has_ended_completely(&mut self) -> bool {
        let Some(driver) = self.driver.as_mut().filter(|driver| driver.status.is_some()) else {
            return false;
        };
        let rest = driver.unread_output.take().unwrap_or_else(|| InterruptStage::IntSent(Instant::now()));
        matches!(driver.unread_output.insert(rest.end_descendants(driver.pid)), InterruptStage::Done)
    }

    fn driver_exit_event(&mut self) -> Option<DriverEvent> {
        self.driver.take().into_iter().for_each(|driver| self.record_failure(driver));
        self.open_questions.clear();
        Some(match self.turn.take() {
            Some(DrivenTurn { interrupt: Some(_), .. }) => {
                // That was us.
                self.failures_in_row -= 1;
                DriverEvent::TurnEnded(TurnEndKind::Interrupted, None)
            }
            Some(_) => DriverEvent::TurnEnded(TurnEndKind::Failed(self.last_failure.clone()), None),
            None => DriverEvent::Exited(self.last_failure.clone()),
        })
    }

    fn record_failure(&mut self, driver: DriverProcess) {
        self.failures_in_row += 1;
        let ended = ExitReport::from_status(driver.status.unwrap_or_default());
        self.last_failure = driver.failed.unwrap_or_else(|| format!("its driver has ended: {ended}"));
    }
}

fn turn_end_kind(how: TurnEndReason) -> TurnEndKind {
    match how {
        TurnEndReason::Completed => TurnEndKind::Completed,
        TurnEndReason::Cancelled => TurnEndKind::Failed("cancelled".to_owned()),
        TurnEndReason::Failed(why) => TurnEndKind::Failed(why),
    }
}
