//! A client asked: who is it, may it, has it asked before; then on to the request's own file.

use super::screens::Dialogs;
use super::{
    again, create, delete, hide, hook, keys, lead, mode, next, policy, screens, shutdown, spawn, status,
    turn, worktree,
};
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::panes::Sight;
use crate::state::{Closing, State};
use protocol::control::{Call, HookReport, LongPollRequest, PROTOCOL_VERSION, Reply, Request, Response};
use protocol::error::{ErrorKind, ErrorReport};

pub(super) fn asked(state: &mut State, client: ConnId, call: Call, now: Now, out: &mut Vec<Effect>) {
    if let Err(fault) = speaks_our_version(&call).and_then(|()| may(state, &call)) {
        return out.push(failed(client, fault));
    }
    if let Some(once) = &call.idempotency_key {
        if let Some((_, response)) = state.answered.iter().find(|(token, _)| token == once) {
            return out.push(Effect::Reply { client, response: response.clone() });
        }
        if state.calls.values().any(|token| token == once) {
            return state.also.push((client, once.clone()));
        }
        state.calls.insert(client, once.clone());
    }
    dispatch(state, client, call, now, out);
}

/// What could not even be read.
pub(super) fn unreadable(client: ConnId, version: Option<u32>, why: &str, out: &mut Vec<Effect>) {
    let fault = match version {
        Some(other) if other != PROTOCOL_VERSION => of_another_version(other),
        _ => ErrorReport::new(ErrorKind::Usage, format!("cannot understand the request: {why}"))
            .with_help(SAME_RELEASE),
    };
    out.push(failed(client, fault));
}

fn dispatch(state: &mut State, client: ConnId, call: Call, now: Now, out: &mut Vec<Effect>) {
    match call.request {
        Request::Status => status::status(state, client, &Dialogs::Unasked, out),
        Request::StatusWithScreens => screens::asked(state, client, now, out),
        Request::CreateTeam(create) => create::create(state, client, create, now, out),
        Request::CreateWorktree(order) => worktree::worktree(state, client, order, now, out),
        Request::Spawn(order) => spawn::spawn(state, client, order, now, out),
        Request::Shutdown(order) => shutdown::shutdown(state, client, &order, now, out),
        Request::Kill(targets) => shutdown::kill(state, client, &targets, now, out),
        Request::DeleteTeam(order) => delete::delete(state, client, order, now, out),
        Request::SetMode(order) => mode::set(state, client, order, now, out),
        Request::SetPolicy(order) => policy::set(state, client, order, out),
        Request::Interrupt(who) => turn::interrupt(state, client, &who, out),
        Request::LocatePane(locate) => status::locate(state, client, &locate, out),
        Request::CapturePane(capture) => status::capture(state, client, &capture, out),
        Request::HidePane(who) => hide::put(state, client, &who, Sight::Hidden, out),
        Request::ShowPane(who) => hide::put(state, client, &who, Sight::Shown, out),
        Request::SetLayout(order) => hide::layout(state, client, &order, out),
        Request::NextTask(asked) => next::asked(state, client, asked, out),
        Request::ReportActivity(activity) => {
            turn::activity(state, client, call.token.as_deref(), activity, now, out);
        }
        Request::ReportHook(hooked) => hook::said(state, client, call.token.as_deref(), hooked, now, out),
        Request::LongPoll(park) => hook::park(state, client, call.token.as_deref(), &park, now, out),
        Request::TypeInPane(order) => keys::keys(state, client, call.token.as_deref(), order, out),
        Request::SetLead(order) => lead::lead(state, client, order, out),
        Request::StopDaemon => shutdown::down(state, client, Closing::Down, now, out),
        Request::StopDaemonAndSuspend => shutdown::down(state, client, Closing::Rest, now, out),
        Request::ResumeMembers(order) => again::bring_back(state, client, &order, now, out),
        Request::ConnectShim(_) => {
            answer(state, client, Err(ErrorReport::new(ErrorKind::Usage, "cannot join twice")), out)
        }
    }
}

fn speaks_our_version(call: &Call) -> Result<(), ErrorReport> {
    if call.version == PROTOCOL_VERSION {
        return Ok(());
    }
    Err(of_another_version(call.version))
}

fn of_another_version(other: u32) -> ErrorReport {
    let message = format!(
        "cannot understand version {other} of the control socket: this teamd speaks {PROTOCOL_VERSION}"
    );
    ErrorReport::new(ErrorKind::Config, message).with_help(SAME_RELEASE)
}

const SAME_RELEASE: &str =
    "install teamd and teamctl of the same release, and start teamd again: teamctl doctor tells";

/// A guard rail between agents of one user, not a wall: a teammate is known by the token in its environment.
fn may(state: &State, call: &Call) -> Result<(), ErrorReport> {
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

/// Answers a client, and whoever asked the same again meanwhile.
pub(super) fn answer(
    state: &mut State,
    client: ConnId,
    result: Result<Reply, ErrorReport>,
    out: &mut Vec<Effect>,
) {
    let response = match result {
        Ok(reply) => Response::Done(Box::new(reply)),
        Err(fault) => Response::Failed(fault),
    };
    if let Some(once) = state.calls.remove(&client) {
        let (same, other) =
            std::mem::take(&mut state.also).into_iter().partition(|(_, token)| *token == once);
        state.also = other;
        for (also, _) in same {
            out.push(Effect::Reply { client: also, response: response.clone() });
        }
        state.remember(once, response.clone());
    }
    out.push(Effect::Reply { client, response });
}

fn failed(client: ConnId, fault: ErrorReport) -> Effect {
    Effect::Reply { client, response: Response::Failed(fault) }
}
