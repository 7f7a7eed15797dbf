//! `shutdown`, `kill` and `down`: asked, then answered or not, then ended where that is due.
//!
//! A request whose answer stays out is asked again under a fresh id, because old clients lose some; an
//! answer counts only from the agent that was asked, and only for the life it was asked in.

use super::again;
use super::ending::{self, Left, settle};
use super::register::cut_short;
use super::request::answer;
use super::spawn::{no_such_team, relabel};
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::files::{FileJob, ShutdownAnswer};
use crate::roster::{Record, SpawnId};
use crate::state::{Agent, Asked, Closing, Phase, StartStage, State, Stopping, Then, Waiting};
use protocol::control::{AgentExit, ExitsReply, MemberSelection, Reply, ShutdownMembersRequest};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::event::EventKind;
use protocol::id::RequestId;
use protocol::name::{AgentName, TeamName, did_you_mean, strip_team};
use std::collections::BTreeSet;

/// An unanswered request is asked again after this, ms.
const ASK_AGAIN: u64 = 10_000;
/// Between an approval and TERM, ms: time to end by itself.
const AFTER_APPROVAL: u64 = 5_000;
/// Between TERM and KILL where an agent is ended by force, ms.
pub(super) const TERM_GRACE: u64 = 2_000;
/// The grace of a shutdown that was under way when its daemon died, ms.
const RESUMED_GRACE: u64 = 30_000;
/// The grace that `down` gives, ms.
const DOWN_GRACE: u64 = 10_000;

/// The grace of members whose team has nothing left to use up, ms: a turn may come to its end.
const BUDGET_GRACE: u64 = 60_000;

/// What an agent is asked, and how long for.
struct Question {
    reason: Option<String>,
    grace_ms: u64,
    /// Ended where it says nothing, or no.
    force: bool,
}

pub(super) fn shutdown(
    state: &mut State,
    client: ConnId,
    order: &ShutdownMembersRequest,
    now: Now,
    out: &mut Vec<Effect>,
) {
    match targets(state, &order.targets) {
        Err(fault) => answer(state, client, Err(fault), out),
        Ok(ids) => {
            for_good(state, &ids);
            let rested = again::end(state, &order.targets.team, &order.targets.names, out);
            let (reason, grace_ms, force) = (order.reason.clone(), order.grace_ms, order.force);
            let question = Question { reason, grace_ms, force };
            if order.no_wait {
                let asked = ids.iter().map(|id| ask_only(state, id, &question, now, out));
                let ended = rested.into_iter().chain(asked.flatten().collect::<Vec<_>>()).collect();
                return out.push(settled(client, ended));
            }
            ask_all(state, Waiting::of(client, &ids, rested, Then::Reply), &question, now, out);
        }
    }
}

pub(super) fn kill(
    state: &mut State,
    client: ConnId,
    order: &MemberSelection,
    now: Now,
    out: &mut Vec<Effect>,
) {
    match targets(state, order) {
        Err(fault) => answer(state, client, Err(fault), out),
        Ok(ids) => {
            for_good(state, &ids);
            let rested = again::end(state, &order.team, &order.names, out);
            kill_all(state, Waiting::of(client, &ids, rested, Then::Reply), now, out);
        }
    }
}

/// Ends these without asking, then goes on.
pub(super) fn kill_all(state: &mut State, waiting: Waiting, now: Now, out: &mut Vec<Effect>) {
    let ids = waiting.pending.clone();
    state.waiting.push(waiting);
    for id in &ids {
        ending::end(state, id, now, out);
        stop_start(state, id, now, out);
    }
    ending::finish_waits(state, out);
}

/// One that is still starting has nobody to be asked: it does not start.
fn stop_start(state: &mut State, id: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    let Phase::Starting(starting) = &agent.phase else { return };
    // One that had come back goes to rest with the others.
    if !agent.record.to_rest {
        agent.record.comeback = None;
    }
    state.dirty = true;
    if starting.stage != StartStage::Going {
        settle(state, id, ending::STARTED, Left::Gone);
    }
    let fault = ErrorReport::new(ErrorKind::Refused, "cannot spawn: it was stopped while it started")
        .with_help("somebody has ended it, or teamd; start it again with: teamctl spawn NAME");
    cut_short(state, id, fault, now, out);
}

/// Everybody is asked, those that do not answer are ended, and then the daemon ends.
pub(super) fn down(state: &mut State, client: ConnId, closing: Closing, now: Now, out: &mut Vec<Effect>) {
    state.closing = closing;
    let between = again::closing(state, out);
    state.dirty = true;
    // All that there are, whatever became of their teams.
    let living = state.agents.values().filter(|agent| !agent.phase.is_past());
    let all: BTreeSet<SpawnId> = living.map(|agent| agent.record.spawn.clone()).collect();
    if closing == Closing::Rest {
        to_rest(state, &all);
    }
    let reason = Some("teamd is going down".to_owned());
    let question = Question { reason, grace_ms: DOWN_GRACE, force: true };
    ask_all(state, Waiting::of(client, &all, between, Then::Down), &question, now, out);
}

/// All of a team, for nobody who waits.
pub(super) fn ask_members(state: &mut State, team: &TeamName, why: &str, now: Now, out: &mut Vec<Effect>) {
    let question = Question { reason: Some(why.to_owned()), grace_ms: BUDGET_GRACE, force: true };
    let all = ids_of(state, team);
    to_rest(state, &all);
    for id in &all {
        ask(state, id, &question, now, out);
    }
}

/// But for one whose spawn somebody waits for: that fails. Who ends already does so as it was told to.
fn to_rest(state: &mut State, ids: &BTreeSet<SpawnId>) {
    for id in ids {
        let Some(agent) = state.agents.get_mut(id) else { continue };
        match &agent.phase {
            Phase::Stopping(_, Stopping::Approved { .. } | Stopping::Ending { .. }) => {}
            Phase::Starting(starting) => agent.record.to_rest = starting.client.is_none(),
            _ => agent.record.to_rest = true,
        }
    }
    state.dirty = true;
}

/// These end for good, whatever they were asked to end for before.
fn for_good(state: &mut State, ids: &BTreeSet<SpawnId>) {
    for id in ids {
        let agent = state.agents.get_mut(id).filter(|agent| agent.record.to_rest);
        state.dirty |= agent.is_some();
        agent.into_iter().for_each(|agent| agent.record.to_rest = false);
    }
}

/// Asks, for a caller that does not wait; what it says is how it is now.
fn ask_only(
    state: &mut State,
    id: &SpawnId,
    question: &Question,
    now: Now,
    out: &mut Vec<Effect>,
) -> Option<AgentExit> {
    let record = &state.agents.get(id)?.record;
    let (name, team) = (record.name.clone(), Some(record.team.clone()));
    ask(state, id, question, now, out);
    let asked = state.agents.get(id).filter(|agent| !agent.phase.is_past());
    let (how, gone) = if asked.is_some() { ("asked", false) } else { (ending::STARTED, true) };
    let request_id = asked.and_then(|agent| agent.record.asked.last()).map(ToString::to_string);
    Some(AgentExit {
        name,
        team,
        description: how.to_owned(),
        has_exited: gone,
        is_suspended: false,
        request_id,
    })
}

/// The wait stands before the first is asked: one that has not started yet ends at once.
fn ask_all(state: &mut State, waiting: Waiting, question: &Question, now: Now, out: &mut Vec<Effect>) {
    let ids = waiting.pending.clone();
    state.waiting.push(waiting);
    for id in &ids {
        ask(state, id, question, now, out);
    }
    ending::finish_waits(state, out);
}

pub(super) fn ids_of(state: &State, team: &TeamName) -> BTreeSet<SpawnId> {
    let members = state.members(team);
    members.iter().filter(|agent| !agent.phase.is_past()).map(|agent| agent.record.spawn.clone()).collect()
}

/// Whom a request means; no names means all.
fn targets(state: &State, targets: &MemberSelection) -> Result<BTreeSet<SpawnId>, ErrorReport> {
    if !state.teams.contains_key(&targets.team) {
        return Err(no_such_team(state, &targets.team));
    }
    if targets.names.is_empty() {
        return Ok(ids_of(state, &targets.team));
    }
    targets
        .names
        .iter()
        .filter(|name| !again::rests(state, &targets.team, name))
        .map(|name| find(state, &targets.team, name).map(|a| a.record.spawn.clone()))
        .collect()
}

/// The living member that a caller named.
pub(super) fn find<'a>(state: &'a State, team: &TeamName, name: &str) -> Result<&'a Agent, ErrorReport> {
    let bare = strip_team(name, team);
    AgentName::parse(bare)
        .ok()
        .and_then(|name| state.member(team, &name))
        .filter(|a| !a.phase.is_past())
        .ok_or_else(|| {
            let members = state.members(team);
            let message = format!("cannot find {bare} in {team}: no such living member");
            let near = did_you_mean(bare, members.iter().map(|a| a.record.name.as_str()));
            let all = || format!("those there are: teamctl status -t {team}");
            ErrorReport::new(ErrorKind::NotFound, message).with_help(near.unwrap_or_else(all))
        })
}

/// Puts the request into the inbox. Whoever has been asked already is not asked once more, but the shorter
/// patience counts, and force.
fn ask(state: &mut State, id: &SpawnId, question: &Question, now: Now, out: &mut Vec<Effect>) {
    let until = now.mono.saturating_add(question.grace_ms);
    let Some(agent) = state.agents.get_mut(id) else { return };
    match &mut agent.phase {
        Phase::Starting(_) => return stop_start(state, id, now, out),
        Phase::Running(link) => {
            let (reason, again) = (question.reason.clone(), now.mono);
            let asked = Asked { reason, until, again, force: question.force };
            agent.phase = Phase::Stopping(std::mem::take(link), Stopping::Asked(asked));
        }
        Phase::Stopping(_, Stopping::Asked(asked)) => {
            asked.force |= question.force;
            asked.until = asked.until.min(until);
            return;
        }
        // It has nothing in hand, and ends already: it only does not come back.
        Phase::Stopping(_, stopping @ Stopping::GoingOn { .. }) => {
            agent.record.goes_on = false;
            *stopping = Stopping::Ending { until: now.mono + TERM_GRACE, forced: false };
            state.dirty = true;
            return;
        }
        Phase::Stopping(..) | Phase::Gone(_) => return,
    }
    out.extend(relabel(agent));
    ask_again(state, id, now, out);
}

/// Writes the request under a fresh id, unless the one before still lies there unread.
pub(super) fn ask_again(state: &mut State, id: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let ms = state.mint.next(now.wall);
    let Some(agent) = state.agents.get_mut(id) else { return };
    let Phase::Stopping(_, Stopping::Asked(asked)) = &mut agent.phase else { return };
    let request = RequestId::shutdown(ms, &agent.record.name);
    asked.again = now.mono + ASK_AGAIN;
    let (reason, unless_unread) = (asked.reason.clone(), agent.record.asked.clone());
    agent.record.asked.push(request.clone());
    state.dirty = true;
    out.push(Effect::of_agent(
        &agent.record,
        EventKind::ShutdownRequested { request_id: request.to_string() },
    ));
    out.push(question(&agent.record, request, reason, unless_unread, now));
}

fn question(
    record: &Record,
    request: RequestId,
    reason: Option<String>,
    unless_unread: Vec<RequestId>,
    now: Now,
) -> Effect {
    let (spawn, team, name) = (record.spawn.clone(), record.team.clone(), record.name.clone());
    Effect::File(FileJob::Ask { spawn, team, name, request, reason, unless_unread, at: now.wall })
}

/// The request stands in the inbox, or could not be put there.
pub(super) fn delivered(
    state: &mut State,
    id: &SpawnId,
    result: Result<(), ErrorReport>,
    out: &mut Vec<Effect>,
) {
    match result {
        Ok(()) => out.push(Effect::wake(id)),
        Err(fault) => {
            let Some(agent) = state.agents.get(id) else { return };
            let why = format!("cannot ask for a shutdown: {}", fault.message);
            out.push(Effect::of_agent(&agent.record, EventKind::Error { message: why }));
        }
    }
}

/// The lead's inbox holds answers.
pub(super) fn answers(
    state: &mut State,
    team: &TeamName,
    answers: Result<Vec<ShutdownAnswer>, ErrorReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    match answers {
        Ok(answers) => answers.into_iter().for_each(|answer| take_answer(state, team, answer, now, out)),
        Err(fault) => out.push(Effect::of_team(team, EventKind::Error { message: fault.message })),
    }
}

fn take_answer(state: &mut State, team: &TeamName, answer: ShutdownAnswer, now: Now, out: &mut Vec<Effect>) {
    let asked = |agent: &&Agent| {
        matches!(agent.phase, Phase::Stopping(_, Stopping::Asked(_)))
            && agent.record.team == *team
            && agent.record.name == answer.from
            && agent.record.asked.contains(&answer.request)
    };
    let Some(id) = state.agents.values().find(asked).map(|agent| agent.record.spawn.clone()) else { return };
    match answer.rejected {
        None => approved(state, &id, now),
        // Without a daemon nobody would look after it.
        Some(_) if state.closing.is_under_way() || rests(state, &id) => ending::end(state, &id, now, out),
        Some(reason) => stays(state, &id, &format!("rejected: {reason}"), out),
    }
}

fn rests(state: &State, id: &SpawnId) -> bool {
    state.agents.get(id).is_some_and(|agent| agent.record.to_rest)
}

fn approved(state: &mut State, id: &SpawnId, now: Now) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    let Phase::Stopping(_, stopping) = &mut agent.phase else { return };
    *stopping = Stopping::Approved { until: now.mono + AFTER_APPROVAL };
    agent.record.approved = true;
    state.dirty = true;
}

/// After a restart: a shutdown that was under way goes on, with the usual patience and nobody who waits, and so does an end
/// by force.
pub(super) fn resume(agent: &mut Agent, now: Now, out: &mut Vec<Effect>) {
    let Phase::Running(link) = &mut agent.phase else { return };
    let stopping = match (agent.record.approved, agent.record.asked.is_empty()) {
        (true, _) => Stopping::Approved { until: now.mono + AFTER_APPROVAL },
        _ if agent.record.killed => ending::by_force(now),
        (false, false) => {
            // Its daemon may have died before it was asked.
            let asked = agent.record.asked.clone();
            let last = asked.last().cloned();
            out.extend(last.map(|last| question(&agent.record, last, None, asked, now)));
            let until = now.mono + RESUMED_GRACE;
            let force = agent.record.to_rest;
            Stopping::Asked(Asked { reason: None, until, again: now.mono + ASK_AGAIN, force })
        }
        (false, true) => return,
    };
    agent.phase = Phase::Stopping(std::mem::take(link), stopping);
}

/// It lives on: it said no, or nothing.
pub(super) fn stays(state: &mut State, id: &SpawnId, how: &str, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    let Phase::Stopping(link, _) = &mut agent.phase else { return };
    agent.phase = Phase::Running(std::mem::take(link));
    out.extend(relabel(agent));
    out.push(Effect::of_agent(&agent.record, EventKind::ShutdownRejected { reason: how.to_owned() }));
    settle(state, id, how, Left::Living);
    if let Some(agent) = state.agents.get_mut(id) {
        agent.record.asked.clear();
        agent.record.to_rest = false;
    }
    state.dirty = true;
    ending::finish_waits(state, out);
}

/// The end of a wait for ends, once the roster on the disk has them: that one without a process ended is nowhere else.
pub(super) fn settled(client: ConnId, ended: Vec<AgentExit>) -> Effect {
    Effect::File(FileJob::Settled { client, reply: Box::new(Reply::Exits(ExitsReply { exits: ended })) })
}
