//! A client asked: who is it, may it, has it asked before; then on to the request's own file.

use crate::core::clock::Now;
use crate::core::context::{error_reply, send_reply};
use crate::core::effect::Effect;
use crate::core::id::ConnId;
use crate::core::jobs::panes::PaneVisibility;
use crate::core::members::{permission_mode, respawn, shutdown, spawn};
use crate::core::panes::{dialog_check, typing, visibility};
use crate::core::state::daemon::{DaemonShutdown, State};
use crate::core::state::dialogs::DialogCheck;
use crate::core::tasks::next_task;
use crate::core::teams::{create, delete, policy};
use crate::core::turns::activity;
use crate::core::{hooks, interrupts, lead_session, status, worktrees};
use protocol::control::{Call, HookReport, LongPollRequest, PROTOCOL_VERSION, Request};
use protocol::error::{ErrorKind, ErrorReport};

pub(crate) fn handle_call(state: &mut State, client: ConnId, call: Call, now: Now, out: &mut Vec<Effect>) {
    if let Err(fault) = check_version(&call).and_then(|()| check_permission(state, &call)) {
        return out.push(error_reply(client, fault));
    }
    if let Some(once) = &call.idempotency_key {
        if let Some((_, response)) = state.remembered_replies.iter().find(|(token, _)| token == once) {
            return out.push(Effect::Reply { client, response: response.clone() });
        }
        if state.running_calls.values().any(|token| token == once) {
            return state.repeated_calls.push((client, once.clone()));
        }
        state.running_calls.insert(client, once.clone());
    }
    dispatch_call(state, client, call, now, out);
}

/// What could not even be read.
pub(crate) fn handle_invalid_call(client: ConnId, version: Option<u32>, why: &str, out: &mut Vec<Effect>) {
    let fault = match version {
        Some(other) if other != PROTOCOL_VERSION => version_error(other),
        _ => ErrorReport::new(ErrorKind::Usage, format!("cannot understand the request: {why}"))
            .with_help(VERSION_MISMATCH_HELP),
    };
    out.push(error_reply(client, fault));
}

fn dispatch_call(state: &mut State, client: ConnId, call: Call, now: Now, out: &mut Vec<Effect>) {
    match call.request {
        Request::Status => status::reply_status(state, client, &DialogCheck::NotChecked, out),
        Request::StatusWithScreens => dialog_check::query_status_with_screens(state, client, now, out),
        Request::CreateTeam(create) => create::create(state, client, create, now, out),
        Request::CreateWorktree(order) => worktrees::create_worktree(state, client, order, now, out),
        Request::Spawn(order) => spawn::spawn(state, client, order, now, out),
        Request::Shutdown(order) => shutdown::request_member_shutdown(state, client, &order, now, out),
        Request::Kill(targets) => shutdown::kill(state, client, &targets, now, out),
        Request::DeleteTeam(order) => delete::delete(state, client, order, now, out),
        Request::SetMode(order) => permission_mode::set_permission_mode(state, client, order, now, out),
        Request::SetPolicy(order) => policy::set_policy(state, client, order, out),
        Request::Interrupt(who) => interrupts::interrupt(state, client, &who, out),
        Request::LocatePane(locate) => status::locate(state, client, &locate, out),
        Request::CapturePane(capture) => status::capture(state, client, &capture, out),
        Request::HidePane(who) => {
            visibility::set_visibility(state, client, &who, PaneVisibility::Hidden, out);
        }
        Request::ShowPane(who) => visibility::set_visibility(state, client, &who, PaneVisibility::Shown, out),
        Request::SetLayout(order) => visibility::set_layout(state, client, &order, out),
        Request::NextTask(asked) => next_task::query_next_task(state, client, asked, out),
        Request::ReportActivity(activity) => {
            activity::report_own_activity(state, client, call.token.as_deref(), activity, now, out);
        }
        Request::ReportHook(hooked) => {
            hooks::handle_hook_report(state, client, call.token.as_deref(), hooked, now, out);
        }
        Request::LongPoll(park) => {
            hooks::start_long_poll(state, client, call.token.as_deref(), &park, now, out);
        }
        Request::TypeInPane(order) => typing::type_keys(state, client, call.token.as_deref(), order, out),
        Request::SetLead(order) => lead_session::handle_lead_order(state, client, order, out),
        Request::StopDaemon => shutdown::shut_down_daemon(state, client, DaemonShutdown::Terminate, now, out),
        Request::StopDaemonAndSuspend => {
            shutdown::shut_down_daemon(state, client, DaemonShutdown::Suspend, now, out);
        }
        Request::ResumeMembers(order) => respawn::resume_members(state, client, &order, now, out),
        Request::ConnectShim(_) => {
            send_reply(state, client, Err(ErrorReport::new(ErrorKind::Usage, "cannot join twice")), out);
        }
    }
}

fn check_version(call: &Call) -> Result<(), ErrorReport> {
    if call.version == PROTOCOL_VERSION {
        return Ok(());
    }
    Err(version_error(call.version))
}

fn version_error(other: u32) -> ErrorReport {
    let message = format!(
        "cannot understand version {other} of the control socket: this teamd speaks {PROTOCOL_VERSION}"
    );
    ErrorReport::new(ErrorKind::Config, message).with_help(VERSION_MISMATCH_HELP)
}

const VERSION_MISMATCH_HELP: &str =
    "install teamd and teamctl of the same release, and start teamd again: teamctl doctor tells";

/// A guard rail between agents of one user, not a wall: a teammate is known by the token in its environment.
fn check_permission(state: &State, call: &Call) -> Result<(), ErrorReport> {
    let Some(token) = &call.token else { return Ok(()) };
    let Some(agent) = state.agents.values().find(|agent| agent.record.token == *token) else {
        return Err(ErrorReport::new(
            ErrorKind::NotPermitted,
            "cannot do that for an agent whose life has ended",
        ));
    };
    match call.request {
        Request::Status
        | Request::StatusWithScreens
        | Request::NextTask(_)
        | Request::ReportActivity(_)
        | Request::LocatePane(_)
        | Request::CapturePane(_)
        | Request::TypeInPane(_) => Ok(()),
        Request::ReportHook(HookReport { leads_team: None, .. })
        | Request::LongPoll(LongPollRequest { leads_team: None }) => Ok(()),
        _ => Err(ErrorReport::new(
            ErrorKind::NotPermitted,
            format!("cannot do that for {}: it is for the lead or a person", agent.record.name),
        )
        .with_help("ask team-lead with: teamctl send team-lead TEXT")),
    }
}
