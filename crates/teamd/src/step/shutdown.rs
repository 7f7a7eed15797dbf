//! `shutdown`, `kill` and `down`: asked, then answered or not, then ended where that is due.
//!
//! A request whose answer stays out is asked again under a fresh id, because old clients lose some; an
//! answer counts only from the agent that was asked, and only for the life it was asked in.

use super::ending::{self, Left, settle};
use super::request::answer;
use super::spawn::{give_up, no_such_team, relabel};
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::files::{Answer, FileJob};
use crate::note::Note;
use crate::roster::SpawnId;
use crate::state::{Agent, Asked, Phase, State, Stopping, Then, Waiting};
use protocol::control::{EndingsReply, Reply, Shutdown, Targets};
use protocol::fault::{Fault, Kind};
use protocol::id::RequestId;
use protocol::name::{AgentName, TeamName};
use std::collections::BTreeSet;

/// An unanswered request is asked again after this, ms.
const ASK_AGAIN: u64 = 10_000;
/// Between an approval and TERM, ms: time to end by itself.
const AFTER_APPROVAL: u64 = 5_000;
/// Between TERM and KILL where an agent is ended by force, ms.
pub(super) const TERM_GRACE: u64 = 2_000;
/// The grace that `down` gives, ms.
const DOWN_GRACE: u64 = 10_000;

pub(super) fn shutdown(state: &mut State, client: ConnId, order: &Shutdown, now: Now, out: &mut Vec<Effect>) {
    match targets(state, &order.targets) {
        Err(fault) => answer(state, client, Err(fault), out),
        Ok(ids) => {
            for id in &ids {
                ask(state, id, order, now, out);
            }
            wait_for(state, client, ids, Then::Reply, out);
        }
    }
}

pub(super) fn kill(state: &mut State, client: ConnId, order: &Targets, now: Now, out: &mut Vec<Effect>) {
    match targets(state, order) {
        Err(fault) => answer(state, client, Err(fault), out),
        Ok(ids) => kill_all(state, client, ids, Then::Reply, now, out),
    }
}

/// Ends these without asking, then goes on.
pub(super) fn kill_all(
    state: &mut State,
    client: ConnId,
    ids: BTreeSet<SpawnId>,
    then: Then,
    now: Now,
    out: &mut Vec<Effect>,
) {
    state.waiting.push(Waiting { client, pending: ids.clone(), ended: Vec::new(), then });
    for id in &ids {
        ending::end(state, id, now, out);
        stop_start(state, id, out);
    }
    ending::finish_waits(state, out);
}

/// One that is still starting has nobody to be asked: it does not start.
fn stop_start(state: &mut State, id: &SpawnId, out: &mut Vec<Effect>) {
    if matches!(state.agents.get(id).map(|agent| &agent.phase), Some(Phase::Starting(_))) {
        settle(state, id, "stopped while it started", Left::Gone);
        give_up(state, id, Fault::new(Kind::Refused, "cannot spawn: it was stopped while it started"), out);
    }
}

/// Everybody is asked, those that do not answer are ended, and then the daemon ends.
pub(super) fn down(state: &mut State, client: ConnId, now: Now, out: &mut Vec<Effect>) {
    state.closing = true;
    let teams: Vec<TeamName> = state.teams.keys().cloned().collect();
    let mut all = BTreeSet::new();
    for team in teams {
        let targets = Targets { team, names: Vec::new() };
        let reason = Some("teamd is going down".to_owned());
        let order = Shutdown { targets, reason, grace_ms: DOWN_GRACE, force: true };
        for agent in ids_of(state, &order.targets.team) {
            ask(state, &agent, &order, now, out);
            all.insert(agent);
        }
    }
    wait_for(state, client, all, Then::Down, out);
}

fn wait_for(
    state: &mut State,
    client: ConnId,
    pending: BTreeSet<SpawnId>,
    then: Then,
    out: &mut Vec<Effect>,
) {
    state.waiting.push(Waiting { client, pending, ended: Vec::new(), then });
    ending::finish_waits(state, out);
}

pub(super) fn ids_of(state: &State, team: &TeamName) -> BTreeSet<SpawnId> {
    state.members(team).iter().map(|agent| agent.record.spawn.clone()).collect()
}

/// Whom a request means; no names means all.
fn targets(state: &State, targets: &Targets) -> Result<BTreeSet<SpawnId>, Fault> {
    if !state.teams.contains_key(&targets.team) {
        return Err(no_such_team(state, &targets.team));
    }
    if targets.names.is_empty() {
        return Ok(ids_of(state, &targets.team));
    }
    targets
        .names
        .iter()
        .map(|name| find(state, &targets.team, name).map(|a| a.record.spawn.clone()))
        .collect()
}

/// The living member that a caller named.
pub(super) fn find<'a>(state: &'a State, team: &TeamName, name: &str) -> Result<&'a Agent, Fault> {
    let bare = name.split('@').next().unwrap_or(name);
    AgentName::parse(bare).ok().and_then(|name| state.member(team, &name)).ok_or_else(|| {
        let members = state.members(team);
        let near = protocol::name::nearest(bare, members.iter().map(|a| a.record.name.as_str()));
        let fault =
            Fault::new(Kind::NotFound, format!("cannot find {bare} in {team}: no such living member"));
        if near.is_empty() { fault } else { fault.hinted(format!("did you mean {}?", near.join(", "))) }
    })
}

/// Puts the request into the inbox. Whoever is ending already is not asked once more.
fn ask(state: &mut State, id: &SpawnId, order: &Shutdown, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    match &mut agent.phase {
        Phase::Starting(_) => return stop_start(state, id, out),
        Phase::Running(link) => {
            let asked = Asked {
                requests: Vec::new(),
                reason: order.reason.clone(),
                until: now.mono + order.grace_ms,
                again: now.mono,
                force: order.force,
            };
            agent.phase = Phase::Stopping(std::mem::take(link), Stopping::Asked(asked));
        }
        _ => return,
    }
    out.extend(relabel(agent));
    let (team, name) = (agent.record.team.clone(), agent.record.name.clone());
    out.push(Effect::Note(Note::agent("asked to shut down", &team, &name, "")));
    ask_again(state, id, now, out);
}

/// Writes the request under a fresh id, unless the one before still lies there unread.
pub(super) fn ask_again(state: &mut State, id: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let ms = state.mint.next(now.wall);
    let Some(agent) = state.agents.get_mut(id) else { return };
    let Phase::Stopping(_, Stopping::Asked(asked)) = &mut agent.phase else { return };
    let request = RequestId::shutdown(ms, &agent.record.name);
    asked.again = now.mono + ASK_AGAIN;
    let unless_unread = asked.requests.last().cloned();
    asked.requests.push(request.clone());
    out.push(Effect::File(FileJob::Ask {
        spawn: id.clone(),
        team: agent.record.team.clone(),
        name: agent.record.name.clone(),
        request,
        reason: asked.reason.clone(),
        unless_unread,
        at: now.wall,
    }));
}

/// The request stands in the inbox, or could not be put there.
pub(super) fn delivered(state: &mut State, id: &SpawnId, result: Result<(), Fault>, out: &mut Vec<Effect>) {
    match result {
        Ok(()) => out.push(Effect::Wake { spawn: id.clone() }),
        Err(fault) => {
            let Some(agent) = state.agents.get(id) else { return };
            out.push(Effect::Note(Note::agent(
                "not asked",
                &agent.record.team,
                &agent.record.name,
                fault.message,
            )));
        }
    }
}

/// The lead's inbox holds answers.
pub(super) fn answers(
    state: &mut State,
    team: &TeamName,
    answers: Result<Vec<Answer>, Fault>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    match answers {
        Ok(answers) => answers.into_iter().for_each(|answer| take_answer(state, team, answer, now, out)),
        Err(fault) => out.push(Effect::Note(Note::team("inbox not read", team, fault.message))),
    }
}

fn take_answer(state: &mut State, team: &TeamName, answer: Answer, now: Now, out: &mut Vec<Effect>) {
    let asked = |agent: &Agent| match &agent.phase {
        Phase::Stopping(_, Stopping::Asked(asked)) => {
            agent.record.team == *team
                && agent.record.name == answer.from
                && asked.requests.contains(&answer.request)
        }
        _ => false,
    };
    let Some(id) = state.agents.values().find(|agent| asked(agent)).map(|a| a.record.spawn.clone()) else {
        return;
    };
    match answer.rejected {
        None => approved(state, &id, answer.request, now, out),
        Some(reason) => stays(state, &id, &format!("rejected: {reason}"), out),
    }
}

fn approved(state: &mut State, id: &SpawnId, request: RequestId, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    let Phase::Stopping(_, stopping) = &mut agent.phase else { return };
    *stopping = Stopping::Approved { request, until: now.mono + AFTER_APPROVAL };
    let (team, name) = (&agent.record.team, &agent.record.name);
    out.push(Effect::Note(Note::agent("approved the shutdown", team, name, "")));
}

/// It lives on: it said no, or nothing.
pub(super) fn stays(state: &mut State, id: &SpawnId, how: &str, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    let Phase::Stopping(link, _) = &mut agent.phase else { return };
    agent.phase = Phase::Running(std::mem::take(link));
    out.extend(relabel(agent));
    let (team, name) = (&agent.record.team, &agent.record.name);
    out.push(Effect::Note(Note::agent("lives on", team, name, how)));
    settle(state, id, how, Left::Living);
    ending::finish_waits(state, out);
}

/// The end of a wait for ends.
pub(super) fn reply(waiting: Waiting) -> Reply {
    Reply::Endings(EndingsReply { ended: waiting.ended })
}
