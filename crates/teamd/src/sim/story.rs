//! What happens next: of all that could, the seed chooses. First anything may, then nothing fails any more, and in the
//! end everything is taken down.

use super::clients::Asker;
use super::join::Join;
use super::looks::Part;
use super::mishaps::{any_join, something_fails};
use super::persons::{TEAMS, create, somebody_asks};
use super::world::World;
use protocol::control::{Activity, DeleteTeamRequest, ExitReport, MemberAddress, Request};
use protocol::delivery::Delivery;
use protocol::id::RequestId;
use protocol::name::{AgentName, TeamName};
use protocol::payload::IdleReason;

/// Of a story that is as long as it may be; most are shorter.
const LONGEST: usize = 100;
/// After this everything that waits for a while has had its time, ms: the longest grace, the longest pause.
const LONG: u64 = 100_000;
/// The same where everybody ends, and nothing was under way.
const SHORT: u64 = 40_000;
/// More than any world needs to come to rest.
const PATIENCE: usize = 20_000;

/// One life of the world; panics where something does not hold.
pub(super) fn tell(world: &mut World) {
    world.start();
    TEAMS.into_iter().for_each(|team| {
        let order = create(world, TeamName::parse(team).expect("it is a name"));
        world.ask(order);
    });
    for _ in 0..world.rng.usize(20..LONGEST) {
        anything(world);
    }
    world.joins.values_mut().for_each(|join| join.stopped = false);
    calm(world, LONG);
    world.rests();
    a_join_stops(world);
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
        if !daemon.trees.is_empty() {
            due.push(World::trees);
        }
        if !daemon.asks.is_empty() {
            due.push(World::arms);
        }
        if !world.disk.news.is_empty() {
            due.push(World::watch);
        }
        if !daemon.done.is_empty() {
            due.push(World::tell_done);
        }
    }
    if world.has_dead() {
        due.push(World::reap);
    }
    if world.calm && world.turning().is_some() {
        due.push(World::turns_end);
    }
    if world.hooks().next().is_some() {
        due.push(World::a_hook);
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
    if !due.is_empty() && world.rng.u8(..) < world.temper.haste {
        return world.rng.choice(due).into_iter().for_each(|happens| happens(world));
    }
    match world.rng.u8(..) {
        0..=59 => somebody_asks(world),
        60..=89 => world.somebody_writes(),
        90..=99 => world.somebody_answers(),
        100..=190 => an_agent_does(world),
        191..=220 => time_passes(world),
        other if other - 221 < world.temper.mishaps => something_fails(world),
        _ => {}
    }
}

fn time_passes(world: &mut World) {
    let to_due = world.next_due().saturating_sub(world.now.mono).min(60_000);
    let ms = if world.rng.bool() { to_due } else { world.rng.u64(0..3_000) };
    world.pass(ms);
}

/// An agent ends, or answers what it was asked.
fn an_agent_does(world: &mut World) {
    let leads: Vec<u32> =
        world.programs.iter().filter(|(_, it)| it.who.is_none()).map(|(pid, _)| *pid).collect();
    if let Some(pid) = world.rng.choice(leads)
        && world.rng.u8(..) < 60
    {
        return hooked(world, pid);
    }
    let running: Vec<u32> = world.runs().map(|(pid, _)| *pid).collect();
    let Some(pid) = world.rng.choice(running) else { return };
    match world.rng.u8(0..16) {
        0 => world.agent_ends(pid, ExitReport::Exit(0)),
        1 => world.agent_ends(pid, ExitReport::Exit(1)),
        2..=5 => answers(world, pid),
        6..=8 => drop(world.turn_ends(pid, IdleReason::Available)),
        9 => drop(world.turn_ends(pid, IdleReason::Failed)),
        10 => world.asks_in_turn(pid),
        11..=13 => is_interrupted(world, pid),
        _ => acts(world, pid),
    }
}

/// By a person, or put out of sight.
fn is_interrupted(world: &mut World, pid: u32) {
    let Some(who) = world.who(pid) else { return };
    let at = MemberAddress { team: who.team, name: who.name.to_string() };
    let order = [Request::Interrupt(at.clone()), Request::HidePane(at.clone()), Request::ShowPane(at)];
    let order = world.rng.choice(order);
    order.into_iter().for_each(|order| world.ask(order));
}

/// What a program with hooks does.
fn hooked(world: &mut World, pid: u32) {
    match world.rng.u8(0..10) {
        0..=5 => world.program_turn_ends(pid),
        6 => world.person_types(pid),
        7 => world.hook_dies(pid),
        8 => world.program_tells(pid),
        _ => world.nested_speaks(pid),
    }
}

/// What an agent does that runs for its whole life.
fn acts(world: &mut World, pid: u32) {
    let Some(who) = world.who(pid) else { return };
    let agent = world.joins[&pid].agent().unwrap_or_default();
    if world.programs.contains_key(&agent) && world.rng.u8(..) < 200 {
        return hooked(world, agent);
    }
    let activity = if world.rng.bool() { Activity::Active } else { Activity::Idle };
    match world.rng.u8(0..6) {
        0..=2 if who.first == "plan" => drop(world.asks_for_approval(&who)),
        0 => drop(world.asks_permission(&who)),
        1 if who.feed == Delivery::Native => world.tells_lead(&who, IdleReason::Available),
        2 if who.feed == Delivery::Native => {
            world.disk.member(&who.team, &who.name, |member| member.active = activity == Activity::Active);
        }
        _ => drop(world.ask_as(Asker::Person, Some(who.token), Request::ReportActivity(activity))),
    }
}

fn answers(world: &mut World, pid: u32) {
    let spawn = &world.joins[&pid].spawn;
    let of = |(name, files): (&TeamName, &super::letters::Files)| {
        let member = files.members.iter().find(|(_, member)| member.life == *spawn)?.0;
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
        world.disk.touch(&team, Part::Inbox(AgentName::lead()));
    }
}

/// Nothing fails any more, nobody asks, and time goes on until nothing is to be done.
fn calm(world: &mut World, long: u64) {
    world.note(|| "from here on nothing fails".to_owned());
    world.calm = true;
    (world.disk.full, world.tmux.hangs) = (false, false);
    let until = world.now.mono + long;
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

/// Of some worlds one hears nothing of its end.
fn a_join_stops(world: &mut World) {
    let join = if world.rng.u8(..) < 16 { any_join(world) } else { None };
    join.and_then(|pid| world.joins.get_mut(&pid)).into_iter().for_each(|join| join.stopped = true);
}

/// Everything ends: team by team, or with the daemon.
fn take_down(world: &mut World) {
    if world.rng.bool() {
        for team in TEAMS {
            let team = TeamName::parse(team).expect("it is a name");
            let grounds = world.disk.roster.worktrees.get(&team).into_iter().flatten();
            let discard = grounds.map(|ground| ground.tree.path.clone()).collect();
            world.ask(Request::DeleteTeam(DeleteTeamRequest {
                team,
                force: true,
                discard_worktrees: discard,
            }));
        }
    } else {
        world.ask(Request::StopDaemon);
    }
    calm(world, SHORT);
}
