//! The driver's life: the one loop that owns everything, from the program's start to its end or ours.

mod program_exit;
mod questions;
mod startup;
mod turns;

use crate::agent_connection::{error_text, with_connection};
use crate::args::{DriverArgs, FileAccess};
use crate::event::{AcpEvent, EventReceiver, EventSender};
use crate::pane_printer::{PanePrinter, Styling};
use crate::reply_text::ReplyText;
use crate::session::{AcpSession, set_mode};
use crate::shim_connection::ShimSocket;
use crate::usage::UsageTracker;
use crate::{agent_process, file_access};
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{ReadTextFileResponse, SessionUpdate, WriteTextFileResponse};
use agent_client_protocol::{Agent, Error};
use program_exit::ProgramExit;
use protocol::driver_protocol::{FromDriver, ToDriver, TurnEndReason};
use questions::OpenQuestion;
use startup::wait_for_session;
use std::collections::{BTreeMap, VecDeque};
use std::io::Stdout;
use std::sync::Arc;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;
use turns::TurnState;

/// Why the driver ends, but for join's leave.
#[derive(Debug)]
pub(crate) enum DriverError {
    /// join knows why.
    Reported,
    /// There is nobody to tell.
    NoShim(String),
}

/// Until join leaves, or the program can't go on.
pub(crate) async fn run(args: &DriverArgs) -> Result<(), DriverError> {
    let (events, mut queue) = unbounded_channel();
    let mut wire = ShimSocket::from_stdin(events.clone()).map_err(DriverError::NoShim)?;
    let lived = match agent_process::start_agent_process(args, events.clone()) {
        Ok(ends) => {
            let life = async |agent| run_session(agent, args, &events, &mut queue, &mut wire).await;
            let lived = with_connection(ends, &events, life).await;
            lived.unwrap_or_else(|error| {
                Err(format!("cannot speak to {}: {}", args.program_name(), error_text(&error)))
            })
        }
        Err(why) => Err(why),
    };
    match lived {
        Ok(()) => Ok(()),
        Err(message) => {
            wire.send(&FromDriver::Failed { message }).await;
            Err(DriverError::Reported)
        }
    }
}

async fn run_session(
    agent: ConnectionTo<Agent>,
    args: &DriverArgs,
    events: &EventSender,
    queue: &mut EventReceiver,
    wire: &mut ShimSocket,
) -> Result<(), String> {
    let mut show = PanePrinter::new(std::io::stdout(), Styling::from_env());
    let (mut early, mut spent) = (Vec::new(), UsageTracker::new(args.counts_on));
    let Some(session) = wait_for_session(&agent, args, queue, (&mut early, &mut spent), &mut show).await?
    else {
        return Ok(());
    };
    session.load_failure.iter().for_each(|note| show.print_line(note));
    let modes = session.modes.mode_ids().to_vec();
    wire.send(&FromDriver::Ready { session_id: session.id.to_string(), modes }).await;
    let driver = AcpDriver {
        agent,
        args,
        events,
        shim: wire,
        printer: show,
        is_new_session: session.is_new,
        usage: spent,
        session: Arc::new(session),
        turn: TurnState::Idle,
        open_questions: BTreeMap::new(),
        last_question: 0,
        prompt_prefix: Vec::new(),
        mode: args.mode.clone(),
        plan_mode_error: None,
        is_mode_change_pending: false,
        deferred: VecDeque::new(),
        exit: ProgramExit::default(),
        reply: ReplyText::default(),
    };
    driver.run_loop(early, queue).await
}

/// See the head of this file.
struct AcpDriver<'a> {
    agent: ConnectionTo<Agent>,
    args: &'a DriverArgs,
    events: &'a EventSender,
    shim: &'a mut ShimSocket,
    printer: PanePrinter<Stdout>,
    session: Arc<AcpSession>,
    turn: TurnState,
    open_questions: BTreeMap<u64, OpenQuestion>,
    last_question: u64,
    reply: ReplyText,
    usage: UsageTracker,
    /// What stands ahead of the next turn's text: reasons of refusals, for which the protocol has no place.
    prompt_prefix: Vec<String>,
    /// Nothing was said in this session.
    is_new_session: bool,
    /// The mode that it was last given, as the program calls it; none: its own choice.
    mode: Option<String>,
    /// Why it is not in its reading mode, where it was to go into that: no turn runs in another.
    plan_mode_error: Option<String>,
    /// Another mode was asked for, and there is no answer yet.
    is_mode_change_pending: bool,
    /// What waits for that answer: a turn must not begin in the mode before.
    deferred: VecDeque<ToDriver>,
    exit: ProgramExit,
}

impl AcpDriver<'_> {
    async fn run_loop(mut self, early: Vec<ToDriver>, queue: &mut EventReceiver) -> Result<(), String> {
        for word in early {
            self.handle_shim_message(word).await;
        }
        loop {
            match self.exit.next_event(queue).await {
                Some(AcpEvent::ShimClosed(why)) => {
                    self.printer.print_line(&why);
                    return Ok(());
                }
                Some(event) => self.handle_event(event).await,
                None => {
                    self.printer.end_turn();
                    return Err(self.exit.exit_text(&self.args.program_name()));
                }
            }
        }
    }

    async fn handle_event(&mut self, event: AcpEvent) {
        match event {
            AcpEvent::ShimMessage(word) => self.handle_shim_message(word).await,
            AcpEvent::Update(update) => self.handle_update(&update),
            AcpEvent::PermissionRequested(request, responder) => {
                self.handle_permission_request(&request, responder).await
            }
            AcpEvent::ReadFile(request, responder) => {
                let read = file_access::read_file(&request, self.file_access()).map_err(invalid_params);
                responder.respond_with_result(read.map(ReadTextFileResponse::new)).ok();
            }
            AcpEvent::WriteFile(request, responder) => {
                let written = self
                    .check_write_allowed()
                    .and_then(|()| file_access::write_file(&request, self.file_access()));
                let written = written.map_err(invalid_params);
                responder.respond_with_result(written.map(|()| WriteTextFileResponse::new())).ok();
            }
            AcpEvent::TurnEnded(result) => self.finish_turn(result).await,
            AcpEvent::ModeSet(id, result) => self.handle_mode_result(id, result).await,
            AcpEvent::StrayLine(line) => self.printer.print_line(&line),
            AcpEvent::OutputClosed => self.exit.set_output_closed(),
            AcpEvent::ProgramExited(how) => self.exit.set_exited(how),
            AcpEvent::ShimClosed(_) => {}
        }
    }

    fn handle_update(&mut self, update: &SessionUpdate) {
        self.reply.add_update(update);
        self.usage.add_update(update);
        self.printer.print_update(update);
        if let (SessionUpdate::CurrentModeUpdate(now), true) = (update, self.is_in_plan_mode())
            && !self.is_mode_change_pending
            && self.mode.as_deref() != Some(&*now.current_mode_id.0)
        {
            // It went elsewhere by itself.
            self.mode.clone().into_iter().for_each(|mode| self.change_mode(mode));
        }
    }

    fn file_access(&self) -> FileAccess {
        self.args.file_access(self.mode.as_deref())
    }

    fn is_in_plan_mode(&self) -> bool {
        self.mode.is_some() && self.mode == self.args.plan_mode
    }

    fn check_write_allowed(&self) -> Result<(), String> {
        match self.is_in_plan_mode() {
            true => Err("cannot write: in this mode it only reads".to_owned()),
            false => Ok(()),
        }
    }

    async fn handle_shim_message(&mut self, word: ToDriver) {
        match word {
            ToDriver::Prompt { .. } | ToDriver::SetMode { .. } if self.is_mode_change_pending => {
                self.deferred.push_back(word)
            }
            ToDriver::Prompt { text, prefix: ahead } => match &self.plan_mode_error {
                None => self.start_turn(text, ahead),
                Some(why) => {
                    let how =
                        TurnEndReason::Failed(format!("it is not in the mode in which it only reads: {why}"));
                    self.shim
                        .send(&FromDriver::TurnEnded { end_reason: how, reply: String::new(), usage: None })
                        .await;
                }
            },
            ToDriver::Cancel => self.cancel_turn().await,
            ToDriver::SetMode { id } => self.change_mode(id),
            ToDriver::AnswerPermission { question_id: ask, answer } => self.answer_question(ask, &answer),
        }
    }

    fn change_mode(&mut self, id: String) {
        let (agent, session, events) = (self.agent.clone(), self.session.clone(), self.events.clone());
        let patience = self.args.session_timeout;
        self.is_mode_change_pending = true;
        tokio::spawn(async move {
            let set = timeout(patience, set_mode(&agent, &session, &id)).await;
            let late = |_| Err(format!("it did not answer within {} s", patience.as_secs()));
            events.send(AcpEvent::ModeSet(id, set.unwrap_or_else(late))).ok();
        });
    }

    async fn handle_mode_result(&mut self, id: String, result: Result<(), String>) {
        let reads = Some(&id) == self.args.plan_mode.as_ref();
        match &result {
            Ok(()) => self.plan_mode_error = None,
            Err(why) if reads => self.plan_mode_error = Some(why.clone()),
            Err(_) => {}
        }
        match &result {
            Ok(()) => {
                self.printer.print_mode(&id);
                self.mode = Some(id.clone());
            }
            Err(why) => self.printer.print_line(&format!("The mode {id} can't be had: {why}")),
        }
        self.shim.send(&FromDriver::ModeSet { id, error: result.err() }).await;
        self.is_mode_change_pending = false;
        for word in std::mem::take(&mut self.deferred) {
            self.handle_shim_message(word).await;
        }
    }
}

fn invalid_params(why: String) -> Error {
    Error::invalid_params().data(why)
}
