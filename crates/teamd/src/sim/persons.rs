//! What people, and programs that lead, ask of the daemon.

use super::clients::Asker;
use super::world::World;
use protocol::control::{
    BringBack, Capture, Create, Delete, Hello, Layout, Life, Locate, Request, SetLayout, Shutdown, Spawn,
    Targets, Worktree, WorktreeReply,
};
use protocol::feed::Feed;
use protocol::name::{AgentName, TeamName};
use protocol::turn::{Backend, Restart, TurnAgent, TurnProgram};

pub(super) const TEAMS: [&str; 2] = ["red", "blue"];
const NAMES: [&str; 4] = ["ann", "bob", "cid", "eve"];

pub(super) fn a_team(world: &mut World) -> TeamName {
    let team = if world.rng.u8(..) < 190 { 0 } else { 1 };
    TeamName::parse(TEAMS[team]).expect("it is a name")
}

fn a_name(world: &mut World) -> &'static str {
    NAMES[world.rng.usize(0..NAMES.len())]
}

fn some_names(world: &mut World) -> Vec<String> {
    let some = world.rng.usize(0..3);
    (0..some).map(|_| a_name(world).to_owned()).collect()
}

pub(super) fn somebody_asks(world: &mut World) {
    let team = a_team(world);
    match world.rng.u8(0..43) {
        0..=2 => {
            let order = create(world, team);
            world.ask(order);
        }
        3..=5 => {
            let name = a_name(world).to_owned();
            let order = world.set_something(team, name);
            world.ask(order);
        }
        6..=18 => {
            let order = world.order(team, None);
            world.ask(order);
        }
        19..=20 => {
            let names = some_names(world);
            world.ask(Request::Kill(Targets { team, names }));
        }
        21..=23 => {
            let order = shutdown(world, team);
            world.ask(order);
        }
        24 => {
            let order = delete(world, team);
            world.ask(order);
        }
        25 => world.ask(Request::Layout(SetLayout { team, layout: Layout::Tiled })),
        26..=28 => {
            let members = world.disk.teams.get(&team).into_iter().flat_map(|files| files.members.keys());
            let members: Vec<String> = members.map(ToString::to_string).collect();
            let name = world.rng.choice(members).unwrap_or_else(|| a_name(world).to_owned());
            let at = Locate { team: team.clone(), name: name.clone() };
            let request = match world.rng.u8(0..5) {
                0 => Request::Hide(at),
                1 => Request::Show(at),
                2 => Request::Interrupt(at),
                3 => Request::Locate(at),
                _ => Request::Capture(Capture { team, name, lines: None }),
            };
            world.ask(request);
        }
        29 => world.ask(Request::Status),
        30 => world.ask(Request::StatusOnScreen),
        31 => {
            let request = if world.rng.bool() { Request::Rest } else { Request::Down };
            world.ask(request);
        }
        37..=38 => {
            let team = world.rng.bool().then_some(team);
            world.ask(Request::BringBack(BringBack { team }));
        }
        32..=36 => {
            let order = worktree(world, team.clone());
            world.ask_as(Asker::Spawner(team), None, order);
        }
        40..=42 => world.somebody_leads(team),
        _ => {
            let hello = Hello { spawn: "nobody".to_owned(), agent: None, turn: None };
            world.ask(Request::Join(hello));
        }
    }
}

pub(super) fn create(world: &mut World, team: TeamName) -> Request {
    let policy = if world.rng.bool() { world.a_policy(&team) } else { Default::default() };
    Request::Create(Create {
        team,
        description: None,
        agent_type: None,
        model: None,
        cwd: "/".into(),
        unique: false,
        policy,
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

/// Of some the unsaved work may go.
fn delete(world: &mut World, team: TeamName) -> Request {
    let force = world.rng.bool();
    let all = world.disk.woods.there.keys().cloned();
    let discard = if world.rng.u8(..) < 40 { all.collect() } else { Vec::new() };
    Request::Delete(Delete { team, force, discard })
}

fn worktree(world: &mut World, team: TeamName) -> Request {
    let name = AgentName::parse(a_name(world)).expect("it is a name");
    let (unique, cwd) = (world.rng.bool(), "/repo/sub".into());
    Request::Worktree(Worktree { team, name, unique, cwd, branch: None, env: Default::default() })
}

impl World {
    /// A new member, in its worktree where one was made for it.
    pub(super) fn order(&mut self, team: TeamName, worktree: Option<&WorktreeReply>) -> Request {
        let name = worktree.map(|worktree| worktree.name.clone());
        let name = name.unwrap_or_else(|| AgentName::parse(a_name(self)).expect("it is a name"));
        let chain = self.next_pid().to_string();
        let backend = [Backend::Tmux, Backend::Window, Backend::InProcess][self.rng.usize(0..3)];
        let restart = if self.rng.bool() { Restart::OnFailure } else { Restart::Never };
        let dialog = if self.rng.bool() { vec!["Proceed?".to_owned()] } else { Vec::new() };
        let mut order = plain(team, name);
        order.unique = worktree.is_none() && self.rng.bool();
        (order.backend, order.restart, order.dialog) = (backend, restart, dialog);
        self.kind(&mut order, &chain);
        order.env.insert(CHAIN.to_owned(), chain);
        if let Some(worktree) = worktree {
            (order.worktree, order.cwd) = (Some(worktree.path.clone()), worktree.cwd.clone());
        }
        Request::Spawn(order)
    }
}

impl World {
    /// How its program is run and fed, and whether it has to plan first.
    fn kind(&mut self, order: &mut Spawn, chain: &str) {
        let feeds = [Feed::Turn, Feed::Turn, Feed::Hook, Feed::Hook, Feed::Keys, Feed::Pull, Feed::Native];
        order.feed = feeds[self.rng.usize(0..feeds.len())];
        let plans = order.feed != Feed::Native && self.rng.u8(..) < 90;
        order.prompted = order.feed == Feed::Hook;
        if order.feed == Feed::Keys {
            order.backend = Backend::Tmux;
        }
        if order.feed == Feed::Turn {
            let modes = ["plan", "default", "acceptEdits"].map(|mode| (mode.to_owned(), Vec::new()));
            let agent = TurnAgent { first: order.argv.clone(), modes: modes.into(), ..TurnAgent::default() };
            order.turns = Some(TurnProgram::Agent(agent));
        } else if plans {
            let life = |mode: &str| Life { argv: vec![mode.to_owned()], resume: None };
            order.approved = ["default", "acceptEdits"].map(|mode| (mode.to_owned(), life(mode))).into();
            order.argv = vec!["plan".to_owned()];
        }
        if plans {
            order.mode = Some("plan".to_owned());
            self.planners.insert(chain.to_owned());
        }
    }
}

/// In its environment an agent finds for which order it lives; all its lives have the same.
pub(super) const CHAIN: &str = "CHAIN";

fn plain(team: TeamName, name: AgentName) -> Box<Spawn> {
    Box::new(Spawn {
        team,
        name,
        unique: false,
        stand_in: None,
        argv: vec!["true".to_owned()],
        late: false,
        resume: None,
        approved: Default::default(),
        prompted: false,
        cwd: "/repo/sub".into(),
        env: Default::default(),
        prompt: "go".to_owned(),
        agent_type: None,
        model: None,
        mode: None,
        feed: Default::default(),
        dialog: Vec::new(),
        turns: None,
        backend: Default::default(),
        restart: Default::default(),
        worktree: None,
    })
}
