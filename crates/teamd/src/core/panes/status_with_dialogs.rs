//! The status with dialogs: a status that also says which programs wait at a dialog on their
//! screen. All panes are captured when a client asks for this status, and at rescans. The reply waits for at most
//! `SCREEN_TIMEOUT`. For a pane that was not captured by then, the reply says that a dialog is
//! unknown.

use crate::core::context::Context;
use crate::core::effect::Effect;
use crate::core::id::{ConnId, SpawnId};
use crate::core::jobs::pane_jobs::PaneJob;
use crate::core::panes::dialog_flag::{DialogCheck, dialog_panes, record_screen_dialogs};
use crate::core::read_only_calls;
use crate::core::state::daemon::State;
use crate::core::state::waiters::ScreenWaiter;
use std::collections::BTreeMap;

/// The shortest time between two checks at rescans, in milliseconds.
const CHECK_INTERVAL: u64 = 30_000;
/// How long a reply waits for tmux, in milliseconds.
const SCREEN_TIMEOUT: u64 = 2_000;

pub(crate) fn query_status_with_screens(context: &mut Context, client: ConnId) {
    if dialog_panes(context.state).is_empty() {
        return read_only_calls::reply_status(context, client, &DialogCheck::NotChecked);
    }
    let onlooker = ScreenWaiter { client, deadline: context.now.mono + SCREEN_TIMEOUT };
    match context.state.screen_waiters.current {
        // The capture that is under way may be older than this call, so the client waits for the
        // next one.
        Some(_) => context.state.screen_waiters.queued.push(onlooker),
        None => check_dialogs(context, vec![onlooker]),
    }
}

/// Captures all screens, unless that is under way or was done in the last 30 s. Each rescan calls this.
/// So people are notified of a dialog even if no client asks for the status.
pub(crate) fn check_screens(context: &mut Context) {
    let waiters = &mut context.state.screen_waiters;
    if waiters.current.is_some() || context.now.mono < waiters.next_check_at {
        return;
    }
    waiters.next_check_at = context.now.mono + CHECK_INTERVAL;
    if !dialog_panes(context.state).is_empty() {
        check_dialogs(context, Vec::new());
    }
}

fn check_dialogs(context: &mut Context, onlookers: Vec<ScreenWaiter>) {
    context.state.screen_waiters.current = Some(onlookers);
    context.state.agents.values_mut().for_each(|agent| agent.has_gone_on = false);
    context.effects.push(Effect::Pane(PaneJob::FindDialogs { panes: dialog_panes(context.state) }));
}

pub(crate) fn handle_dialogs_found(context: &mut Context, open: BTreeMap<SpawnId, Option<String>>) {
    let waiting = context.state.screen_waiters.current.take().unwrap_or_default();
    record_screen_dialogs(context, &open);
    let dialogs = DialogCheck::Found(open);
    waiting.iter().for_each(|onlooker| read_only_calls::reply_status(context, onlooker.client, &dialogs));
    let next = std::mem::take(&mut context.state.screen_waiters.queued);
    if !next.is_empty() {
        check_dialogs(context, next);
    }
}

pub(crate) fn next_reply_deadline(state: &State) -> impl Iterator<Item = u64> {
    let now = state.screen_waiters.current.iter().flatten();
    now.chain(&state.screen_waiters.queued).map(|onlooker| onlooker.deadline)
}

/// Replies to the clients whose timeout has passed. The capture of the panes that is under way goes
/// on, and clients that call meanwhile wait for the next capture. So only one capture runs at a
/// time.
pub(crate) fn reply_to_overdue_clients(context: &mut Context) {
    let is_due = |onlooker: &mut ScreenWaiter| onlooker.deadline <= context.now.mono;
    let mut due: Vec<ScreenWaiter> = context.state.screen_waiters.queued.extract_if(.., is_due).collect();
    due.extend(
        context.state.screen_waiters.current.iter_mut().flat_map(|waiting| waiting.extract_if(.., is_due)),
    );
    let nothing = DialogCheck::Found(BTreeMap::new());
    due.iter().for_each(|onlooker| read_only_calls::reply_status(context, onlooker.client, &nothing));
}
