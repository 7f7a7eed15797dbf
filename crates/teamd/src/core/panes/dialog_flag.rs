//! Dialogs on the screens of members, and the flag that `status` shows for them.

use crate::core::id::SpawnId;
use crate::core::jobs::pane_jobs::DialogPane;
use crate::core::state::agent::Agent;
use crate::core::state::daemon::State;
use protocol::control::MemberFlag;
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

/// What the dialog asks that a hook reported or the screen shows. `None` without a dialog.
pub(crate) fn dialog_text(agent: &Agent, dialogs: &DialogCheck) -> Option<String> {
    let DialogCheck::Found(open) = dialogs else { return agent.record.hook_state.dialog.clone() };
    let shown = || open.get(&agent.record.spawn_id).cloned().flatten();
    agent.record.hook_state.dialog.clone().or_else(shown)
}

/// The status flag for a dialog, which a hook reported or the screen shows.
pub(crate) fn dialog_flag(agent: &Agent, dialogs: &DialogCheck) -> Option<MemberFlag> {
    if agent.record.hook_state.dialog.is_some() {
        return Some(MemberFlag::AtDialog);
    }
    let DialogCheck::Found(open) = dialogs else { return None };
    match open.get(&agent.record.spawn_id) {
        Some(open) => open.as_ref().map(|_| MemberFlag::AtDialog),
        None => dialog_pane(agent).map(|_| MemberFlag::DialogUnknown),
    }
}
