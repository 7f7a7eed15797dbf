//! Something changed in the config or was missed: whoever may be concerned looks. Events are hints.

use super::{ending, requests, tasks, turn};
use crate::effect::Effect;
use crate::event::Now;
use crate::files::{ConfigSeen, FileJob, Living, Ours};
use crate::state::{Phase, StartStage, State, Watch};
use protocol::control::Activity;
use protocol::event::What;
use protocol::name::TeamName;

/// A foreign writer may have dropped a living member, or left the file damaged: that is put back. Or it said there
/// what it does.
pub(super) fn config(state: &State, team: &TeamName, out: &mut Vec<Effect>) {
    if !state.teams.contains_key(team) {
        return;
    }
    let members = state.members(team);
    let living = members.iter().filter(|agent| is_registered(&agent.phase));
    let living = living.map(|agent| Living { record: agent.record.clone(), activity: agent.activity });
    let ours = Ours {
        living: living.collect(),
        names: members.iter().map(|agent| agent.record.name.clone()).collect(),
    };
    out.push(Effect::File(FileJob::Config { team: team.clone(), ours }));
}

fn is_registered(phase: &Phase) -> bool {
    match phase {
        Phase::Starting(starting) => starting.stage == StartStage::Going,
        Phase::Running(_) | Phase::Stopping(..) => true,
        Phase::Gone(_) => false,
    }
}

/// What config.json says; whoever could not be taken off while it was damaged is taken off now.
pub(super) fn config_seen(
    state: &mut State,
    team: &TeamName,
    seen: ConfigSeen,
    now: Now,
    out: &mut Vec<Effect>,
) {
    for (name, active) in &seen.active {
        let activity = if *active { Activity::Active } else { Activity::Idle };
        turn::wrote(state, team, name, activity, now, out);
    }
    if let Some(why) = seen.mended {
        out.push(Effect::of_team(team, What::Trouble { why }));
        ending::file_again(state, out);
    }
}

/// Events arrive here, so the rescan need not be quick.
pub(super) fn watch_proven(state: &mut State, now: Now) {
    state.watch = Watch::Events;
    state.rescan_at = now.mono + state.watch.rescan_every();
}

/// The named rescan; also after the watcher lost events.
pub(super) fn everywhere(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    state.rescan_at = now.mono + state.watch.rescan_every();
    // A directory that was made anew needs a new watch; for the others it changes nothing.
    out.extend(state.teams.keys().map(|team| Effect::WatchTeam { team: team.clone() }));
    out.push(Effect::File(FileJob::Rescan { teams: state.teams.keys().cloned().collect() }));
    out.push(Effect::WatchLives);
    ending::file_again(state, out);
    requests::look_again(state, out);
    // Whoever was woken and did not move: the next look offers to others.
    state.agents.values_mut().for_each(|agent| agent.offered = None);
    let teams: Vec<TeamName> = state.teams.keys().cloned().collect();
    teams.iter().for_each(|team| tasks::again(state, team, out));
    state.dirty |= std::mem::take(&mut state.unsaved);
}
