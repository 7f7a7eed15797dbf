//! `teamd-shim keys`: types an agent's mail into its program, where nothing better feeds it. join runs it beside the agent,
//! for as long as that lives.
//!
//! It types only where the screen shows the program's empty prompt and no dialog, and the daemon types only where the
//! cursor still stands as it did then: so never into a dialog, and never into what a person has begun to write. It
//! looks whether the program took the text, and only then it is read. The end of a turn is the prompt's return.

use super::pane_activity::PaneActivity;
use super::prompt_screen::{ScreenState, classify, has_left_prompt};
use crate::hook::long_poll::{LongPoll, WaitEnd};
use crate::output;
use crate::turns::next_prompt::NextPrompt;
use crate::turns::team_files::TeamFiles;
use client::error::unexpected_reply;
use client::team_context::TeamContext;
use profile::ProfileRegistry;
use profile::PromptPatterns;
use protocol::control::{
    Call, HookEvent, HookReply, HookReport, HookSource, LongPollRequest, PROTOCOL_VERSION,
    PaneInput as Order, Reply, Request, ScreenReply,
};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::plan_prompts::SUBMIT_PLAN_PROMPT;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A screen is looked at when nothing was written to it for so long.
const QUIET_TIME: Duration = Duration::from_millis(200);
/// A program that writes all the time is looked at all the same.
const MAX_SETTLE_TIME: Duration = Duration::from_secs(2);
/// Events get lost; this often there is a look without one.
const RESCAN_INTERVAL: Duration = Duration::from_secs(30);
/// How long a program may take to take what was typed.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(5);
/// After a fault there is another look.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// For people.
const NOT_ACCEPTED: &str = "what was typed into it was not taken";
/// A life is shorter.
const NO_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

pub(crate) fn run(here: &TeamContext) -> Result<ExitCode, ErrorReport> {
    let name = store::env_var("TEAMD_PROFILE").unwrap_or_default();
    let prompt = ProfileRegistry::for_user().profile(&name)?.prompt_patterns().ok_or_else(|| {
        ErrorReport::new(
            ErrorKind::Config,
            format!("cannot type for {name}: its profile does not say `ready`"),
        )
    })?;
    let (me, team) = (here.caller_name(), here.team()?);
    let log = here
        .directories()?
        .state_dir
        .join("logs/agents")
        .join(team.name().as_str())
        .join(format!("{me}.log"));
    let color = team.member(me.as_str()).ok().and_then(|member| member.color);
    let call = Call {
        version: PROTOCOL_VERSION,
        token: here.token(),
        idempotency_key: None,
        request: Request::LongPoll(LongPollRequest { leads_team: None }),
    };
    let wait = LongPoll::new_without_terminal(here.socket()?, call, Instant::now() + NO_TIMEOUT);
    let typist = Typist {
        here,
        prompt,
        post: TeamFiles::new(team, me, color).with_next_task_client(here.next_task_client()?),
        activity: PaneActivity::watch(&log)?,
        wait,
        in_turn: true,
    };
    typist.run_loop();
    Ok(ExitCode::SUCCESS)
}

struct Typist<'a> {
    here: &'a TeamContext,
    prompt: PromptPatterns,
    post: TeamFiles,
    activity: PaneActivity,
    wait: LongPoll,
    in_turn: bool,
}

impl Typist<'_> {
    /// Until its agent has ended: join ends it then, should it not see that itself. Whatever else goes wrong may go well
    /// at another look, and an agent whose typist is gone would be deaf.
    fn run_loop(mut self) {
        loop {
            let seen = self.wait_for_prompt();
            match self.deliver_or_wait(&seen) {
                Ok(WaitEnd::MessagesMayWait | WaitEnd::NoDaemon | WaitEnd::NoDelivery(_)) => {}
                Ok(WaitEnd::AgentExited) => return,
                Err(fault) => {
                    output::print_warning(&fault.to_string());
                    self.activity.wait_for_output(RETRY_DELAY);
                }
            }
        }
    }

    /// What there is to do at the empty prompt; else the wait for it.
    fn deliver_or_wait(&mut self, seen: &ScreenReply) -> Result<WaitEnd, ErrorReport> {
        if self.in_turn && !self.report_turn_end()? {
            // A life that is to end gets nothing any more, and ends once nothing of it is written.
            return Ok(self.wait.run());
        }
        match self.post.next_prompt(SUBMIT_PLAN_PROMPT)? {
            Some(due) => self.type_message(due, seen).map(|()| WaitEnd::MessagesMayWait),
            None => Ok(self.wait.run()),
        }
    }

    /// The screen with the empty prompt, once it is there.
    fn wait_for_prompt(&mut self) -> ScreenReply {
        let mut told = None;
        loop {
            self.activity.drain();
            // A pane that can't be seen just now is not ready.
            let seen = self.wait_for_screen();
            match classify(&self.prompt, &seen) {
                ScreenState::EmptyPrompt => return seen,
                ScreenState::Dialog(text) if told.as_ref() != Some(&text) => {
                    self.report_event(HookEvent::DialogShown { text: text.clone() }).ok();
                    told = Some(text);
                }
                ScreenState::Dialog(_) | ScreenState::Other => {}
            }
            self.activity.wait_for_output(RESCAN_INTERVAL);
            self.activity.wait_until_quiet(QUIET_TIME, MAX_SETTLE_TIME);
        }
    }

    /// False where its life is to end.
    fn report_turn_end(&mut self) -> Result<bool, ErrorReport> {
        let reply = self.report_event(HookEvent::TurnEnded)?;
        // Told once: what the files do not take now is not told anew. Whoever is to end is asked about at each look.
        self.in_turn = !reply.delivers_by_hook;
        if let Some(text) = &reply.prompt_in_args {
            self.post.mark_prompt_read(text)?;
        }
        if reply.approval_in_args {
            self.post.mark_approval_read()?;
        }
        if reply.prompt_in_args.is_some() || reply.approval_in_args {
            self.report_event(HookEvent::PromptRead)?;
        }
        if reply.is_first_report && reply.delivers_by_hook {
            self.post.finish_turn(reply.task, reply.turn_started_at, None)?;
        }
        Ok(reply.delivers_by_hook)
    }

    /// Types it, and marks it read once the program has taken it. What it does not take stands in its prompt: nothing
    /// is typed behind it, it is not typed once more, and it stays unread for as long.
    fn type_message(&mut self, due: NextPrompt, seen: &ScreenReply) -> Result<(), ErrorReport> {
        let cursor = seen.cursor;
        if self.send_keys_request(Order::Type { cursor, text: due.text.clone() }).is_err() {
            // Somebody was faster with a key: it is tried again when the prompt is empty.
            self.activity.wait_for_output(RESCAN_INTERVAL);
            return Ok(());
        }
        self.activity.wait_until_quiet(QUIET_TIME, MAX_SETTLE_TIME);
        // From here on it stands there, whatever becomes of the daemon.
        let written = self.wait_for_screen();
        if written.cursor == cursor || !self.press_enter(written.cursor) {
            self.report_event(HookEvent::DialogShown { text: NOT_ACCEPTED.to_owned() })?;
            self.activity.wait_for_output(RESCAN_INTERVAL);
            return Ok(());
        }
        self.wait_until_accepted(&written, &due.text);
        self.in_turn = true;
        let told =
            self.report_event(HookEvent::TurnStarted { summary: due.about, delivered_ids: Vec::new() });
        self.post.mark_read(due.entries)?;
        told.map(drop)
    }

    /// False where the cursor has gone elsewhere meanwhile: somebody types.
    fn press_enter(&self, cursor: (u32, u32)) -> bool {
        loop {
            match self.send_keys_request(Order::Enter { cursor }) {
                Err(fault) if fault.kind == ErrorKind::NoDaemon => {
                    self.activity.wait_for_output(RETRY_DELAY);
                }
                entered => return entered.is_ok(),
            }
        }
    }

    /// However long that takes: a person may have to hand it in.
    fn wait_until_accepted(&self, written: &ScreenReply, text: &str) {
        let mut until = Some(Instant::now() + ACCEPT_TIMEOUT);
        loop {
            self.activity.wait_until_quiet(QUIET_TIME, QUIET_TIME);
            if self.read_screen().is_ok_and(|seen| has_left_prompt(&self.prompt, &seen, written, text)) {
                return;
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                self.report_event(HookEvent::DialogShown { text: NOT_ACCEPTED.to_owned() }).ok();
                until = None;
            }
            self.activity.wait_for_output(left.unwrap_or(RESCAN_INTERVAL));
        }
    }

    /// The screen, once it can be seen: there is a daemon, and no person looks into its history.
    fn wait_for_screen(&self) -> ScreenReply {
        loop {
            let wait = match self.read_screen() {
                Ok(seen) => return seen,
                Err(fault) if fault.kind == ErrorKind::NoDaemon => RETRY_DELAY,
                Err(_) => RESCAN_INTERVAL,
            };
            self.activity.wait_for_output(wait);
        }
    }

    fn read_screen(&self) -> Result<ScreenReply, ErrorReport> {
        match self.send_keys_request(Order::Capture)? {
            Reply::Screen(seen) => Ok(seen),
            _ => Err(unexpected_reply()),
        }
    }

    fn send_keys_request(&self, order: Order) -> Result<Reply, ErrorReport> {
        self.here.call_daemon(Request::TypeInPane(order))
    }

    fn report_event(&self, said: HookEvent) -> Result<HookReply, ErrorReport> {
        let speaker = HookSource::Typist;
        match self.here.call_daemon(Request::ReportHook(HookReport {
            leads_team: None,
            session_id: None,
            ancestors: Vec::new(),
            source: speaker,
            usage: None,
            event: said,
        }))? {
            Reply::ReportHook(reply) => Ok(reply),
            _ => Err(unexpected_reply()),
        }
    }
}
