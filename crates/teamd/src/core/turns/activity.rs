//! Turns, as the joins that run them tell of them; `interrupt`; and what agents say of themselves.

use crate::core::client_calls::send_reply;
use crate::core::effect::Effect;
use crate::core::event::{ConnId, Now};
use crate::core::jobs::files::FileJob;
use crate::core::lifecycle::Lifecycle;
use crate::core::members::permission_mode;
use crate::core::members::shutdown::find_member;
use crate::core::members::spawn::{no_such_team_error, update_label};
use crate::core::roster::record::{AgentRecord, SpawnId};
use crate::core::state::agent::Agent;
use crate::core::state::daemon::State;
use crate::core::tasks::task_list;
use crate::core::teams::budget;
use protocol::control::{Activity, InterruptReply, MemberAddress, Reply, ToShim, TurnStatus};
use protocol::delivery::Delivery;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::event::EventKind;
use protocol::name::{AgentName, TeamName};
use std::collections::HashMap;

/// A join that reconnects says what its agent does: nothing new.
pub(crate) fn resume_turn(
    state: &mut State,
    id: &SpawnId,
    turn: Option<TurnStatus>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    if let Some(agent) = state.agents.get_mut(id) {
        agent.turn.clone_from(&turn);
    }
    apply_turn_state(state, id, turn, now, out);
}

/// A join tells what its agent does; none from one whose agent has no turns that it knows of.
pub(crate) fn apply_turn_state(
    state: &mut State,
    id: &SpawnId,
    turn: Option<TurnStatus>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let (Some(agent), Some(turn)) = (state.agents.get_mut(id), turn) else { return };
    let was_offered = agent.offered_task.take().is_some();
    if let Some(comeback) = &mut agent.record.respawn
        && comeback.session != turn.session_id
    {
        comeback.session.clone_from(&turn.session_id);
        state.has_roster_changed = true;
    }
    if let Some(comeback) = &mut agent.record.respawn
        && (comeback.mode, &comeback.plan) != (turn.mode, &turn.plan_stage)
    {
        (comeback.mode, comeback.plan) = (turn.mode, turn.plan_stage.clone());
        state.has_roster_changed = true;
    }
    let used = turn.usage.clone();
    let before = agent.turn.replace(turn.clone());
    state.has_roster_changed |= permission_mode::apply_turn_mode(agent, before.as_ref(), &turn, out);
    let number = before.as_ref().map(|before| before.turn_number);
    match turn.activity {
        // A turn that follows another at once is told all the same.
        Activity::Active if number != Some(turn.turn_number) => {
            out.push(Effect::log_member(&agent.record, EventKind::MemberActive { summary: turn.summary }));
        }
        Activity::Idle if before.is_none_or(|before| before.activity == Activity::Active) => {
            out.push(Effect::log_member(&agent.record, EventKind::MemberIdle { reason: turn.idle_reason }));
        }
        _ => {}
    }
    let (team, idle) = (agent.record.team.clone(), turn.activity == Activity::Idle);
    set_activity(agent, turn.activity, now, out);
    // A turn that follows another at once begins anew; after a start of ours it began before.
    agent.activity_since = turn.since;
    // A task may have come after it looked, and before we knew that it is to be woken for it; or it does something
    // else than it was woken for.
    if idle || was_offered {
        task_list::schedule_task_scan(state, &team, out);
    }
    used.into_iter().for_each(|report| budget::add_usage(state, id, report, now, out));
}

/// The agent itself says so, known by its token. Of turns that its join runs that alone tells: nobody would take back
/// what a process of one has said.
pub(crate) fn report_own_activity(
    state: &mut State,
    client: ConnId,
    token: Option<&str>,
    activity: Activity,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let mine = |agent: &&mut Agent| token == Some(agent.record.token.as_str());
    if let Some(agent) = state.agents.values_mut().find(mine).filter(|agent| !agent.record.has_turns) {
        agent.has_reported_activity = true;
        if agent.activity != activity {
            out.push(Effect::log_member(&agent.record, activity_event(activity)));
        }
        set_activity(agent, activity, now, out);
    }
    send_reply(state, client, Ok(Reply::Ack), out);
}

/// Whose entries in config.json, active or not, say something else than at the last look. One stays as it is where the
/// client's write was lost, and its lead has been told better meanwhile.
pub(crate) fn config_activity_changes(
    state: &mut State,
    team: &TeamName,
    active: &[(AgentName, bool)],
) -> Vec<(AgentName, Activity)> {
    let said: HashMap<&AgentName, bool> = active.iter().map(|(name, active)| (name, *active)).collect();
    let lives =
        |agent: &&mut Agent| matches!(agent.lifecycle, Lifecycle::Running(_) | Lifecycle::Stopping(..));
    let members = state.agents.values_mut().filter(|agent| agent.record.team == *team).filter(lives);
    let new = members.filter_map(|agent| {
        let activity = if *said.get(&agent.record.name)? { Activity::Active } else { Activity::Idle };
        let is_new = agent.config_activity.replace(activity) != Some(activity);
        is_new.then(|| (agent.record.name.clone(), activity))
    });
    new.collect()
}

/// A client that keeps its own entry in config.json, or tells its lead, has said what it does.
pub(crate) fn apply_config_activity(
    state: &mut State,
    team: &TeamName,
    name: &AgentName,
    activity: Activity,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let hers = |agent: &&mut Agent| agent.record.team == *team && agent.record.name == *name;
    let Some(agent) = state.agents.values_mut().find(hers) else { return };
    let lives = matches!(agent.lifecycle, Lifecycle::Running(_) | Lifecycle::Stopping(..));
    if agent.record.delivery != Delivery::Native || !lives {
        return;
    }
    agent.has_reported_activity = true;
    if agent.activity != activity {
        state.has_roster_changed |= record_session(&mut agent.record, activity);
        out.push(Effect::log_member(&agent.record, activity_event(activity)));
        set_activity(agent, activity, now, out);
    }
}

/// Once it has had a turn there is a conversation, by the name of that life, for the next to go on with. True if that
/// is new.
fn record_session(record: &mut AgentRecord, activity: Activity) -> bool {
    let had_turn = activity == Activity::Active || !record.prompt.is_empty();
    let life = record.spawn_id.as_str().to_owned();
    let Some(comeback) = record.respawn.as_mut().filter(|c| had_turn && c.session.is_none()) else {
        return false;
    };
    comeback.session = Some(life);
    true
}

fn activity_event(activity: Activity) -> EventKind {
    match activity {
        Activity::Active => EventKind::MemberActive { summary: String::new() },
        Activity::Idle => EventKind::MemberIdle { reason: None },
    }
}

/// config.json follows, for whoever reads files; a client that writes there itself is not written over.
fn set_activity(agent: &mut Agent, activity: Activity, now: Now, out: &mut Vec<Effect>) {
    if agent.activity == activity {
        return;
    }
    agent.activity = activity;
    agent.activity_since = now.wall;
    out.extend(update_label(agent));
    if agent.record.delivery == Delivery::Native {
        return;
    }
    out.push(Effect::File(FileJob::WriteActivity {
        team: agent.record.team.clone(),
        name: agent.record.name.clone(),
        is_active: activity == Activity::Active,
    }));
}

/// `interrupt`: answered after the turn has ended.
pub(crate) fn interrupt(state: &mut State, client: ConnId, who: &MemberAddress, out: &mut Vec<Effect>) {
    let found = match state.teams.contains_key(&who.team) {
        true => find_member(state, &who.team, &who.name),
        false => Err(no_such_team_error(state, &who.team)),
    };
    let reached = found.and_then(|agent| match (agent.record.has_turns, agent.lifecycle.conn()) {
        _ if matches!(agent.lifecycle, Lifecycle::Starting(_)) => Err(not_started_error(who)),
        (true, Some(conn)) => Ok((agent.record.spawn_id.clone(), conn)),
        (true, None) => Err(not_connected_error(who)),
        (false, _) => Err(no_turns_error(who)),
    });
    match reached {
        Err(fault) => send_reply(state, client, Err(fault), out),
        Ok((id, conn)) => {
            state.interrupt_waiters.push((id, client));
            out.push(Effect::SendToShim { conn, message: ToShim::Interrupt });
        }
    }
}

fn no_turns_error(MemberAddress { team, name }: &MemberAddress) -> ErrorReport {
    let message =
        format!("cannot interrupt {name}: its program runs for its whole life, and its turns are its own");
    let attach = format!("go to its pane with: teamctl attach {name} -t {team}");
    ErrorReport::new(ErrorKind::Refused, message)
        .with_help(format!("{attach}; or end it: teamctl shutdown {name} -t {team}"))
}

fn not_started_error(MemberAddress { team, name }: &MemberAddress) -> ErrorReport {
    ErrorReport::new(ErrorKind::Refused, format!("cannot interrupt {name}: it has not started yet"))
        .with_help(format!("wait until it runs, see: teamctl status {name} -t {team}"))
}

fn not_connected_error(MemberAddress { team, name }: &MemberAddress) -> ErrorReport {
    ErrorReport::new(
        ErrorKind::Timeout,
        format!("cannot interrupt {name}: its first process is not connected"),
    )
    .with_help(format!("see: teamctl why {name} -t {team}; then try again"))
}

/// The turn has ended, or there was none.
pub(crate) fn handle_interrupted(state: &mut State, id: &SpawnId, turn: bool, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get(id) else { return };
    let reply = InterruptReply { name: agent.record.name.clone(), was_in_turn: turn };
    if turn {
        out.push(Effect::log_member(&agent.record, EventKind::MemberInterrupted));
    }
    for client in take_interrupt_waiters(state, id) {
        send_reply(state, client, Ok(Reply::Interrupt(reply.clone())), out);
    }
}

/// Nobody is left who could tell of the turn's end.
pub(crate) fn fail_interrupt_waiters(state: &mut State, id: &SpawnId, out: &mut Vec<Effect>) {
    let Some(record) = state.agents.get(id).map(|agent| &agent.record) else { return };
    let who = MemberAddress { team: record.team.clone(), name: record.name.to_string() };
    for client in take_interrupt_waiters(state, id) {
        send_reply(state, client, Err(not_connected_error(&who)), out);
    }
}

fn take_interrupt_waiters(state: &mut State, id: &SpawnId) -> Vec<ConnId> {
    let all = std::mem::take(&mut state.interrupt_waiters);
    let (of, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(spawn, _)| spawn == id);
    state.interrupt_waiters = others;
    of.into_iter().map(|(_, client)| client).collect()
}
