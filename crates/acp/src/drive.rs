//! The driver's life: the one loop that owns everything, from the program's start to its end or ours.

mod asks;
mod ended;
mod opening;
mod turns;

use crate::args::{Args, Reach};
use crate::client::{connected, in_words};
use crate::event::{Event, Events, Queue};
use crate::open::{Session, set_mode};
use crate::said::Said;
use crate::show::{Paint, Show};
use crate::spent::Spent;
use crate::wire::Wire;
use crate::{files, program};
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{ReadTextFileResponse, SessionUpdate, WriteTextFileResponse};
use agent_client_protocol::{Agent, Error};
use asks::Ask;
use ended::Ended;
use opening::opened;
use protocol::driver_protocol::{FromDriver, ToDriver, TurnEndReason};
use std::collections::{BTreeMap, VecDeque};
use std::io::Stdout;
use std::sync::Arc;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;
use turns::Turn;

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
    let (mut early, mut spent) = (Vec::new(), Spent::new(args.counts_on));
    let Some(session) = opened(&agent, args, queue, (&mut early, &mut spent), &mut show).await? else {
        return Ok(());
    };
    session.note.iter().for_each(|note| show.line(note));
    let modes = session.modes.known().to_vec();
    wire.say(&FromDriver::Ready { session_id: session.id.to_string(), modes }).await;
    let driver = Driver {
        agent,
        args,
        events,
        wire,
        show,
        is_new: session.is_new,
        spent,
        session: Arc::new(session),
        turn: Turn::None,
        asks: BTreeMap::new(),
        last_ask: 0,
        unsaid: Vec::new(),
        mode: args.mode.clone(),
        astray: None,
        changes_mode: false,
        held: VecDeque::new(),
        ended: Ended::default(),
        said: Said::default(),
    };
    driver.live(early, queue).await
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
    spent: Spent,
    /// What stands ahead of the next turn's text: reasons of refusals, for which the protocol has no place.
    unsaid: Vec<String>,
    /// Nothing was said in this session.
    is_new: bool,
    /// The mode that it was last given, as the program calls it; none: its own choice.
    mode: Option<String>,
    /// Why it is not in its reading mode, where it was to go into that: no turn runs in another.
    astray: Option<String>,
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
                let read = files::read(&request, self.reach()).map_err(refused);
                responder.respond_with_result(read.map(ReadTextFileResponse::new)).ok();
            }
            Event::Write(request, responder) => {
                let written = self.may_write().and_then(|()| files::write(&request, self.reach()));
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
        self.spent.update(update);
        self.show.update(update);
        if let (SessionUpdate::CurrentModeUpdate(now), true) = (update, self.only_reads())
            && !self.changes_mode
            && self.mode.as_deref() != Some(&*now.current_mode_id.0)
        {
            // It went elsewhere by itself.
            self.mode.clone().into_iter().for_each(|mode| self.change_mode(mode));
        }
    }

    fn reach(&self) -> Reach {
        self.args.reach(self.mode.as_deref())
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
            ToDriver::Prompt { .. } | ToDriver::SetMode { .. } if self.changes_mode => {
                self.held.push_back(word)
            }
            ToDriver::Prompt { text, prefix: ahead } => match &self.astray {
                None => self.prompt(text, ahead),
                Some(why) => {
                    let how =
                        TurnEndReason::Failed(format!("it is not in the mode in which it only reads: {why}"));
                    self.wire
                        .say(&FromDriver::TurnEnded { end_reason: how, reply: String::new(), usage: None })
                        .await;
                }
            },
            ToDriver::Cancel => self.cancel().await,
            ToDriver::SetMode { id } => self.change_mode(id),
            ToDriver::AnswerPermission { question_id: ask, answer } => self.answer(ask, &answer),
        }
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
        let reads = Some(&id) == self.args.reads.as_ref();
        match &result {
            Ok(()) => self.astray = None,
            Err(why) if reads => self.astray = Some(why.clone()),
            Err(_) => {}
        }
        match &result {
            Ok(()) => {
                self.show.mode(&id);
                self.mode = Some(id.clone());
            }
            Err(why) => self.show.line(&format!("The mode {id} can't be had: {why}")),
        }
        self.wire.say(&FromDriver::ModeSet { id, error: result.err() }).await;
        self.changes_mode = false;
        for word in std::mem::take(&mut self.held) {
            self.word(word).await;
        }
    }
}

fn refused(why: String) -> Error {
    Error::invalid_params().data(why)
}
