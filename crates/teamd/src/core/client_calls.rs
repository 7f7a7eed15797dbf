//! Handles calls of clients on the control socket. Checks the protocol version, the lengths of the
//! texts and the caller's permission, detects repeated calls, and passes each new call to its
//! handler.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::{Effect, Effects};
use crate::core::hosts::{
    confirm_task, connect_home, forget_host, move_home, place_member, take_home, use_and_await_host,
};
use crate::core::jobs::file_jobs::{FileJob, WaitingCall};
use crate::core::jobs::pane_jobs::PaneVisibility;
use crate::core::members::kill_members_for_client;
use crate::core::members::shut_down_daemon;
use crate::core::members::{
    set_permission_mode, shutdown_requests, spawn, start_respawns_and_resume_members,
};
use crate::core::panes::program_dialogs::DialogCheck;
use crate::core::panes::{hide_and_show, search_screens_for_dialogs, set_layout, set_person_pane};
use crate::core::reply_to_client::{error_reply, send_reply};
use crate::core::state::core_state::{DaemonShutdown, State};
use crate::core::state::daemon_settings::DaemonSettings;
use crate::core::state::repeated_calls::CallStart;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::tasks::answer_next_task_queries;
use crate::core::team_records::record_calls_reports_and_messages;
use crate::core::teams::{add_foreign_team_to_state, create, delete, set_policy};
use crate::core::turns::apply_reported_turns_and_activity;
use crate::core::turns::interrupt_turn;
use crate::core::{
    create_worktree, hook_reports_and_long_polls, lead_session, reply_status_and_screen_contents,
};
use protocol::control_socket::{Call, PROTOCOL_VERSION, Request, SpawnRequest};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::TeamName;

pub(crate) fn handle_call(context: &mut Context, client: ConnId, call: Call) {
    let result = check_version(&call)
        .and_then(|()| call.check_text_lengths().map_err(ErrorReport::from))
        .and_then(|()| check_root(&context.state.settings, &call))
        .and_then(|()| check_permission(context.state, &call))
        .and_then(|()| take_home::check_home_is_here(context.state, &call.request));
    if let Err(error) = result {
        context.effects.push(error_reply(client, error));
        // Nobody reads this connection any more, so nothing else would close it.
        if matches!(call.request, Request::ConnectHome(_)) {
            context.effects.push(Effect::CloseConnection { conn: client });
        }
        return;
    }
    let start = match &call.idempotency_key {
        Some(key) => context.state.retry_cache.begin(client, key),
        None => CallStart::New,
    };
    match start {
        CallStart::New => {
            record_calls_reports_and_messages::record_call(context, &call);
            dispatch_call(context, client, call);
        }
        CallStart::Replay(response) => context.effects.push(Effect::Reply { client, response }),
        CallStart::Wait => {}
    }
}

/// Replies to a call that can't be parsed.
pub(crate) fn handle_invalid_call(
    client: ConnId,
    version: Option<u32>,
    parse_error: &str,
    effects: &mut Effects,
) {
    let error = match version {
        Some(other) if other != PROTOCOL_VERSION => version_error(other),
        _ => ErrorReport::new(ErrorKind::Usage, format!("cannot understand the request: {parse_error}"))
            .with_help(VERSION_MISMATCH_HELP),
    };
    effects.push(error_reply(client, error));
}

/// Passes a call to its handler. If the call names a team that the daemon does not know, another
/// program may have created that team. So the files thread first looks for the team's files.
fn dispatch_call(context: &mut Context, client: ConnId, call: Call) {
    let is_unknown = |team: &&TeamName| !team.is_claude_session() && !context.state.teams.contains_key(*team);
    match call.request.team().filter(is_unknown).cloned() {
        Some(team) => {
            let waiting = Some(WaitingCall { client, call: Box::new(call) });
            context.effects.push(Effect::File(FileJob::FindTeam { team, waiting }));
        }
        None => handle_request(context, client, call),
    }
}

/// Handles the result of looking for a team, and the call that has waited for it.
pub(crate) fn handle_team_found(
    context: &mut Context,
    team: TeamName,
    member_count: Result<Option<usize>, ErrorReport>,
    waiting: Option<WaitingCall>,
) {
    let is_known = context.state.teams.contains_key(&team);
    let mut find_error = None;
    match member_count {
        Ok(Some(count)) => add_foreign_team_to_state::adopt_team(context, team, count),
        _ if is_known => {}
        Err(error)
            if error.kind == ErrorKind::InvalidData
                && waiting.as_ref().is_some_and(WaitingCall::is_forced_deletion) =>
        {
            add_foreign_team_to_state::adopt_team(context, team, 0);
        }
        result => {
            find_error = result.err();
            // This also ends the files thread that was started to look for the team.
            context.effects.push(Effect::UnwatchTeam { team });
        }
    }
    match (waiting, find_error) {
        (None, _) => {}
        (Some(WaitingCall { client, .. }), Some(error)) => context.effects.push(error_reply(client, error)),
        (Some(WaitingCall { client, call }), None) => handle_request(context, client, *call),
    }
}

fn handle_request(context: &mut Context, client: ConnId, call: Call) {
    match call.request {
        Request::Status => {
            reply_status_and_screen_contents::reply_status(context, client, &DialogCheck::NotChecked);
        }
        Request::StatusWithScreens => search_screens_for_dialogs::query_status_with_screens(context, client),
        Request::CreateTeam(request) => create::create(context, client, request),
        Request::CreateWorktree(request) => create_worktree::create_worktree(context, client, request),
        Request::Spawn(request) => spawn::spawn(context, client, request),
        Request::Shutdown(request) => shutdown_requests::request_member_shutdown(context, client, &request),
        Request::Kill(selection) => kill_members_for_client::kill(context, client, &selection),
        Request::DeleteTeam(request) => delete::delete(context, client, request),
        Request::SetMode(request) => set_permission_mode::set_permission_mode(context, client, request),
        Request::SetPolicy(request) => set_policy::set_policy(context, client, request),
        Request::Interrupt(address) => interrupt_turn::interrupt(context, client, &address),
        Request::LocatePane(address) => reply_status_and_screen_contents::locate(context, client, &address),
        Request::CapturePane(request) => reply_status_and_screen_contents::capture(context, client, &request),
        Request::HidePane(address) => {
            hide_and_show::set_visibility(context, client, &address, PaneVisibility::Hidden);
        }
        Request::ShowPane(address) => {
            hide_and_show::set_visibility(context, client, &address, PaneVisibility::Shown);
        }
        Request::SetLayout(request) => set_layout::set_layout(context, client, &request),
        Request::SetPersonPane(request) => set_person_pane::set_person_pane(context, client, request),
        Request::NextTask(request) => answer_next_task_queries::query_next_task(context, client, request),
        Request::ReportActivity(activity) => {
            apply_reported_turns_and_activity::report_own_activity(
                context,
                client,
                call.token.as_deref(),
                activity,
            );
        }
        Request::ReportHook(report) => {
            hook_reports_and_long_polls::handle_hook_report(context, client, call.token.as_deref(), report);
        }
        Request::LongPoll(request) => {
            hook_reports_and_long_polls::start_long_poll(context, client, call.token.as_deref(), &request);
        }
        Request::SetLead(request) => lead_session::set_lead(context, client, request),
        Request::StopDaemon => shut_down_daemon::shut_down_daemon(context, client, DaemonShutdown::Terminate),
        Request::StopDaemonAndSuspend => {
            shut_down_daemon::shut_down_daemon(context, client, DaemonShutdown::Suspend);
        }
        Request::ResumeMembers(request) => {
            start_respawns_and_resume_members::resume_members(context, client, &request);
        }
        Request::PlaceMember(request) => place_member::place_member(context, client, request),
        Request::UseHost(request) => use_and_await_host::use_host(context, client, request),
        Request::AwaitHost(request) => use_and_await_host::await_host(context, client, &request),
        Request::TakeHome(request) => take_home::take_home(context, client, request),
        Request::MoveHome(request) => move_home::move_home(context, client, request),
        Request::ForgetHost(request) => forget_host::forget_host(context, client, request),
        Request::ConfirmTask(request) => confirm_task::confirm_task(context, client, request),
        Request::ConnectHome(request) => connect_home::connect_home(context, client, request),
        Request::ConnectShim(_) => {
            send_reply(
                context,
                client,
                Err(ErrorReport::new(ErrorKind::Usage, "the shim is connected already")),
            );
        }
    }
}

fn check_version(call: &Call) -> Result<(), ErrorReport> {
    if call.version == PROTOCOL_VERSION {
        return Ok(());
    }
    Err(version_error(call.version))
}

/// Refuses a call for another root. The user may have named this daemon's socket by mistake.
fn check_root(settings: &DaemonSettings, call: &Call) -> Result<(), ErrorReport> {
    let own_root = settings.root.to_string_lossy();
    match &call.root {
        Some(root) if *root != own_root => {
            let socket = settings.socket.display();
            let message = format!("the teamd at {socket} supervises the root {own_root}, not {root}");
            let help = "name its root with --root, or leave out --socket and unset TEAMD_SOCKET";
            Err(ErrorReport::new(ErrorKind::Config, message).with_help(help))
        }
        _ => Ok(()),
    }
}

fn version_error(other: u32) -> ErrorReport {
    let message = format!(
        "cannot understand version {other} of the control socket: this teamd speaks {PROTOCOL_VERSION}"
    );
    ErrorReport::new(ErrorKind::Config, message).with_help(VERSION_MISMATCH_HELP)
}

const VERSION_MISMATCH_HELP: &str =
    "install teamd and teamctl of the same release, and start teamd again; see: teamctl doctor";

/// Checks whether the caller may make this call. A call from an agent carries the token from that
/// agent's environment, and an agent may make only a few calls. The check prevents mistakes, not
/// attacks: all agents run as the same user.
fn check_permission(state: &State, call: &Call) -> Result<(), ErrorReport> {
    let Some(token) = &call.token else { return Ok(()) };
    let Some(agent) = state.agents.values().find(|agent| agent.record.token == *token) else {
        return Err(ErrorReport::new(ErrorKind::NotPermitted, "cannot do that for an agent that has exited"));
    };
    let SpawnRequest { team, name, .. } = &*agent.record.request;
    match call.request.team() {
        Some(other) if other != team => {
            let message = format!("cannot act in the team {other}: the caller is {name} of {team}");
            Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help("leave out -t"))
        }
        _ => call.request.allowed_callers().check("request this", name),
    }
}
