//! Random calls of clients: users, and programs that lead a team.

use crate::simulator::random::clients::CallOrigin;
use crate::simulator::random::conditions::RandomSimulation;
use crate::simulator::shim::REQUEST_ID_VARIABLE;
use protocol::control_socket::{
    AwaitHostRequest, Backend, CapturePaneRequest, ConfirmTaskRequest, ConnectHomeRequest, CreateTeamRequest,
    DeleteTeamRequest, ForgetHostRequest, HomeId, HostCandidate, Iterm2Access, LaunchArgv, Layout,
    MemberAddress, MemberHost, MemberSelection, MoveHomeRequest, PersonPane, PlaceMemberRequest, Request,
    RestartPolicy, ResumeMembersRequest, SetLayoutRequest, SetModeRequest, SetPersonPaneRequest,
    SetPolicyRequest, ShimHello, ShutdownMembersRequest, SpawnRequest, TakeHomeRequest, UseHostRequest,
    WorktreeReply, WorktreeRequest,
};
use protocol::delivery_kind::Delivery;
use protocol::hosts_file_entry::HostName;
use protocol::member_task_and_request_ids::TaskId;
use protocol::permission_mode::PermissionMode;
use protocol::policy::{Approver, Policy, TimeoutAction};
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::worker_or_program_that_runs_turns::{PerTurnProgram, TurnProgram};

pub(super) const TEAMS: [&str; 2] = ["red", "blue"];
const NAMES: [&str; 4] = ["ann", "bob", "cid", "eve"];

pub(super) fn random_team(simulation: &mut RandomSimulation) -> TeamName {
    let team = if simulation.conditions.rng.u8(..) < 190 { 0 } else { 1 };
    TeamName::parse(TEAMS[team]).expect("the name is valid")
}

fn random_name(simulation: &mut RandomSimulation) -> &'static str {
    NAMES[simulation.conditions.rng.usize(0..NAMES.len())]
}

fn random_names(simulation: &mut RandomSimulation) -> Vec<String> {
    let count = simulation.conditions.rng.usize(0..3);
    (0..count).map(|_| random_name(simulation).to_owned()).collect()
}

pub(super) fn send_random_call(simulation: &mut RandomSimulation) {
    let team = random_team(simulation);
    match simulation.conditions.rng.u8(0..45) {
        0..=2 => {
            let request = create_request(simulation, team);
            simulation.send_call(request);
        }
        3..=5 => {
            let name = random_name(simulation).to_owned();
            let request = simulation.random_setting(team, name);
            simulation.send_call(request);
        }
        6..=18 => {
            let request = simulation.spawn_request(team, None);
            simulation.send_call(request);
        }
        19..=20 => {
            let names = random_names(simulation);
            simulation.send_call(Request::Kill(MemberSelection { team, names }));
        }
        21..=23 => {
            let request = shutdown_request(simulation, team);
            simulation.send_call(request);
        }
        24 => {
            let request = delete_request(simulation, team);
            simulation.send_call(request);
        }
        25 => {
            let person_pane = PersonPane { pane: "%0".to_owned(), server_pid: 1, kept_percent: 30 };
            let request = match simulation.conditions.rng.bool() {
                true => Request::SetLayout(SetLayoutRequest { team, layout: Layout::Tiled }),
                false => Request::SetPersonPane(SetPersonPaneRequest { team, person_pane }),
            };
            simulation.send_call(request);
        }
        26..=28 => {
            let members = simulation.disk.teams.get(&team).into_iter().flat_map(|files| files.members.keys());
            let members: Vec<String> = members.map(ToString::to_string).collect();
            let name = simulation
                .conditions
                .rng
                .choice(members)
                .unwrap_or_else(|| random_name(simulation).to_owned());
            let address = MemberAddress { team: team.clone(), name: name.clone() };
            let request = match simulation.conditions.rng.u8(0..5) {
                0 => Request::HidePane(address),
                1 => Request::ShowPane(address),
                2 => Request::Interrupt(address),
                3 => Request::LocatePane(address),
                _ => Request::CapturePane(CapturePaneRequest { team, name, lines: None }),
            };
            simulation.send_call(request);
        }
        29 => simulation.send_call(Request::Status),
        30 => simulation.send_call(Request::StatusWithScreens),
        31 => {
            let request = if simulation.conditions.rng.bool() {
                Request::StopDaemonAndSuspend
            } else {
                Request::StopDaemon
            };
            simulation.send_call(request);
        }
        37..=38 => {
            let team = simulation.conditions.rng.bool().then_some(team);
            simulation.send_call(Request::ResumeMembers(ResumeMembersRequest { team }));
        }
        32..=36 => {
            let request = worktree_request(simulation, team.clone());
            simulation.send_call_as(CallOrigin::WorktreeSpawner(team), None, request);
        }
        40..=42 => simulation.take_or_release_lead(team),
        43..=44 => {
            let request = host_request(simulation, team);
            simulation.send_call(request);
        }
        _ => {
            let hello = ShimHello { spawn_id: "nobody".to_owned(), agent_pid: None, turn_status: None };
            simulation.send_call(Request::ConnectShim(hello));
        }
    }
}

/// A request about a team on another host, or the connection of a home.
fn host_request(simulation: &mut RandomSimulation, team: TeamName) -> Request {
    let host = HostName::parse("devbox").expect("the name is valid");
    match simulation.conditions.rng.u8(0..9) {
        8 => Request::MoveHome(MoveHomeRequest { team, host }),
        7 => Request::TakeHome(TakeHomeRequest { team }),
        6 => Request::ForgetHost(ForgetHostRequest { host }),
        5 => {
            let name = MemberName::parse(random_name(simulation)).expect("the name is valid");
            let candidates = [MemberHost::Home, MemberHost::Other(host)];
            let candidate = |host| HostCandidate { host, labels: Vec::new(), slots: Some(3) };
            let candidates = candidates.map(candidate).to_vec();
            Request::PlaceMember(PlaceMemberRequest { team, name, needs: Vec::new(), candidates })
        }
        0..=1 => Request::UseHost(UseHostRequest { team, host, command: vec!["ssh".to_owned()] }),
        2 => Request::AwaitHost(AwaitHostRequest { team, host }),
        3 => {
            let owner = MemberName::parse(random_name(simulation)).expect("the name is valid");
            let task = TaskId::parse("1").expect("the id is valid");
            Request::ConfirmTask(ConfirmTaskRequest { team, task, owner })
        }
        _ => {
            let home = HomeId::parse("home").expect("the identity is valid");
            Request::ConnectHome(ConnectHomeRequest {
                home,
                annex: host,
                generation: simulation.conditions.rng.u32(1..3),
            })
        }
    }
}

pub(super) fn create_request(simulation: &mut RandomSimulation, team: TeamName) -> Request {
    let policy =
        if simulation.conditions.rng.bool() { simulation.random_policy(&team) } else { Default::default() };
    Request::CreateTeam(CreateTeamRequest {
        unique: simulation.conditions.rng.bool(),
        policy,
        record: simulation.conditions.rng.u8(..) < 60,
        ..CreateTeamRequest::new(team, "/".into())
    })
}

fn shutdown_request(simulation: &mut RandomSimulation, team: TeamName) -> Request {
    Request::Shutdown(ShutdownMembersRequest {
        targets: MemberSelection { team, names: random_names(simulation) },
        reason: None,
        grace_ms: simulation.conditions.rng.u64(0..40_000),
        force: simulation.conditions.rng.bool(),
        no_wait: simulation.conditions.rng.u8(..) < 60,
    })
}

/// A request to delete a team. Some requests discard the worktrees with unsaved work.
fn delete_request(simulation: &mut RandomSimulation, team: TeamName) -> Request {
    let force = simulation.conditions.rng.bool();
    let paths = simulation.disk.worktrees.present.keys().cloned();
    let discard = if simulation.conditions.rng.u8(..) < 40 { paths.collect() } else { Vec::new() };
    Request::DeleteTeam(DeleteTeamRequest {
        force,
        discard_worktrees: discard,
        ..DeleteTeamRequest::forced(team)
    })
}

fn worktree_request(simulation: &mut RandomSimulation, team: TeamName) -> Request {
    let name = MemberName::parse(random_name(simulation)).expect("the name is valid");
    let (unique, cwd) = (simulation.conditions.rng.bool(), "/repo/sub".into());
    Request::CreateWorktree(WorktreeRequest {
        team,
        name,
        unique,
        cwd,
        branch: None,
        env: Default::default(),
    })
}

impl RandomSimulation {
    /// A spawn request for a new member. `worktree` is the worktree that was created for it.
    pub(super) fn spawn_request(&mut self, team: TeamName, worktree: Option<&WorktreeReply>) -> Request {
        let name = worktree.map(|worktree| worktree.name.clone());
        let name = name.unwrap_or_else(|| MemberName::parse(random_name(self)).expect("the name is valid"));
        let request_id = self.next_pid().to_string();
        let backend = Backend::ALL[self.conditions.rng.usize(0..Backend::ALL.len())];
        let restart =
            if self.conditions.rng.bool() { RestartPolicy::OnFailure(None) } else { RestartPolicy::Never };
        let dialog = if self.conditions.rng.bool() { vec!["Proceed?".to_owned()] } else { Vec::new() };
        let mut request = default_request(team, name);
        request.unique = worktree.is_none() && self.conditions.rng.bool();
        request.iterm2 =
            (backend == Backend::Iterm2).then(|| Iterm2Access { it2: "/bin/it2".into(), session: None });
        (request.backend, request.restart, request.dialog_patterns) = (backend, restart, dialog);
        self.choose_delivery(&mut request, &request_id);
        request.env.insert(REQUEST_ID_VARIABLE.to_owned(), request_id);
        if let Some(worktree) = worktree {
            (request.worktree, request.cwd) = (Some(worktree.path.clone()), worktree.cwd.clone());
        }
        Request::Spawn(request)
    }
}

impl RandomSimulation {
    /// Chooses the delivery of a new member, and whether the member must plan first.
    fn choose_delivery(&mut self, request: &mut SpawnRequest, request_id: &str) {
        let deliveries = [
            Delivery::Turn,
            Delivery::Turn,
            Delivery::Hook,
            Delivery::Hook,
            Delivery::Pull,
            Delivery::Native,
        ];
        request.delivery = deliveries[self.conditions.rng.usize(0..deliveries.len())];
        let must_plan = request.delivery != Delivery::Native && self.conditions.rng.u8(..) < 90;
        request.prompt_in_args = request.delivery == Delivery::Hook;
        if request.delivery == Delivery::Turn {
            let modes = ["plan", "default", "acceptEdits"].map(|mode| (mode.to_owned(), Vec::new()));
            let agent = PerTurnProgram {
                first_argv: request.argv.clone(),
                mode_args: modes.into(),
                ..PerTurnProgram::default()
            };
            request.turns = Some(TurnProgram::PerTurn(agent));
        } else if must_plan {
            let launch = |mode: &str| LaunchArgv { argv: vec![mode.to_owned()], resume_argv: None };
            request.launches_after_approval =
                ["default", "acceptEdits"].map(|mode| (mode.to_owned(), launch(mode))).into();
            request.argv = vec!["plan".to_owned()];
        }
        if must_plan {
            request.mode = Some(PermissionMode::Plan);
            self.conditions.planning_spawns.insert(request_id.to_owned());
        }
    }
}

fn default_request(team: TeamName, name: MemberName) -> Box<SpawnRequest> {
    Box::new(SpawnRequest {
        team,
        name,
        unique: false,
        name_placeholder: None,
        argv: vec!["true".to_owned()],
        has_deferred_variables: false,
        resume_argv: None,
        launches_after_approval: Default::default(),
        prompt_in_args: false,
        cwd: "/repo/sub".into(),
        env: Default::default(),
        prompt: "go".to_owned(),
        agent_type: None,
        model: None,
        mode: None,
        delivery: Default::default(),
        dialog_patterns: Vec::new(),
        limit_patterns: Vec::new(),
        turns: None,
        backend: Default::default(),
        iterm2: None,
        restart: Default::default(),
        earlier_messages: protocol::control_socket::EarlierMessages::Keep,
        worktree: None,
    })
}

impl RandomSimulation {
    /// A request to change the policy of a team or the permission mode of a member.
    pub(super) fn random_setting(&mut self, team: TeamName, name: String) -> Request {
        if self.conditions.rng.bool() {
            return Request::SetPolicy(SetPolicyRequest { policy: self.random_policy(&team), team });
        }
        let modes = [PermissionMode::Plan, PermissionMode::AcceptEdits, PermissionMode::Default];
        let mode = modes[self.conditions.rng.usize(0..modes.len())];
        let name = if self.conditions.rng.u8(..) < 40 { "team-lead".to_owned() } else { name };
        Request::SetMode(SetModeRequest { team, name, mode })
    }

    /// A random policy. Adds it to the history of the team's policies.
    pub(super) fn random_policy(&mut self, team: &TeamName) -> Policy {
        let approvers = [Approver::Auto, Approver::Lead, Approver::Person];
        let policy = Policy {
            plan_approver: approvers[self.conditions.rng.usize(0..3)],
            permission_approver: approvers[self.conditions.rng.usize(0..3)],
            answer_timeout_ms: [None, Some(5_000), Some(20_000)][self.conditions.rng.usize(0..3)],
            on_timeout: [TimeoutAction::Wait, TimeoutAction::Deny, TimeoutAction::Approve]
                [self.conditions.rng.usize(0..3)],
            ..Policy::default()
        };
        self.conditions.policy_history.entry(team.clone()).or_default().push(policy.clone());
        policy
    }
}
