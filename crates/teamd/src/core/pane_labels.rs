//! The labels in the borders of panes: name, color and what the member does.

use crate::core::effect::Effect;
use crate::core::jobs::pane_jobs::PaneJob;
use crate::core::roster::agent_record::AgentRecord;
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::state::agent::Agent;
use protocol::control_socket::Activity;
use tmux::BorderLabel;

/// The label of the agent's pane.
pub(crate) fn label(agent: &Agent) -> BorderLabel {
    let state = match (&agent.record.lifecycle, agent.activity) {
        (Lifecycle::Running(_), _) if !agent.open_requests.is_empty() => "needs-answer",
        (Lifecycle::Running(_), _) if agent.dialog_text().is_some() => "at-dialog",
        (Lifecycle::Running(_), Activity::Active) => "active",
        (Lifecycle::Running(_), Activity::Idle) => "idle",
        (lifecycle, _) => lifecycle.as_str(),
    };
    BorderLabel {
        name: agent.record.request.name.to_string(),
        color: color_name(&agent.record),
        state: state.to_owned(),
        task: agent.task_subject.clone().unwrap_or_default(),
    }
}

/// The name of the agent's color. Empty until the registration.
pub(crate) fn color_name(record: &AgentRecord) -> String {
    record.color.map(|color| color.to_string()).unwrap_or_default()
}

/// The effect that updates the label of the pane. `None` without a pane.
pub(crate) fn update_label(agent: &Agent) -> Option<Effect> {
    let pane = agent.record.pane.as_ref()?.id()?;
    Some(Effect::Pane(PaneJob::SetLabel {
        pane,
        owner: agent.record.spawn_id.pane_tag(),
        label: label(agent),
    }))
}
