//! The driver's event loop. It runs until the agent program ends or the shim closes its
//! connection. The submodules open the session, and keep track of turns, permission requests, the
//! session's mode and the program's exit.

mod open_permission_questions;
mod program_exit;
mod session_mode_and_deferred_messages;
mod turns;
mod wait_for_session;

use crate::agent_connection::{error_text, with_connection};
use crate::args::{DriverArgs, FileAccess};
use crate::driver_event::{AcpEvent, EventReceiver, EventSender};
use crate::open_session::{AcpSession, set_mode};
use crate::pane_printer::{PanePrinter, Styling};
use crate::shim_connection::ShimSocket;
use crate::{agent_file_access, agent_process};
use agent_client_protocol::v1::schema::{
    CancelNotification, PromptRequest, PromptResponse, ReadTextFileResponse, RequestPermissionRequest,
    RequestPermissionResponse, SessionUpdate, ToolKind, WriteTextFileResponse,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Error};
use open_permission_questions::{AnsweredQuestion, OpenQuestions, cancel_request, reject_request};
use program_exit::ProgramExit;
use protocol::acp_driver_protocol::{FromDriver, PermissionAnswer, ToDriver, TurnEndReason};
use session_mode_and_deferred_messages::ModeState;
use std::io::Stdout;
use std::sync::Arc;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;
use turns::{Turns, turn_not_started};
use wait_for_session::wait_for_session;

/// Why the driver failed.
#[derive(Debug)]
pub(crate) enum DriverError {
    /// The shim has received the reason, as [`FromDriver::Failed`].
    Reported,
    /// There is no connection to a shim; the reason.
    NoShim(String),
}

/// Starts the agent program and drives it until the shim closes its connection to the driver.
///
/// # Errors
///
/// [`DriverError`] if standard input is not a socket, if the program cannot be started, or if the
/// program ends.
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
    let Some(opened) = wait_for_session(&agent, args, queue, &mut printer).await? else { return Ok(()) };
    let session = opened.session;
    session.load_failure.iter().for_each(|note| printer.print_line(note));
    let modes = session.modes.mode_ids().to_vec();
    shim.send(&FromDriver::Ready { session_id: session.id.to_string(), modes }).await;
    let driver = AcpDriver {
        agent,
        args,
        events,
        shim,
        printer,
        turns: Turns::new(session.history, opened.usage),
        session: Arc::new(session),
        questions: OpenQuestions::default(),
        mode: ModeState::new(args.mode.clone(), args.plan_mode.clone()),
        exit: opened.exit,
    };
    driver.run_loop(opened.messages, queue).await
}

/// State of the driver while the session is open.
struct AcpDriver<'a> {
    agent: ConnectionTo<Agent>,
    args: &'a DriverArgs,
    events: &'a EventSender,
    shim: &'a mut ShimSocket,
    printer: PanePrinter<Stdout>,
    session: Arc<AcpSession>,
    turns: Turns,
    questions: OpenQuestions,
    mode: ModeState,
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
                let read = agent_file_access::read_file(&request, self.file_access()).map_err(invalid_params);
                responder.respond_with_result(read.map(ReadTextFileResponse::new)).ok();
            }
            AcpEvent::WriteFile(request, responder) => {
                let written = self
                    .check_write_allowed()
                    .and_then(|()| agent_file_access::write_file(&request, self.file_access()));
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
        self.turns.add_update(update);
        self.printer.print_update(update);
        if let SessionUpdate::CurrentModeUpdate(now) = update
            && let Some(mode) = self.mode.mode_to_restore(&now.current_mode_id.0)
        {
            self.change_mode(mode.to_owned());
        }
    }

    fn file_access(&self) -> FileAccess {
        self.args.file_access(self.mode.current())
    }

    fn check_write_allowed(&self) -> Result<(), String> {
        match self.mode.is_plan_mode() {
            true => Err("cannot write: in this mode it only reads".to_owned()),
            false => Ok(()),
        }
    }

    async fn handle_shim_message(&mut self, message: ToDriver) {
        match self.mode.defer(message) {
            Some(ToDriver::Prompt { text, prefix }) => match self.mode.plan_mode_error() {
                None => self.start_turn(text, prefix),
                Some(error) => {
                    let reason = format!("it is not in the mode in which it only reads: {error}");
                    self.shim.send(&turn_not_started(TurnEndReason::Failed(reason))).await;
                }
            },
            Some(ToDriver::Cancel) => self.cancel_turn().await,
            Some(ToDriver::SetMode { id }) => self.change_mode(id),
            Some(ToDriver::AnswerPermission { question_id, answer }) => {
                self.answer_question(question_id, &answer);
            }
            None => {}
        }
    }

    fn start_turn(&mut self, text: String, prefix: String) {
        let request = PromptRequest::new(self.session.id.clone(), self.turns.start(text, prefix));
        let events = self.events.clone();
        let sent = self.agent.prepare_request(request).on_receiving_result(async move |result| {
            events.send(AcpEvent::TurnEnded(result)).ok();
            Ok(())
        });
        if let Err(error) = sent {
            self.events.send(AcpEvent::TurnEnded(Err(error))).ok();
        }
    }

    async fn cancel_turn(&mut self) {
        if self.mode.drop_deferred_prompts() > 0 {
            self.shim.send(&turn_not_started(TurnEndReason::Cancelled)).await;
        }
        if self.turns.is_running() {
            self.turns.set_cancelled();
            self.agent.send_notification(CancelNotification::new(self.session.id.clone())).ok();
            self.questions.cancel_all();
        }
    }

    async fn finish_turn(&mut self, result: Result<PromptResponse, Error>) {
        // When the program ends, its open requests fail. The event loop reports the exit instead.
        if self.exit.has_begun() && result.is_err() {
            return;
        }
        self.questions.cancel_all();
        self.printer.end_turn();
        self.shim.send(&self.turns.finish(result)).await;
    }

    async fn handle_permission_request(
        &mut self,
        request: &RequestPermissionRequest,
        responder: Responder<RequestPermissionResponse>,
    ) {
        if !self.turns.is_running() {
            return cancel_request(responder);
        }
        let fields = &request.tool_call.fields;
        if self.mode.is_plan_mode() && fields.kind == Some(ToolKind::SwitchMode) {
            // Only the approval of the plan ends the plan mode. The plan becomes part of the reply.
            let plan = fields.raw_input.as_ref().and_then(|input| input["plan"].as_str());
            plan.iter().for_each(|plan| self.turns.add_to_reply(plan));
            self.printer.print_line("  not yet: it leaves this mode once its plan is approved");
            return reject_request(request, responder);
        }
        let question = self.questions.open(request, responder);
        self.printer.print_question(&question.call_id, &question.title, &question.tool_name);
        self.shim.send(&FromDriver::PermissionAsked(question)).await;
    }

    fn answer_question(&mut self, question_id: u64, answer: &PermissionAnswer) {
        let Some(AnsweredQuestion { title, rejection }) = self.questions.answer(question_id, answer) else {
            return;
        };
        match rejection {
            None => self.printer.print_line("  allowed"),
            Some(reason) if reason.is_empty() => self.printer.print_line("  refused"),
            Some(reason) => {
                self.printer.print_line(&format!("  refused: {reason}"));
                self.turns.add_to_next_prompt(format!("Why this was refused ({title}): {reason}"));
            }
        }
    }

    fn change_mode(&mut self, id: String) {
        let (agent, session, events) = (self.agent.clone(), self.session.clone(), self.events.clone());
        let limit = self.args.session_timeout;
        self.mode.start_change();
        tokio::spawn(async move {
            let set = timeout(limit, set_mode(&agent, &session, &id)).await;
            let timed_out = |_| Err(format!("it did not answer within {} s", limit.as_secs()));
            events.send(AcpEvent::ModeSet(id, set.unwrap_or_else(timed_out))).ok();
        });
    }

    async fn handle_mode_result(&mut self, id: String, result: Result<(), String>) {
        match &result {
            Ok(()) => self.printer.print_mode(&id),
            Err(error) => self.printer.print_line(&format!("cannot change to mode {id}: {error}")),
        }
        let deferred = self.mode.finish_change(id.clone(), result.as_ref().copied().map_err(String::as_str));
        self.shim.send(&FromDriver::ModeSet { id, error: result.err() }).await;
        for message in deferred {
            self.handle_shim_message(message).await;
        }
    }
}

fn invalid_params(error: String) -> Error {
    Error::invalid_params().data(error)
}
