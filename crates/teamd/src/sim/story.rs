//! What happens next: of all that could, the seed chooses. First anything may, then nothing fails any more, and in the
//! end everything is taken down.

use super::join::Join;
use super::world::World;
use crate::event::Event;
use protocol::control::{
    Capture, Create, Delete, Ended, Layout, Locate, Request, SetLayout, Shutdown, Targets,
};
use protocol::id::RequestId;
use protocol::name::TeamName;
use protocol::turn::{Backend, Restart};

/// Of a story that is as long as it may be; most are shorter.
const LONGEST: usize = 400;
/// After this everything that waits for a while has had its time, ms: the longest grace, the longest pause.
const LONG: u64 = 150_000;
/// More than any world needs to come to rest.
const PATIENCE: usize = 20_000;

const TEAMS: [&str; 2] = ["red", "blue"];
const NAMES: [&str; 4] = ["ann", "bob", "cid", "eve"];

/// One life of the world; panics where something does not hold.
pub(super) fn tell(world: &mut World) {
    world.start();
    for _ in 0..world.rng.usize(20..LONGEST) {
        anything(world);
    }
    calm(world);
    world.rests();
    take_down(world);
    world.is_bare();
}

/// What could happen by itself now.
fn due(world: &World) -> Vec<fn(&mut World)> {
    let mut due: Vec<fn(&mut World)> = Vec::new();
    if world.has_turn() {
        due.push(World::turn);
    }
    if let Some(daemon) = &world.daemon {
        if !daemon.files.is_empty() {
            due.push(World::files);
        }
        if !daemon.panes.is_empty() {
            due.push(World::panes);
        }
        if !daemon.done.is_empty() {
            due.push(World::tell_done);
        }
    }
    if world.has_dead() {
        due.push(World::reap);
    }
    if joins(world).next().is_some() {
        due.push(a_join);
    }
    due
}

fn joins(world: &World) -> impl Iterator<Item = u32> {
    let (daemon, mono) = (world.daemon.is_some(), world.now.mono);
    let due = move |(pid, join): (&u32, &Join)| join.is_due(daemon, mono).then_some(*pid);
    world.joins.iter().filter_map(due)
}

fn a_join(world: &mut World) {
    let joins: Vec<u32> = joins(world).collect();
    if let Some(pid) = world.rng.choice(joins) {
        world.join(pid);
    }
}

fn anything(world: &mut World) {
    let due = due(world);
    match world.rng.u8(..) {
        0..=170 if !due.is_empty() => world.rng.choice(due).into_iter().for_each(|happens| happens(world)),
        0..=195 => somebody_asks(world),
        196..=215 => an_agent_does(world),
        216..=235 => time_passes(world),
        _ => something_fails(world),
    }
}

fn time_passes(world: &mut World) {
    let to_due = world.next_due().saturating_sub(world.now.mono).min(60_000);
    let ms = if world.rng.bool() { to_due } else { world.rng.u64(0..3_000) };
    world.pass(ms);
}

fn something_fails(world: &mut World) {
    match world.rng.u8(0..13) {
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
        7 => world.tmux.hangs = !world.tmux.hangs,
        8 => world.disk.full = !world.disk.full,
        9 => world.tmux.stranger(),
        10 => a_member_is_dropped(world),
        11 => world.set_clock(),
        _ => world.tell(Event::Overflow),
    }
}

fn any_join(world: &mut World) -> Option<u32> {
    let joins: Vec<u32> = world.joins.iter().filter(|(_, join)| join.lives()).map(|(pid, _)| *pid).collect();
    world.rng.choice(joins)
}

/// By a person.
fn a_pane_is_closed(world: &mut World) {
    let panes: Vec<u32> = world.tmux.panes.keys().copied().collect();
    let Some(pane) = world.rng.choice(panes) else { return };
    world.note(|| format!("a person closes %{pane}"));
    if let Some(super::tmux::Whose::Ours(_, pid)) = world.tmux.panes.remove(&pane) {
        world.hang_up(pid);
    }
}

/// By a program that wrote config.json as it had read it before.
fn a_member_is_dropped(world: &mut World) {
    let team = a_team(world);
    if let Some(files) = world.disk.teams.get_mut(&team) {
        files.members.pop_first();
        world.note(|| format!("somebody drops a member of {team}"));
        world.tell(Event::ConfigChanged { team });
    }
}

/// An agent ends, or answers what it was asked.
fn an_agent_does(world: &mut World) {
    let running: Vec<u32> = world.runs().map(|(pid, _)| *pid).collect();
    let Some(pid) = world.rng.choice(running) else { return };
    match world.rng.u8(0..4) {
        0 => world.agent_ends(pid, Ended::Exit(0)),
        1 => world.agent_ends(pid, Ended::Exit(1)),
        _ => answers(world, pid),
    }
}

fn answers(world: &mut World, pid: u32) {
    let spawn = &world.joins[&pid].spawn;
    let of = |(name, files): (&TeamName, &super::disk::Files)| {
        let member = files.members.iter().find(|(_, life)| *life == spawn)?.0;
        let request = files.asked.get(member)?.last()?;
        Some((name.clone(), member.clone(), request.clone()))
    };
    let Some((team, member, request)): Option<(_, _, RequestId)> = world.disk.teams.iter().find_map(of)
    else {
        return;
    };
    let no = world.rng.bool().then(|| "busy".to_owned());
    world.note(|| format!("{member} answers {request}: {no:?}"));
    if let Some(files) = world.disk.teams.get_mut(&team).filter(|_| !world.disk.full) {
        files.answers.entry(request).or_insert((member, no));
        world.tell(Event::InboxChanged { team, inbox: "team-lead".to_owned() });
    }
}

fn a_team(world: &mut World) -> TeamName {
    TeamName::parse(TEAMS[world.rng.usize(0..TEAMS.len())]).expect("it is a name")
}

fn a_name(world: &mut World) -> &'static str {
    NAMES[world.rng.usize(0..NAMES.len())]
}

fn some_names(world: &mut World) -> Vec<String> {
    let some = world.rng.usize(0..3);
    (0..some).map(|_| a_name(world).to_owned()).collect()
}

fn somebody_asks(world: &mut World) {
    let team = a_team(world);
    match world.rng.u8(0..32) {
        0..=5 => world.ask("create", create(team)),
        6..=18 => {
            let order = order(world, team);
            world.ask("spawn", order);
        }
        19..=20 => {
            let names = some_names(world);
            world.ask("kill", Request::Kill(Targets { team, names }));
        }
        21..=23 => {
            let order = shutdown(world, team);
            world.ask("shutdown", order);
        }
        24 => {
            let force = world.rng.bool();
            world.ask("delete", Request::Delete(Delete { team, force, discard: Vec::new() }));
        }
        25 => world.ask("layout", Request::Layout(SetLayout { team, layout: Layout::Tiled })),
        26..=28 => {
            let name = a_name(world).to_owned();
            let at = Locate { team: team.clone(), name: name.clone() };
            let request = match world.rng.u8(0..4) {
                0 => Request::Hide(at),
                1 => Request::Show(at),
                2 => Request::Interrupt(at),
                _ => Request::Capture(Capture { team, name, lines: None }),
            };
            world.ask("a look", request);
        }
        29..=30 => world.ask("status", Request::Status),
        _ => world.ask("down", Request::Down),
    }
}

fn create(team: TeamName) -> Request {
    Request::Create(Create {
        team,
        description: None,
        agent_type: None,
        model: None,
        cwd: "/".into(),
        unique: false,
        policy: Default::default(),
        lead_mode: None,
    })
}

fn shutdown(world: &mut World, team: TeamName) -> Request {
    Request::Shutdown(Shutdown {
        targets: Targets { team, names: some_names(world) },
        reason: None,
        grace_ms: world.rng.u64(0..40_000),
        force: world.rng.bool(),
        at_once: world.rng.u8(..) < 60,
    })
}

fn order(world: &mut World, team: TeamName) -> Request {
    let backend = if world.rng.bool() { Backend::Tmux } else { Backend::InProcess };
    let restart = if world.rng.bool() { Restart::OnFailure } else { Restart::Never };
    let order = serde_json::json!({
        "team": team, "name": a_name(world), "unique": world.rng.bool(), "argv": ["true"], "cwd": "/", "env": {},
        "prompt": "go", "feed": "pull", "backend": backend, "restart": restart,
    });
    Request::Spawn(serde_json::from_value(order).expect("it is an order"))
}

/// Nothing fails any more, nobody asks, and time goes on until nothing is to be done.
fn calm(world: &mut World) {
    world.note(|| "from here on nothing fails".to_owned());
    (world.disk.full, world.tmux.hangs) = (false, false);
    let until = world.now.mono + LONG;
    for _ in 0..PATIENCE {
        if world.daemon.is_none() {
            world.start();
        }
        let due = due(world);
        match world.rng.choice(due) {
            Some(happens) => happens(world),
            None if world.now.mono > until => return,
            None => {
                let next = world.next_due().max(world.now.mono + 1);
                world.pass(next - world.now.mono);
            }
        }
    }
    panic!("the world does not come to rest");
}

/// Everything ends: team by team, or with the daemon.
fn take_down(world: &mut World) {
    if world.rng.bool() {
        for team in TEAMS {
            let team = TeamName::parse(team).expect("it is a name");
            world.ask("delete", Request::Delete(Delete { team, force: true, discard: Vec::new() }));
        }
    } else {
        world.ask("down", Request::Down);
    }
    calm(world);
}
