//! Reports turns without output, once for each turn. Each rescan looks for such turns, because
//! missing output causes no event. When the machine wakes from sleep, the time without output
//! begins anew.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::effect::Effect;
use crate::core::event_time::Now;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::notifications_to_people::notice::NoticeKind;
use crate::core::roster::agent_record::AgentPane;
use crate::core::state::agent::Agent;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{Activity, Backend};
use protocol::event_log_line::EventKind;

/// Asks the files thread when the output logs of agents in long turns last grew.
pub(crate) fn check_turns_without_output(context: &mut Context) {
    let Some(limit_ms) = context.state.settings.no_output_after_ms else { return };
    let awake_since = context.state.sleep_clock.awake_since();
    let is_long = |agent: &&Agent| {
        let is_due = elapsed_ms(agent.activity_since.max(awake_since), context.now) >= limit_ms;
        can_lack_output(agent) && (is_due || agent.quiet_turn.is_some())
    };
    let agents = context.state.agents.values().filter(is_long);
    let log_path = |agent: &Agent| {
        context.state.settings.output_log(&agent.record.request.team, &agent.record.request.name)
    };
    let logs: Vec<_> = agents.map(|agent| (agent.record.spawn_id.clone(), log_path(agent))).collect();
    if !logs.is_empty() {
        context.effects.push(Effect::File(FileJob::ReadOutputTimes { logs }));
    }
}

/// Marks the turns that have had no output for too long, and reports each of them once. `times`
/// says when the output log of each agent last grew, in milliseconds since the epoch.
pub(crate) fn handle_output_times(context: &mut Context, times: Vec<(SpawnId, u64)>) {
    let Some(limit_ms) = context.state.settings.no_output_after_ms else { return };
    for (id, written_at) in times {
        let awake_since = context.state.sleep_clock.awake_since();
        let Some(agent) = context.state.agents.get_mut(&id).filter(|agent| can_lack_output(agent)) else {
            continue;
        };
        let quiet_ms = elapsed_ms(agent.activity_since.max(written_at).max(awake_since), context.now);
        agent.quiet_turn = (quiet_ms >= limit_ms).then_some(agent.activity_since);
        if agent.quiet_turn.is_some() && agent.record.no_output_turn != agent.quiet_turn {
            report_quiet_turn(context, &id, quiet_ms);
        }
    }
}

fn report_quiet_turn(context: &mut Context, id: &SpawnId, quiet_ms: u64) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    agent.record.no_output_turn = agent.quiet_turn;
    context.state.has_roster_changed = true;
    let event = EventKind::MemberNoOutput { no_output_ms: quiet_ms };
    context.effects.push(Effect::log_member(&agent.record, event));
    let (record, pane) = (&agent.record, agent.record.pane.as_ref().and_then(AgentPane::id));
    let notice = NoticeKind::NoOutput(quiet_ms);
    context.state.notices.add(&record.request.team, &record.request.name, pane, notice);
}

/// Whether the agent is in a turn that has had no output for too long. Its program may then wait
/// for a person.
pub(crate) fn is_quiet(agent: &Agent) -> bool {
    can_lack_output(agent) && agent.quiet_turn == Some(agent.activity_since)
}

/// Whether missing output of the agent is worth a report. The agent must be in a turn, and must not
/// wait for an answer to a request or at a dialog. After a restart of the daemon, false until the
/// shim, a hook or the agent has reported the turn again. Always false in iTerm2, where the output
/// is not logged.
fn can_lack_output(agent: &Agent) -> bool {
    let is_turn_known = agent.turn.is_some() || agent.has_reported_activity;
    let waits = !agent.open_requests.is_empty() || agent.dialog_text().is_some();
    let runs = agent.record.lifecycle.is_running() && agent.activity == Activity::Active;
    let has_log = agent.record.request.backend != Backend::Iterm2;
    runs && is_turn_known && !waits && has_log
}

fn elapsed_ms(since: u64, now: Now) -> u64 {
    now.wall.saturating_sub(since)
}
