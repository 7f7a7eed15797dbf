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
    /// The dialog that each agent's pane shows, as text. Panes that could not be captured are
    /// missing.
    Found(BTreeMap<SpawnId, Option<String>>),
}

/// The panes to capture, including hidden ones.
pub(crate) fn dialog_panes(state: &State) -> Vec<DialogPane> {
    state.agents.values().filter_map(dialog_pane).collect()
}

fn dialog_pane(agent: &Agent) -> Option<DialogPane> {
    let record = &agent.record;
    let known = !record.request.dialog_patterns.is_empty() && !agent.record.lifecycle.is_exited();
    let pane = record.pane.as_ref().filter(|_| known)?.id()?;
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
            !open.contains_key(&agent.record.spawn_id) && dialog_pane(agent).is_some()
        }
    };
    match agent.dialog_text() {
        Some(_) if !is_unknown || agent.record.hook_state.dialog.is_some() => Some(MemberFlag::AtDialog),
        _ => is_unknown.then_some(MemberFlag::DialogUnknown),
    }
}

/// Records what the screens show, and reports each new dialog once. An agent that has gone on since
/// its screen was captured is left out.
pub(crate) fn record_screen_dialogs(
    context: &mut Context,
    screen_dialogs: &BTreeMap<SpawnId, Option<String>>,
) {
    for (id, text) in screen_dialogs {
        let Some(agent) = context.state.agents.get_mut(id).filter(|agent| !agent.has_gone_on) else {
            continue;
        };
        let is_new = agent.screen_dialog != *text && agent.record.hook_state.dialog.is_none();
        if text.is_none() && agent.screen_dialog.is_some() {
            context.state.has_roster_changed |= forget_dialog(agent, &mut context.effects);
        } else if agent.screen_dialog != *text {
            agent.screen_dialog.clone_from(text);
            context.effects.extend(update_label(agent));
        }
        if let (true, Some(text)) = (is_new, text) {
            report_dialog(context, id, text);
        }
    }
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

/// Forgets the dialog of an agent that goes on. Returns whether the record has changed.
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
