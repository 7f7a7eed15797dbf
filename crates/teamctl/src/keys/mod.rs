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
    Call, HookEvent, HookReply, HookReport, HookSource, LongPollRequest, PROTOCOL_VERSION,
    PaneInput as Order, Reply, Request, ScreenReply,
};
use protocol::error::{ErrorKind, ErrorReport};
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
/// After a fault there is another look.
const AGAIN: Duration = Duration::from_secs(1);
/// For people.
const NOT_TAKEN: &str = "what was typed into it was not taken";
/// A life is shorter.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

pub(crate) fn run(here: &Here) -> Result<ExitCode, ErrorReport> {
    let name = crate::here::variable("TEAMD_PROFILE").unwrap_or_default();
    let prompt = Shelf::of_user().profile(&name)?.prompt_on_screen().ok_or_else(|| {
        ErrorReport::new(
            ErrorKind::Config,
            format!("cannot type for {name}: its profile does not say `ready`"),
        )
    })?;
    let (me, team) = (here.me(), here.team()?);
    let log =
        here.place()?.state_dir.join("logs/agents").join(team.name().as_str()).join(format!("{me}.log"));
    let color = team.member(me.as_str()).ok().and_then(|member| member.color);
    let call = Call {
        version: PROTOCOL_VERSION,
        token: here.token(),
        idempotency_key: None,
        request: Request::LongPoll(LongPollRequest { leads_team: None }),
    };
    let wait = Wait::without_terminal(here.socket()?, call, Instant::now() + FOR_EVER);
    let typist = Typist {
        here,
        prompt,
        post: Post::new(team, me, color).told_by(here.hints()?),
        output: Output::of(&log)?,
        wait,
        in_turn: true,
    };
    typist.live();
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
    /// Until its agent has ended: join ends it then, should it not see that itself. Whatever else goes wrong may go well
    /// at another look, and an agent whose typist is gone would be deaf.
    fn live(mut self) {
        loop {
            let seen = self.until_ready();
            match self.step(&seen) {
                Ok(Over::Look | Over::Away | Over::Nothing(_)) => {}
                Ok(Over::Ended) => return,
                Err(fault) => {
                    words::complain(&fault.to_string());
                    self.output.next(AGAIN);
                }
            }
        }
    }

    /// What there is to do at the empty prompt; else the wait for it.
    fn step(&mut self, seen: &ScreenReply) -> Result<Over, ErrorReport> {
        if self.in_turn && !self.turn_over()? {
            // A life that is to end gets nothing any more, and ends once nothing of it is written.
            return Ok(self.wait.wait());
        }
        match self.post.due(HAND_IN)? {
            Some(due) => self.give(due, seen).map(|()| Over::Look),
            None => Ok(self.wait.wait()),
        }
    }

    /// The screen with the empty prompt, once it is there.
    fn until_ready(&mut self) -> ScreenReply {
        let mut told = None;
        loop {
            self.output.drain();
            // A pane that can't be seen just now is not ready.
            let seen = self.seen();
            match self.prompt.of(&seen) {
                Shown::Ready => return seen,
                Shown::Dialog(text) if told.as_ref() != Some(&text) => {
                    self.tell(HookEvent::DialogShown { text: text.clone() }).ok();
                    told = Some(text);
                }
                Shown::Dialog(_) | Shown::Other => {}
            }
            self.output.next(RELOOK);
            self.output.settle(STILL, RESTLESS);
        }
    }

    /// False where its life is to end.
    fn turn_over(&mut self) -> Result<bool, ErrorReport> {
        let reply = self.tell(HookEvent::TurnEnded)?;
        // Told once: what the files do not take now is not told anew. Whoever is to end is asked about at each look.
        self.in_turn = !reply.delivers_by_hook;
        if let Some(text) = &reply.prompt_in_args {
            self.post.had_prompt(text)?;
        }
        if reply.approval_in_args {
            self.post.had_approval()?;
        }
        if reply.prompt_in_args.is_some() || reply.approval_in_args {
            self.tell(HookEvent::PromptRead)?;
        }
        if reply.is_first_report && reply.delivers_by_hook {
            self.post.turn_over(reply.task, reply.turn_started_at, None)?;
        }
        Ok(reply.delivers_by_hook)
    }

    /// Types it, and marks it read once the program has taken it. What it does not take stands in its prompt: nothing
    /// is typed behind it, it is not typed once more, and it stays unread for as long.
    fn give(&mut self, due: Due, seen: &ScreenReply) -> Result<(), ErrorReport> {
        let cursor = seen.cursor;
        if self.order(Order::Type { cursor, text: due.text.clone() }).is_err() {
            // Somebody was faster with a key: it is tried again when the prompt is empty.
            self.output.next(RELOOK);
            return Ok(());
        }
        self.output.settle(STILL, RESTLESS);
        // From here on it stands there, whatever becomes of the daemon.
        let written = self.seen();
        if written.cursor == cursor || !self.entered(written.cursor) {
            self.tell(HookEvent::DialogShown { text: NOT_TAKEN.to_owned() })?;
            self.output.next(RELOOK);
            return Ok(());
        }
        self.until_taken(&written, &due.text);
        self.in_turn = true;
        let told = self.tell(HookEvent::TurnStarted { summary: due.about, delivered_ids: Vec::new() });
        self.post.mark(due.entries)?;
        told.map(drop)
    }

    /// False where the cursor has gone elsewhere meanwhile: somebody types.
    fn entered(&self, cursor: (u32, u32)) -> bool {
        loop {
            match self.order(Order::Enter { cursor }) {
                Err(fault) if fault.kind == ErrorKind::NoDaemon => drop(self.output.next(AGAIN)),
                entered => return entered.is_ok(),
            }
        }
    }

    /// However long that takes: a person may have to hand it in.
    fn until_taken(&self, written: &ScreenReply, text: &str) {
        let mut until = Some(Instant::now() + TAKEN);
        loop {
            self.output.settle(STILL, STILL);
            if self.look().is_ok_and(|seen| self.prompt.has_left(&seen, written, text)) {
                return;
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                self.tell(HookEvent::DialogShown { text: NOT_TAKEN.to_owned() }).ok();
                until = None;
            }
            self.output.next(left.unwrap_or(RELOOK));
        }
    }

    /// The screen, once it can be seen: there is a daemon, and no person looks into its history.
    fn seen(&self) -> ScreenReply {
        loop {
            let wait = match self.look() {
                Ok(seen) => return seen,
                Err(fault) if fault.kind == ErrorKind::NoDaemon => AGAIN,
                Err(_) => RELOOK,
            };
            self.output.next(wait);
        }
    }

    fn look(&self) -> Result<ScreenReply, ErrorReport> {
        match self.order(Order::Capture)? {
            Reply::Screen(seen) => Ok(seen),
            _ => Err(misunderstood()),
        }
    }

    fn order(&self, order: Order) -> Result<Reply, ErrorReport> {
        self.here.ask(Request::TypeInPane(order))
    }

    fn tell(&self, said: HookEvent) -> Result<HookReply, ErrorReport> {
        let speaker = HookSource::Typist;
        match self.here.ask(Request::ReportHook(HookReport {
            leads_team: None,
            session_id: None,
            ancestors: Vec::new(),
            source: speaker,
            usage: None,
            event: said,
        }))? {
            Reply::ReportHook(reply) => Ok(reply),
            _ => Err(misunderstood()),
        }
    }
}
