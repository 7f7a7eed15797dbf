//! What goes wrong in the world, or is done to it by a hand that is not ours.

use super::letters::Files;
use super::looks::Part;
use super::persons::a_team;
use super::tmux::Whose;
use super::world::World;
use crate::event::Event;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;

pub(super) fn something_fails(world: &mut World) {
    // Neither lasts for long.
    world.tmux.hangs &= world.rng.bool();
    world.disk.full &= world.rng.bool();
    let which = world.rng.u8(0..21);
    if world.temper.never & 1 << which != 0 {
        return;
    }
    match which {
        0..=2 if world.daemon.is_some() => world.crash(),
        0..=3 if world.daemon.is_none() => world.start(),
        3 => world.leave(),
        4 => {
            let pid = any_join(world);
            pid.into_iter().for_each(|pid| world.kill(pid));
        }
        5 => a_pane_is_closed(world),
        6 => {
            let strangers = world.rng.u32(0..4);
            world.restart_tmux(strangers);
        }
        7 => world.tmux.hangs = true,
        8 => world.disk.full = true,
        9 => world.tmux.stranger(),
        10 => a_member_is_dropped(world),
        11 => world.set_clock(),
        12 => {
            let event = match world.rng.u8(..) {
                0..100 => {
                    // What was not told yet is lost.
                    world.disk.news.clear();
                    Event::Overflow
                }
                100..200 => Event::Unwatched,
                200..250 => Event::Root(Ok(())),
                _ => Event::Root(Err(ErrorReport::new(ErrorKind::NoDaemon, "another teamd has it"))),
            };
            world.tell(event);
        }
        13 if world.daemon.is_some() && world.rng.u8(..) < 60 => world.tell(Event::Signal("SIGTERM")),
        14 => a_pane_is_taken_out(world),
        15..=16 => world.a_tree_changes(),
        17 => a_join_stops_or_goes_on(world),
        18 => world.babble(),
        19 => world.a_leader_dies(),
        _ => a_session_comes_or_goes(world),
    }
}

pub(super) fn any_join(world: &mut World) -> Option<u32> {
    let joins: Vec<u32> = world.joins.iter().filter(|(_, join)| join.lives()).map(|(pid, _)| *pid).collect();
    world.rng.choice(joins)
}

/// By a person.
fn a_pane_is_closed(world: &mut World) {
    let panes: Vec<u32> = world.tmux.panes.keys().copied().collect();
    let Some(pane) = world.rng.choice(panes) else { return };
    world.note(|| format!("a person closes %{pane}"));
    if let Some(Whose::Ours(_, pid)) = world.tmux.panes.remove(&pane) {
        world.hang_up(pid);
    }
}

/// By a program that wrote config.json as it had read it before.
fn a_member_is_dropped(world: &mut World) {
    let team = a_team(world);
    if let Some(files) = world.disk.teams.get_mut(&team) {
        files.members.pop_first();
        world.note(|| format!("somebody drops a member of {team}"));
        world.disk.touch(&team, Part::Config);
    }
}

/// A person looks at one that was hidden.
fn a_pane_is_taken_out(world: &mut World) {
    let hidden: Vec<u32> = world.tmux.hidden.iter().copied().collect();
    let Some(pane) = world.rng.choice(hidden) else { return };
    world.note(|| format!("a person takes %{pane} out"));
    world.tmux.hidden.remove(&pane);
}

/// SIGSTOP and SIGCONT.
fn a_join_stops_or_goes_on(world: &mut World) {
    let Some(pid) = any_join(world) else { return };
    if let Some(join) = world.joins.get_mut(&pid) {
        join.stopped = !join.stopped;
        world.note(|| format!("join {pid} stops, or goes on"));
    }
}

/// One of Claude Code's own.
fn a_session_comes_or_goes(world: &mut World) {
    let team = TeamName::parse("session-1").expect("it is a name");
    if world.disk.sessions.remove(&team).is_none() {
        world.disk.sessions.insert(team.clone(), Files::default());
    }
    world.tell(Event::SessionChanged { team });
}
