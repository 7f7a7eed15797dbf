//! Injects faults into a simulation: crashes, lost events, a full disk, a hung tmux server, and
//! actions of users and foreign programs.

use crate::core::core_event::CoreEvent;
use crate::simulator::random_calls::random_team;
use crate::simulator::scans_and_watcher_events::TeamFile;
use crate::simulator::simulation::Simulation;
use crate::simulator::team_files::SimulatedTeamFiles;
use crate::simulator::tmux::PaneOwner;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::TeamName;

pub(super) fn inject_random_fault(simulation: &mut Simulation) {
    // A hung tmux server and a full disk recover after a few faults.
    simulation.tmux.is_hung &= simulation.rng.bool();
    simulation.disk.is_full &= simulation.rng.bool();
    let fault = simulation.rng.u8(0..21);
    if simulation.action_rates.disabled_faults & 1 << fault != 0 {
        return;
    }
    match fault {
        0..=2 if simulation.daemon.is_some() => simulation.kill_daemon(),
        0..=3 if simulation.daemon.is_none() => simulation.start(),
        3 => simulation.drop_client(),
        4 => {
            let pid = random_shim(simulation);
            pid.into_iter().for_each(|pid| simulation.kill(pid));
        }
        5 => close_random_pane(simulation),
        6 => {
            let foreign_panes = simulation.rng.u32(0..4);
            simulation.restart_tmux(foreign_panes);
        }
        7 => simulation.tmux.is_hung = true,
        8 => simulation.disk.is_full = true,
        9 => simulation.tmux.open_foreign_pane(),
        10 => drop_member_from_config(simulation),
        11 => simulation.set_clock(),
        12 => {
            let event = match simulation.rng.u8(..) {
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
        13 if simulation.daemon.is_some() && simulation.rng.u8(..) < 60 => {
            simulation.send_event(CoreEvent::Signal("SIGTERM"));
        }
        14 => show_random_pane(simulation),
        15..=16 => simulation.change_random_worktree(),
        17 => toggle_shim_stopped(simulation),
        18 => simulation.send_invalid_call(),
        19 => simulation.kill_random_lead(),
        _ => toggle_session_team(simulation),
    }
}

pub(super) fn random_shim(simulation: &mut Simulation) -> Option<u32> {
    let shims: Vec<u32> =
        simulation.shims.iter().filter(|(_, shim)| shim.is_alive()).map(|(pid, _)| *pid).collect();
    simulation.rng.choice(shims)
}

/// A user closes a pane.
fn close_random_pane(simulation: &mut Simulation) {
    let panes: Vec<u32> = simulation.tmux.panes.keys().copied().collect();
    let Some(pane) = simulation.rng.choice(panes) else { return };
    simulation.log(|| format!("a user closes %{pane}"));
    if let Some(PaneOwner::Teamd(_, pid)) = simulation.tmux.panes.remove(&pane) {
        simulation.hang_up_terminal(pid);
    }
}

/// A foreign program writes an old version of config.json, which lacks a member.
fn drop_member_from_config(simulation: &mut Simulation) {
    let team = random_team(simulation);
    if let Some(files) = simulation.disk.teams.get_mut(&team) {
        files.members.pop_first();
        simulation.log(|| format!("a foreign program drops a member of {team}"));
        simulation.disk.record_change(&team, TeamFile::Config);
    }
}

/// A user shows a hidden pane in tmux.
fn show_random_pane(simulation: &mut Simulation) {
    let hidden: Vec<u32> = simulation.tmux.hidden.iter().copied().collect();
    let Some(pane) = simulation.rng.choice(hidden) else { return };
    simulation.log(|| format!("a user shows %{pane}"));
    simulation.tmux.hidden.remove(&pane);
}

/// Stops a shim with SIGSTOP, or continues it with SIGCONT.
fn toggle_shim_stopped(simulation: &mut Simulation) {
    let Some(pid) = random_shim(simulation) else { return };
    if let Some(shim) = simulation.shims.get_mut(&pid) {
        shim.is_stopped = !shim.is_stopped;
        simulation.log(|| format!("shim {pid} is stopped or continued"));
    }
}

/// A Claude Code session creates or removes its own team.
fn toggle_session_team(simulation: &mut Simulation) {
    let team = TeamName::parse("session-1").expect("the name is valid");
    if simulation.disk.session_teams.remove(&team).is_none() {
        simulation.disk.session_teams.insert(team.clone(), SimulatedTeamFiles::default());
    }
    simulation.send_event(CoreEvent::SessionTeamChanged { team });
}
