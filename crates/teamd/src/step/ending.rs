//! How an agent ends: by itself, ended by us, its pane closed, tmux gone, its join killed. Told apart by
//! proof, told to the lead once, and put in order: pane closed and verified, member removed, task completed.

use super::again::{self, Next};
use super::register::{self, close};
use super::shutdown::{self, TERM_GRACE};
use super::{hide, hook, lead, plan, requests, ring, spawn, tasks, turn, worktree};
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::files::FileJob;
use crate::notices::News;
use crate::panes::{PaneJob, Seen};
use crate::roster::{End, NEVER, Outcome, Pane, Record, SpawnId, Told};
use crate::state::{Agent, Gone, Heir, Order, Phase, State, Stopping, Then};
use protocol::control::{AgentExit, ExitReport, LongPollEnd, PastMember, ToShim};
use protocol::error::ErrorReport;
use protocol::event::{EventKind, REQUESTED_STOP_REASON};

/// join's own end comes at the latest this long after KILL, ms.
pub(super) const AFTER_KILL: u64 = 3_000;
/// How one has ended that nobody has seen run.
pub(super) const STARTED: &str = "stopped while it started";

/// Ends a running agent by force: TERM, then KILL.
pub(super) fn end(state: &mut State, id: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    let link = match &mut agent.phase {
        Phase::Running(link) => std::mem::take(link),
        Phase::Stopping(_, Stopping::Ending { .. }) | Phase::Starting(_) | Phase::Gone(_) => return,
        Phase::Stopping(link, _) => std::mem::take(link),
    };
    agent.record.goes_on = false;
    agent.record.killed = true;
    agent.phase = Phase::Stopping(link, by_force(now));
    state.dirty = true;
    press(state, id, out);
}

pub(super) fn by_force(now: Now) -> Stopping {
    Stopping::Ending { until: now.mono + TERM_GRACE + AFTER_KILL, forced: true }
}

/// Lets an agent that approved, and did not end, feel TERM and KILL; it still counts as approved.
pub(super) fn end_approved(state: &mut State, id: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    let Phase::Stopping(_, stopping) = &mut agent.phase else { return };
    *stopping = Stopping::Ending { until: now.mono + TERM_GRACE + AFTER_KILL, forced: false };
    press(state, id, out);
}

/// Tells join to end its agent, where there is a join to tell; it is told again when it reconnects.
pub(super) fn press(state: &State, id: &SpawnId, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get(id) else { return };
    if let Phase::Stopping(link, Stopping::Ending { .. } | Stopping::GoingOn { .. }) = &agent.phase
        && let Some(conn) = link.conn
    {
        out.push(Effect::Tell { conn, word: ToShim::End { grace_ms: TERM_GRACE } });
    }
}

/// join's report. A hang-up can mean two things: tmux is asked which.
pub(super) fn reported(state: &mut State, id: &SpawnId, how: ExitReport, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    agent.record.reported = Some(how.clone());
    state.dirty = true;
    match (&how, &agent.record.pane) {
        (ExitReport::TerminalGone, Some(pane)) => {
            out.push(Effect::Pane(PaneJob::Look { spawn: id.clone(), pane: pane.clone() }));
        }
        _ => ended(state, id, how, now, out),
    }
}

/// What tmux said about a pane whose terminal went away.
pub(super) fn looked(state: &mut State, id: &SpawnId, seen: Seen, now: Now, out: &mut Vec<Effect>) {
    let how = match seen {
        Seen::Absent => ExitReport::PaneClosed,
        Seen::ServerGone => ExitReport::TmuxServerGone,
        Seen::Present | Seen::Unknown => ExitReport::TerminalGone,
    };
    ended(state, id, how, now, out);
}

/// join is dead. If it left no word in the state directory, somebody killed it: its orphans are swept.
pub(super) fn died(state: &mut State, id: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get(id) else {
        lead::died(state, id, out);
        return;
    };
    match &agent.phase {
        Phase::Gone(_) => {}
        // Its report came first, and is being looked into.
        Phase::Running(_) | Phase::Stopping(..) if agent.record.reported.is_some() => {}
        Phase::Starting(_) => {
            // Between its agent's start and our hearing of it, it may have left something.
            let token = agent.record.token.clone();
            out.push(Effect::File(FileJob::LastWords { spawn: id.clone(), token }));
            register::give_up(state, id, register::died_early(), now, out);
        }
        Phase::Running(_) | Phase::Stopping(..) => {
            let token = agent.record.token.clone();
            out.push(Effect::File(FileJob::LastWords { spawn: id.clone(), token }));
        }
    }
}

/// What a dead join left in writing; without that it was killed.
pub(super) fn last_words(
    state: &mut State,
    id: &SpawnId,
    words: Option<ExitReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    // A machine that goes down ends all of them first, and each join leaves word of that.
    let is_of_before = |agent: &Agent| agent.record.join.is_some_and(|join| join.start_time == NEVER);
    let how = match state.agents.get(id).is_some_and(is_of_before) {
        true => ExitReport::Rebooted,
        false => words.unwrap_or(ExitReport::ShimKilled),
    };
    reported(state, id, how, now, out);
}

/// The agent is gone, and we know how.
pub(super) fn ended(state: &mut State, id: &SpawnId, how: ExitReport, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    if how == ExitReport::TmuxServerGone {
        // There is nothing left to close, and its id means another pane on the next server.
        agent.record.pane = None;
    }
    if matches!(agent.phase, Phase::Starting(_)) {
        // Between the green light and its first word: whoever asked for it waits.
        return register::give_up(state, id, register::died_early(), now, out);
    }
    let goes_on = !state.closing.is_under_way() && plan::goes_on(agent);
    let (said, outcome, told) = match &agent.phase {
        Phase::Gone(_) => return,
        _ if goes_on => (plan::HOW.to_owned(), Outcome::Completed, Told::Nobody),
        Phase::Stopping(_, Stopping::Approved { .. } | Stopping::Ending { forced: false, .. }) => {
            ("approved".to_owned(), Outcome::Completed, Told::Nobody)
        }
        Phase::Stopping(_, Stopping::Ending { forced: true, .. }) if agent.record.agent.is_none() => {
            (STARTED.to_owned(), Outcome::Killed, Told::Lead)
        }
        Phase::Stopping(_, Stopping::Ending { forced: true, .. }) => {
            (format!("killed ({how})"), Outcome::Killed, Told::Lead)
        }
        _ => (how.to_string(), outcome(&how), Told::Lead),
    };
    let (record, running) = (agent.record.clone(), matches!(agent.phase, Phase::Running(_)));
    out.push(Effect::of_agent(
        &record,
        EventKind::MemberExited { outcome: outcome.word().to_owned(), description: said.clone() },
    ));
    let failed = running && is_failure(&how) && has_begun(&record, &how);
    let next = match (goes_on, failed) {
        _ if record.to_rest => again::rest(state, &record, now, out),
        (true, _) => plan::next(state, &record, now, out),
        (false, true) => match again::after_failure(state, &record, now, out) {
            // What was brought back, and had not begun, is not lost with teamd.
            Next::Stays if how == ExitReport::Rebooted || record.agent.is_none() => {
                again::rest(state, &record, now, out)
            }
            next => next,
        },
        (false, false) if running && how == ExitReport::TmuxServerGone => {
            again::rest(state, &record, now, out)
        }
        (false, false) => Next::Stays,
    };
    if let (true, Some(news)) = (running, news(&how, &next)) {
        state.notices.add(&record.team, &record.name, None, news);
    }
    let past = PastMember {
        name: record.name.clone(),
        outcome: outcome.word().to_owned(),
        description: said.clone(),
        ended_at: now.wall,
        respawns_at: next.at(now),
        is_suspended: next == Next::Rests,
        usage: record.used(),
    };
    state.remember_past(&record.team, past);
    if let Some(agent) = state.agents.get_mut(id) {
        agent.record.ended =
            Some(End { how: said, outcome, then: next.words(&record.team), at: now.wall, told });
    }
    turn::unheard(state, id, out);
    put_away(state, id, out);
}

fn outcome(how: &ExitReport) -> Outcome {
    match how {
        ExitReport::Exit(0) => Outcome::Completed,
        ExitReport::PaneClosed => Outcome::Killed,
        _ => Outcome::Failed,
    }
}

/// What of the end of one that nobody has asked to end needs a person. Its pane was closed by one.
fn news(how: &ExitReport, next: &Next) -> Option<News> {
    match (how, next) {
        (ExitReport::TerminalGone, Next::Stays) => Some(News::Died),
        (_, Next::Stays | Next::GivenUp(_)) => is_failure(how).then_some(News::Died),
        (ExitReport::Rebooted | ExitReport::TmuxServerGone, Next::Rests) => Some(News::Rests),
        (_, Next::Again { .. } | Next::Rests) => None,
    }
}

/// What a next life may mend. A pane that a person closed is meant so; where tmux itself is gone all rest, and nothing
/// comes back by itself.
fn is_failure(how: &ExitReport) -> bool {
    match how {
        ExitReport::Exit(code) => *code != 0,
        ExitReport::Signal(_)
        | ExitReport::ShimKilled
        | ExitReport::Rebooted
        | ExitReport::TurnNotStarted(_) => true,
        ExitReport::TerminalGone | ExitReport::PaneClosed | ExitReport::TmuxServerGone => false,
    }
}

/// Whether there was a life to be followed by another. A start that came to nothing, or that nobody saw through, may
/// stand in the roster of a daemon that was killed; whoever asked for it was not told that it runs. Only a join whose
/// agent has ended leaves a word.
fn has_begun(record: &Record, how: &ExitReport) -> bool {
    let unseen = matches!(how, ExitReport::ShimKilled | ExitReport::Rebooted);
    record.agent.is_some() || !unseen || register::is_again(record)
}

/// Takes an agent that does not run out of tmux and of the files. Without an end on record it never ran.
pub(super) fn put_away(state: &mut State, id: &SpawnId, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    let how = agent.record.ended.as_ref().map_or("not spawned", |end| &end.how).to_owned();
    let pane = agent.record.pane.as_ref().and_then(Pane::place);
    hook::release(&mut agent.hooks, LongPollEnd::AgentExited, out);
    let closed = if pane.is_none() { Order::Done } else { Order::Pending };
    agent.phase = Phase::Gone(Gone { how, pane: closed, files: Order::Pending, heirs: Vec::new() });
    out.push(Effect::File(FileJob::Farewell { record: agent.record.clone() }));
    let hidden = std::mem::take(&mut agent.record.hidden).then(|| agent.record.team.clone());
    if let Some(pane) = pane {
        out.push(close(id, pane));
    }
    state.dirty = true;
    if let Some(team) = hidden {
        out.push(hide::note(state, &team, None));
    }
}

/// tmux has closed the pane, or says that it is not ours, or nothing.
pub(super) fn pane_closed(
    state: &mut State,
    id: &SpawnId,
    left: Option<ErrorReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let order = if left.is_some() { Order::Failed } else { Order::Done };
    let why = left.map(|fault| format!("its pane is not closed yet: {}", fault.message));
    put_in_order(state, id, why, now, out, |gone| gone.pane = order);
    bury(state, id, now, out);
}

/// The files no longer hold it, or could not be changed.
pub(super) fn filed(
    state: &mut State,
    id: &SpawnId,
    approved: bool,
    left: Option<ErrorReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let Some(team) = state.agents.get(id).map(|agent| agent.record.team.clone()) else { return };
    let order = if left.is_some() { Order::Failed } else { Order::Done };
    let why = left.map(|fault| format!("not taken off the team yet: {}", fault.message));
    put_in_order(state, id, why, now, out, |gone| {
        gone.files = order;
        if approved {
            gone.how = "approved".to_owned();
        }
    });
    if approved {
        approved_after_all(state, id);
    }
    bury(state, id, now, out);
    // What it asked nobody has to answer any more.
    requests::look_if_any(state, &team, out);
}

/// Where something is left over, its waits end all the same, and its name stays taken.
fn put_in_order(
    state: &mut State,
    id: &SpawnId,
    left: Option<String>,
    now: Now,
    out: &mut Vec<Effect>,
    set: impl FnOnce(&mut Gone),
) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    let Phase::Gone(gone) = &mut agent.phase else { return };
    set(gone);
    let how = gone.how.clone();
    if let Some(why) = left {
        let heirs = std::mem::take(&mut gone.heirs);
        out.push(Effect::of_agent(&agent.record, EventKind::Error { message: why }));
        settle(state, id, &how, Left::Gone);
        inherit(state, heirs, now, out);
        finish_waits(state, out);
    }
}

/// Those who waited for a name ask again.
fn inherit(state: &mut State, heirs: Vec<(ConnId, Heir)>, now: Now, out: &mut Vec<Effect>) {
    for (client, heir) in heirs {
        match heir {
            Heir::Spawn(order) => spawn::spawn(state, client, order, now, out),
            Heir::Worktree(order) => worktree::worktree(state, client, order, now, out),
        }
    }
}

/// Its yes was read only after its end was seen.
fn approved_after_all(state: &mut State, id: &SpawnId) {
    let Some(record) = state.agents.get(id).map(|agent| agent.record.clone()) else { return };
    let Some(team) = state.teams.get_mut(&record.team) else { return };
    for past in team.past.iter_mut().filter(|past| past.name == record.name) {
        past.outcome = Outcome::Completed.word().to_owned();
        past.description = "approved".to_owned();
    }
}

/// What could not be put in order is tried again, the roster first: nobody hears of an end that it does not have.
pub(super) fn in_order_again(state: &mut State, out: &mut Vec<Effect>) {
    state.dirty |= std::mem::take(&mut state.unsaved);
    for (id, agent) in &mut state.agents {
        let Phase::Gone(gone) = &mut agent.phase else { continue };
        if gone.files == Order::Failed {
            gone.files = Order::Pending;
            out.push(Effect::File(FileJob::Farewell { record: agent.record.clone() }));
        }
        if let (Order::Failed, Some(pane)) = (gone.pane, agent.record.pane.as_ref().and_then(Pane::place)) {
            gone.pane = Order::Pending;
            out.push(close(id, pane));
        }
    }
}

/// The last step, once pane and files are in order: the name is free again.
fn bury(state: &mut State, id: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let Some(Phase::Gone(gone)) = state.agents.get_mut(id).map(|agent| &mut agent.phase) else { return };
    if gone.pane != Order::Done || gone.files != Order::Done {
        return;
    }
    let (how, heirs) = (gone.how.clone(), std::mem::take(&mut gone.heirs));
    settle(state, id, &how, Left::Gone);
    let record = state.agents.remove(id).map(|agent| agent.record);
    record.iter().for_each(|record| again::freed(state, &record.team, &record.name));
    let team = record.map(|record| record.team.clone());
    state.dirty = true;
    // What it left in progress is told now, and what it was offered goes to another.
    if let Some(team) = team {
        tasks::again(state, &team, out);
    }
    out.push(Effect::Forget { spawn: id.clone() });
    // The answers first: what was waited for may be the end of the daemon.
    inherit(state, heirs, now, out);
    finish_waits(state, out);
}

/// What became of an agent that somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// It ended.
    Gone,
    /// It lives on.
    Living,
}

/// Tells every wait what became of this agent.
pub(super) fn settle(state: &mut State, id: &SpawnId, how: &str, left: Left) {
    let Some(agent) = state.agents.get(id) else { return };
    let request_id = agent.record.asked.first().map(ToString::to_string);
    let gone = left == Left::Gone;
    let (name, team) = (agent.record.name.clone(), Some(agent.record.team.clone()));
    let ended = AgentExit {
        name,
        team,
        description: how.to_owned(),
        has_exited: gone,
        is_suspended: false,
        request_id,
    };
    for waiting in &mut state.waiting {
        if waiting.pending.remove(id) {
            waiting.ended.push(ended.clone());
        }
    }
}

/// Answers the waits that have nothing left to wait for.
pub(super) fn finish_waits(state: &mut State, out: &mut Vec<Effect>) {
    let (done, pending) = std::mem::take(&mut state.waiting).into_iter().partition(|w| w.pending.is_empty());
    state.waiting = pending;
    for mut waiting in done {
        match waiting.then.clone() {
            Then::Reply => out.push(shutdown::settled(waiting.client, waiting.ended)),
            Then::Delete(order) => worktree::sweep(state, waiting.client, order, out),
            Then::Down => {
                again::say_who_rests(state, &mut waiting.ended);
                state.leaves_with = Some(waiting.client);
                out.push(shutdown::settled(waiting.client, waiting.ended));
            }
        }
    }
}

/// It has gone down, and this is who was told so last.
pub(super) fn leave(state: &mut State, client: ConnId, out: &mut Vec<Effect>) {
    if state.leaves_with == Some(client) {
        // The next daemon may be another day's.
        out.extend(state.notices.take_last().map(|word| ring(state, word.text)));
        out.push(Effect::of_daemon(EventKind::DaemonStopped { reason: REQUESTED_STOP_REASON.to_owned() }));
        out.push(Effect::Exit);
    }
}

/// An agent that does not even end by KILL, or whose join does not listen.
pub(super) fn kill_join(state: &State, id: &SpawnId, out: &mut Vec<Effect>) {
    if state.agents.contains_key(id) {
        out.push(Effect::KillJoin { spawn: id.clone() });
    }
}
