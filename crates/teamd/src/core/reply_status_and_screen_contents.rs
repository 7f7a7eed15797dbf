//! Replies that change nothing: status, pane locations and screen contents.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::Effect;
use crate::core::jobs::iterm2_jobs::{Iterm2Job, Iterm2Session};
use crate::core::jobs::pane_jobs::PaneJob;
use crate::core::pane_labels::color_name;
use crate::core::panes::program_dialogs::{DialogCheck, dialog_flag};
use crate::core::reply_to_client::send_reply;
use crate::core::state::agent::Agent;
use crate::core::state::call_errors::{no_pane_error, tmux_gone_error};
use crate::core::state::check_and_forget_recorded_worktrees::worktree_reply;
use crate::core::state::core_state::State;
use crate::core::state::exhausted_budget::budget_status;
use crate::core::state::find_team_or_member::{find_member, pane_and_tag};
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::team_records::recorded_teams::record_path;
use crate::core::turns::log_and_notify_turn_pauses::pause_flag;
use crate::core::turns::no_output::is_quiet;
use protocol::control_socket::Backend;
use protocol::control_socket::{
    Activity, CapturePaneReply, CapturePaneRequest, DaemonStatus, LocatePaneReply, MemberAddress, MemberFlag,
    MemberStatus, Reply, StatusReply, TeamStatus, TurnStatus,
};
use protocol::delivery_kind::{Delivery, DeliveryPoint};
use protocol::error_kind_and_report::ErrorReport;
use protocol::member_request::MemberRequestKind;
use protocol::member_task_and_request_ids::AgentId;

pub(crate) fn reply_status(context: &mut Context, client: ConnId, dialogs: &DialogCheck) {
    let teams = context.state.teams.iter().map(|(team, team_state)| TeamStatus {
        name: team.clone(),
        members: context
            .state
            .members(team)
            .into_iter()
            .filter(|agent| !agent.record.lifecycle.is_exited())
            .map(|agent| member_status(agent, dialogs))
            .collect(),
        past_members: team_state.past_members.clone(),
        worktrees: team_state.worktrees.iter().map(worktree_reply).collect(),
        budget: budget_status(team_state),
        lead_session_ended_at: team_state.lead_session_ended_at,
        record: record_path(context.state, team),
        hosts: context.state.host_links.host_status(team),
    });
    let daemon = DaemonStatus {
        pid: context.state.settings.pid,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        root: context.state.settings.root.clone(),
        tmux: context.state.settings.tmux_socket.clone(),
        watch_mode: context.state.watcher_state.as_str().to_owned(),
        is_stopping: context.state.daemon_shutdown.is_in_progress(),
    };
    let reply = StatusReply { teams: teams.collect(), daemon };
    send_reply(context, client, Ok(Reply::Status(reply)));
}

fn member_status(agent: &Agent, dialogs: &DialogCheck) -> MemberStatus {
    let record = &agent.record;
    let flags = flags(agent, dialogs);
    MemberStatus {
        name: record.request.name.clone(),
        agent_id: AgentId { name: record.request.name.clone(), team: record.request.team.clone() }
            .to_string(),
        lifecycle: agent.record.lifecycle.as_str().to_owned(),
        activity: agent.activity,
        activity_since: agent.activity_since,
        task: agent.task_subject.clone(),
        mode: record.config_mode.clone(),
        delivery: record.request.delivery,
        delivery_point: Some(delivery_point(agent)),
        pane: record.pane.as_ref().map(|pane| pane.id.clone()),
        is_hidden: record.is_hidden,
        pid: record.lifecycle.process().agent_pid,
        backend: record.request.backend.as_str().to_owned(),
        worktree: record.worktree.as_ref().map(|worktree| worktree.path.clone()),
        branch: record.worktree.as_ref().map(|worktree| worktree.branch.clone()),
        state: protocol_state(agent).to_owned(),
        dialog: flags.contains(&MemberFlag::AtDialog).then(|| agent.dialog_text().cloned()).flatten(),
        flags,
        usage_limit: agent.usage_limit().cloned(),
        turn_pause: agent.turn.as_ref().and_then(|turn| turn.pause.clone()),
        turn_task: agent.turn.as_ref().and_then(TurnStatus::task),
        activity_reason: activity_reason(agent),
        usage: record.usage(),
        respawns: record.respawn.respawns,
        color: color_name(record),
        environment_file: record.respawn.environment_file.clone(),
    }
}

/// When messages reach the agent. Usually this follows from the agent's delivery. But if the
/// delivery is `hook` and no hook can deliver now, the agent gets messages only when it asks for
/// them (`OnPull`).
///
/// While the agent is idle, only a hook that waits in a long poll can deliver. While the agent
/// works, its hooks can deliver if one of them has sent a report before.
fn delivery_point(agent: &Agent) -> DeliveryPoint {
    let delivery = agent.record.request.delivery;
    let is_reached = match agent.activity {
        Activity::Active => agent.has_reported_activity,
        Activity::Idle => agent.long_poll.waiting.is_some(),
    };
    if delivery == Delivery::Hook && !is_reached { DeliveryPoint::OnPull } else { delivery.delivery_point() }
}

/// The state of a current member, as clients spell it.
fn protocol_state(agent: &Agent) -> &'static str {
    if agent.record.lifecycle.is_starting() { "pending" } else { "running" }
}

fn flags(agent: &Agent, dialogs: &DialogCheck) -> Vec<MemberFlag> {
    let is_asked = agent.record.lifecycle.awaits_shutdown_answer();
    let is_asked_in_turn = agent.turn.as_ref().is_some_and(|turn| turn.shutdown_requested);
    let request_flags = agent.open_requests.iter().map(|kind| match kind {
        MemberRequestKind::Plan => MemberFlag::AwaitingPlanApproval,
        MemberRequestKind::Permission => MemberFlag::AwaitingPermission,
    });
    let dialog = dialog_flag(agent, dialogs);
    // Both dialog flags explain missing output, so only one of the flags is shown.
    let no_output = (dialog.is_none() && is_quiet(agent)).then_some(MemberFlag::NoOutput);
    let shutdown = (is_asked || is_asked_in_turn).then_some(MemberFlag::ShutdownRequested);
    let limit = agent.usage_limit().map(|_| MemberFlag::Limited);
    let pause = limit.or_else(|| pause_flag(agent));
    request_flags.chain(shutdown).chain(dialog).chain(no_output).chain(pause).collect()
}

/// Why the agent counts as active or idle, as a sentence.
fn activity_reason(agent: &Agent) -> String {
    match (&agent.turn, agent.record.lifecycle.as_str()) {
        (_, "disconnected") => "its first process is not connected; this is what was known before".to_owned(),
        (Some(turn), _) if agent.record.request.delivery == Delivery::Hook => {
            format!("{}; {}", turn_description(turn), hook_description(agent))
        }
        (Some(turn), _) => turn_description(turn),
        (None, _) if agent.has_reported_activity && agent.record.request.delivery == Delivery::Native => {
            "it said so in config.json, or to its lead".to_owned()
        }
        (None, _) if agent.has_reported_activity => "it said so itself".to_owned(),
        (None, _) => match agent.record.lifecycle.process().agent_pid {
            Some(pid) if agent.record.request.delivery == Delivery::Hook => {
                format!(
                    "its process {pid} runs, and none of its hooks has reported yet: messages wait for the first report"
                )
            }
            Some(pid) => format!("its process {pid} runs, and has said nothing of turns"),
            None => "it has not started yet".to_owned(),
        },
    }
}

/// How a message would reach the agent, as a sentence.
fn hook_description(agent: &Agent) -> &'static str {
    match (agent.activity, agent.long_poll.waiting) {
        (Activity::Active, _) => "its hook looks for mail at its end",
        (Activity::Idle, Some(_)) => "its hook waits for mail",
        (Activity::Idle, None) => "no hook of it waits for mail",
    }
}

fn turn_description(turn: &TurnStatus) -> String {
    match (turn.activity, turn.pid) {
        (Activity::Active, Some(pid)) => format!("turn {}, pid {pid}: {}", turn.turn_number, turn.summary),
        (Activity::Active, None) => format!("turn {}: {}", turn.turn_number, turn.summary),
        (Activity::Idle, _) if turn.turn_number == 0 => "no turn yet".to_owned(),
        (Activity::Idle, _) => {
            let reason = turn.idle_reason.map(|reason| format!(", {}", reason.as_str())).unwrap_or_default();
            format!("turn {} has ended{reason}", turn.turn_number)
        }
    }
}

pub(crate) fn locate(context: &mut Context, client: ConnId, address: &MemberAddress) {
    let result = find_member(context.state, &address.team, &address.name)
        .and_then(|agent| find_location(context.state, agent));
    send_reply(context, client, result.map(Reply::LocatePane));
}

fn find_location(state: &State, agent: &Agent) -> Result<LocatePaneReply, ErrorReport> {
    let record = &agent.record;
    if record.request.backend == Backend::InProcess {
        return Ok(LocatePaneReply::Log {
            path: state.settings.output_log(&record.request.team, &record.request.name),
        });
    }
    let pane = record
        .pane
        .as_ref()
        .ok_or_else(|| no_pane_error(&record.request.team, record.request.name.as_str(), "show"))?;
    if let Some(Iterm2Session { it2, id }) = pane.iterm2_session() {
        return Ok(LocatePaneReply::Iterm2Session { session: id, it2 });
    }
    let tmux = state.settings.tmux_socket.clone().ok_or_else(tmux_gone_error)?;
    Ok(LocatePaneReply::Pane { pane: pane.id.clone(), tmux, is_hidden: record.is_hidden })
}

pub(crate) fn capture(context: &mut Context, client: ConnId, request: &CapturePaneRequest) {
    match pane_and_tag(context.state, &request.team, &request.name, "capture") {
        Err(error) => send_reply(context, client, Err(error)),
        Ok((pane, owner)) => match (pane.iterm2_session(), pane.id(), request.lines) {
            (Some(session), _, lines) => {
                let job = Iterm2Job::Capture { client, session, lines };
                context.effects.push(Effect::Pane(PaneJob::Iterm2(job)));
            }
            (None, Some(pane), lines) => {
                context.effects.push(Effect::Pane(PaneJob::CapturePane { client, pane, owner, lines }));
            }
            (None, None, _) => {
                send_reply(context, client, Err(no_pane_error(&request.team, &request.name, "capture")));
            }
        },
    }
}

pub(crate) fn handle_pane_captured(
    context: &mut Context,
    client: ConnId,
    result: Result<CapturePaneReply, ErrorReport>,
) {
    send_reply(context, client, result.map(Reply::CapturePane));
}
