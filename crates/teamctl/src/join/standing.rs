//! The process of an agent that stands: its driver, kept for the whole life, started again for the next turn where
//! it has ended, and given up where it ends again and again.

use super::interrupt::Interrupt;
use super::start::{self, Place};
use super::terminal::Terminal;
use super::wire::Wire;
use crate::teammate::{CannotStart, How};
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
const DEATHS: u32 = 3;
/// How long an agent may take to end a turn that it was asked to; then its process ends.
const CANCELLING: Duration = Duration::from_secs(5);

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Standing {
    agent: DrivenProgram,
    /// The session to go on with.
    session: Option<String>,
    /// The life was not told of it yet.
    session_is_news: bool,
    driver: Option<Driver>,
    turn: Option<Turn>,
    /// What the agent said in its last turn.
    said: String,
    asked: VecDeque<PermissionQuestion>,
    /// Since a turn went well.
    deaths: u32,
    /// Why it ended last.
    why: String,
}

/// A driver that runs, or whose end was not dealt with yet.
#[derive(Debug)]
struct Driver {
    pid: u32,
    wire: Wire,
    ready: bool,
    status: Option<ExitStatus>,
    /// Its own word of its end.
    failed: Option<String>,
    /// What its end left in its session, on the way out.
    rest: Option<Interrupt>,
}

#[derive(Debug, Default)]
struct Turn {
    interrupt: Option<Interrupt>,
    how: Option<How>,
    used: Option<Usage>,
}

/// What there is to tell.
#[derive(Debug)]
pub(super) enum News {
    Session(String),
    Asked(PermissionQuestion),
    /// The turn has ended.
    Turn(How, Option<Usage>),
    /// It has ended between two turns; why.
    Gone(String),
}

impl Standing {
    pub(super) fn new(agent: DrivenProgram, session: Option<String>) -> Standing {
        Standing {
            agent,
            session,
            session_is_news: false,
            driver: None,
            turn: None,
            said: String::new(),
            asked: VecDeque::new(),
            deaths: 0,
            why: String::new(),
        }
    }

    /// Starts the driver, unless one runs.
    pub(super) fn stand_up(
        &mut self,
        go: &StartAgent,
        place: Place,
        terminal: &Terminal,
    ) -> Result<(), CannotStart> {
        self.forget_the_dead();
        if self.driver.is_some() {
            return Ok(());
        }
        if self.deaths >= DEATHS {
            let times = self.deaths;
            return Err(CannotStart::Ever(format!(
                "it ended {times} times in a row; the last time: {}",
                self.why
            )));
        }
        let failed = |error| CannotStart::Now(format!("cannot make a line to the driver: {error}"));
        let (wire, far) = Wire::pair().map_err(failed)?;
        let pid = start::driver(go, &self.words(), far, place, terminal)?.id();
        self.driver = Some(Driver { pid, wire, ready: false, status: None, failed: None, rest: None });
        Ok(())
    }

    /// A driver whose end was not dealt with before the next turn: what it left is not waited for.
    fn forget_the_dead(&mut self) {
        if let Some(driver) = self.driver.take_if(|driver| driver.status.is_some()) {
            super::descendants::signal_in(driver.pid, rustix::process::Signal::KILL);
            self.mourn(driver);
        }
    }

    fn words(&self) -> Vec<String> {
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
    pub(super) fn is_ready(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.ready)
    }

    /// Gives the text to the driver, and its pid.
    pub(super) fn begin(&mut self, text: &str) -> Option<u32> {
        let driver = self.driver.as_mut()?;
        self.asked.clear();
        self.turn = Some(Turn::default());
        driver
            .wire
            .say(&ToDriver::Prompt { text: text.to_owned(), prefix: self.agent.prompt_prefix.clone() });
        Some(driver.pid)
    }

    pub(super) fn answer(&mut self, ask: u64, answer: PermissionAnswer) {
        self.say(&ToDriver::AnswerPermission { question_id: ask, answer });
    }

    /// Asks for another of our permission modes; else why it can't be had.
    pub(super) fn change_mode(&mut self, mode: &str) -> Result<(), String> {
        let id = self.agent.mode_ids.get(mode).cloned();
        let id = id.ok_or_else(|| format!("its profile names no mode of the program for {mode}"))?;
        self.say(&ToDriver::SetMode { id });
        Ok(())
    }

    fn say(&mut self, word: &ToDriver) {
        self.driver.iter_mut().for_each(|driver| driver.wire.say(word));
    }

    /// Asks for the end of the turn; whether there is one.
    pub(super) fn interrupt(&mut self) -> bool {
        let Some(turn) = &mut self.turn else { return false };
        if turn.interrupt.is_none() {
            turn.interrupt = Some(Interrupt::Asked(Instant::now() + CANCELLING));
            self.say(&ToDriver::Cancel);
        }
        true
    }

    pub(super) fn beside(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        self.driver.as_ref().and_then(|driver| driver.wire.beside())
    }

    /// When to go on, whatever happens.
    pub(super) fn until(&self) -> Option<Instant> {
        let rest = self.driver.as_ref().and_then(|driver| driver.rest.as_ref());
        let turn = self.turn.as_ref().and_then(|turn| turn.interrupt.as_ref());
        rest.or(turn).and_then(Interrupt::until)
    }

    /// The driver's pid while it is not reaped.
    pub(super) fn running(&self) -> Option<u32> {
        self.driver.as_ref().filter(|driver| driver.status.is_none()).map(|driver| driver.pid)
    }

    /// Whether a turn is on.
    pub(super) fn in_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// A child of ours was reaped.
    pub(super) fn reaped(&mut self, pid: u32, status: ExitStatus) {
        self.driver
            .iter_mut()
            .filter(|driver| driver.pid == pid)
            .for_each(|driver| driver.status = Some(status));
    }

    /// Takes and gives what the line has, and whatever its time has come for.
    pub(super) fn go_on(&mut self) {
        let Some(driver) = &mut self.driver else { return };
        driver.wire.flush();
        let words = driver.wire.hear();
        if driver.status.is_none()
            && let Some(turn) = &mut self.turn
            && let Some(interrupt) = turn.interrupt.take()
        {
            turn.interrupt = Some(interrupt.press(driver.pid));
        }
        words.into_iter().for_each(|word| self.heard(word));
    }

    fn heard(&mut self, word: FromDriver) {
        match word {
            FromDriver::Ready { session_id: session, .. } => {
                self.session_is_news = true;
                self.session = Some(session);
                self.driver.iter_mut().for_each(|driver| driver.ready = true);
            }
            FromDriver::PermissionAsked(asked) => self.asked.push_back(asked),
            FromDriver::TurnEnded { end_reason: how, reply: said, usage: used } => {
                self.said = said;
                if let Some(turn) = &mut self.turn {
                    (turn.how, turn.used) = (Some(ended(how)), used);
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
    pub(super) fn said(&self) -> &str {
        &self.said
    }

    /// What the life, or whoever opens it, has to know next.
    pub(super) fn news(&mut self) -> Option<News> {
        let over = self.turn.take_if(|turn| turn.how.is_some());
        if over.is_none() && self.turn.is_some() && std::mem::take(&mut self.session_is_news) {
            return self.session.clone().map(News::Session);
        }
        if let Some(Turn { interrupt, how: Some(how), used }) = over {
            self.asked.clear();
            if matches!(how, How::Done) {
                self.deaths = 0;
            }
            return Some(News::Turn(if interrupt.is_some() { How::Interrupted } else { how }, used));
        }
        if self.is_dead() {
            return self.buried();
        }
        self.asked.pop_front().map(News::Asked)
    }

    /// It has ended, with all that was in its session.
    fn is_dead(&mut self) -> bool {
        let Some(driver) = self.driver.as_mut().filter(|driver| driver.status.is_some()) else {
            return false;
        };
        let rest = driver.rest.take().unwrap_or_else(|| Interrupt::Asked(Instant::now()));
        matches!(driver.rest.insert(rest.clear(driver.pid)), Interrupt::Over)
    }

    fn buried(&mut self) -> Option<News> {
        self.driver.take().into_iter().for_each(|driver| self.mourn(driver));
        self.asked.clear();
        Some(match self.turn.take() {
            Some(Turn { interrupt: Some(_), .. }) => {
                // That was us.
                self.deaths -= 1;
                News::Turn(How::Interrupted, None)
            }
            Some(_) => News::Turn(How::Failed(self.why.clone()), None),
            None => News::Gone(self.why.clone()),
        })
    }

    fn mourn(&mut self, driver: Driver) {
        self.deaths += 1;
        let ended = ExitReport::from_status(driver.status.unwrap_or_default());
        self.why = driver.failed.unwrap_or_else(|| format!("its driver has ended: {ended}"));
    }
}

fn ended(how: TurnEndReason) -> How {
    match how {
        TurnEndReason::Completed => How::Done,
        TurnEndReason::Cancelled => How::Failed("cancelled".to_owned()),
        TurnEndReason::Failed(why) => How::Failed(why),
    }
}
