//! The driver's life: the one loop that owns everything, from the program's start to its end or ours.

use crate::args::Args;
use crate::ask::{asked, choice};
use crate::client::{connected, in_words};
use crate::event::{Event, Events, Queue};
use crate::open::{Session, open, set_mode};
use crate::said::Said;
use crate::show::{Paint, Show};
use crate::wire::Wire;
use crate::{files, program};
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, PermissionOption, PermissionOptionId, PromptRequest, PromptResponse,
    ReadTextFileResponse, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionUpdate, StopReason, TextContent, ToolKind, WriteTextFileResponse,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Error};
use protocol::driver::{Answer, FromDriver, Stop, ToDriver};
use std::collections::{BTreeMap, VecDeque};
use std::io::Stdout;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{Instant, timeout, timeout_at};

/// Between the end of a program's process and that of its output, in either order: what it said last is still to be
/// heard, and a child of its own may hold the pipe open for ever.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why the driver ends, but for join's leave.
#[derive(Debug)]
pub(crate) enum Over {
    /// join knows why.
    Told,
    /// There is nobody to tell.
    NoJoin(String),
}

/// Until join leaves, or the program can't go on.
pub(crate) async fn run(args: &Args) -> Result<(), Over> {
    let (events, mut queue) = unbounded_channel();
    let mut wire = Wire::of_standard_input(events.clone()).map_err(Over::NoJoin)?;
    let lived = match program::start(args, events.clone()) {
        Ok(ends) => {
            let life = async |agent| live(agent, args, &events, &mut queue, &mut wire).await;
            let lived = connected(ends, &events, life).await;
            lived.unwrap_or_else(|error| {
                Err(format!("cannot speak to {}: {}", args.program(), in_words(&error)))
            })
        }
        Err(why) => Err(why),
    };
    match lived {
        Ok(()) => Ok(()),
        Err(message) => {
            wire.say(&FromDriver::Failed { message }).await;
            Err(Over::Told)
        }
    }
}

async fn live(
    agent: ConnectionTo<Agent>,
    args: &Args,
    events: &Events,
    queue: &mut Queue,
    wire: &mut Wire,
) -> Result<(), String> {
    let mut show = Show::new(std::io::stdout(), Paint::of_environment());
    let mut early = Vec::new();
    let Some(session) = opened(&agent, args, queue, &mut early, &mut show).await? else { return Ok(()) };
    session.note.iter().for_each(|note| show.line(note));
    let modes = session.modes.known().to_vec();
    wire.say(&FromDriver::Ready { session: session.id.to_string(), modes }).await;
    let driver = Driver {
        agent,
        args,
        events,
        wire,
        show,
        is_new: session.is_new,
        session: Arc::new(session),
        turn: Turn::None,
        asks: BTreeMap::new(),
        last_ask: 0,
        unsaid: Vec::new(),
        mode: args.mode.clone(),
        changes_mode: false,
        held: VecDeque::new(),
        ended: Ended::default(),
        said: Said::default(),
    };
    driver.live(early, queue).await
}

/// The session; none where join has left. What join says meanwhile is for later; what the agent says is of an earlier
/// life, and was seen in that.
async fn opened(
    agent: &ConnectionTo<Agent>,
    args: &Args,
    queue: &mut Queue,
    early: &mut Vec<ToDriver>,
    show: &mut Show<Stdout>,
) -> Result<Option<Session>, String> {
    let name = args.program();
    let mut opening = std::pin::pin!(open(agent, args));
    let deadline = tokio::time::sleep(args.patience);
    let mut deadline = std::pin::pin!(deadline);
    let mut ended = Ended::default();
    loop {
        let event = tokio::select! {
            biased;
            opened = &mut opening, if !ended.any() => return match opened {
                Ok(session) => {
                    // What is in the queue by now came before the session did.
                    while let Ok(event) = queue.try_recv() {
                        before(event, early, &mut ended, show);
                    }
                    Ok(Some(session))
                }
                Err(_) if ended.any() => Err(ended.in_words(&name)),
                Err(why) => Err(format!("{name} {why}")),
            },
            event = ended.next(queue) => event,
            () = &mut deadline => {
                let seconds = args.patience.as_secs();
                return Err(format!("{name} opened no session within {seconds} s: does it speak the protocol?"));
            }
        };
        match event {
            None => return Err(ended.in_words(&name)),
            Some(Event::HungUp(_)) => return Ok(None),
            Some(event) => before(event, early, &mut ended, show),
        }
    }
}

/// An event before there is a session.
fn before(event: Event, early: &mut Vec<ToDriver>, ended: &mut Ended, show: &mut Show<Stdout>) {
    match event {
        Event::Word(word) => early.push(word),
        Event::Stray(line) => show.line(&line),
        Event::Closed => ended.closed(),
        Event::Exited(how) => ended.exited(how),
        // A responder that is dropped answers with an error.
        _ => {}
    }
}

/// How far the program's end is.
#[derive(Debug, Default)]
struct Ended {
    how: Option<String>,
    silent: bool,
    /// When the rest of it is waited for no more.
    until: Option<Instant>,
}

impl Ended {
    fn any(&self) -> bool {
        self.until.is_some()
    }

    fn closed(&mut self) {
        self.silent = true;
        self.until.get_or_insert_with(|| Instant::now() + LAST_WORDS);
    }

    fn exited(&mut self, how: String) {
        self.how = Some(how);
        self.until.get_or_insert_with(|| Instant::now() + LAST_WORDS);
    }

    /// The next event; none where the program has ended and nothing more is to come of it.
    async fn next(&self, queue: &mut Queue) -> Option<Event> {
        match self.until {
            Some(_) if self.silent && self.how.is_some() => None,
            Some(until) => timeout_at(until, queue.recv()).await.ok().flatten(),
            None => queue.recv().await,
        }
    }

    fn in_words(&self, name: &str) -> String {
        match &self.how {
            Some(how) => format!("{name} has ended: {how}"),
            None => format!("{name} has closed its output"),
        }
    }
}

/// Where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    None,
    Running,
    Cancelled,
}

/// A question that waits.
struct Ask {
    options: Vec<PermissionOption>,
    title: String,
    responder: Responder<RequestPermissionResponse>,
}

/// See the head of this file.
struct Driver<'a> {
    agent: ConnectionTo<Agent>,
    args: &'a Args,
    events: &'a Events,
    wire: &'a mut Wire,
    show: Show<Stdout>,
    session: Arc<Session>,
    turn: Turn,
    asks: BTreeMap<u64, Ask>,
    last_ask: u64,
    said: Said,
    /// What stands ahead of the next turn's text: reasons of refusals, for which the protocol has no place.
    unsaid: Vec<String>,
    /// Nothing was said in this session.
    is_new: bool,
    /// The mode that it was last given, as the program calls it; none: its own choice.
    mode: Option<String>,
    /// Another mode was asked for, and there is no answer yet.
    changes_mode: bool,
    /// What waits for that answer: a turn must not begin in the mode before.
    held: VecDeque<ToDriver>,
    ended: Ended,
}

impl Driver<'_> {
    async fn live(mut self, early: Vec<ToDriver>, queue: &mut Queue) -> Result<(), String> {
        for word in early {
            self.word(word).await;
        }
        loop {
            match self.ended.next(queue).await {
                Some(Event::HungUp(why)) => {
                    self.show.line(&why);
                    return Ok(());
                }
                Some(event) => self.event(event).await,
                None => {
                    self.show.end();
                    return Err(self.ended.in_words(&self.args.program()));
                }
            }
        }
    }

    async fn event(&mut self, event: Event) {
        match event {
            Event::Word(word) => self.word(word).await,
            Event::Update(update) => self.update(&update),
            Event::Permission(request, responder) => self.asked(&request, responder).await,
            Event::Read(request, responder) => {
                let read = files::read(&request, self.args.reach).map_err(refused);
                responder.respond_with_result(read.map(ReadTextFileResponse::new)).ok();
            }
            Event::Write(request, responder) => {
                let written = self.may_write().and_then(|()| files::write(&request, self.args.reach));
                let written = written.map_err(refused);
                responder.respond_with_result(written.map(|()| WriteTextFileResponse::new())).ok();
            }
            Event::Ended(result) => self.turn_ended(result).await,
            Event::Mode(id, result) => self.mode_set(id, result).await,
            Event::Stray(line) => self.show.line(&line),
            Event::Closed => self.ended.closed(),
            Event::Exited(how) => self.ended.exited(how),
            Event::HungUp(_) => {}
        }
    }

    fn update(&mut self, update: &SessionUpdate) {
        self.said.update(update);
        self.show.update(update);
        if let (SessionUpdate::CurrentModeUpdate(now), true) = (update, self.only_reads())
            && !self.changes_mode
            && self.mode.as_deref() != Some(&*now.current_mode_id.0)
        {
            // It went elsewhere by itself.
            self.mode.clone().into_iter().for_each(|mode| self.change_mode(mode));
        }
    }

    fn only_reads(&self) -> bool {
        self.mode.is_some() && self.mode == self.args.reads
    }

    fn may_write(&self) -> Result<(), String> {
        match self.only_reads() {
            true => Err("cannot write: in this mode it only reads".to_owned()),
            false => Ok(()),
        }
    }

    async fn word(&mut self, word: ToDriver) {
        match word {
            ToDriver::Prompt { .. } | ToDriver::Mode { .. } if self.changes_mode => self.held.push_back(word),
            ToDriver::Prompt { text, ahead } => self.prompt(text, ahead),
            ToDriver::Cancel => self.cancel().await,
            ToDriver::Mode { id } => self.change_mode(id),
            ToDriver::Answer { ask, answer } => self.answer(ask, &answer),
        }
    }

    fn prompt(&mut self, text: String, ahead: String) {
        if std::mem::take(&mut self.is_new) && !ahead.is_empty() {
            self.unsaid.push(ahead);
        }
        let texts = std::mem::take(&mut self.unsaid).into_iter().chain([text]);
        let blocks = texts.map(|text| ContentBlock::Text(TextContent::new(text))).collect();
        let request = PromptRequest::new(self.session.id.clone(), blocks);
        let events = self.events.clone();
        self.turn = Turn::Running;
        self.said = Said::default();
        let sent = self.agent.prepare_request(request).on_receiving_result(async move |result| {
            events.send(Event::Ended(result)).ok();
            Ok(())
        });
        if let Err(error) = sent {
            self.events.send(Event::Ended(Err(error))).ok();
        }
    }

    async fn cancel(&mut self) {
        let waiting = self.held.len();
        self.held.retain(|word| !matches!(word, ToDriver::Prompt { .. }));
        if self.held.len() < waiting {
            self.wire.say(&FromDriver::Ended { how: Stop::Cancelled, said: String::new() }).await;
        }
        if self.turn == Turn::Running {
            self.turn = Turn::Cancelled;
            self.agent.send_notification(CancelNotification::new(self.session.id.clone())).ok();
            self.withdraw();
        }
    }

    /// The questions of a turn that ends are none any more.
    fn withdraw(&mut self) {
        for ask in std::mem::take(&mut self.asks).into_values() {
            ask.responder.respond(RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled)).ok();
        }
    }

    async fn turn_ended(&mut self, result: Result<PromptResponse, Error>) {
        // The program's end fails every request, and is told as such.
        if self.ended.any() && result.is_err() {
            return;
        }
        self.withdraw();
        self.show.end();
        let how = stopped(result, self.turn);
        self.turn = Turn::None;
        let said = std::mem::take(&mut self.said).into_text();
        self.wire.say(&FromDriver::Ended { how, said }).await;
    }

    fn change_mode(&mut self, id: String) {
        let (agent, session, events) = (self.agent.clone(), self.session.clone(), self.events.clone());
        let patience = self.args.patience;
        self.changes_mode = true;
        tokio::spawn(async move {
            let set = timeout(patience, set_mode(&agent, &session, &id)).await;
            let late = |_| Err(format!("it did not answer within {} s", patience.as_secs()));
            events.send(Event::Mode(id, set.unwrap_or_else(late))).ok();
        });
    }

    async fn mode_set(&mut self, id: String, result: Result<(), String>) {
        match &result {
            Ok(()) => {
                self.show.mode(&id);
                self.mode = Some(id.clone());
            }
            Err(why) => self.show.line(&format!("The mode {id} can't be had: {why}")),
        }
        self.wire.say(&FromDriver::Mode { id, refused: result.err() }).await;
        self.changes_mode = false;
        for word in std::mem::take(&mut self.held) {
            self.word(word).await;
        }
    }

    async fn asked(
        &mut self,
        request: &RequestPermissionRequest,
        responder: Responder<RequestPermissionResponse>,
    ) {
        if self.turn != Turn::Running {
            responder.respond(RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled)).ok();
            return;
        }
        if self.only_reads() && request.tool_call.fields.kind == Some(ToolKind::SwitchMode) {
            return self.stays(request, responder);
        }
        self.last_ask += 1;
        let asked = asked(self.last_ask, request);
        self.show.ask(&asked.call, &asked.title, &asked.tool);
        let ask = Ask { options: request.options.clone(), title: asked.title.clone(), responder };
        self.asks.insert(asked.ask, ask);
        self.wire.say(&FromDriver::Asked(asked)).await;
    }

    /// It may leave its reading mode by the approval of its plan alone. What it shows with that question is its plan.
    fn stays(&mut self, request: &RequestPermissionRequest, responder: Responder<RequestPermissionResponse>) {
        let plan = request.tool_call.fields.raw_input.as_ref().and_then(|input| input["plan"].as_str());
        plan.iter().for_each(|plan| self.said.paragraph(plan));
        self.show.line("  not yet: it leaves this mode once its plan is approved");
        respond(responder, choice(&request.options, &Answer::Not { why: String::new() }));
    }

    /// One that is no question any more was answered by the turn's end.
    fn answer(&mut self, ask: u64, answer: &Answer) {
        let Some(ask) = self.asks.remove(&ask) else { return };
        let chosen = choice(&ask.options, answer);
        let (what, why) = match (answer, &chosen) {
            (Answer::Not { why }, _) => ("refused", why.as_str()),
            (Answer::Once | Answer::Always, Some(_)) => ("allowed", ""),
            (Answer::Once | Answer::Always, None) => ("refused", "it takes no such yes"),
        };
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        self.show.line(&format!("  {what}{why}"));
        if what == "refused" && !why.is_empty() {
            self.unsaid.push(format!("Why this was refused ({}){why}", ask.title));
        }
        let option = chosen.or_else(|| choice(&ask.options, &Answer::Not { why: String::new() }));
        respond(ask.responder, option);
    }
}

/// None: it has no option that says so.
fn respond(responder: Responder<RequestPermissionResponse>, option: Option<PermissionOptionId>) {
    let outcome = match option {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option)),
        None => RequestPermissionOutcome::Cancelled,
    };
    responder.respond(RequestPermissionResponse::new(outcome)).ok();
}

fn refused(why: String) -> Error {
    Error::invalid_params().data(why)
}

fn stopped(result: Result<PromptResponse, Error>, turn: Turn) -> Stop {
    match result {
        _ if turn == Turn::Cancelled => Stop::Cancelled,
        Ok(response) => match response.stop_reason {
            StopReason::EndTurn => Stop::Done,
            StopReason::Cancelled => Stop::Cancelled,
            StopReason::MaxTokens => Stop::Failed("it came to its limit of tokens".to_owned()),
            StopReason::MaxTurnRequests => Stop::Failed("it came to its limit of requests".to_owned()),
            StopReason::Refusal => Stop::Failed("it refused".to_owned()),
            _ => Stop::Failed("it stopped for an unknown reason".to_owned()),
        },
        Err(error) => Stop::Failed(in_words(&error)),
    }
}
