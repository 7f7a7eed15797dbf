//! Turns, as the joins that run them tell of them; `interrupt`; and what agents say of themselves.

use crate::core::clock::Now;
use crate::core::context::{Context, send_reply};
use crate::core::effect::{Effect, Effects};
use crate::core::id::{ConnId, SpawnId};
use crate::core::jobs::files::FileJob;
use crate::core::labels::update_label;
use crate::core::lifecycle::Lifecycle;
use crate::core::members::permission_mode;
use crate::core::roster::record::AgentRecord;
use crate::core::scans::schedule_task_scan;
use crate::core::state::agent::Agent;
use crate::core::state::daemon::State;
use crate::core::teams::budget;
use protocol::control::{Activity, Reply, TurnStatus};
use protocol::delivery::Delivery;
use protocol::event::EventKind;
use protocol::name::{AgentName, TeamName};
use std::collections::HashMap;

/// A join that reconnects says what its agent does: nothing new.
pub(crate) fn resume_turn(context: &mut Context, id: &SpawnId, turn: Option<TurnStatus>) {
    if let Some(agent) = context.state.agents.get_mut(id) {
        agent.turn.clone_from(&turn);
    }
    apply_turn_state(context, id, turn);
}

/// A join tells what its agent does; none from one whose agent has no turns that it knows of.
pub(crate) fn apply_turn_state(context: &mut Context, id: &SpawnId, turn: Option<TurnStatus>) {
    let (Some(agent), Some(turn)) = (context.state.agents.get_mut(id), turn) else { return };
    let was_offered = agent.offered_task.take().is_some();
    if let Some(comeback) = &mut agent.record.respawn
        && comeback.session != turn.session_id
    {
        comeback.session.clone_from(&turn.session_id);
        context.state.has_roster_changed = true;
    }
    if let Some(comeback) = &mut agent.record.respawn
        && (comeback.mode, &comeback.plan) != (turn.mode, &turn.plan_stage)
    {
        (comeback.mode, comeback.plan) = (turn.mode, turn.plan_stage.clone());
        context.state.has_roster_changed = true;
    }
    let used = turn.usage.clone();
    let before = agent.turn.replace(turn.clone());
    context.state.has_roster_changed |=
        permission_mode::apply_turn_mode(agent, before.as_ref(), &turn, &mut context.effects);
    let number = before.as_ref().map(|before| before.turn_number);
    match turn.activity {
        // A turn that follows another at once is told all the same.
        Activity::Active if number != Some(turn.turn_number) => {
            context.begun_turns.push(agent.record.team.clone());
            context
                .effects
                .push(Effect::log_member(&agent.record, EventKind::MemberActive { summary: turn.summary }));
        }
        Activity::Idle if before.is_none_or(|before| before.activity == Activity::Active) => {
            context
                .effects
                .push(Effect::log_member(&agent.record, EventKind::MemberIdle { reason: turn.idle_reason }));
        }
        _ => {}
    }
    let (team, idle) = (agent.record.team.clone(), turn.activity == Activity::Idle);
    set_activity(agent, turn.activity, context.now, &mut context.effects);
    // A turn that follows another at once begins anew; after a start of ours it began before.
    agent.activity_since = turn.since;
    // A task may have come after it looked, and before we knew that it is to be woken for it; or it does something
    // else than it was woken for.
    if idle || was_offered {
        schedule_task_scan(context, &team);
    }
    used.into_iter().for_each(|report| budget::add_usage(context, id, report));
}

/// The agent itself says so, known by its token. Of turns that its join runs that alone tells: nobody would take back
/// what a process of one has said.
pub(crate) fn report_own_activity(
    context: &mut Context,
    client: ConnId,
    token: Option<&str>,
    activity: Activity,
) {
    let mine = |agent: &&mut Agent| token == Some(agent.record.token.as_str());
    if let Some(agent) = context.state.agents.values_mut().find(mine).filter(|agent| !agent.record.has_turns)
    {
        agent.has_reported_activity = true;
        if agent.activity != activity {
            context.effects.push(Effect::log_member(&agent.record, activity_event(activity)));
            if activity == Activity::Active {
                context.begun_turns.push(agent.record.team.clone());
            }
        }
        set_activity(agent, activity, context.now, &mut context.effects);
    }
    send_reply(context, client, Ok(Reply::Ack));
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
    context: &mut Context,
    team: &TeamName,
    name: &AgentName,
    activity: Activity,
) {
    let hers = |agent: &&mut Agent| agent.record.team == *team && agent.record.name == *name;
    let Some(agent) = context.state.agents.values_mut().find(hers) else { return };
    let lives = matches!(agent.lifecycle, Lifecycle::Running(_) | Lifecycle::Stopping(..));
    if agent.record.delivery != Delivery::Native || !lives {
        return;
    }
    agent.has_reported_activity = true;
    if agent.activity != activity {
        context.state.has_roster_changed |= record_session(&mut agent.record, activity);
        context.effects.push(Effect::log_member(&agent.record, activity_event(activity)));
        if activity == Activity::Active {
            context.begun_turns.push(agent.record.team.clone());
        }
        set_activity(agent, activity, context.now, &mut context.effects);
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
fn set_activity(agent: &mut Agent, activity: Activity, now: Now, effects: &mut Effects) {
    if agent.activity == activity {
        return;
    }
    agent.activity = activity;
    agent.activity_since = now.wall;
    effects.extend(update_label(agent));
    if agent.record.delivery == Delivery::Native {
        return;
    }
    effects.push(Effect::File(FileJob::WriteActivity {
        team: agent.record.team.clone(),
        name: agent.record.name.clone(),
        is_active: activity == Activity::Active,
    }));
}
