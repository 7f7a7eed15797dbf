//! Something changed in the config or was missed: whoever may be concerned looks. Events are hints.

use crate::core::approvals;
use crate::core::effect::Effect;
use crate::core::event::Now;
use crate::core::jobs::files::{ConfigSnapshot, FileJob, RegisteredMember, RosterMembers};
use crate::core::lifecycle::{Lifecycle, StartStage};
use crate::core::members::{exit, permission_mode};
use crate::core::panes::visibility;
use crate::core::state::daemon::State;
use crate::core::state::settings::WatcherState;
use crate::core::state::team::{ScanState, TeamState};
use crate::core::tasks::{next_task, task_list};
use crate::core::teams::budget;
use crate::core::turns::{activity, no_output};
use protocol::error::ErrorReport;
use protocol::event::EventKind;
use protocol::name::TeamName;

/// Where no events arrive they may one day: so often it is tried, ms.
const PROBE_INTERVAL: u64 = 30_000;
/// So long the watcher may be in saying that it watches, until all is looked at without it, ms.
const WATCH_CONFIRM_TIMEOUT: u64 = 2_000;
/// Between two looks at everything, ms: whoever makes directories in a loop would have one for each.
const MIN_RESCAN_INTERVAL: u64 = 100;

/// A foreign writer may have dropped a living member, or left the file damaged: that is put back, and so is
/// which panes are hidden. Or it said there what it does.
/// A storm of changes becomes one look, and one more after it: each takes as long as the team has members.
pub(crate) fn schedule_config_scan(state: &mut State, team: &TeamName, out: &mut Vec<Effect>) {
    if team.is_claude_session() {
        if !state.session_teams.contains_key(team) {
            watch_session_team(state, team.clone(), out);
        }
        return;
    }
    if state.teams.get_mut(team).is_some_and(|known| known.config_scan.try_start()) {
        scan_config(state, team, out);
    }
}

fn scan_config(state: &State, team: &TeamName, out: &mut Vec<Effect>) {
    let members = state.members(team);
    let living = members.iter().filter(|agent| is_registered(&agent.lifecycle));
    let living =
        living.map(|agent| RegisteredMember { record: agent.record.clone(), activity: agent.activity });
    let ours = RosterMembers {
        registered: living.collect(),
        all_names: members.iter().map(|agent| agent.record.name.clone()).collect(),
    };
    out.push(Effect::File(FileJob::CheckConfig { team: team.clone(), members: ours }));
    out.extend(visibility::restore_hidden_panes(state, team));
}

fn is_registered(phase: &Lifecycle) -> bool {
    match phase {
        Lifecycle::Starting(starting) => starting.stage == StartStage::Launching,
        Lifecycle::Running(_) | Lifecycle::Stopping(..) => true,
        Lifecycle::Gone(_) => false,
    }
}

/// What config.json says; whoever could not be taken off while it was damaged is taken off now.
pub(crate) fn handle_config_checked(
    state: &mut State,
    team: &TeamName,
    seen: ConfigSnapshot,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let again = state
        .teams
        .get_mut(team)
        .is_some_and(|known| std::mem::take(&mut known.config_scan) == ScanState::RunningRescanNeeded);
    for (name, activity) in activity::config_activity_changes(state, team, &seen.activities) {
        if seen.repaired.is_none() {
            activity::apply_config_activity(state, team, &name, activity, now, out);
        }
    }
    if seen.has_restored_members || seen.repaired.is_some() {
        // What a member had asked was nobody's question while it was not there.
        approvals::schedule_request_scan(state, team, out);
    }
    permission_mode::store_config_modes(state, team, &seen.modes);
    if let Some(why) = seen.repaired {
        out.push(Effect::log_team(team, EventKind::Error { message: why }));
        exit::retry_failed_cleanups(state, out);
    }
    if again {
        schedule_config_scan(state, team, out);
    }
}

/// Events arrive here, so the rescan need not be quick.
pub(crate) fn handle_probe_seen(state: &mut State, now: Now) {
    if state.watcher_state != WatcherState::Failed {
        state.watcher_state = WatcherState::Active;
        postpone_rescan(state, now);
    }
}

/// The next look is the regular one, unless one is due soon.
fn postpone_rescan(state: &mut State, now: Now) {
    let soon = state.last_rescan.map_or(0, |last| last + MIN_RESCAN_INTERVAL);
    if state.rescan_at > soon {
        state.rescan_at = now.mono + state.watcher_state.rescan_interval_ms();
    }
}

/// Events of some directory do not arrive: until all can be watched again, files are looked at.
pub(crate) fn handle_watch_failed(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    next_task::answer_all_unknown(state, out);
    state.watcher_state = WatcherState::Failed;
    state.rescan_at = state.rescan_at.min(now.mono + state.watcher_state.rescan_interval_ms());
}

/// What was watched is not what is there now. Where that can't be had, or is another daemon's, the agents go on, and
/// this daemon ends.
pub(crate) fn handle_root_reopened(
    state: &mut State,
    opened: Result<(), ErrorReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let shown = state.settings.root.display().to_string();
    match opened {
        Ok(()) => {
            let why = format!("directories of {shown} were removed or moved away: opened anew");
            out.extend([Effect::log_daemon(EventKind::Error { message: why }), Effect::WatchRoot]);
            (state.watcher_state, state.probe_at) = (WatcherState::Unproven, now.mono);
            handle_overflow(state, now, out);
        }
        Err(fault) => {
            let why = format!("{shown} was removed or moved away; the agents go on; {}", fault.message);
            out.extend([Effect::log_daemon(EventKind::DaemonStopped { reason: why }), Effect::Exit]);
            state.root_error = Some(fault);
        }
    }
}

/// Something happened that no event tells of.
pub(crate) fn handle_overflow(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    next_task::answer_all_unknown(state, out);
    rescan_soon(state, now, out);
}

/// A look at everything, now, or soon after the last one.
fn rescan_soon(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    match state.last_rescan.map(|last| last + MIN_RESCAN_INTERVAL).filter(|next| *next > now.mono) {
        Some(next) => state.rescan_at = state.rescan_at.min(next),
        None => rescan_all(state, now, out),
    }
}

/// The named rescan.
pub(crate) fn rescan_all(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    state.last_rescan = Some(now.mono);
    state.rescan_at = now.mono + WATCH_CONFIRM_TIMEOUT;
    // What can't be watched is told before the probe can be.
    let probe = state.watcher_state != WatcherState::Active && now.mono >= state.probe_at;
    match request_watches(state, probe, out) {
        true if probe => {
            (state.watcher_state, state.probe_at) = (WatcherState::Unproven, now.mono + PROBE_INTERVAL);
        }
        true => {}
        // Nobody has said so since the last look: what is there is looked at meanwhile.
        false => scan_files(state, out),
    }
    out.push(Effect::RetryProcessWatches);
    exit::retry_failed_cleanups(state, out);
    out.extend(visibility::write_all_hidden_panes(state));
    out.extend(visibility::check_hidden_panes(state));
    no_output::check_turns_without_output(state, now, out);
    budget::check_time_limits(state, now, out);
    approvals::schedule_all_request_scans(state, out);
    // Whoever was woken and did not move: the next look offers to others.
    state.agents.values_mut().for_each(|agent| agent.offered_task = None);
    state.team_names().iter().for_each(|team| task_list::schedule_task_scan(state, team, out));
}

/// All is watched before anybody looks what is there, so that nothing is missed in between. One at a time: in a storm of
/// changes the watcher is long in saying so. True where it is asked now.
pub(crate) fn request_watches(state: &mut State, probe: bool, out: &mut Vec<Effect>) -> bool {
    let due = state.watch_setup.try_start();
    if due {
        // A directory that was made anew needs a new watch; for the others it changes nothing.
        let teams = state.team_names().into_iter().chain(std::mem::take(&mut state.new_directories));
        out.extend(teams.map(|team| Effect::WatchTeam { team }));
        out.push(Effect::ConfirmWatches { is_probe: probe });
    }
    due
}

/// At what is there now.
fn scan_files(state: &State, out: &mut Vec<Effect>) {
    out.push(Effect::File(FileJob::RescanFiles { teams: state.team_names() }));
    out.push(Effect::File(FileJob::ListSessionTeams));
}

/// Nothing is missed from now on.
pub(crate) fn handle_watches_added(state: &mut State, probe: bool, now: Now, out: &mut Vec<Effect>) {
    out.extend(probe.then_some(Effect::File(FileJob::ProbeWatcher)));
    scan_files(state, out);
    postpone_rescan(state, now);
    if std::mem::take(&mut state.watch_setup) == ScanState::RunningRescanNeeded {
        rescan_soon(state, now, out);
    }
}

/// A directory of a session, which is there before its config, by which it is known.
pub(crate) fn watch_session_team(state: &mut State, team: TeamName, out: &mut Vec<Effect>) {
    state.new_directories.insert(team);
    request_watches(state, false, out);
}

/// The teams of Claude Code's sessions that are there now.
pub(crate) fn handle_session_teams(state: &mut State, there: &[TeamName], out: &mut Vec<Effect>) {
    let gone: Vec<TeamName> =
        state.session_teams.keys().filter(|team| !there.contains(team)).cloned().collect();
    for team in gone {
        next_task::drop_team_queries(state, &team, out);
        state.session_teams.remove(&team);
        out.push(Effect::UnwatchTeam { team });
    }
    let mut is_new = false;
    for team in there {
        if !state.session_teams.contains_key(team) {
            let told = state.previous_cursor.tasks.remove(team).unwrap_or_default();
            let told_asked = state.previous_cursor.requests.remove(team).unwrap_or_default();
            state.session_teams.insert(
                team.clone(),
                TeamState { logged_tasks: told, logged_requests: told_asked, ..TeamState::default() },
            );
            task_list::schedule_task_scan(state, team, out);
            is_new = true;
        }
    }
    if is_new {
        // Mail that came before its directory was watched.
        request_watches(state, false, out);
    }
}
