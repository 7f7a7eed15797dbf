//! `--restart on-failure`: a member that failed is started again under its name, after a pause that doubles,
//! and not more often than five times in ten minutes. Whoever was asked to end, or ended by force, stays gone.
//!
//! `down --keep` and a machine that was started again put members to rest: they keep their names' tasks, worktrees and
//! environments, and `up --resume` begins their next life.

use super::request::answer;
use super::{budget, spawn, tasks};
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::notices::News;
use crate::roster::{Comeback, Outcome, Record, Resting, SpawnId};
use crate::state::{Closing, Deleting, Phase, State};
use protocol::control::{
    AgentExit, PastMember, Reply, ResumeMembersReply, ResumeMembersRequest, SpawnRequest,
};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::event::{Event, EventKind};
use protocol::name::{AgentName, TeamName, strip_team};
use protocol::turn_program::RestartPolicy;
use std::collections::BTreeMap;

/// The first pause, ms; doubled with each failure that still counts.
const FIRST_PAUSE: u64 = 500;
/// A failure counts for this long, ms.
const COUNTS_FOR: u64 = 600_000;
/// So many that count are too many.
const TOO_MANY: usize = 5;
/// As soon as its name is.
pub(super) const WHEN_FREE: u64 = u64::MAX;
/// When somebody brings it back.
const WHEN_BROUGHT_BACK: u64 = u64::MAX - 1;
/// How it was with one that had no life to be ended.
const BETWEEN: &str = "it was between two lives";
/// Where its name is still being put in order, ms.
const NOT_YET: u64 = 1_000;

/// What follows a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// Nobody asked for more.
    Stays,
    Again {
        attempt: u32,
        after: u64,
    },
    GivenUp(String),
    /// Until it is brought back.
    Rests,
}

impl Next {
    /// For the lead.
    pub(super) fn words(&self, team: &TeamName) -> Option<String> {
        match self {
            Next::Stays => None,
            Next::Again { after, .. } => Some(format!("it is started again in {after} ms")),
            Next::GivenUp(why) => Some(format!("it is not started again: {why}")),
            Next::Rests => Some(format!("it rests; bring it back with: teamctl up --resume -t {team}")),
        }
    }

    /// When, ms since the epoch; none: never.
    pub(super) fn at(&self, now: Now) -> Option<u64> {
        match self {
            Next::Again { after, .. } => Some(now.wall + after),
            _ => None,
        }
    }

    /// What of it people are to know who were told that it comes back.
    pub(super) fn news(&self) -> Option<News> {
        match self {
            Next::Stays | Next::GivenUp(_) => Some(News::Died),
            Next::Rests => Some(News::Rests),
            Next::Again { .. } => None,
        }
    }

    fn what(&self) -> Option<EventKind> {
        match self {
            Next::Stays => None,
            Next::Again { attempt, after } => {
                Some(EventKind::MemberRespawnScheduled { attempt: *attempt, delay_ms: *after })
            }
            Next::GivenUp(why) => Some(EventKind::MemberRespawnsExhausted { reason: why.clone() }),
            Next::Rests => Some(EventKind::MemberSuspended),
        }
    }
}

/// A life has failed: is there to be another?
pub(super) fn after_failure(state: &mut State, record: &Record, now: Now, out: &mut Vec<Effect>) -> Next {
    let wanted = |comeback: &Comeback| comeback.order.restart == RestartPolicy::OnFailure;
    let wanted = |comeback: &Comeback| !state.closing.is_under_way() && wanted(comeback);
    let Some(mut comeback) = record.comeback.clone().filter(wanted) else { return Next::Stays };
    comeback.failures.retain(|at| now.wall.saturating_sub(*at) < COUNTS_FOR);
    comeback.failures.push(now.wall);
    let next = next(&comeback);
    out.extend(next.what().map(|what| Effect::of_agent(record, what)));
    if let Next::Again { after, .. } = next {
        state.resting.push(Resting {
            comeback,
            at: now.wall + after,
            due: now.mono + after,
            put_away: false,
        });
        state.dirty = true;
    }
    next
}

/// It begins its next life when it is brought back, with a clean slate.
pub(super) fn rest(state: &mut State, record: &Record, now: Now, out: &mut Vec<Effect>) -> Next {
    let Some(comeback) = record.comeback.clone() else { return Next::Stays };
    let comeback = Comeback { failures: Vec::new(), ..comeback };
    state.resting.push(Resting { comeback, at: now.wall, due: WHEN_BROUGHT_BACK, put_away: true });
    state.dirty = true;
    out.extend(Next::Rests.what().map(|what| Effect::of_agent(record, what)));
    Next::Rests
}

/// The daemon goes down: those between two lives rest from now on with all others, or are not started again. Who rests
/// already goes on resting. Gives those that were between two.
pub(super) fn closing(state: &mut State, out: &mut Vec<Effect>) -> Vec<AgentExit> {
    let between = state.resting.iter().filter(|resting| !resting.put_away);
    let between: Vec<_> = between.map(|resting| &resting.comeback.order).collect();
    let between: Vec<_> = between.iter().map(|order| (order.team.clone(), order.name.clone())).collect();
    if state.closing == Closing::Rest {
        state.resting.iter_mut().filter(|resting| !resting.put_away).for_each(put_away);
        for past in state.teams.values_mut().flat_map(|team| &mut team.past) {
            past.is_suspended |= past.respawns_at.take().is_some();
        }
        return between.into_iter().map(|(team, name)| ended(&team, name, BETWEEN)).collect();
    }
    between.into_iter().flat_map(|(team, name)| end(state, &team, &[name.to_string()], out)).collect()
}

/// To those who wait for a daemon's end: whom the next one can bring back.
pub(super) fn say_who_rests(state: &State, ended: &mut [AgentExit]) {
    for agent in ended {
        let Some(team) = &agent.team else { continue };
        let is_it = |resting: &Resting| resting.put_away && is(resting, team, agent.name.as_str());
        agent.is_suspended = state.resting.iter().any(is_it);
    }
}

/// What `status` says of its next life: when it begins; none: it rests.
fn shows(state: &mut State, team: &TeamName, name: &AgentName, again_at: Option<u64>) {
    let past = state.teams.get_mut(team).into_iter().flat_map(|team| &mut team.past);
    for past in past.filter(|past| past.name == *name) {
        (past.respawns_at, past.is_suspended) = (again_at, again_at.is_none());
    }
}

fn put_away(resting: &mut Resting) {
    (resting.put_away, resting.due) = (true, WHEN_BROUGHT_BACK);
    resting.comeback.failures.clear();
}

/// What was put to rest by the daemon before stays so; the pauses of others are over or nearly so, and nobody counts them
/// exactly.
pub(super) fn recalled(state: &mut State, now: Now) {
    for resting in &mut state.resting {
        resting.due = if resting.put_away { WHEN_BROUGHT_BACK } else { now.mono };
    }
}

/// `up --resume`: who rests begins its next life. Answered at once; each start is told as those after a failure are.
pub(super) fn bring_back(
    state: &mut State,
    client: ConnId,
    order: &ResumeMembersRequest,
    now: Now,
    out: &mut Vec<Effect>,
) {
    if let Some(team) = order.team.as_ref().filter(|team| !state.teams.contains_key(team)) {
        let fault = spawn::no_such_team(state, team);
        return answer(state, client, Err(fault), out);
    }
    if state.closing.is_under_way() {
        let fault = going_down("bring anybody back", "teamctl up --resume");
        return answer(state, client, Err(fault), out);
    }
    if let Some(fault) = order.team.as_ref().and_then(|team| budget::refusal(state, team)) {
        return answer(state, client, Err(fault), out);
    }
    let spent: Vec<TeamName> =
        state.teams.keys().filter(|team| budget::is_spent(state, team)).cloned().collect();
    let meant =
        |team: &TeamName| order.team.as_ref().is_none_or(|wanted| wanted == team) && !spent.contains(team);
    let mut members: BTreeMap<TeamName, Vec<AgentName>> = BTreeMap::new();
    for resting in state.resting.iter_mut().filter(|r| r.put_away && meant(&r.comeback.order.team)) {
        (resting.put_away, resting.due) = (false, now.mono);
        let SpawnRequest { team, name, .. } = &*resting.comeback.order;
        members.entry(team.clone()).or_default().push(name.clone());
    }
    for (team, names) in &members {
        names.iter().for_each(|name| shows(state, team, name, Some(now.wall)));
    }
    answer(state, client, Ok(Reply::ResumeMembers(ResumeMembersReply { members })), out);
    due(state, now, out);
}

/// Refuses what a daemon that ends does not begin; `then` is what to type once it has ended.
pub(super) fn going_down(what: &str, then: &str) -> ErrorReport {
    let message = format!("cannot {what}: teamd is going down");
    ErrorReport::new(ErrorKind::Refused, message).with_help(format!("once it has ended: {then}"))
}

fn next(comeback: &Comeback) -> Next {
    let failures = comeback.failures.len();
    if failures > TOO_MANY {
        return Next::GivenUp(format!("it failed {failures} times in ten minutes"));
    }
    Next::Again { attempt: comeback.restarts + 1, after: FIRST_PAUSE << (failures - 1) }
}

/// A further life that was cut short by a crash of ours, before its agent ran: it is no failure.
pub(super) fn once_more(state: &mut State, id: &SpawnId, now: Now) {
    let Some(record) = state.agents.get(id).map(|agent| agent.record.clone()) else { return };
    let Some(comeback) = record.comeback.clone() else { return };
    if let Some(restarts) = comeback.restarts.checked_sub(1) {
        // Until it begins nobody is to take it for gone.
        let how = "its start was cut short with teamd".to_owned();
        let (state_word, at) = (Outcome::Failed.word().to_owned(), now.wall);
        let name = record.name.clone();
        let used = record.used();
        let past = PastMember {
            name,
            outcome: state_word,
            description: how,
            ended_at: at,
            respawns_at: Some(at),
            is_suspended: false,
            usage: used,
        };
        state.remember_past(&record.team, past);
        let comeback = Comeback { restarts, ..comeback };
        state.resting.push(Resting { comeback, at: now.wall, due: now.mono, put_away: false });
        state.dirty = true;
    }
}

/// A name is free: a life that waited for that alone begins.
pub(super) fn freed(state: &mut State, team: &TeamName, name: &AgentName) {
    let waits = |resting: &&mut Resting| resting.due == WHEN_FREE && is(resting, team, name.as_str());
    state.resting.iter_mut().filter(waits).for_each(|resting| resting.due = 0);
}

/// Those whose pause is over.
pub(super) fn due(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    let (due, rest) =
        std::mem::take(&mut state.resting).into_iter().partition(|r: &Resting| r.due <= now.mono);
    state.resting = rest;
    for mut resting in due {
        let order = &resting.comeback.order;
        let holder = state.member(&order.team, &order.name);
        // One that goes, or that has not come yet: whoever it is, the name may be free soon.
        let passing = holder.map(|agent| matches!(agent.phase, Phase::Gone(_) | Phase::Starting(_)));
        match passing.or_else(|| may_stay(state, &order.team)) {
            // Somebody else has the name by now.
            Some(false) => {}
            Some(true) => {
                resting.due = now.mono + NOT_YET;
                state.resting.push(resting);
                continue;
            }
            None if budget::is_spent(state, &order.team) => {
                put_away(&mut resting);
                shows(state, &resting.comeback.order.team, &resting.comeback.order.name, None);
                state.resting.push(resting);
            }
            None if state.teams.get(&order.team).is_none_or(|team| team.deleting.is_some()) => {}
            None => spawn::again(state, resting.comeback, now, out),
        }
        state.dirty = true;
    }
}

/// Of a team whose delete may yet be refused.
fn may_stay(state: &State, team: &TeamName) -> Option<bool> {
    let looking = state.teams.get(team).is_some_and(|team| team.deleting == Some(Deleting::Looking));
    looking.then_some(true)
}

/// Whether a member of that name is between two lives.
pub(super) fn rests(state: &State, team: &TeamName, name: &str) -> bool {
    state.resting.iter().any(|resting| is(resting, team, name))
}

/// The names of those that are.
pub(super) fn resting(state: &State, team: &TeamName) -> Vec<String> {
    let hers = state.resting.iter().filter(|resting| resting.comeback.order.team == *team);
    hers.map(|resting| resting.comeback.order.name.to_string()).collect()
}

/// These are not started again; no names: the whole team. Gives those that would have been.
pub(super) fn cancel(
    state: &mut State,
    team: &TeamName,
    names: &[String],
    out: &mut Vec<Effect>,
) -> Vec<AgentName> {
    let meant = |resting: &Resting| {
        resting.comeback.order.team == *team
            && (names.is_empty() || names.iter().any(|name| is(resting, team, name)))
    };
    let (cancelled, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut state.resting).into_iter().partition(meant);
    state.resting = rest;
    state.dirty |= !cancelled.is_empty();
    let cancelled: Vec<AgentName> =
        cancelled.into_iter().map(|resting| resting.comeback.order.name.clone()).collect();
    if let Some(team) = state.teams.get_mut(team) {
        let ended = team.past.iter_mut().filter(|past| cancelled.contains(&past.name));
        ended.for_each(|past| (past.respawns_at, past.is_suspended) = (None, false));
    }
    for name in &cancelled {
        let why = "it was told to end, or its name was taken".to_owned();
        out.push(Effect::Log(Event::for_member(
            team,
            name,
            EventKind::MemberRespawnsExhausted { reason: why },
        )));
    }
    if !cancelled.is_empty() {
        // What they left in progress is nobody's now.
        tasks::again(state, team, out);
    }
    cancelled
}

/// The same, for whoever waits for their ends.
pub(super) fn end(
    state: &mut State,
    team: &TeamName,
    names: &[String],
    out: &mut Vec<Effect>,
) -> Vec<AgentExit> {
    let how = format!("{BETWEEN}, and is not started again");
    cancel(state, team, names, out).into_iter().map(|name| ended(team, name, &how)).collect()
}

fn ended(team: &TeamName, name: AgentName, how: &str) -> AgentExit {
    let (team, how) = (Some(team.clone()), how.to_owned());
    AgentExit { name, team, description: how, has_exited: true, is_suspended: false, request_id: None }
}

fn is(resting: &Resting, team: &TeamName, name: &str) -> bool {
    let order = &resting.comeback.order;
    order.team == *team && order.name.as_str().eq_ignore_ascii_case(strip_team(name, team))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comeback(failures: usize) -> Comeback {
        let order: SpawnRequest = serde_json::from_value(serde_json::json!({
            "team": "survey", "name": "ann", "unique": false, "argv": ["x"], "cwd": "/", "env": {}, "prompt": "",
            "feed": "pull"
        }))
        .unwrap();
        Comeback { failures: vec![0; failures], restarts: 7, ..Comeback::of(&order) }
    }

    #[test]
    fn pauses_double_and_end() {
        let after = |failures| match next(&comeback(failures)) {
            Next::Again { after, .. } => Some(after),
            _ => None,
        };
        assert_eq!(
            (1..=6).map(after).collect::<Vec<_>>(),
            [Some(500), Some(1000), Some(2000), Some(4000), Some(8000), None]
        );
        assert_eq!(next(&comeback(1)), Next::Again { attempt: 8, after: 500 });
    }
}
