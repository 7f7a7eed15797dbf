//! Something changed in the config or was missed: whoever may be concerned looks. Events are hints.

use super::{ending, tasks};
use crate::effect::Effect;
use crate::event::Now;
use crate::files::FileJob;
use crate::state::{Phase, State, Watch};
use protocol::name::TeamName;

/// A foreign writer may have dropped a living member: it is put back.
pub(super) fn config(state: &mut State, team: &TeamName, out: &mut Vec<Effect>) {
    let living: Vec<_> = state
        .members(team)
        .into_iter()
        .filter(|agent| matches!(agent.phase, Phase::Running(_) | Phase::Stopping(..)))
        .map(|agent| agent.record.clone())
        .collect();
    if !living.is_empty() {
        out.push(Effect::File(FileJob::Repair { team: team.clone(), living }));
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
    // Whoever was woken and did not move: the next look offers to others.
    state.agents.values_mut().for_each(|agent| agent.offered = None);
    let teams: Vec<TeamName> = state.teams.keys().cloned().collect();
    teams.iter().for_each(|team| tasks::again(state, team, out));
    state.dirty |= std::mem::take(&mut state.unsaved);
}
