//! Searches the screens of all panes for dialogs. A rescan starts a search if the last one began at
//! least 30 s ago. A client that asks for the status with dialogs starts a search too, and its
//! reply says which programs wait at a dialog.
//!
//! If the search takes longer than `SCREEN_TIMEOUT`, the client's reply says that the dialogs are
//! unknown.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use crate::core::effect::Effect;
use crate::core::jobs::pane_jobs::PaneJob;
use crate::core::panes::program_dialogs::{DialogCheck, dialog_panes, record_screen_dialogs};
use crate::core::reply_status_and_screen_contents;
use crate::core::state::agent::ScreenDialog;
use crate::core::state::core_state::State;
use crate::core::state::waiting_clients::ScreenWaiter;
use crate::core::state_time_and_effects_of_one_event::Context;
use std::collections::BTreeMap;

/// The shortest time from the start of a capture to one at a rescan, in milliseconds.
const CAPTURE_INTERVAL: u64 = 30_000;
/// How long a reply waits for tmux, in milliseconds.
const SCREEN_TIMEOUT: u64 = 2_000;

pub(crate) fn query_status_with_screens(context: &mut Context, client: ConnId) {
    if dialog_panes(context.state).is_empty() {
        return reply_status_and_screen_contents::reply_status(context, client, &DialogCheck::NotChecked);
    }
    let waiter = ScreenWaiter { client, deadline: context.now.mono + SCREEN_TIMEOUT };
    match context.state.screen_waiters.current {
        // The capture that is under way began before this call, so its screens may be outdated. The
        // client waits for the next capture.
        Some(_) => context.state.screen_waiters.queued.push(waiter),
        None => start_capture(context, vec![waiter]),
    }
}

/// Captures all screens, unless a capture is under way or has started in the last 30 s. Each rescan
/// calls this function, so people are notified of a dialog even if no client asks for the status.
pub(crate) fn capture_at_rescan(context: &mut Context) {
    let waiters = &context.state.screen_waiters;
    let is_due = waiters.current.is_none() && context.now.mono >= waiters.next_capture_at;
    if is_due && !dialog_panes(context.state).is_empty() {
        start_capture(context, Vec::new());
    }
}

fn start_capture(context: &mut Context, waiters: Vec<ScreenWaiter>) {
    context.state.screen_waiters.current = Some(waiters);
    context.state.screen_waiters.next_capture_at = context.now.mono + CAPTURE_INTERVAL;
    context.state.agents.values_mut().for_each(|agent| agent.is_capture_outdated = false);
    context.effects.push(Effect::Pane(PaneJob::FindDialogs { panes: dialog_panes(context.state) }));
}

pub(crate) fn handle_dialogs_found(context: &mut Context, dialogs: BTreeMap<SpawnId, Option<ScreenDialog>>) {
    let waiters = context.state.screen_waiters.current.take().unwrap_or_default();
    record_screen_dialogs(context, &dialogs);
    let check = DialogCheck::Found(dialogs);
    waiters
        .iter()
        .for_each(|waiter| reply_status_and_screen_contents::reply_status(context, waiter.client, &check));
    let queued = std::mem::take(&mut context.state.screen_waiters.queued);
    if !queued.is_empty() {
        start_capture(context, queued);
    }
}

pub(crate) fn next_reply_deadline(state: &State) -> impl Iterator<Item = u64> {
    let current = state.screen_waiters.current.iter().flatten();
    current.chain(&state.screen_waiters.queued).map(|waiter| waiter.deadline)
}

/// Replies to the clients whose timeout has passed. The reply says that the dialogs of all panes
/// are unknown. The capture that is under way goes on. A client that calls meanwhile waits for the
/// next capture, so only one capture runs at a time.
pub(crate) fn reply_to_overdue_clients(context: &mut Context) {
    let is_due = |waiter: &mut ScreenWaiter| waiter.deadline <= context.now.mono;
    let mut due: Vec<ScreenWaiter> = context.state.screen_waiters.queued.extract_if(.., is_due).collect();
    due.extend(
        context.state.screen_waiters.current.iter_mut().flat_map(|waiters| waiters.extract_if(.., is_due)),
    );
    let no_dialogs = DialogCheck::Found(BTreeMap::new());
    due.iter().for_each(|waiter| {
        reply_status_and_screen_contents::reply_status(context, waiter.client, &no_dialogs);
    });
}
