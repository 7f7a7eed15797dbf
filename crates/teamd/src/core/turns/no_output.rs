//! Reports turns without output, once for each turn. Each rescan looks for such turns, because
//! missing output causes no event. The time in which the machine slept does not count.

use crate::core::context::Context;
use crate::core::effect::Effect;
use crate::core::event_time::Now;
use crate::core::id::SpawnId;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::notice_queue::NoticeKind;
use crate::core::roster::record::AgentPane;
use crate::core::state::agent::Agent;
use protocol::control::Activity;
use protocol::event::EventKind;

/// Asks the files thread when the output logs of agents in long turns last grew.
pub(crate) fn check_turns_without_output(context: &mut Context) {
    let Some(patience) = context.state.settings.no_output_after_ms else { return };
    let awake = context.state.sleep_clock.awake_since();
    let is_long = |agent: &&Agent| {
        can_lack_output(agent) && elapsed_ms(agent.activity_since.max(awake), context.now) >= patience
    };
    let quiet = context.state.agents.values().filter(is_long);
    let log = |agent: &Agent| {
        context.state.settings.output_log(&agent.record.request.team, &agent.record.request.name)
    };
    let logs: Vec<_> = quiet.map(|agent| (agent.record.spawn_id.clone(), log(agent))).collect();
    if !logs.is_empty() {
        context.effects.push(Effect::File(FileJob::ReadOutputTimes { logs }));
    }
}

/// Reports the turns that have had no output for too long. `written` says when the output log of
/// each agent last grew, in milliseconds since the epoch.
pub(crate) fn handle_output_times(context: &mut Context, written: Vec<(SpawnId, u64)>) {
    let Some(patience) = context.state.settings.no_output_after_ms else { return };
    for (id, at) in written {
        let Some(agent) = context.state.agents.get_mut(&id).filter(|agent| can_lack_output(agent)) else {
            continue;
        };
        let quiet_ms = elapsed_ms(
            agent.activity_since.max(at).max(context.state.sleep_clock.awake_since()),
            context.now,
        );
        if quiet_ms >= patience {
            agent.record.no_output_turn = Some(agent.activity_since);
            context.state.has_roster_changed = true;
            context.effects.push(Effect::log_member(
                &agent.record,
                EventKind::MemberNoOutput { no_output_ms: quiet_ms },
            ));
            let (record, pane) = (&agent.record, agent.record.pane.as_ref().and_then(AgentPane::id));
            context.state.notices.add(
                &record.request.team,
                &record.request.name,
                pane,
                NoticeKind::NoOutput(quiet_ms),
            );
        }
    }
}

/// Whether missing output of the agent must be reported: the agent waits for no answer, and is in a
/// turn that was not reported yet for missing output. After a restart of the daemon, nothing is
/// reported until the shim, a hook or the agent has reported the turn again.
fn can_lack_output(agent: &Agent) -> bool {
    let told_of = agent.turn.is_some() || agent.has_reported_activity;
    let waits = !agent.open_requests.is_empty() || agent.record.hook_state.dialog.is_some();
    let runs = agent.record.lifecycle.is_running() && agent.activity == Activity::Active;
    runs && told_of && !waits && agent.record.no_output_turn != Some(agent.activity_since)
}

fn elapsed_ms(since: u64, now: Now) -> u64 {
    now.wall.saturating_sub(since)
}
