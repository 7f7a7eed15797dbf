//! The driver's event loop. It owns all state, from the start of the program until the program or
//! the driver ends. The submodules handle the opening of the session, turns, permission questions
//! and the program's exit.

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

/// Why the driver failed.
#[derive(Debug)]
pub(crate) enum DriverError {
    /// The shim has received the reason, as [`FromDriver::Failed`].
    Reported,
    /// There is no connection to a shim; the reason.
    NoShim(String),
}

/// Runs the program until the shim closes its connection.
///
/// # Errors
///
/// [`DriverError`], if standard input is no socket or the program cannot start or continue.
pub(crate) async fn run(args: &DriverArgs) -> Result<(), DriverError> {
    let (events, mut queue) = unbounded_channel();
    let mut shim = ShimSocket::from_stdin(events.clone()).map_err(DriverError::NoShim)?;
    let result = match agent_process::start_agent_process(args, events.clone()) {
        Ok(pipes) => {
            let session = async |agent| run_session(agent, args, &events, &mut queue, &mut shim).await;
            let result = with_connection(pipes, &events, session).await;
            result.unwrap_or_else(|error| {
                Err(format!("cannot speak to {}: {}", args.program_name(), error_text(&error)))
            })
        }
        Err(message) => Err(message),
    };
    match result {
        Ok(()) => Ok(()),
        Err(message) => {
            shim.send(&FromDriver::Failed { message }).await;
            Err(DriverError::Reported)
        }
    }
}

async fn run_session(
    agent: ConnectionTo<Agent>,
    args: &DriverArgs,
    events: &EventSender,
    queue: &mut EventReceiver,
    shim: &mut ShimSocket,
) -> Result<(), String> {
    let mut printer = PanePrinter::new(std::io::stdout(), Styling::from_env());
    let (mut early, mut usage) = (Vec::new(), UsageTracker::new(args.counts_on));
    let Some(session) = wait_for_session(&agent, args, queue, (&mut early, &mut usage), &mut printer).await?
    else {
        return Ok(());
    };
    session.load_failure.iter().for_each(|note| printer.print_line(note));
    let modes = session.modes.mode_ids().to_vec();
    shim.send(&FromDriver::Ready { session_id: session.id.to_string(), modes }).await;
    let driver = AcpDriver {
        agent,
        args,
        events,
        shim,
        printer,
        is_new_session: session.is_new,
        usage,
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

/// State of the driver while the session is open.
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
    /// Texts to send before the next prompt: the shim's text for a new session, and reasons of
    /// denials, for which the protocol has no field.
    prompt_prefix: Vec<String>,
    /// Whether the session is new and had no prompt yet.
    is_new_session: bool,
    /// The session mode that was set last, by the program's id. `None` is the program's default.
    mode: Option<String>,
    /// Why the last change to the plan mode failed. While this is set, no turn starts, because it
    /// would run in another mode.
    plan_mode_error: Option<String>,
    /// Whether a mode change has no result yet.
    is_mode_change_pending: bool,
    /// Prompts and mode changes that arrived during a mode change. A turn must not start in the old
    /// mode.
    deferred: VecDeque<ToDriver>,
    exit: ProgramExit,
}

impl AcpDriver<'_> {
    async fn run_loop(mut self, early: Vec<ToDriver>, queue: &mut EventReceiver) -> Result<(), String> {
        for message in early {
            self.handle_shim_message(message).await;
        }
        loop {
            match self.exit.next_event(queue).await {
                Some(AcpEvent::ShimClosed(error)) => {
                    self.printer.print_line(&error);
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
            AcpEvent::ShimMessage(message) => self.handle_shim_message(message).await,
            AcpEvent::Update(update) => self.handle_update(&update),
            AcpEvent::PermissionRequested(request, responder) => {
                self.handle_permission_request(&request, responder).await;
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
            AcpEvent::ProgramExited(status) => self.exit.set_exited(status),
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
            // The program left the plan mode without an approval.
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

    async fn handle_shim_message(&mut self, message: ToDriver) {
        match message {
            ToDriver::Prompt { .. } | ToDriver::SetMode { .. } if self.is_mode_change_pending => {
                self.deferred.push_back(message);
            }
            ToDriver::Prompt { text, prefix } => match &self.plan_mode_error {
                None => self.start_turn(text, prefix),
                Some(error) => {
                    let end_reason = TurnEndReason::Failed(format!(
                        "it is not in the mode in which it only reads: {error}"
                    ));
                    self.shim
                        .send(&FromDriver::TurnEnded { end_reason, reply: String::new(), usage: None })
                        .await;
                }
            },
            ToDriver::Cancel => self.cancel_turn().await,
            ToDriver::SetMode { id } => self.change_mode(id),
            ToDriver::AnswerPermission { question_id, answer } => self.answer_question(question_id, &answer),
        }
    }

    fn change_mode(&mut self, id: String) {
        let (agent, session, events) = (self.agent.clone(), self.session.clone(), self.events.clone());
        let limit = self.args.session_timeout;
        self.is_mode_change_pending = true;
        tokio::spawn(async move {
            let set = timeout(limit, set_mode(&agent, &session, &id)).await;
            let timed_out = |_| Err(format!("it did not answer within {} s", limit.as_secs()));
            events.send(AcpEvent::ModeSet(id, set.unwrap_or_else(timed_out))).ok();
        });
    }

    async fn handle_mode_result(&mut self, id: String, result: Result<(), String>) {
        let is_plan_mode = Some(&id) == self.args.plan_mode.as_ref();
        match &result {
            Ok(()) => self.plan_mode_error = None,
            Err(error) if is_plan_mode => self.plan_mode_error = Some(error.clone()),
            Err(_) => {}
        }
        match &result {
            Ok(()) => {
                self.printer.print_mode(&id);
                self.mode = Some(id.clone());
            }
            Err(error) => self.printer.print_line(&format!("cannot change to mode {id}: {error}")),
        }
        self.shim.send(&FromDriver::ModeSet { id, error: result.err() }).await;
        self.is_mode_change_pending = false;
        for message in std::mem::take(&mut self.deferred) {
            self.handle_shim_message(message).await;
        }
    }
}

fn invalid_params(error: String) -> Error {
    Error::invalid_params().data(error)
}
