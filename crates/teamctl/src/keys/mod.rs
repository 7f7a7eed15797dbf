//! `teamctl keys`: types an agent's mail into its program, where nothing better feeds it. join runs it beside the agent,
//! for as long as that lives.
//!
//! It types only where the screen shows the program's empty prompt and no dialog, and the daemon types only where the
//! cursor still stands as it did then: so never into a dialog, and never into what a person has begun to write. It
//! looks whether the program took the text, and only then it is read. The end of a turn is the prompt's return.

mod output;
mod screen;

use crate::here::{Here, misunderstood};
use crate::hook::{Over, Wait};
use crate::output as words;
use crate::profile::Shelf;
use crate::teammate::{Due, HAND_IN, Post};
use output::Output;
use protocol::control::{
    Call, HookReply, Hooked, Keys as Order, Park, Reply, Request, Said, ScreenReply, VERSION,
};
use protocol::fault::{Fault, Kind};
pub(crate) use screen::Prompt;
use screen::Shown;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Type an agent's mail into its pane; started by join alone
#[derive(Debug, clap::Args)]
pub(crate) struct Keys {}

/// A screen is looked at when nothing was written to it for so long.
const STILL: Duration = Duration::from_millis(200);
/// A program that writes all the time is looked at all the same.
const RESTLESS: Duration = Duration::from_secs(2);
/// Events get lost; this often there is a look without one.
const RELOOK: Duration = Duration::from_secs(30);
/// How long a program may take to take what was typed.
const TAKEN: Duration = Duration::from_secs(5);
/// A life is shorter.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

pub(crate) fn run(here: &Here) -> Result<ExitCode, Fault> {
    let name = crate::here::variable("TEAMD_PROFILE").unwrap_or_default();
    let prompt = Shelf::of_user().profile(&name)?.prompt_on_screen().ok_or_else(|| {
        Fault::new(Kind::Config, format!("cannot type for {name}: its profile does not say `ready`"))
    })?;
    let (me, team) = (here.me(), here.team()?);
    let log = here.place()?.state.join("logs/agents").join(team.name().as_str()).join(format!("{me}.log"));
    let color = team.member(me.as_str()).ok().and_then(|member| member.color);
    let call =
        Call { v: VERSION, token: here.token(), once: None, request: Request::Park(Park { lead: None }) };
    let wait = Wait::without_terminal(here.socket()?, call, Instant::now() + FOR_EVER);
    let typist = Typist {
        here,
        prompt,
        post: Post::new(team, me, color),
        output: Output::of(&log)?,
        wait,
        in_turn: true,
    };
    typist.live()?;
    Ok(ExitCode::SUCCESS)
}

struct Typist<'a> {
    here: &'a Here,
    prompt: Prompt,
    post: Post,
    output: Output,
    wait: Wait,
    in_turn: bool,
}

impl Typist<'_> {
    fn live(mut self) -> Result<(), Fault> {
        loop {
            let seen = self.until_ready();
            if std::mem::take(&mut self.in_turn) {
                self.turn_over().unwrap_or_else(|fault| words::complain(&fault.to_string()));
            }
            match self.post.due(HAND_IN)? {
                Some(due) => self.give(due, &seen)?,
                None => match self.wait.wait() {
                    Over::Look | Over::Away => {}
                    Over::Nothing(_) => return Ok(()),
                },
            }
        }
    }

    /// The screen with the empty prompt, once it is there.
    fn until_ready(&mut self) -> ScreenReply {
        let mut told = None;
        loop {
            self.output.drain();
            // A pane that can't be seen just now is not ready.
            if let Ok(seen) = self.look() {
                match self.prompt.of(&seen) {
                    Shown::Ready => return seen,
                    Shown::Dialog(text) if told.as_ref() != Some(&text) => {
                        self.tell(Said::Dialog { text: text.clone() }).ok();
                        told = Some(text);
                    }
                    Shown::Dialog(_) | Shown::Other => {}
                }
            }
            self.output.next(RELOOK);
            self.output.settle(STILL, RESTLESS);
        }
    }

    fn turn_over(&mut self) -> Result<(), Fault> {
        let reply = self.tell(Said::Ended)?;
        if let Some(text) = &reply.given {
            self.post.had_prompt(text)?;
        }
        if !reply.first {
            return Ok(());
        }
        self.post.turn_over(reply.task, reply.since, None)
    }

    /// Types it, and marks it read if the program has taken it. What it did not take stands in its prompt: nothing is
    /// typed behind it, and it stays unread.
    fn give(&mut self, due: Due, seen: &ScreenReply) -> Result<(), Fault> {
        let cursor = seen.cursor;
        if self.order(Order::Paste { cursor, text: due.text.clone() }).is_err() {
            // Somebody was faster with a key: it is tried again when the prompt is empty.
            self.output.next(RELOOK);
            return Ok(());
        }
        self.output.settle(STILL, RESTLESS);
        let written = self.look()?;
        let entered = written.cursor != cursor && self.order(Order::Enter { cursor: written.cursor }).is_ok();
        if !entered || !self.is_taken(&written, &due.text) {
            let text = "what was typed into it was not taken".to_owned();
            self.tell(Said::Dialog { text })?;
            self.output.next(RELOOK);
            return Ok(());
        }
        self.in_turn = true;
        self.post.mark(due.entries)?;
        self.tell(Said::Began { about: due.about }).map(drop)
    }

    fn is_taken(&mut self, written: &ScreenReply, text: &str) -> bool {
        let until = Instant::now() + TAKEN;
        while Instant::now() < until {
            self.output.settle(STILL, STILL);
            if self.look().is_ok_and(|seen| screen::has_left(&seen, written, text)) {
                return true;
            }
            self.output.next(until.saturating_duration_since(Instant::now()));
        }
        false
    }

    fn look(&self) -> Result<ScreenReply, Fault> {
        match self.order(Order::Look)? {
            Reply::Screen(seen) => Ok(seen),
            _ => Err(misunderstood()),
        }
    }

    fn order(&self, order: Order) -> Result<Reply, Fault> {
        self.here.ask(Request::Keys(order))
    }

    fn tell(&self, said: Said) -> Result<HookReply, Fault> {
        match self.here.ask(Request::Hook(Hooked { lead: None, session: None, said }))? {
            Reply::Hook(reply) => Ok(reply),
            _ => Err(misunderstood()),
        }
    }
}
