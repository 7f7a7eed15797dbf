//! Injects faults into a simulation: crashes, lost events, a full disk, a hung tmux server, and
//! actions of users and foreign programs.

use crate::core::core_event::CoreEvent;
use crate::simulator::random::calls::random_team;
use crate::simulator::random::conditions::RandomSimulation;
use crate::simulator::scan_memory::TeamFile;
use crate::simulator::shim::ShimStage;
use crate::simulator::team_files::SimulatedTeamFiles;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::TeamName;
use std::path::PathBuf;

/// One day in milliseconds.
const DAY: u64 = 86_400_000;

pub(super) fn inject_random_fault(simulation: &mut RandomSimulation) {
    // A hung tmux server and a full disk recover after a few faults.
    simulation.tmux.is_hung &= simulation.conditions.rng.bool();
    simulation.disk.is_full &= simulation.conditions.rng.bool();
    let fault = simulation.conditions.rng.u8(0..21);
    if simulation.conditions.action_rates.disabled_faults & 1 << fault != 0 {
        return;
    }
    match fault {
        0..=2 if simulation.daemon.is_some() => simulation.kill_daemon(),
        0..=3 if simulation.daemon.is_none() => simulation.start(),
        3 => simulation.drop_client(),
        4 => {
            let pid = random_shim(simulation);
            pid.into_iter().for_each(|pid| kill(simulation, pid));
        }
        5 => close_random_pane(simulation),
        6 => {
            let foreign_panes = simulation.conditions.rng.u32(0..4);
            restart_tmux(simulation, foreign_panes);
        }
        7 => simulation.tmux.is_hung = true,
        8 => simulation.disk.is_full = true,
        9 => open_foreign_pane(simulation),
        10 => drop_member_from_config(simulation),
        11 => set_clock(simulation),
        12 => {
            let event = match simulation.conditions.rng.u8(..) {
                0..100 => {
                    // The overflow loses all events that the watcher has not reported.
                    simulation.disk.pending_events.clear();
                    CoreEvent::WatcherOverflow
                }
                100..180 => CoreEvent::WatchFailed,
                180..200 => CoreEvent::SocketDirectoryChanged,
                200..250 => CoreEvent::RootReopened(Ok(())),
                _ => CoreEvent::RootReopened(Err(ErrorReport::new(
                    ErrorKind::NoDaemon,
                    "another teamd has it",
                ))),
            };
            simulation.send_event(event);
        }
        13 if simulation.daemon.is_some() && simulation.conditions.rng.u8(..) < 60 => {
            simulation.send_event(CoreEvent::Signal("SIGTERM"));
        }
        14 => show_random_pane(simulation),
        15..=16 => change_random_worktree(simulation),
        17 => toggle_shim_stopped(simulation),
        18 => simulation.send_invalid_call(),
        19 => simulation.kill_random_lead(),
        _ => toggle_session_team(simulation),
    }
}

pub(super) fn random_shim(simulation: &mut RandomSimulation) -> Option<u32> {
    let shims: Vec<u32> =
        simulation.shims.iter().filter(|(_, shim)| shim.is_alive()).map(|(pid, _)| *pid).collect();
    simulation.conditions.rng.choice(shims)
}

/// A user closes a pane.
fn close_random_pane(simulation: &mut RandomSimulation) {
    let panes: Vec<u32> = simulation.tmux.panes.keys().copied().collect();
    let Some(pane) = simulation.conditions.rng.choice(panes) else { return };
    simulation.log(|| format!("a user closes %{pane}"));
    if let Some(Some(owner)) = simulation.tmux.panes.remove(&pane) {
        simulation.hang_up_terminal(owner.shim_pid);
    }
}

/// A foreign program writes an old version of config.json, which lacks a member.
fn drop_member_from_config(simulation: &mut RandomSimulation) {
    let team = random_team(simulation);
    if let Some(files) = simulation.disk.teams.get_mut(&team) {
        files.members.pop_first();
        simulation.log(|| format!("a foreign program drops a member of {team}"));
        simulation.disk.record_change(&team, TeamFile::Config);
    }
}

/// A user shows a hidden pane in tmux.
fn show_random_pane(simulation: &mut RandomSimulation) {
    let hidden: Vec<u32> = simulation.tmux.hidden.iter().copied().collect();
    let Some(pane) = simulation.conditions.rng.choice(hidden) else { return };
    simulation.log(|| format!("a user shows %{pane}"));
    simulation.tmux.hidden.remove(&pane);
}

/// Stops a shim with SIGSTOP, or continues it with SIGCONT.
fn toggle_shim_stopped(simulation: &mut RandomSimulation) {
    let Some(pid) = random_shim(simulation) else { return };
    if let Some(shim) = simulation.shims.get_mut(&pid) {
        shim.is_stopped = !shim.is_stopped;
        simulation.log(|| format!("shim {pid} is stopped or continued"));
    }
}

/// A Claude Code session creates or removes its own team.
fn toggle_session_team(simulation: &mut RandomSimulation) {
    let team = TeamName::parse("session-1").expect("the name is valid");
    if simulation.disk.session_teams.remove(&team).is_none() {
        simulation.disk.session_teams.insert(team.clone(), SimulatedTeamFiles::default());
    }
    simulation.send_event(CoreEvent::SessionTeamChanged { team });
}

/// Kills a shim with SIGKILL.
fn kill(simulation: &mut RandomSimulation, pid: u32) {
    if simulation.shims.get(&pid).is_some_and(|shim| shim.stage == ShimStage::Waiting) {
        simulation.conditions.killed_early.insert(pid);
    }
    simulation.exit(pid);
}

/// Replaces the tmux server by a new server that has `foreign_panes` panes of other programs. All
/// shims in panes of the old server lose their terminal.
fn restart_tmux(simulation: &mut RandomSimulation, foreign_panes: u32) {
    simulation.log(|| "another tmux server".to_owned());
    let tmux = &mut simulation.tmux;
    let shims: Vec<u32> = tmux.panes.values().flatten().map(|owner| owner.shim_pid).collect();
    tmux.server += 1;
    tmux.panes = (0..foreign_panes).map(|pane| (pane, None)).collect();
    tmux.hidden.clear();
    tmux.next = foreign_panes;
    shims.into_iter().for_each(|pid| simulation.hang_up_terminal(pid));
}

/// A user opens a pane.
fn open_foreign_pane(simulation: &mut RandomSimulation) {
    simulation.tmux.panes.insert(simulation.tmux.next, None);
    simulation.tmux.next += 1;
}

/// A user sets the wall clock by up to half a day. The monotonic clock does not change.
fn set_clock(simulation: &mut RandomSimulation) {
    simulation.now.wall = simulation.now.wall + simulation.conditions.rng.u64(0..DAY) - DAY / 2;
    simulation.conditions.was_clock_set = true;
    simulation.log(|| "the clock is set".to_owned());
}

/// A user works in a random worktree, commits its changes, or removes the worktree.
fn change_random_worktree(simulation: &mut RandomSimulation) {
    let paths: Vec<PathBuf> = simulation.disk.worktrees.present.keys().cloned().collect();
    let Some(path) = simulation.conditions.rng.choice(paths) else { return };
    simulation.log(|| format!("a user changes {}", path.display()));
    match simulation.conditions.rng.u8(0..8) {
        0 => drop(simulation.disk.worktrees.present.remove(&path)),
        number => {
            let worktree = simulation.disk.worktrees.present.get_mut(&path);
            worktree
                .into_iter()
                .filter(|worktree| worktree.is_filled)
                .for_each(|worktree| worktree.has_unsaved_work = number <= 4);
        }
    }
}
