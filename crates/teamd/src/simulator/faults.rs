//! What goes wrong in the world, or is done to it by a hand that is not ours.

use crate::core::event::CoreEvent;
use crate::simulator::random_calls::random_team;
use crate::simulator::scan_memory::TeamFile;
use crate::simulator::simulation::Simulation;
use crate::simulator::team_files::SimulatedTeamFiles;
use crate::simulator::tmux::PaneOwner;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;

pub(super) fn inject_random_fault(world: &mut Simulation) {
    // Neither lasts for long.
    world.tmux.is_hung &= world.rng.bool();
    world.disk.is_full &= world.rng.bool();
    let which = world.rng.u8(0..21);
    if world.fault_rates.disabled_faults & 1 << which != 0 {
        return;
    }
    match which {
        0..=2 if world.daemon.is_some() => world.kill_daemon(),
        0..=3 if world.daemon.is_none() => world.start(),
        3 => world.drop_client(),
        4 => {
            let pid = random_shim(world);
            pid.into_iter().for_each(|pid| world.kill(pid));
        }
        5 => close_random_pane(world),
        6 => {
            let strangers = world.rng.u32(0..4);
            world.restart_tmux(strangers);
        }
        7 => world.tmux.is_hung = true,
        8 => world.disk.is_full = true,
        9 => world.tmux.open_foreign_pane(),
        10 => drop_member_from_config(world),
        11 => world.set_clock(),
        12 => {
            let event = match world.rng.u8(..) {
                0..100 => {
                    // What was not told yet is lost.
                    world.disk.pending_events.clear();
                    CoreEvent::WatcherOverflow
                }
                100..200 => CoreEvent::WatchFailed,
                200..250 => CoreEvent::RootReopened(Ok(())),
                _ => CoreEvent::RootReopened(Err(ErrorReport::new(
                    ErrorKind::NoDaemon,
                    "another teamd has it",
                ))),
            };
            world.send_event(event);
        }
        13 if world.daemon.is_some() && world.rng.u8(..) < 60 => {
            world.send_event(CoreEvent::Signal("SIGTERM"));
        }
        14 => show_random_pane(world),
        15..=16 => world.change_random_worktree(),
        17 => toggle_shim_stopped(world),
        18 => world.send_invalid_call(),
        19 => world.kill_random_lead(),
        _ => toggle_session_team(world),
    }
}

pub(super) fn random_shim(world: &mut Simulation) -> Option<u32> {
    let joins: Vec<u32> =
        world.shims.iter().filter(|(_, join)| join.is_alive()).map(|(pid, _)| *pid).collect();
    world.rng.choice(joins)
}

/// By a person.
fn close_random_pane(world: &mut Simulation) {
    let panes: Vec<u32> = world.tmux.panes.keys().copied().collect();
    let Some(pane) = world.rng.choice(panes) else { return };
    world.log(|| format!("a person closes %{pane}"));
    if let Some(PaneOwner::Teamd(_, pid)) = world.tmux.panes.remove(&pane) {
        world.hang_up_terminal(pid);
    }
}

/// By a program that wrote config.json as it had read it before.
fn drop_member_from_config(world: &mut Simulation) {
    let team = random_team(world);
    if let Some(files) = world.disk.teams.get_mut(&team) {
        files.members.pop_first();
        world.log(|| format!("somebody drops a member of {team}"));
        world.disk.record_change(&team, TeamFile::Config);
    }
}

/// A person looks at one that was hidden.
fn show_random_pane(world: &mut Simulation) {
    let hidden: Vec<u32> = world.tmux.hidden.iter().copied().collect();
    let Some(pane) = world.rng.choice(hidden) else { return };
    world.log(|| format!("a person takes %{pane} out"));
    world.tmux.hidden.remove(&pane);
}

/// SIGSTOP and SIGCONT.
fn toggle_shim_stopped(world: &mut Simulation) {
    let Some(pid) = random_shim(world) else { return };
    if let Some(join) = world.shims.get_mut(&pid) {
        join.is_stopped = !join.is_stopped;
        world.log(|| format!("join {pid} stops, or goes on"));
    }
}

/// One of Claude Code's own.
fn toggle_session_team(world: &mut Simulation) {
    let team = TeamName::parse("session-1").expect("it is a name");
    if world.disk.session_teams.remove(&team).is_none() {
        world.disk.session_teams.insert(team.clone(), SimulatedTeamFiles::default());
    }
    world.send_event(CoreEvent::SessionTeamChanged { team });
}
