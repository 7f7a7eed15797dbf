//! Agents whose programs have hooks: what these tell, and the one that waits here for mail.
//!
//! A hook looks into the files, and parks where it finds nothing. Between the two something may come: so whatever
//! wakes an agent while no hook of it is parked is remembered, and the next one that parks is sent to look once more.

use super::heard::{self, Word};
use super::request::answer;
use super::{budget, lead, plan, tasks, turn};
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::files::FileJob;
use crate::notices::News;
use crate::roster::{Pane, Record, SpawnId};
use crate::state::{Agent, Hooks, State};
use protocol::control::{
    Activity, HookEvent, HookReply, HookReport, HookSource, LongPollEnd, LongPollRequest, Reply, Response,
    TurnStatus,
};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::event::EventKind;
use protocol::payload::IdleReason;

/// A program's hook tells what happened.
pub(super) fn said(
    state: &mut State,
    client: ConnId,
    token: Option<&str>,
    hooked: HookReport,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let result = match &hooked.leads_team {
        Some(team) => lead::said(state, team, &hooked, now, out),
        None => agent_said(state, token, hooked, now, out),
    };
    match result {
        // What the next daemon is to know of it, it does by then.
        Ok(reply) if state.dirty => {
            out.push(Effect::File(FileJob::Settled { client, reply: Box::new(Reply::ReportHook(reply)) }));
        }
        result => answer(state, client, result.map(Reply::ReportHook), out),
    }
}

fn agent_said(
    state: &mut State,
    token: Option<&str>,
    hooked: HookReport,
    now: Now,
    out: &mut Vec<Effect>,
) -> Result<HookReply, ErrorReport> {
    let id = mine(state, token)?;
    let agent = state.agents.get_mut(&id).ok_or_else(nobody)?;
    match heard::of_agent(&agent.record, &hooked) {
        Word::Foreign => return Ok(foreign(agent.since)),
        Word::OfNewSession(session) => {
            // Whenever its next life begins, it goes on with that.
            agent.record.comeback.iter_mut().for_each(|comeback| comeback.session = Some(session.clone()));
            agent.record.session = Some(session);
            agent.record.heard.above = hooked.ancestors;
            state.dirty = true;
        }
        Word::Own => {}
    }
    agent.has_said = true;
    let used = hooked.usage;
    let mut reply = reply(agent);
    let was_idle = agent.activity == Activity::Idle;
    match hooked.event {
        // A person at its prompt has the word; nothing of ours runs yet.
        HookEvent::SessionStarted if agent.turn.is_none() && !agent.record.prompted => {
            let turn = turn_of(agent, Activity::Idle, String::new(), now);
            turn::says(state, &id, Some(turn), now, out);
        }
        HookEvent::SessionStarted | HookEvent::SessionEnded => {}
        HookEvent::TurnStarted { summary: about, delivered_ids: handed } => {
            if !handed.is_empty() {
                agent.record.heard.handed = handed;
                state.dirty = true;
            }
            begins(state, &id, about, now, out);
        }
        HookEvent::PromptRead => {
            (agent.record.prompt_told, agent.record.approval_given) = (true, false);
            state.dirty = true;
        }
        HookEvent::TurnEnded => {
            // A hook with nothing to mark writes nothing then; whoever does parks when it has.
            let writes = hooked.source == HookSource::Typist || !reply.delivered_ids.is_empty();
            if !reply.delivers_by_hook && !writes {
                agent.leaves_at = 0;
            }
            state.dirty |= leaves_dialog(agent);
            agent.hooks.look = false;
            reply.is_first_report = !std::mem::replace(&mut agent.hooks.ended, true) && !was_idle;
        }
        HookEvent::DialogShown { text } => {
            if agent.record.heard.dialog.as_ref() != Some(&text) {
                out.push(Effect::of_agent(&agent.record, EventKind::MemberAtDialog { text: text.clone() }));
                let (record, pane) = (&agent.record, agent.record.pane.as_ref().and_then(Pane::id));
                state.notices.add(&record.team, &record.name, pane, News::AtDialog);
                agent.record.heard.dialog = Some(text);
                state.dirty = true;
            }
        }
    }
    used.into_iter().for_each(|report| budget::report(state, &id, report, now, out));
    Ok(reply)
}

/// A turn; whoever waited for mail waits no longer. One that is told twice, by the hook that handed something over
/// and by the program, is one.
fn begins(state: &mut State, id: &SpawnId, about: String, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    state.dirty |= leaves_dialog(agent);
    release(&mut agent.hooks, LongPollEnd::PersonTyped, out);
    let open = agent.activity == Activity::Active && !agent.hooks.ended && agent.turn.is_some();
    if !open {
        agent.hooks.ended = false;
        let turn = turn_of(agent, Activity::Active, about, now);
        turn::says(state, id, Some(turn), now, out);
    }
}

/// Whether it had waited at one.
fn leaves_dialog(agent: &mut Agent) -> bool {
    // Who changes a record copies what is on its way to the disk.
    agent.record.heard.dialog.is_some() && agent.record.heard.dialog.take().is_some()
}

fn reply(agent: &Agent) -> HookReply {
    let task = agent.turn.as_ref().and_then(TurnStatus::task);
    // What a life that is to end could still be handed is for the next.
    let fed = !plan::goes_on(agent);
    let (given, approved) = (given(&agent.record), agent.record.approval_given);
    let handed = agent.record.heard.handed.clone();
    HookReply {
        delivers_by_hook: fed,
        turn_started_at: agent.since,
        is_first_report: false,
        task,
        prompt_in_args: given,
        approval_in_args: approved,
        delivered_ids: handed,
    }
}

/// What a hook is told that is none of the program's.
pub(super) fn foreign(since: u64) -> HookReply {
    let handed = Vec::new();
    HookReply {
        delivers_by_hook: false,
        turn_started_at: since,
        is_first_report: false,
        task: None,
        prompt_in_args: None,
        approval_in_args: false,
        delivered_ids: handed,
    }
}

/// The prompt that went with the program's arguments: told to the hooks of its life until one has marked it.
fn given(record: &Record) -> Option<String> {
    (record.prompted && !record.prompt_told).then(|| record.prompt.clone())
}

fn turn_of(agent: &Agent, activity: Activity, about: String, now: Now) -> TurnStatus {
    let number = agent.turn.as_ref().map_or(0, |turn| turn.turn_number);
    let active = activity == Activity::Active;
    TurnStatus {
        activity,
        since: now.wall,
        turn_number: if active { number + 1 } else { number },
        summary: about,
        pid: None,
        idle_reason: (!active && agent.hooks.ended).then_some(IdleReason::Available),
        session_id: agent.record.session.clone(),
        usage: None,
        shutdown_requested: false,
        // Its program keeps these itself.
        mode: agent.turn.as_ref().and_then(|turn| turn.mode),
        plan_stage: agent.turn.as_ref().and_then(|turn| turn.plan_stage.clone()),
    }
}

/// A hook found nothing, and waits.
pub(super) fn park(
    state: &mut State,
    client: ConnId,
    token: Option<&str>,
    park: &LongPollRequest,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let parked = match &park.leads_team {
        Some(team) => lead::park(state, team, client, out),
        None => mine(state, token).map(|id| agent_parks(state, &id, client, now, out)),
    };
    if let Err(fault) = parked {
        answer(state, client, Err(fault), out);
    }
}

fn agent_parks(state: &mut State, id: &SpawnId, client: ConnId, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    agent.has_said = true;
    state.dirty |= leaves_dialog(agent);
    if plan::goes_on(agent) {
        agent.leaves_at = 0;
        return out.push(released(client, LongPollEnd::AgentExited));
    }
    let waits = wait(&mut agent.hooks, client, out);
    let team = agent.record.team.clone();
    // Also of one that is to look first: its program may have given up on it, and nobody else would say so.
    if agent.activity == Activity::Active || agent.turn.is_none() {
        agent.hooks.ended = true;
        let turn = turn_of(agent, Activity::Idle, String::new(), now);
        turn::says(state, id, Some(turn), now, out);
    } else if waits && agent.offered.is_none() {
        // A task may have come while it looked.
        tasks::again(state, &team, out);
    }
}

/// Takes the place of the hook that waited; false where it is to look first.
pub(super) fn wait(hooks: &mut Hooks, client: ConnId, out: &mut Vec<Effect>) -> bool {
    release(hooks, LongPollEnd::Superseded, out);
    if std::mem::take(&mut hooks.look) {
        out.push(released(client, LongPollEnd::WorkMayWait));
        return false;
    }
    hooks.parked = Some(client);
    true
}

/// Whoever waits is told why it waits no longer.
pub(super) fn release(hooks: &mut Hooks, why: LongPollEnd, out: &mut Vec<Effect>) {
    out.extend(hooks.parked.take().map(|client| released(client, why)));
}

fn released(client: ConnId, why: LongPollEnd) -> Effect {
    Effect::Reply { client, response: Response::Done(Box::new(Reply::LongPoll(why))) }
}

/// There is something to look at: for the hook that waits, or for the next one.
pub(super) fn wake(hooks: &mut Hooks, out: &mut Vec<Effect>) {
    match hooks.parked {
        Some(_) => release(hooks, LongPollEnd::WorkMayWait, out),
        None => hooks.look = true,
    }
}

/// Whoever is woken by its wake line is woken by its hook too.
pub(super) fn woken(state: &mut State, effects: &mut Vec<Effect>) {
    let wakes = effects.iter().filter_map(|effect| match effect {
        Effect::Wake { spawn, .. } => Some(spawn.clone()),
        _ => None,
    });
    for spawn in wakes.collect::<Vec<_>>() {
        if let Some(agent) = state.agents.get_mut(&spawn) {
            wake(&mut agent.hooks, effects);
        }
    }
}

/// A hook is gone: killed, or it has given up waiting.
pub(super) fn closed(state: &mut State, conn: ConnId) {
    let agents = state.agents.values_mut().map(|agent| &mut agent.hooks);
    for hooks in agents.chain(state.leads.values_mut().map(|lead| &mut lead.hooks)) {
        hooks.parked.take_if(|parked| *parked == conn);
    }
}

/// The agent of that token, while it lives.
fn mine(state: &State, token: Option<&str>) -> Result<SpawnId, ErrorReport> {
    state.by_token(token).map(|agent| agent.record.spawn.clone()).ok_or_else(nobody)
}

pub(super) fn nobody() -> ErrorReport {
    ErrorReport::new(
        ErrorKind::NotPermitted,
        "cannot hear a hook of nobody: no living agent, and no lead, has it",
    )
}
