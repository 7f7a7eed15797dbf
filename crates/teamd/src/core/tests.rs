//! Tests of the core: events go in, effects come out.

mod budgets;
mod budgets_across_hosts;
mod client_calls;
mod delete_team;
mod dialogs_on_screens;
mod events_of_annexes;
mod fetched_branches;
mod forget_host;
mod hidden_panes;
mod hooks_and_lead_sessions;
mod leases;
mod member_requests;
mod move_home;
mod native_members_and_permission_modes;
mod next_task;
mod notifications_to_people;
mod other_hosts;
mod plan_approval_respawn;
mod rescans;
mod respawns;
mod shutdown;
mod spawn;
mod suspend_and_resume;
mod team_records;
mod turns_and_task_offers;
mod worktrees;

use crate::core::connection_spawn_and_watch_ids::{SpawnId, WatchId};
use crate::core::core_event::CoreEvent;
use crate::core::dispatch_core_events::handle_event;
use crate::core::effect::Effect;
use crate::core::event_time::Now;
use crate::core::jobs::file_jobs::{FileJob, Registration, TeamCreation};
use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::pane_jobs::{OpenedPane, PaneJob, PaneResult};
use crate::core::roster::Roster;
use crate::core::roster::agent_record::AgentPane;
use crate::core::spawn_lifecycle::{ExpectedShim, Lifecycle};
use crate::core::state::core_state::State;
use crate::core::state::daemon_settings::DaemonSettings;
use crate::core::state::logged_tasks_messages_and_requests::EventLogCursor;
use crate::core::stop_and_exit_of_spawn::ShutdownApproval;
use protocol::control_socket::{
    Activity, Call, CreateTeamReply, CreateTeamRequest, DeleteTeamRequest, ExitReport, FromShim,
    MemberSelection, PROTOCOL_VERSION, Process, Reply, Request, Response, ShimHello, ShutdownMembersRequest,
    SpawnRequest, ToShim,
};
use protocol::delivery_kind::Delivery;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::BTreeMap;
use std::path::PathBuf;

const NOW: Now = Now { mono: 1_000, wall: 1_795_000_000_000 };

fn now_at(mono: u64) -> Now {
    Now { mono, wall: NOW.wall + mono }
}

fn survey_team() -> TeamName {
    TeamName::parse("survey").unwrap()
}

/// The result of creating the team for client 1.
fn team_created(result: Result<CreateTeamReply, ErrorReport>) -> CoreEvent {
    let request = CreateTeamRequest::new(survey_team(), "/".into());
    let creation = Box::new(TeamCreation::new(1, request, NOW.wall));
    CoreEvent::FileJobDone(FileResult::TeamCreated { creation, result })
}

fn new_state() -> State {
    let mut state = State::new(DaemonSettings::for_tests(), Roster::default(), EventLogCursor::default());
    state.teams.insert(survey_team(), Default::default());
    state
}

fn new_call(request: Request) -> Box<Call> {
    Box::new(Call::new(request))
}

fn spawn_request(name: &str) -> Request {
    Request::Spawn(Box::new(SpawnRequest {
        team: survey_team(),
        name: MemberName::parse(name).unwrap(),
        unique: false,
        name_placeholder: None,
        argv: vec!["true".into()],
        has_deferred_variables: false,
        resume_argv: None,
        launches_after_approval: BTreeMap::new(),
        prompt_in_args: false,
        cwd: PathBuf::from("/"),
        env: [("A".to_owned(), "b".to_owned())].into(),
        prompt: "hello".into(),
        agent_type: None,
        model: None,
        mode: None,
        delivery: Delivery::Pull,
        dialog_patterns: Vec::new(),
        limit_patterns: Vec::new(),
        turns: None,
        backend: Default::default(),
        restart: Default::default(),
        iterm2: None,
        earlier_messages: protocol::control_socket::EarlierMessages::Keep,
        worktree: None,
    }))
}

fn send_call(state: &mut State, client: u64, request: Request) -> Vec<Effect> {
    handle_event(state, CoreEvent::ClientCall { client, call: new_call(request) }, NOW)
}

fn opened_spawn_id(effects: &[Effect]) -> SpawnId {
    let open = effects.iter().find_map(|effect| match effect {
        Effect::Pane(PaneJob::OpenPane(opening)) => Some(opening.spawn.clone()),
        _ => None,
    });
    open.expect("a pane is opened")
}

fn pane_opened(spawn: &SpawnId, pid: u32) -> CoreEvent {
    let opened = OpenedPane {
        pane: AgentPane {
            id: "%7".to_owned(),
            window: "@3".to_owned(),
            location: "teamd:1".to_owned(),
            server_epoch: "11:22:/tmp/tmux".to_owned(),
            it2: None,
        },
        shim: ExpectedShim::Pid(pid),
    };
    CoreEvent::PaneJobDone(PaneResult::PaneOpened { spawn: spawn.clone(), result: Ok(opened) })
}

fn shim_connected(spawn: &SpawnId, conn: u64, pid: u32, agent: Option<u32>) -> CoreEvent {
    let hello = ShimHello { spawn_id: spawn.as_str().to_owned(), agent_pid: agent, turn_status: None };
    CoreEvent::ShimConnected { conn, hello, peer: Process { pid, start_time: 5 } }
}

fn member_registered(spawn: &SpawnId) -> CoreEvent {
    let registration =
        Registration { tracking_task: TaskId::parse("1").unwrap(), lead_session: "lead's".into() };
    CoreEvent::FileJobDone(FileResult::MemberRegistered { spawn: spawn.clone(), result: Ok(registration) })
}

fn agent_started(conn: u64) -> CoreEvent {
    CoreEvent::ShimReported { conn, report: FromShim::Started { pid: 99 } }
}

/// The result of the first job `ReplyWhenSaved` in `effects`.
fn reply_ready(effects: Vec<Effect>) -> CoreEvent {
    let result = effects.into_iter().find_map(|effect| match effect {
        Effect::File(FileJob::ReplyWhenSaved { client, reply }) => {
            Some(FileResult::ReplyReady { client, reply })
        }
        _ => None,
    });
    CoreEvent::FileJobDone(result.expect("a reply waits for the roster"))
}

/// `effects` with each job `ReplyWhenSaved` replaced by the effects of its result.
fn with_replies(state: &mut State, effects: Vec<Effect>) -> Vec<Effect> {
    let (deferred, mut all): (Vec<Effect>, Vec<Effect>) = effects
        .into_iter()
        .partition(|effect| matches!(effect, Effect::File(FileJob::ReplyWhenSaved { .. })));
    deferred.into_iter().for_each(|effect| all.extend(handle_event(state, reply_ready(vec![effect]), NOW)));
    all
}

/// Handles the result of the search for a team that the daemon does not know.
fn find_team(
    state: &mut State,
    effects: Vec<Effect>,
    member_count: Result<Option<usize>, ErrorReport>,
) -> Vec<Effect> {
    let find = effects.into_iter().find_map(|effect| match effect {
        Effect::File(FileJob::FindTeam { team, waiting }) => Some((team, waiting)),
        _ => None,
    });
    let (team, waiting) = find.expect("the daemon searches for the team");
    let found = FileResult::TeamFound { team, member_count, waiting };
    handle_event(state, CoreEvent::FileJobDone(found), NOW)
}

fn exit_reported(conn: u64, exit: ExitReport) -> CoreEvent {
    CoreEvent::ShimReported { conn, report: FromShim::Exited(exit) }
}

/// Starts a member whose shim has the connection `conn`.
fn start_member(state: &mut State, name: &str, conn: u64) -> SpawnId {
    let spawn = opened_spawn_id(&send_call(state, 1, spawn_request(name)));
    let pid = u32::try_from(conn).unwrap();
    for event in [
        pane_opened(&spawn, pid),
        shim_connected(&spawn, conn, pid, None),
        member_registered(&spawn),
        agent_started(conn),
    ] {
        handle_event(state, event, NOW);
    }
    assert!(matches!(state.agents[&spawn].record.lifecycle, Lifecycle::Running(_)));
    spawn
}

fn delete_request() -> Request {
    let discard_worktrees = Vec::new();
    Request::DeleteTeam(DeleteTeamRequest {
        force: false,
        discard_worktrees,
        ..DeleteTeamRequest::forced(survey_team())
    })
}

fn forced_delete_request() -> Request {
    let discard_worktrees = Vec::new();
    Request::DeleteTeam(DeleteTeamRequest { discard_worktrees, ..DeleteTeamRequest::forced(survey_team()) })
}

fn reply(effects: &[Effect], to_client: u64) -> Option<&Response> {
    effects.iter().find_map(|effect| match effect {
        Effect::Reply { client, response } if *client == to_client => Some(response),
        _ => None,
    })
}

fn reply_value(effects: &[Effect], client: u64) -> Option<&Reply> {
    match reply(effects, client) {
        Some(Response::Done(reply)) => Some(reply),
        _ => None,
    }
}

fn error_kind(effects: &[Effect], client: u64) -> Option<ErrorKind> {
    match reply(effects, client) {
        Some(Response::Failed(error)) => Some(error.kind),
        _ => None,
    }
}

fn member_deregistered(
    spawn: &SpawnId,
    approval: ShutdownApproval,
    error: Option<protocol::error_kind_and_report::ErrorReport>,
) -> CoreEvent {
    CoreEvent::FileJobDone(FileResult::MemberDeregistered { spawn: spawn.clone(), approval, error })
}

fn pane_closed(spawn: &SpawnId) -> CoreEvent {
    CoreEvent::PaneJobDone(PaneResult::PaneClosed { spawn: spawn.clone(), error: None })
}

/// Whether an agent is ended once the roster is saved.
fn ends_agent(effects: &[Effect]) -> bool {
    has_file_job(effects, |job| matches!(job, FileJob::AwaitStopRecorded { .. }))
}

fn has_file_job(effects: &[Effect], is_wanted: fn(&FileJob) -> bool) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::File(job) if is_wanted(job)))
}
