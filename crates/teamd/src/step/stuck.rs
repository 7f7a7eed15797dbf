//! Whoever is in a turn, and has written nothing for long: told once for each turn, whoever the daemon is. Looked for with
//! the rescan, since silence is no event. A machine that sleeps makes nobody silent.

use crate::effect::Effect;
use crate::event::Now;
use crate::files::FileJob;
use crate::notices::News;
use crate::roster::{Pane, SpawnId};
use crate::state::{Agent, Phase, State};
use protocol::control::Activity;
use protocol::event::EventKind;

/// Asks when those have written last whose turns are that long.
pub(super) fn look(state: &State, now: Now, out: &mut Vec<Effect>) {
    let Some(patience) = state.setting.stuck_after else { return };
    let awake = state.awake.since();
    let is_long = |agent: &&Agent| may_be(agent) && for_ms(agent.since.max(awake), now) >= patience;
    let quiet = state.agents.values().filter(is_long);
    let log = |agent: &Agent| state.setting.log_of(&agent.record.team, &agent.record.name);
    let logs: Vec<_> = quiet.map(|agent| (agent.record.spawn.clone(), log(agent))).collect();
    if !logs.is_empty() {
        out.push(Effect::File(FileJob::Written { logs }));
    }
}

/// `written`: when its output grew last, ms since the epoch.
pub(super) fn seen(state: &mut State, written: Vec<(SpawnId, u64)>, now: Now, out: &mut Vec<Effect>) {
    let Some(patience) = state.setting.stuck_after else { return };
    for (id, at) in written {
        let Some(agent) = state.agents.get_mut(&id).filter(|agent| may_be(agent)) else { continue };
        let quiet_ms = for_ms(agent.since.max(at).max(state.awake.since()), now);
        if quiet_ms >= patience {
            agent.record.stuck = Some(agent.since);
            state.dirty = true;
            out.push(Effect::of_agent(&agent.record, EventKind::MemberNoOutput { no_output_ms: quiet_ms }));
            let (record, pane) = (&agent.record, agent.record.pane.as_ref().and_then(Pane::id));
            state.notices.add(&record.team, &record.name, pane, News::Stuck(quiet_ms));
        }
    }
}

/// In a turn that somebody has told of, and that waits for nobody. A join that has not come back yet tells of its later.
fn may_be(agent: &Agent) -> bool {
    let told_of = agent.turn.is_some() || agent.has_said;
    let waits = !agent.asks.is_empty() || agent.record.heard.dialog.is_some();
    let runs = matches!(agent.phase, Phase::Running(_)) && agent.activity == Activity::Active;
    runs && told_of && !waits && agent.record.stuck != Some(agent.since)
}

fn for_ms(since: u64, now: Now) -> u64 {
    now.wall.saturating_sub(since)
}
