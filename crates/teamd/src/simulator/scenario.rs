//! What happens next: of all that could, the seed chooses. First anything may, then nothing fails any more, and in the
//! end everything is taken down.

use crate::simulator::clients::CallOrigin;
use crate::simulator::faults::{inject_random_fault, random_shim};
use crate::simulator::random_calls::{TEAMS, create_request, send_random_call};
use crate::simulator::scan_memory::TeamFile;
use crate::simulator::shim::SimulatedShim;
use crate::simulator::simulation::Simulation;
use crate::simulator::team_files::SimulatedTeamFiles;
use protocol::control::{Activity, DeleteTeamRequest, ExitReport, MemberAddress, Request};
use protocol::delivery::Delivery;
use protocol::id::RequestId;
use protocol::name::{AgentName, TeamName};
use protocol::payload::IdleReason;

/// Of a story that is as long as it may be; most are shorter.
const MAX_STEPS: usize = 100;
/// After this everything that waits for a while has had its time, ms: the longest grace, the longest pause.
const IDLE_TIMEOUT: u64 = 100_000;
/// The same where everybody ends, and nothing was under way.
const TEARDOWN_TIMEOUT: u64 = 40_000;
/// More than any world needs to come to rest.
const MAX_IDLE_STEPS: usize = 20_000;

/// One life of the world; panics where something does not hold.
pub(super) fn run_scenario(world: &mut Simulation) {
    world.start();
    TEAMS.into_iter().for_each(|team| {
        let order = create_request(world, TeamName::parse(team).expect("it is a name"));
        world.send_call(order);
    });
    for _ in 0..world.rng.usize(20..MAX_STEPS) {
        random_action(world);
    }
    world.shims.values_mut().for_each(|join| join.is_stopped = false);
    run_until_idle(world, IDLE_TIMEOUT);
    world.check_at_rest();
    stop_random_shim(world);
    take_down(world);
    world.check_empty();
}

/// What could happen by itself now.
fn due_actions(world: &Simulation) -> Vec<fn(&mut Simulation)> {
    let mut due: Vec<fn(&mut Simulation)> = Vec::new();
    if world.has_event() {
        due.push(Simulation::run_event);
    }
    if let Some(daemon) = &world.daemon {
        if !daemon.files.is_empty() {
            due.push(Simulation::run_file_job);
        }
        if !daemon.panes.is_empty() {
            due.push(Simulation::run_pane_job);
        }
        if !daemon.worktrees.is_empty() {
            due.push(Simulation::run_worktree_job);
        }
        if !daemon.watch_commands.is_empty() {
            due.push(Simulation::run_watch_command);
        }
        if !world.disk.pending_events.is_empty() {
            due.push(Simulation::run_watcher);
        }
        if !daemon.results.is_empty() {
            due.push(Simulation::deliver_result);
        }
    }
    if world.has_unreported_death() {
        due.push(Simulation::report_death);
    }
    if world.is_fault_free && world.agent_in_turn().is_some() {
        due.push(Simulation::end_any_turn);
    }
    if world.due_hooks().next().is_some() {
        due.push(Simulation::run_hook);
    }
    if due_shims(world).next().is_some() {
        due.push(run_shim);
    }
    due
}

fn due_shims(world: &Simulation) -> impl Iterator<Item = u32> {
    let (daemon, mono) = (world.daemon.is_some(), world.now.mono);
    let due = move |(pid, join): (&u32, &SimulatedShim)| join.is_due(daemon, mono).then_some(*pid);
    world.shims.iter().filter_map(due)
}

fn run_shim(world: &mut Simulation) {
    let joins: Vec<u32> = due_shims(world).collect();
    if let Some(pid) = world.rng.choice(joins) {
        world.run_shim(pid);
    }
}

fn random_action(world: &mut Simulation) {
    let due = due_actions(world);
    if !due.is_empty() && world.rng.u8(..) < world.fault_rates.due_first {
        return world.rng.choice(due).into_iter().for_each(|happens| happens(world));
    }
    match world.rng.u8(..) {
        0..=59 => send_random_call(world),
        60..=89 => world.write_random_file(),
        90..=99 => world.answer_random_request(),
        100..=190 => random_agent_action(world),
        191..=220 => advance_randomly(world),
        other if other - 221 < world.fault_rates.fault_rate => inject_random_fault(world),
        _ => {}
    }
}

fn advance_randomly(world: &mut Simulation) {
    let to_due = world.next_deadline().saturating_sub(world.now.mono).min(60_000);
    let ms = if world.rng.bool() { to_due } else { world.rng.u64(0..3_000) };
    world.advance_clock(ms);
}

/// An agent ends, or answers what it was asked.
fn random_agent_action(world: &mut Simulation) {
    let leads: Vec<u32> =
        world.programs.iter().filter(|(_, it)| it.identity.is_none()).map(|(pid, _)| *pid).collect();
    if let Some(pid) = world.rng.choice(leads)
        && world.rng.u8(..) < 60
    {
        return random_hook_action(world, pid);
    }
    let running: Vec<u32> = world.running_shims().map(|(pid, _)| *pid).collect();
    let Some(pid) = world.rng.choice(running) else { return };
    match world.rng.u8(0..16) {
        0 => world.end_agent(pid, ExitReport::Exit(0)),
        1 => world.end_agent(pid, ExitReport::Exit(1)),
        2..=5 => answer_shutdown(world, pid),
        6..=8 => drop(world.end_turn(pid, IdleReason::Available)),
        9 => drop(world.end_turn(pid, IdleReason::Failed)),
        10 => world.request_permission_in_turn(pid),
        11..=13 => interrupt_or_hide(world, pid),
        _ => random_program_action(world, pid),
    }
}

/// By a person, or put out of sight.
fn interrupt_or_hide(world: &mut Simulation, pid: u32) {
    let Some(who) = world.agent_identity(pid) else { return };
    let at = MemberAddress { team: who.team, name: who.name.to_string() };
    let order = [Request::Interrupt(at.clone()), Request::HidePane(at.clone()), Request::ShowPane(at)];
    let order = world.rng.choice(order);
    order.into_iter().for_each(|order| world.send_call(order));
}

/// What a program with hooks does.
fn random_hook_action(world: &mut Simulation, pid: u32) {
    match world.rng.u8(0..10) {
        0..=5 => world.end_program_turn(pid),
        6 => world.type_prompt(pid),
        7 => world.kill_hook(pid),
        8 => world.send_other_event(pid),
        _ => world.send_nested_event(pid),
    }
}

/// What an agent does that runs for its whole life.
fn random_program_action(world: &mut Simulation, pid: u32) {
    let Some(who) = world.agent_identity(pid) else { return };
    let agent = world.shims[&pid].agent_pid().unwrap_or_default();
    if world.programs.contains_key(&agent) && world.rng.u8(..) < 200 {
        return random_hook_action(world, agent);
    }
    let activity = if world.rng.bool() { Activity::Active } else { Activity::Idle };
    match world.rng.u8(0..6) {
        0..=2 if who.first_argument == "plan" => drop(world.write_plan_request(&who)),
        0 => drop(world.request_permission(&who)),
        1 if who.delivery == Delivery::Native => world.notify_lead(&who, IdleReason::Available),
        2 if who.delivery == Delivery::Native => {
            world.disk.change_member(&who.team, &who.name, |member| {
                member.is_active = activity == Activity::Active;
            });
        }
        _ => drop(world.send_call_as(CallOrigin::Person, Some(who.token), Request::ReportActivity(activity))),
    }
}

fn answer_shutdown(world: &mut Simulation, pid: u32) {
    let spawn = &world.shims[&pid].spawn;
    let of = |(name, files): (&TeamName, &SimulatedTeamFiles)| {
        let member = files.members.iter().find(|(_, member)| member.spawn_id == *spawn)?.0;
        let request = files.shutdown_requests.get(member)?.last()?;
        Some((name.clone(), member.clone(), request.clone()))
    };
    let Some((team, member, request)): Option<(_, _, RequestId)> = world.disk.teams.iter().find_map(of)
    else {
        return;
    };
    let no = world.rng.bool().then(|| "busy".to_owned());
    world.log(|| format!("{member} answers {request}: {no:?}"));
    if let Some(files) = world.disk.teams.get_mut(&team).filter(|_| !world.disk.is_full) {
        files.shutdown_answers.entry(request).or_insert((member, no));
        world.disk.record_change(&team, TeamFile::Inbox(AgentName::lead()));
    }
}

/// Nothing fails any more, nobody asks, and time goes on until nothing is to be done.
fn run_until_idle(world: &mut Simulation, long: u64) {
    world.log(|| "from here on nothing fails".to_owned());
    world.is_fault_free = true;
    (world.disk.is_full, world.tmux.is_hung) = (false, false);
    let until = world.now.mono + long;
    for _ in 0..MAX_IDLE_STEPS {
        if world.daemon.is_none() {
            world.start();
        }
        let due = due_actions(world);
        match world.rng.choice(due) {
            Some(happens) => happens(world),
            None if world.now.mono > until => return,
            None => {
                let next = world.next_deadline().max(world.now.mono + 1);
                world.advance_clock(next - world.now.mono);
            }
        }
    }
    panic!("the world does not come to rest");
}

/// Of some worlds one hears nothing of its end.
fn stop_random_shim(world: &mut Simulation) {
    let join = if world.rng.u8(..) < 16 { random_shim(world) } else { None };
    join.and_then(|pid| world.shims.get_mut(&pid)).into_iter().for_each(|join| join.is_stopped = true);
}

/// Everything ends: team by team, or with the daemon.
fn take_down(world: &mut Simulation) {
    if world.rng.bool() {
        for team in TEAMS {
            let team = TeamName::parse(team).expect("it is a name");
            let grounds = world.disk.roster.worktrees.get(&team).into_iter().flatten();
            let discard = grounds.map(|ground| ground.record.path.clone()).collect();
            world.send_call(Request::DeleteTeam(DeleteTeamRequest {
                team,
                force: true,
                discard_worktrees: discard,
            }));
        }
    } else {
        world.send_call(Request::StopDaemon);
    }
    run_until_idle(world, TEARDOWN_TIMEOUT);
}
