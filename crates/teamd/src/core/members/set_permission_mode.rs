//! Permission modes of leads and members. The mode of a lead is only a value in config.json. A
//! member gets a message with its new mode, and switches when its program or shim reads that
//! message. The mode of a program that takes a mode only at its start cannot be changed.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::{Effect, Effects};
use crate::core::jobs::file_jobs::{FileJob, ModeChange, ModeRoute};
use crate::core::reply_to_client::send_reply;
use crate::core::state::agent::Agent;
use crate::core::state::core_state::State;
use crate::core::state::find_team_or_member::{find_member, supervised_team};
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{Reply, SetModeReply, SetModeRequest, SpawnRequest, TurnStatus};
use protocol::delivery_kind::Delivery;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::event_log_line::{Event, EventKind};
use protocol::member_request::MemberRequestKind;
use protocol::permission_mode::{PermissionMode, is_read_only_type};
use protocol::team_and_member_names::{MemberName, TeamName, strip_team};
use std::collections::HashMap;

pub(crate) fn set_permission_mode(context: &mut Context, client: ConnId, request: SetModeRequest) {
    let target =
        supervised_team(context.state, &request.team).and_then(|_| resolve_target(context.state, &request));
    match target {
        Err(error) => send_reply(context, client, Err(error)),
        Ok((name, route)) => {
            let change = ModeChange { team: request.team, name, mode: request.mode };
            let at = context.now.wall;
            context.effects.push(Effect::File(FileJob::ApplyModeChange { client, change, route, at }));
        }
    }
}

/// The name as the team spells it, and how the change reaches the member.
fn resolve_target(state: &State, request: &SetModeRequest) -> Result<(MemberName, ModeRoute), ErrorReport> {
    let bare_name = MemberName::new_unchecked(strip_team(&request.name, &request.team));
    if bare_name.is_lead() {
        return Ok((MemberName::lead(), ModeRoute::InConfig));
    }
    let agent = find_member(state, &request.team, &request.name)?;
    let name = agent.record.request.name.clone();
    check_allowed(agent, request.mode)?;
    match agent.record.request.delivery {
        Delivery::Native | Delivery::Turn | Delivery::Acp => Ok((name, ModeRoute::ByMessage)),
        Delivery::Hook | Delivery::Pull => Err(fixed_mode_error(&agent.record.request)),
    }
}

fn check_allowed(agent: &Agent, mode: PermissionMode) -> Result<(), ErrorReport> {
    let (name, record) = (&agent.record.request.name, &agent.record);
    if agent.record.lifecycle.is_starting() {
        let message = format!("cannot set the mode of {name}: it has not started yet");
        let hint = format!("wait until it runs, see: teamctl status {name} -t {}", record.request.team);
        return Err(ErrorReport::new(ErrorKind::Refused, message).with_help(hint));
    }
    let is_planning = agent.turn.as_ref().is_some_and(|turn| turn.plan_stage.is_some());
    if is_planning || record.awaits_plan_approval() {
        let message =
            format!("cannot set the mode of {name}: it plans, and leaves that by the approval of its plan");
        return Err(ErrorReport::new(ErrorKind::Refused, message).with_help(plan_mode_help(agent)));
    }
    let read_only_type =
        record.request.agent_type.as_deref().filter(|agent_type| {
            is_read_only_type(agent_type) && record.request.delivery != Delivery::Native
        });
    if let Some(agent_type) = read_only_type.filter(|_| mode != PermissionMode::Plan) {
        let message =
            format!("cannot set the mode of {name} to {mode}: it is of type {agent_type}, and only reads");
        return Err(ErrorReport::new(ErrorKind::Refused, message)
            .with_help("spawn another without that --agent-type"));
    }
    let modes = record.turn_modes();
    if matches!(record.request.delivery, Delivery::Turn | Delivery::Acp)
        && !modes.iter().any(|supported| supported == mode.as_str())
    {
        let mode_list = if modes.is_empty() { "none".to_owned() } else { modes.join(", ") };
        let message = format!("cannot set the mode of {name} to {mode}: its profile has no such mode");
        return Err(ErrorReport::new(ErrorKind::Refused, message).with_help(format!("it has: {mode_list}")));
    }
    Ok(())
}

/// The help for a member that plans: answer its plan, or let it start a turn.
fn plan_mode_help(agent: &Agent) -> String {
    let SpawnRequest { name, team, .. } = &*agent.record.request;
    if agent.open_requests.contains(&MemberRequestKind::Plan) {
        return format!("see: teamctl requests -t {team}");
    }
    let send = format!("teamctl send {name} TEXT -t {team}");
    format!("it submits its plan at the end of its next turn; start one with: {send}")
}

/// The error for a program that takes its mode only at its start.
fn fixed_mode_error(SpawnRequest { team, name, delivery, .. }: &SpawnRequest) -> ErrorReport {
    let message = format!(
        "cannot set the mode of {name}: its program (delivery {}) takes a mode only when it starts",
        delivery.as_str()
    );
    ErrorReport::new(ErrorKind::Refused, message).with_help(format!(
        "change it in its own pane: teamctl attach {name} -t {team}; or spawn it anew with --mode"
    ))
}

/// Replies to the client that has set a permission mode, once the change is in the files.
pub(crate) fn handle_mode_set(
    context: &mut Context,
    client: ConnId,
    ModeChange { team, name, mode }: ModeChange,
    result: Result<(), ErrorReport>,
) {
    if result.is_ok() && name.is_lead() {
        context.effects.push(Effect::Log(Event::for_member(&team, &name, EventKind::ModeSet { mode })));
    }
    send_reply(context, client, result.map(|()| Reply::SetMode(SetModeReply { name, mode })));
}

/// Records the modes in config.json, to restore them if another program drops them.
pub(crate) fn store_config_modes(state: &mut State, team: &TeamName, modes: &[(MemberName, String)]) {
    let modes: HashMap<&MemberName, &String> = modes.iter().map(|(name, mode)| (name, mode)).collect();
    for agent in state.agents.values_mut().filter(|agent| agent.record.request.team == *team) {
        let Some(mode) = modes.get(&agent.record.request.name).copied() else { continue };
        if agent.record.config_mode.as_ref() != Some(mode) {
            agent.record.config_mode = Some(mode.clone());
            state.has_roster_changed = true;
        }
    }
}

/// Applies the permission mode that a shim has reported with a turn. If it is not the mode that was
/// known so far, stores it in the agent's record, writes it to config.json, and returns true.
pub(crate) fn apply_turn_mode(
    agent: &mut Agent,
    known_mode: Option<PermissionMode>,
    turn: &TurnStatus,
    effects: &mut Effects,
) -> bool {
    let Some(mode) = turn.mode.filter(|_| turn.mode != known_mode) else { return false };
    agent.record.config_mode = Some(mode.to_string());
    effects.push(Effect::log_member(&agent.record, EventKind::ModeSet { mode }));
    effects.push(write_mode_effect(agent, mode));
    true
}

pub(crate) fn write_mode_effect(agent: &Agent, mode: PermissionMode) -> Effect {
    let (team, name) = (agent.record.request.team.clone(), agent.record.request.name.clone());
    Effect::File(FileJob::WriteMode { team, name, mode })
}
