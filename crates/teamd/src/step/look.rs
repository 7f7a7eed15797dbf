//! Something changed in the config or was missed: whoever may be concerned looks. Events are hints.

use super::{budget, ending, hide, mode, next, requests, stuck, tasks, turn};
use crate::effect::Effect;
use crate::event::Now;
use crate::files::{ConfigSeen, FileJob, Living, Ours};
use crate::state::{Look, Phase, StartStage, State, Team, Watch};
use protocol::error::ErrorReport;
use protocol::event::EventKind;
use protocol::name::TeamName;

/// Where no events arrive they may one day: so often it is tried, ms.
const PROBE_EVERY: u64 = 30_000;
/// So long the watcher may be in saying that it watches, until all is looked at without it, ms.
const UNSAID: u64 = 2_000;
/// Between two looks at everything, ms: whoever makes directories in a loop would have one for each.
const LOOKS_APART: u64 = 100;

/// A foreign writer may have dropped a living member, or left the file damaged: that is put back, and so is
/// which panes are hidden. Or it said there what it does.
/// A storm of changes becomes one look, and one more after it: each takes as long as the team has members.
pub(super) fn config(state: &mut State, team: &TeamName, out: &mut Vec<Effect>) {
    if team.is_claude_session() {
        if !state.sessions.contains_key(team) {
            session(state, team.clone(), out);
        }
        return;
    }
    if state.teams.get_mut(team).is_some_and(|known| known.checking.is_due()) {
        check(state, team, out);
    }
}

fn check(state: &State, team: &TeamName, out: &mut Vec<Effect>) {
    let members = state.members(team);
    let living = members.iter().filter(|agent| is_registered(&agent.phase));
    let living = living.map(|agent| Living { record: agent.record.clone(), activity: agent.activity });
    let ours = Ours {
        living: living.collect(),
        names: members.iter().map(|agent| agent.record.name.clone()).collect(),
    };
    out.push(Effect::File(FileJob::Config { team: team.clone(), ours }));
    out.extend(hide::note_where_hidden(state, team));
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
    let again =
        state.teams.get_mut(team).is_some_and(|known| std::mem::take(&mut known.checking) == Look::Again);
    for (name, activity) in turn::news(state, team, &seen.active) {
        if seen.mended.is_none() {
            turn::said(state, team, &name, activity, now, out);
        }
    }
    if seen.members_back || seen.mended.is_some() {
        // What a member had asked was nobody's question while it was not there.
        requests::look(state, team, out);
    }
    mode::are(state, team, &seen.modes);
    if let Some(why) = seen.mended {
        out.push(Effect::of_team(team, EventKind::Error { message: why }));
        ending::in_order_again(state, out);
    }
    if again {
        config(state, team, out);
    }
}

/// Events arrive here, so the rescan need not be quick.
pub(super) fn watch_proven(state: &mut State, now: Now) {
    if state.watch != Watch::Blind {
        state.watch = Watch::Events;
        put_off(state, now);
    }
}

/// The next look is the regular one, unless one is due soon.
fn put_off(state: &mut State, now: Now) {
    let soon = state.looked_at.map_or(0, |last| last + LOOKS_APART);
    if state.rescan_at > soon {
        state.rescan_at = now.mono + state.watch.rescan_every();
    }
}

/// Events of some directory do not arrive: until all can be watched again, files are looked at.
pub(super) fn unwatched(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    next::missed(state, out);
    state.watch = Watch::Blind;
    state.rescan_at = state.rescan_at.min(now.mono + state.watch.rescan_every());
}

/// What was watched is not what is there now. Where that can't be had, or is another daemon's, the agents go on, and
/// this daemon ends.
pub(super) fn root(state: &mut State, opened: Result<(), ErrorReport>, now: Now, out: &mut Vec<Effect>) {
    let shown = state.setting.root.display().to_string();
    match opened {
        Ok(()) => {
            let why = format!("directories of {shown} were removed or moved away: opened anew");
            out.extend([Effect::of_daemon(EventKind::Error { message: why }), Effect::WatchRoot]);
            (state.watch, state.probe_at) = (Watch::Rescan, now.mono);
            missed(state, now, out);
        }
        Err(fault) => {
            let why = format!("{shown} was removed or moved away; the agents go on; {}", fault.message);
            out.extend([Effect::of_daemon(EventKind::DaemonStopped { reason: why }), Effect::Exit]);
            state.lost = Some(fault);
        }
    }
}

/// Something happened that no event tells of.
pub(super) fn missed(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    next::missed(state, out);
    soon(state, now, out);
}

/// A look at everything, now, or soon after the last one.
fn soon(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    match state.looked_at.map(|last| last + LOOKS_APART).filter(|next| *next > now.mono) {
        Some(next) => state.rescan_at = state.rescan_at.min(next),
        None => everywhere(state, now, out),
    }
}

/// The named rescan.
pub(super) fn everywhere(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    state.looked_at = Some(now.mono);
    state.rescan_at = now.mono + UNSAID;
    // What can't be watched is told before the probe can be.
    let probe = state.watch != Watch::Events && now.mono >= state.probe_at;
    match arm(state, probe, out) {
        true if probe => (state.watch, state.probe_at) = (Watch::Rescan, now.mono + PROBE_EVERY),
        true => {}
        // Nobody has said so since the last look: what is there is looked at meanwhile.
        false => look(state, out),
    }
    out.push(Effect::WatchLives);
    ending::in_order_again(state, out);
    out.extend(hide::note_all(state));
    out.extend(hide::look(state));
    stuck::look(state, now, out);
    budget::look_again(state, now, out);
    requests::look_again(state, out);
    // Whoever was woken and did not move: the next look offers to others.
    state.agents.values_mut().for_each(|agent| agent.offered = None);
    state.watched().iter().for_each(|team| tasks::again(state, team, out));
}

/// All is watched before anybody looks what is there, so that nothing is missed in between. One at a time: in a storm of
/// changes the watcher is long in saying so. True where it is asked now.
pub(super) fn arm(state: &mut State, probe: bool, out: &mut Vec<Effect>) -> bool {
    let due = state.arming.is_due();
    if due {
        // A directory that was made anew needs a new watch; for the others it changes nothing.
        let teams = state.watched().into_iter().chain(std::mem::take(&mut state.newcomers));
        out.extend(teams.map(|team| Effect::WatchTeam { team }));
        out.push(Effect::SayWatched { probe });
    }
    due
}

/// At what is there now.
fn look(state: &State, out: &mut Vec<Effect>) {
    out.push(Effect::File(FileJob::Rescan { teams: state.watched() }));
    out.push(Effect::File(FileJob::Sessions));
}

/// Nothing is missed from now on.
pub(super) fn watched(state: &mut State, probe: bool, now: Now, out: &mut Vec<Effect>) {
    out.extend(probe.then_some(Effect::File(FileJob::Probe)));
    look(state, out);
    put_off(state, now);
    if std::mem::take(&mut state.arming) == Look::Again {
        soon(state, now, out);
    }
}

/// A directory of a session, which is there before its config, by which it is known.
pub(super) fn session(state: &mut State, team: TeamName, out: &mut Vec<Effect>) {
    state.newcomers.insert(team);
    arm(state, false, out);
}

/// The teams of Claude Code's sessions that are there now.
pub(super) fn sessions(state: &mut State, there: &[TeamName], out: &mut Vec<Effect>) {
    let gone: Vec<TeamName> = state.sessions.keys().filter(|team| !there.contains(team)).cloned().collect();
    for team in gone {
        next::forget(state, &team, out);
        state.sessions.remove(&team);
        out.push(Effect::UnwatchTeam { team });
    }
    let mut is_new = false;
    for team in there {
        if !state.sessions.contains_key(team) {
            let told = state.told_before.tasks.remove(team).unwrap_or_default();
            let told_asked = state.told_before.requests.remove(team).unwrap_or_default();
            state.sessions.insert(team.clone(), Team { told, told_asked, ..Team::default() });
            tasks::again(state, team, out);
            is_new = true;
        }
    }
    if is_new {
        // Mail that came before its directory was watched.
        arm(state, false, out);
    }
}
