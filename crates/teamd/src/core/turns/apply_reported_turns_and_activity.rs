//! Turns and activity of agents, as shims, hooks, agents and config.json report them.
//!
//! The member's delivery decides who reports that the member is idle:
//!
//! - `turn` and `acp`: the shim, which runs each turn and reports its end (`apply_turn_state`).
//! - `hook`: a hook, when it waits in a long poll (`start_agent_long_poll` in
//!   `core/hook_reports_and_long_polls`). A hook that reports the end of a turn does not mean that
//!   the member is idle: if the hook finds a message, the program works on. A program that has
//!   started without a prompt is idle when its first hook reports.
//! - `native`: the program itself, by `isActive` in config.json or by an `idle_notification` in the
//!   lead's inbox (`apply_native_activity`).
//! - `pull`: the agent itself, by `teamctl` (`report_own_activity`).

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use crate::core::effect::{Effect, Effects};
use crate::core::event_time::Now;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::members::set_permission_mode;
use crate::core::pane_labels::update_label;
use crate::core::reply_to_client::send_reply;
use crate::core::roster::agent_record::SharedRecord;
use crate::core::schedule_scans::schedule_task_scan;
use crate::core::state::agent::Agent;
use crate::core::state::core_state::State;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::teams::budget;
use crate::core::turns::log_and_notify_turn_pauses::report_pause;
use protocol::control_socket::{Activity, Reply, TurnStatus};
use protocol::delivery_kind::Delivery;
use protocol::event_log_line::EventKind;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::HashMap;

/// Restores the turn that a reconnecting shim reports, without logging the turn again.
pub(crate) fn resume_turn(context: &mut Context, id: &SpawnId, turn: Option<TurnStatus>) {
    if let Some(agent) = context.state.agents.get_mut(id) {
        agent.turn.clone_from(&turn);
        // The last daemon may have ended before it wrote the mode to config.json.
        let mode = turn.as_ref().and_then(|turn| turn.mode);
        context.effects.extend(mode.map(|mode| set_permission_mode::write_mode_effect(agent, mode)));
    }
    apply_turn_state(context, id, turn);
}

/// Applies the turn that a shim reports. `None` for an agent whose turns the shim does not run.
pub(crate) fn apply_turn_state(context: &mut Context, id: &SpawnId, turn: Option<TurnStatus>) {
    let (Some(agent), Some(turn)) = (context.state.agents.get_mut(id), turn) else { return };
    let was_offered = agent.offered_task.take().is_some();
    // The permission mode before this report. It is taken from the record and not from an earlier
    // report, because even the first report of a spawn may change the mode.
    let known_mode = agent.record.turn_mode();
    context.state.has_roster_changed |= record_turn(&mut agent.record, &turn);
    let usage_report = turn.usage.clone();
    let previous_turn = agent.turn.replace(turn.clone());
    context.state.has_roster_changed |=
        set_permission_mode::apply_turn_mode(agent, known_mode, &turn, &mut context.effects);
    report_pause(agent, previous_turn.as_ref(), &mut context.state.notices, &mut context.effects);
    let previous_number = previous_turn.as_ref().map(|previous_turn| previous_turn.turn_number);
    match turn.activity {
        // A turn is logged even if it follows another turn without an idle time between them.
        Activity::Active if previous_number != Some(turn.turn_number) => {
            context.started_turns.push(agent.record.request.team.clone());
            context
                .effects
                .push(Effect::log_member(&agent.record, EventKind::MemberActive { summary: turn.summary }));
        }
        Activity::Idle
            if previous_turn.is_none_or(|previous_turn| previous_turn.activity == Activity::Active) =>
        {
            context
                .effects
                .push(Effect::log_member(&agent.record, EventKind::MemberIdle { reason: turn.idle_reason }));
        }
        _ => {}
    }
    let (team, is_idle) = (agent.record.request.team.clone(), turn.activity == Activity::Idle);
    set_activity(agent, turn.activity, context.now, &mut context.effects);
    // `turn.since` is the actual start of the turn, which may be before the start of the daemon.
    agent.activity_since = turn.since;
    // Tasks must be offered again in two cases. A task may have been added after the agent read the
    // task list, and before the daemon knew that the agent is idle. Or the agent may do something
    // other than the task for which it was woken.
    if is_idle || was_offered {
        schedule_task_scan(context, &team);
    }
    usage_report.into_iter().for_each(|report| budget::add_usage(context, id, report));
}

/// Records what the next spawn needs from a turn report: the session, the permission mode and the
/// stage of the plan. Returns whether any of them has changed.
fn record_turn(record: &mut SharedRecord, turn: &TurnStatus) -> bool {
    let respawn = &record.respawn;
    // A record is borrowed mutably only if it changes, because a mutable borrow may copy the whole
    // record (see `SharedRecord`).
    if (&respawn.session, respawn.mode, &respawn.plan) == (&turn.session_id, turn.mode, &turn.plan_stage) {
        return false;
    }
    let respawn = &mut record.respawn;
    respawn.session.clone_from(&turn.session_id);
    (respawn.mode, respawn.plan) = (turn.mode, turn.plan_stage.clone());
    true
}

/// Applies the activity that an agent reports about itself. Ignored if a shim runs the agent's
/// turns, because the shim then reports the activity.
pub(crate) fn report_own_activity(
    context: &mut Context,
    client: ConnId,
    token: Option<&str>,
    activity: Activity,
) {
    let is_caller = |agent: &&Agent| token == Some(agent.record.token.as_str()) && !agent.record.has_turns();
    let caller = context.state.agents.values().find(is_caller).map(|agent| agent.record.spawn_id.clone());
    if let Some(id) = caller {
        apply_activity(context, &id, activity);
    }
    send_reply(context, client, Ok(Reply::Ack));
}

/// Applies an activity that was reported without a turn, and logs it if it is new.
fn apply_activity(context: &mut Context, id: &SpawnId, activity: Activity) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    agent.has_reported_activity = true;
    if agent.activity == activity {
        return;
    }
    context.effects.push(Effect::log_member(&agent.record, activity_event(activity)));
    if activity == Activity::Active {
        context.started_turns.push(agent.record.request.team.clone());
    }
    set_activity(agent, activity, context.now, &mut context.effects);
}

/// Stores the activities from config.json, and returns those that differ from the last scan. The
/// others are not applied again, because a message to the lead may have reported a newer activity.
pub(crate) fn take_config_activity_changes(
    state: &mut State,
    team: &TeamName,
    config_activities: &[(MemberName, bool)],
) -> Vec<(MemberName, Activity)> {
    let activities: HashMap<&MemberName, bool> =
        config_activities.iter().map(|(name, is_active)| (name, *is_active)).collect();
    let has_agent = |agent: &&mut Agent| agent.record.lifecycle.has_agent();
    let members =
        state.agents.values_mut().filter(|agent| agent.record.request.team == *team).filter(has_agent);
    let changes = members.filter_map(|agent| {
        let activity =
            if *activities.get(&agent.record.request.name)? { Activity::Active } else { Activity::Idle };
        let is_new = agent.config_activity.replace(activity) != Some(activity);
        is_new.then(|| (agent.record.request.name.clone(), activity))
    });
    changes.collect()
}

/// Applies the activity that a native program has written to config.json or reported to its lead.
pub(crate) fn apply_native_activity(
    context: &mut Context,
    team: &TeamName,
    name: &MemberName,
    activity: Activity,
) {
    let Some(agent) = context.state.member(team, name) else { return };
    if agent.record.request.delivery != Delivery::Native || !agent.record.lifecycle.has_agent() {
        return;
    }
    let id = agent.record.spawn_id.clone();
    if agent.activity != activity {
        record_session(context, &id, activity);
    }
    apply_activity(context, &id, activity);
}

/// Records the session of a native program once the program has had a turn, so that a respawn can
/// resume it. The id of this spawn is also the id of the session.
fn record_session(context: &mut Context, id: &SpawnId, activity: Activity) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    let had_turn = activity == Activity::Active || !agent.record.request.prompt.is_empty();
    if had_turn && agent.record.respawn.session.is_none() {
        agent.record.respawn.session = Some(id.as_str().to_owned());
        context.state.has_roster_changed = true;
    }
}

fn activity_event(activity: Activity) -> EventKind {
    match activity {
        Activity::Active => EventKind::MemberActive { summary: String::new() },
        Activity::Idle => EventKind::MemberIdle { reason: None },
    }
}

/// Sets the activity and updates config.json. A native program updates config.json itself.
fn set_activity(agent: &mut Agent, activity: Activity, now: Now, effects: &mut Effects) {
    if agent.activity == activity {
        return;
    }
    agent.activity = activity;
    agent.activity_since = now.wall;
    agent.forget_screen_dialog();
    effects.extend(update_label(agent));
    if agent.record.request.delivery == Delivery::Native {
        return;
    }
    effects.push(Effect::File(FileJob::WriteActivity {
        team: agent.record.request.team.clone(),
        name: agent.record.request.name.clone(),
        is_active: activity == Activity::Active,
    }));
}
