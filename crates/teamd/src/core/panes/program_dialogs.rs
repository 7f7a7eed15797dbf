//! Dialogs at which members' programs wait. The daemon learns of a dialog from a hook's report or
//! from the captured screen of the pane. A dialog changes the member's flag in `status` and the
//! label of the pane. A new dialog is also logged, and people get a notice.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::effect::{Effect, Effects};
use crate::core::jobs::pane_jobs::DialogPane;
use crate::core::notifications_to_people::notice::NoticeKind;
use crate::core::pane_labels::update_label;
use crate::core::roster::agent_record::AgentPane;
use crate::core::state::agent::{Agent, ScreenDialog};
use crate::core::state::core_state::State;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{MemberFlag, SpawnRequest, UsageLimit};
use protocol::event_log_line::EventKind;
use std::collections::BTreeMap;

/// What a search of the screens for dialogs has found.
pub(crate) enum DialogCheck {
    /// The screens were not captured.
    NotChecked,
    /// For each captured pane its dialog, or `None` if the screen shows no dialog. A pane that
    /// could not be captured has no entry.
    Found(BTreeMap<SpawnId, Option<ScreenDialog>>),
}

/// The panes to capture: those of all agents that have not exited, including hidden panes. Programs
/// without known dialogs are included, because they may start git or ssh, which ask for passwords
/// on the terminal.
pub(crate) fn dialog_panes(state: &State) -> Vec<DialogPane> {
    state.agents.values().filter_map(dialog_pane).collect()
}

fn dialog_pane(agent: &Agent) -> Option<DialogPane> {
    let record = &agent.record;
    let pane = record.pane.as_ref().filter(|_| !record.lifecycle.is_exited())?.id()?;
    Some(DialogPane {
        spawn: record.spawn_id.clone(),
        pane,
        patterns: record.request.dialog_patterns.clone(),
        limit_patterns: record.request.limit_patterns.clone(),
    })
}

/// The flag that `status` shows for a dialog of the agent. `None` if the agent is at no known
/// dialog.
///
/// - `AtDialog`: a hook has reported a dialog, or the screen showed one at the last capture.
/// - `DialogUnknown`: the pane could not be captured, so the agent may be at a dialog. Used only if
///   the agent's profile says how dialogs look on the screen (`dialog_patterns`).
pub(crate) fn dialog_flag(agent: &Agent, check: &DialogCheck) -> Option<MemberFlag> {
    let is_unknown = match check {
        DialogCheck::NotChecked => false,
        DialogCheck::Found(dialogs) => {
            let has_known_dialogs = !agent.record.request.dialog_patterns.is_empty();
            let is_captured = dialogs.contains_key(&agent.record.spawn_id);
            has_known_dialogs && !is_captured && dialog_pane(agent).is_some()
        }
    };
    match agent.dialog_text() {
        Some(_) if !is_unknown || agent.record.hook_state.dialog.is_some() => Some(MemberFlag::AtDialog),
        _ => is_unknown.then_some(MemberFlag::DialogUnknown),
    }
}

/// Compares the dialogs on the captured screens with those of the last capture. A new dialog is
/// logged, and people get a notice, unless a hook has reported a dialog of the agent already. A
/// dialog that is gone is forgotten.
///
/// An agent that has reported something since the capture began is skipped, because its screen may
/// have changed.
pub(crate) fn record_screen_dialogs(
    context: &mut Context,
    screen_dialogs: &BTreeMap<SpawnId, Option<ScreenDialog>>,
) {
    for (id, dialog) in screen_dialogs {
        let agent = context.state.agents.get_mut(id);
        let Some(agent) = agent.filter(|agent| !agent.is_capture_outdated) else { continue };
        let Some(dialog) = dialog else {
            if agent.screen_dialog.is_some() {
                context.state.has_roster_changed |= forget_dialog(agent, &mut context.effects);
            }
            continue;
        };
        let known = agent.screen_dialog.take().filter(|old| is_same_dialog(&old.text, &dialog.text));
        let (is_known, is_new) =
            (known.is_some(), known.is_none() && agent.record.hook_state.dialog.is_none());
        // The screen may say when a usage limit ends, as a time of day such as 3 pm. After 3 pm,
        // the same text would mean 3 pm of the next day. So the end that was read first is kept.
        let limit = known.and_then(|known| known.limit).or_else(|| dialog.limit.clone());
        agent.screen_dialog = Some(ScreenDialog { limit, ..dialog.clone() });
        if !is_known {
            context.effects.extend(update_label(agent));
        }
        if is_new {
            report_dialog(context, id, &dialog.text);
        }
    }
}

/// Whether two texts are of the same dialog. In a narrow pane, the question of a dialog takes
/// several lines, and the text from the screen may lack the first lines. So one text may be the end
/// of the other.
fn is_same_dialog(one: &str, other: &str) -> bool {
    one.ends_with(other) || other.ends_with(one)
}

/// Logs that a program waits at a dialog, and notifies people. A dialog about a usage limit is also
/// logged as a limit.
pub(crate) fn report_dialog(context: &mut Context, id: &SpawnId, text: &str) {
    let Some(agent) = context.state.agents.get(id) else { return };
    let event = EventKind::MemberAtDialog { text: text.to_owned() };
    context.effects.push(Effect::log_member(&agent.record, event));
    let limit = agent.usage_limit();
    context.effects.extend(limit.map(|UsageLimit { until, local_time, .. }| {
        let (until, local_time, reason) = (*until, local_time.clone(), text.to_owned());
        let event = EventKind::MemberLimited { until, local_time, reason, next_turn_at: None };
        Effect::log_member(&agent.record, event)
    }));
    let kind = limit
        .map_or(NoticeKind::AtDialog, |limit| NoticeKind::Limited { local_time: limit.local_time.clone() });
    let pane = agent.record.pane.as_ref().and_then(AgentPane::id);
    let SpawnRequest { team, name, .. } = &*agent.record.request;
    context.state.notices.add(team, name, pane, kind);
}

/// Forgets the dialog of an agent, whether a hook reported it or it was found on the screen.
/// Returns whether the agent's record has changed, so that the roster must be saved.
pub(crate) fn forget_dialog(agent: &mut Agent, effects: &mut Effects) -> bool {
    let had_dialog = agent.dialog_text().is_some();
    agent.forget_screen_dialog();
    // A record is borrowed mutably only if it changes, because a mutable borrow may copy the whole
    // record (see `SharedRecord`).
    let has_changed =
        agent.record.hook_state.dialog.is_some() && agent.record.hook_state.dialog.take().is_some();
    if had_dialog {
        effects.extend(update_label(agent));
    }
    has_changed
}
