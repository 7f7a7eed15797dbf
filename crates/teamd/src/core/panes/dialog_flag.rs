//! Dialogs at which members' programs wait, as hooks report them and screens show them: the flag in
//! `status`, the label of the pane, the event and the notice.

use crate::core::context::Context;
use crate::core::effect::{Effect, Effects};
use crate::core::id::SpawnId;
use crate::core::jobs::pane_jobs::DialogPane;
use crate::core::notice_queue::NoticeKind;
use crate::core::pane_labels::update_label;
use crate::core::roster::record::AgentPane;
use crate::core::state::agent::Agent;
use crate::core::state::daemon::State;
use protocol::control::{MemberFlag, SpawnRequest};
use protocol::event::EventKind;
use std::collections::BTreeMap;

/// The result of looking for dialogs on screens.
pub(crate) enum DialogCheck {
    /// The screens were not captured.
    NotChecked,
    /// For each captured pane, what its dialog asks; `None` if the screen shows no dialog. A pane that
    /// could not be captured has no entry.
    Found(BTreeMap<SpawnId, Option<String>>),
}

/// The panes to capture, including hidden ones and those of programs without known dialogs: such a
/// program may start git or ssh, which ask on the terminal.
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
    })
}

/// The status flag for a dialog, which a hook reported or the screen showed.
pub(crate) fn dialog_flag(agent: &Agent, check: &DialogCheck) -> Option<MemberFlag> {
    let is_unknown = match check {
        DialogCheck::NotChecked => false,
        DialogCheck::Found(open) => {
            let is_expected = !agent.record.request.dialog_patterns.is_empty();
            is_expected && !open.contains_key(&agent.record.spawn_id) && dialog_pane(agent).is_some()
        }
    };
    match agent.dialog_text() {
        Some(_) if !is_unknown || agent.record.hook_state.dialog.is_some() => Some(MemberFlag::AtDialog),
        _ => is_unknown.then_some(MemberFlag::DialogUnknown),
    }
}

/// Records what the screens show, and reports each new dialog once. Leaves out agents for which the
/// capture is out of date.
///
/// The dialog of an agent is forgotten when a hook reports the start or end of a turn, when a hook
/// starts a long poll, and when the screen no longer shows the dialog that it showed before. A change
/// of the activity forgets only the dialog on the screen.
pub(crate) fn record_screen_dialogs(
    context: &mut Context,
    screen_dialogs: &BTreeMap<SpawnId, Option<String>>,
) {
    for (id, text) in screen_dialogs {
        let agent = context.state.agents.get_mut(id);
        let Some(agent) = agent.filter(|agent| !agent.is_capture_outdated) else { continue };
        let Some(text) = text else {
            if agent.screen_dialog.is_some() {
                context.state.has_roster_changed |= forget_dialog(agent, &mut context.effects);
            }
            continue;
        };
        let is_known = agent.screen_dialog.as_ref().is_some_and(|known| is_same_dialog(known, text));
        let is_new = !is_known && agent.record.hook_state.dialog.is_none();
        agent.screen_dialog = Some(text.clone());
        if !is_known {
            context.effects.extend(update_label(agent));
        }
        if is_new {
            report_dialog(context, id, text);
        }
    }
}

/// Whether two texts are of one dialog: a narrower pane wraps its question, so that a text can lack the
/// beginning of the other.
fn is_same_dialog(one: &str, other: &str) -> bool {
    one.ends_with(other) || other.ends_with(one)
}

/// Logs that a program waits at a dialog, and notifies people.
pub(crate) fn report_dialog(context: &mut Context, id: &SpawnId, text: &str) {
    let Some(agent) = context.state.agents.get(id) else { return };
    let event = EventKind::MemberAtDialog { text: text.to_owned() };
    context.effects.push(Effect::log_member(&agent.record, event));
    let pane = agent.record.pane.as_ref().and_then(AgentPane::id);
    let SpawnRequest { team, name, .. } = &*agent.record.request;
    context.state.notices.add(team, name, pane, NoticeKind::AtDialog);
}

/// Forgets the dialogs that a hook and the screen have shown. Returns whether the record has changed.
pub(crate) fn forget_dialog(agent: &mut Agent, effects: &mut Effects) -> bool {
    let had_dialog = agent.dialog_text().is_some();
    agent.forget_screen_dialog();
    // Writing to a record copies it while the files thread saves it. So a record without a dialog
    // is not written.
    let has_changed =
        agent.record.hook_state.dialog.is_some() && agent.record.hook_state.dialog.take().is_some();
    if had_dialog {
        effects.extend(update_label(agent));
    }
    has_changed
}
