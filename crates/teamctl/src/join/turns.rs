//! join as the host of an agent that is run a turn at a time: wakes from the wake line, words from the daemon,
//! signals, the output and the end of the turn's process, all in one wait.

use super::descendants;
use super::interrupt::{Interrupt, signal};
use super::link::{Beside, Heard, Link};
use super::running::{Input, Running};
use super::signals::Signals;
use super::standing::{News, Standing};
use super::start::{self, Place};
use super::terminal::Terminal;
use crate::here::fault;
use crate::hints::Hints;
use crate::output;
use crate::teammate::{
    Beginning, CannotStart, Happened, Host, How, Over, Post, Process, Program, Teammate, Tells, TurnEnd,
    TurnOf,
};
use nix::poll::PollFlags;
use protocol::control::{FromShim, StartAgent, ToShim, TurnSetup, TurnStatus};
use protocol::driver_protocol::PermissionAnswer;
use protocol::turn_program::TurnProgram;
use protocol::usage::{UsageReading, UsageScope};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use store::{Durability, Root};

/// What join holds of such an agent.
pub(super) struct Stage<'a> {
    link: &'a mut Link,
    signals: &'a Signals,
    go: &'a StartAgent,
    place: Place,
    terminal: Terminal,
    /// The near end of the wake line.
    line: UnixStream,
    turn: Option<Running>,
    /// Of an agent that is no process a turn.
    standing: Option<Standing>,
    /// Heard before the turn began, and for the life to know.
    pending: Option<Happened>,
    /// Between TERM and KILL for what is left, where the daemon gave it.
    grace: Option<Duration>,
}

/// How the life ended, and what its end asks for.
pub(super) struct Lived {
    pub(super) over: Over,
    pub(super) terminal: Terminal,
    pub(super) grace: Option<Duration>,
    pub(super) birth: Birth,
}

/// Whether the daemon has heard that the agent runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Birth {
    Told,
    Never,
}

/// All that can be missing is looked for before the daemon hears that the agent runs.
pub(super) fn prepared(go: &StartAgent, turns: &TurnSetup, hints: Hints) -> Result<(Post, Program), String> {
    let programs = match &turns.program {
        TurnProgram::Worker(_) => [None, None],
        TurnProgram::PerTurn(agent) => [agent.first_argv.first(), agent.later_argv.first()],
        TurnProgram::Driven(agent) => [agent.driver.first(), agent.argv.first()],
    };
    programs.into_iter().flatten().try_for_each(|program| start::findable(go, program))?;
    let durability = Durability::from_env_value(go.env.get("TEAMD_DURABILITY").map(String::as_str));
    let durability = durability.map_err(|fault| fault.message)?;
    let root = Root::open(&turns.root, &go.state_dir.join("aside"), durability);
    let team = root.and_then(|root| root.team(&turns.team)).map_err(|error| fault(error).message)?;
    let owner = format!("{}@{}", turns.name, turns.team);
    let program = Program::new(turns.program.clone(), turns.session_id.clone(), go.state_dir.clone(), &owner);
    let color = turns.color.map(|color| color.to_string());
    Ok((Post::new(team, turns.name.clone(), color).told_by(hints), program))
}

/// From the first turn to the last.
pub(super) fn live(
    (link, signals): (&mut Link, &Signals),
    (go, turns): (&StartAgent, &TurnSetup),
    (post, program): (Post, Program),
    (terminal, place): (Terminal, Place),
    line: UnixStream,
) -> Lived {
    let standing = match &turns.program {
        TurnProgram::Driven(agent) => Some(Standing::new(agent.clone(), turns.session_id.clone())),
        _ => None,
    };
    let (turn, pending, grace) = (None, None, None);
    let mut stage = Stage { link, signals, go, place, terminal, line, turn, standing, pending, grace };
    if let Err(over) = stage.open() {
        return stage.lived(over, Birth::Never);
    }
    let pid = std::process::id();
    stage.link.agent = Some(pid);
    stage.link.tell(&FromShim::Started { pid });
    failpoint::hit("join.told");
    let beginning = Beginning {
        prompt: turns.prompt.clone(),
        again: turns.is_respawn,
        mode: turns.mode,
        plan: turns.plan_stage.clone(),
    };
    let (stage, over) = Teammate::new(stage, post, program).live(beginning);
    stage.lived(over, Birth::Told)
}

impl Host for Stage<'_> {
    fn begin(&mut self, work: &TurnOf) -> Result<u32, CannotStart> {
        self.hear_before_the_turn();
        match work {
            TurnOf::Process(process) => self.start(process),
            TurnOf::Text(text) => self.hand_over(text),
        }
    }

    fn answer(&mut self, ask: u64, answer: PermissionAnswer) {
        self.standing.iter_mut().for_each(|standing| standing.answer(ask, answer.clone()));
    }

    fn change_mode(&mut self, mode: &str) -> Result<(), String> {
        self.standing.as_mut().ok_or("nobody stands")?.change_mode(mode)
    }

    fn next(&mut self, until: Option<Instant>) -> Happened {
        if let Some(happened) = self.pending.take() {
            return happened;
        }
        loop {
            self.terminal.copy();
            if let Some(happened) = self.of_the_turn().or_else(|| self.of_who_stands()) {
                return happened;
            }
            let heard = self.hear(until);
            if let Some(happened) = self.heard(heard, until) {
                return happened;
            }
        }
    }

    fn listen(&mut self) {
        // Whoever stands tells it itself.
        if self.standing.is_none() {
            self.terminal.listen();
        }
    }

    fn said(&mut self) -> Vec<u8> {
        match &self.standing {
            Some(standing) => standing.said().as_bytes().to_vec(),
            None => self.terminal.heard(),
        }
    }

    fn tell(&mut self, now: &TurnStatus) {
        failpoint::hit("turn.tell");
        self.link.turn = Some(now.clone());
        self.link.tell(&FromShim::TurnStatus(now.clone()));
    }

    fn interrupted(&mut self) {
        self.link.tell(&FromShim::Interrupted { was_in_turn: true });
    }

    fn say(&mut self, text: &str) {
        self.terminal.say(&output::clean(text));
    }
}

impl Stage<'_> {
    fn lived(self, over: Over, birth: Birth) -> Lived {
        Lived { over, terminal: self.terminal, grace: self.grace, birth }
    }

    /// An agent that stands does so before anybody hears that it runs.
    fn open(&mut self) -> Result<(), Over> {
        let Some(standing) = &mut self.standing else { return Ok(()) };
        standing.stand_up(self.go, self.place, &self.terminal).map_err(|error| match error {
            CannotStart::Ever(why) | CannotStart::Now(why) => Over::NotStarted(why),
        })?;
        loop {
            self.terminal.copy();
            match self.standing.as_mut().and_then(Standing::news) {
                Some(News::Gone(why)) => return Err(Over::NotStarted(format!("cannot start: {why}"))),
                _ if self.standing.as_ref().is_none_or(Standing::is_ready) => return Ok(()),
                _ => {}
            }
            let heard = self.hear(None);
            if matches!(heard, Heard::Word(ToShim::Refused)) {
                // The daemon that knew of it is dead, and its caller with it.
                return Err(Over::NotStarted("nobody knows of it any more".to_owned()));
            }
            match self.heard(heard, None) {
                Some(Happened::End) => return Err(Over::Ended),
                Some(Happened::Wake) => self.pending = Some(Happened::Wake),
                _ => {}
            }
        }
    }

    fn start(&mut self, process: &Process) -> Result<u32, CannotStart> {
        self.terminal.begin(process.tells.clone());
        failpoint::hit("turn.start");
        let mut child = start::turn(self.go, process, self.place, &self.terminal)?;
        failpoint::hit("turn.started");
        let input =
            child.stdin.take().zip(process.input.clone()).and_then(|(pipe, text)| Input::new(pipe, text));
        self.turn = Some(Running { pid: child.id(), status: None, input, interrupt: None, last: None });
        Ok(child.id())
    }

    fn hand_over(&mut self, text: &str) -> Result<u32, CannotStart> {
        let none = || CannotStart::Ever("cannot begin a turn: nobody stands".to_owned());
        let standing = self.standing.as_mut().ok_or_else(none)?;
        self.terminal.begin(Tells::default());
        standing.stand_up(self.go, self.place, &self.terminal)?;
        standing.begin(text).ok_or_else(none)
    }

    /// Who interrupts while the last turn is written down does not mean the next one.
    fn hear_before_the_turn(&mut self) {
        while self.pending.is_none() {
            match self.link.hear(self.signals, Some(Instant::now()), &[]) {
                Heard::Deadline => break,
                heard => self.pending = self.heard(heard, None),
            }
        }
        self.signals.interrupted();
    }

    /// Waits for whatever comes first.
    fn hear(&mut self, until: Option<Instant>) -> Heard {
        let turn = self.turn.as_ref();
        let press = turn.and_then(|turn| turn.interrupt.as_ref()).and_then(Interrupt::until);
        let mut beside: Vec<Beside<'_>> =
            vec![self.terminal.beside(), (self.line.as_fd(), PollFlags::POLLIN)];
        let input = turn.and_then(|turn| turn.input.as_ref());
        beside.extend(input.map(|input| (input.pipe.as_fd(), PollFlags::POLLOUT)));
        beside.extend(self.standing.as_ref().and_then(Standing::beside));
        let stands = self.standing.as_ref().and_then(Standing::until);
        self.link.hear(self.signals, [until, press, stands].into_iter().flatten().min(), &beside)
    }

    /// None: nothing that the life has to know.
    fn heard(&mut self, heard: Heard, until: Option<Instant>) -> Option<Happened> {
        self.turn.iter_mut().for_each(Running::go_on);
        self.standing.iter_mut().for_each(Standing::go_on);
        match heard {
            Heard::Word(ToShim::End { grace_ms }) => {
                self.grace = Some(Duration::from_millis(grace_ms));
                return Some(Happened::End);
            }
            Heard::Word(ToShim::Interrupt) => self.interrupt(),
            // What happened while nobody could wake us is to be looked for.
            Heard::Word(ToShim::Adopted) => return Some(Happened::Wake),
            Heard::Word(_) => {}
            Heard::Signal => return self.signalled(),
            Heard::Beside => return self.drained().then_some(Happened::Wake),
            Heard::Deadline => {
                return until.is_some_and(|until| until <= Instant::now()).then_some(Happened::Deadline);
            }
        }
        None
    }

    fn signalled(&mut self) -> Option<Happened> {
        let (turn, standing) = (&mut self.turn, &mut self.standing);
        descendants::reap(&mut |pid, status| {
            standing.iter_mut().for_each(|standing| standing.reaped(pid, status));
            if let Some(turn) = turn.as_mut().filter(|turn| turn.pid == pid) {
                turn.status = Some(status);
            }
        });
        if self.signals.hung_up() || self.signals.told_to_end() {
            return Some(Happened::End);
        }
        if self.signals.resized() {
            self.terminal.resize();
            // The size is the pane's; the turn is not in the foreground of any terminal that could tell it.
            self.running().iter().for_each(|pid| signal(*pid, nix::sys::signal::Signal::SIGWINCH));
        }
        let in_turn = self.turn.as_ref().is_some_and(|turn| turn.status.is_none())
            || self.standing.as_ref().is_some_and(Standing::in_turn);
        if self.signals.interrupted() && in_turn {
            self.interrupt();
        }
        None
    }

    /// What writes to the terminal: the turn's process, or the one that stands, while it is not reaped.
    fn running(&self) -> Option<u32> {
        let turn = self.turn.as_ref().filter(|turn| turn.status.is_none()).map(|turn| turn.pid);
        turn.or_else(|| self.standing.as_ref().and_then(Standing::running))
    }

    fn interrupt(&mut self) {
        if self.standing.as_mut().is_some_and(Standing::interrupt) {
            return;
        }
        match &mut self.turn {
            // One that has ended just now is answered for when its end is told, and only its rest is to end.
            Some(turn) if turn.interrupt.is_none() && turn.status.is_some() => {
                turn.interrupt = Some(Interrupt::Asked(Instant::now()));
            }
            Some(turn) if turn.interrupt.is_none() => turn.interrupt = Some(Interrupt::ask(turn.pid)),
            Some(_) => {}
            None => {
                self.link.tell(&FromShim::Interrupted { was_in_turn: false });
            }
        }
    }

    /// Forgets all wakes so far; whether there were any.
    fn drained(&self) -> bool {
        let (mut bytes, mut any) = ([0; 64], false);
        while matches!((&self.line).read(&mut bytes), Ok(read) if read > 0) {
            any = true;
        }
        any
    }

    fn of_who_stands(&mut self) -> Option<Happened> {
        match self.standing.as_mut()?.news()? {
            News::Session(session) => Some(Happened::Session(session)),
            News::Asked(asked) => Some(Happened::Asked(asked)),
            News::Turn(how, used) => {
                let used = used.map(|used| UsageReading { usage: used, scope: UsageScope::Turn });
                Some(Happened::Turn(TurnEnd { how, last: self.terminal.drain(), used }))
            }
            News::Gone(why) => {
                self.say(&format!("{why}; it is started again for the next turn"));
                None
            }
        }
    }

    /// Its output first: the last of it may tell the session.
    fn of_the_turn(&mut self) -> Option<Happened> {
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.last.is_none())
            && turn.is_over()
        {
            turn.last = Some(self.terminal.drain());
        }
        if let Some(session) = self.terminal.session() {
            return Some(Happened::Session(session));
        }
        let turn = self.turn.take_if(|turn| turn.is_over())?;
        let how = match (turn.interrupt, turn.status) {
            (None, Some(status)) => How::Status(status),
            _ => How::Interrupted,
        };
        Some(Happened::Turn(TurnEnd { how, last: turn.last.unwrap_or_default(), used: self.terminal.used() }))
    }
}
