//! Tests of turns, task offers, respawns after a failure, and agents without a pane.

use super::*;
use crate::core::deadlines;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
use crate::core::jobs::file_jobs::{FileJob, FileResult};
use crate::core::jobs::pane_jobs::{PaneJob, PanePresence, PaneResult};
use crate::core::lifecycle::Lifecycle;
use protocol::control::{Backend, RestartPolicy};
use protocol::control::{
    ExchangePause, FailedTurnsPause, LocatePaneReply, MemberAddress, MemberFlag, TurnPause, TurnStatus,
};
use protocol::inbox_message_payload::IdleReason;
use protocol::task::Task;
use protocol::turn_program::{TurnProgram, Worker};
use std::sync::Arc;

pub(crate) fn worker_request(name: &str, change: impl FnOnce(&mut SpawnRequest)) -> Request {
    let Request::Spawn(mut request) = spawn_request(name) else { unreachable!() };
    request.turns = Some(TurnProgram::Worker(Worker::default()));
    change(&mut request);
    Request::Spawn(request)
}

/// Starts the member of a spawn request. `conn` is the connection of its shim, and also the pid of
/// the shim and of the agent.
pub(crate) fn start_member_with(state: &mut State, request: Request, conn: u64) -> SpawnId {
    let effects = send_call(state, 1, request);
    start(state, &started_spawn_id(&effects), conn)
}

/// The spawn that these effects start.
pub(crate) fn started_spawn_id(effects: &[Effect]) -> SpawnId {
    let started = effects.iter().find_map(|effect| match effect {
        Effect::Pane(PaneJob::OpenPane(opening)) => Some(opening.spawn.clone()),
        Effect::StartShim { spawn, .. } => Some(spawn.clone()),
        _ => None,
    });
    started.expect("a spawn starts")
}

pub(crate) fn start(state: &mut State, spawn: &SpawnId, conn: u64) -> SpawnId {
    let pid = u32::try_from(conn).unwrap();
    match state.agents[spawn].record.request.backend {
        Backend::InProcess => {
            handle_event(state, CoreEvent::ShimStarted { spawn: spawn.clone(), result: Ok(pid) }, NOW);
        }
        _ => drop(handle_event(state, pane_opened(spawn, pid), NOW)),
    }
    handle_event(state, shim_connected(spawn, conn, pid, None), NOW);
    handle_event(state, member_registered(spawn), NOW);
    handle_event(state, CoreEvent::ShimReported { conn, report: FromShim::Started { pid } }, NOW);
    assert!(matches!(state.agents[spawn].record.lifecycle, Lifecycle::Running(_)));
    spawn.clone()
}

pub(crate) fn turn_state(activity: Activity, number: u64) -> TurnStatus {
    TurnStatus {
        mode: None,
        plan_stage: None,
        activity,
        since: NOW.wall,
        turn_number: number,
        summary: "task 1: x".into(),
        pid: (activity == Activity::Active).then_some(7),
        idle_reason: (activity == Activity::Idle).then_some(IdleReason::Available),
        session_id: None,
        usage: None,
        shutdown_requested: false,
        pause: None,
    }
}

pub(crate) fn report_turn(state: &mut State, conn: u64, turn: TurnStatus) -> Vec<Effect> {
    handle_event(state, CoreEvent::ShimReported { conn, report: FromShim::TurnStatus(turn) }, NOW)
}

pub(crate) fn logged_event_kinds(effects: &[Effect]) -> Vec<String> {
    let event = |effect: &Effect| match effect {
        Effect::Log(event) => {
            let value = serde_json::to_value(event).unwrap();
            Some(value["event"].as_str().unwrap().to_owned())
        }
        _ => None,
    };
    effects.iter().filter_map(event).collect()
}

pub(crate) fn woken_spawns(effects: &[Effect]) -> Vec<SpawnId> {
    let wake = |effect: &Effect| match effect {
        Effect::WakeAgent { spawn, .. } => Some(spawn.clone()),
        _ => None,
    };
    effects.iter().filter_map(wake).collect()
}

pub(crate) fn new_task(id: u32, status: &str, more_fields: &str) -> Task {
    let text = format!(
        r#"{{"id":"{id}","subject":"x","description":"","status":"{status}","blocks":[],"blockedBy":[]{more_fields}}}"#
    );
    Task::parse(&text).unwrap()
}

pub(crate) fn shared_tasks(tasks: Vec<Task>) -> Arc<Vec<Arc<Task>>> {
    Arc::new(tasks.into_iter().map(Arc::new).collect())
}

pub(crate) fn scan_tasks(state: &mut State, tasks: Vec<Task>) -> Vec<Effect> {
    handle_event(
        state,
        CoreEvent::TaskChanged { team: survey_team(), task: TaskId::parse("1").unwrap() },
        NOW,
    );
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::TasksScanned {
            team: survey_team(),
            members: vec![],
            result: Ok(shared_tasks(tasks)),
            queries: Vec::new(),
        }),
        NOW,
    )
}

#[test]
fn one_idle_agent_is_woken_for_each_task() {
    let mut state = new_state();
    let spawns: Vec<SpawnId> = ["a", "b", "c"]
        .iter()
        .zip(50..)
        .map(|(name, conn)| start_member_with(&mut state, worker_request(name, |_| ()), conn))
        .collect();
    (50..53).for_each(|conn| drop(report_turn(&mut state, conn, turn_state(Activity::Idle, 1))));
    let first = woken_spawns(&scan_tasks(&mut state, vec![new_task(1, "pending", "")]));
    assert_eq!(first.len(), 1);
    assert!(
        woken_spawns(&scan_tasks(&mut state, vec![new_task(1, "pending", "")])).is_empty(),
        "the task is already offered"
    );
    let second =
        woken_spawns(&scan_tasks(&mut state, vec![new_task(1, "pending", ""), new_task(2, "pending", "")]));
    assert_eq!(second.len(), 1);
    assert_ne!(first, second);
    let woken = woken_spawns(&scan_tasks(&mut state, vec![new_task(3, "pending", r#","owner":"c""#)]));
    assert!(woken.iter().all(|id| *id == spawns[2]), "only the owner is woken for its task");
}

#[test]
fn unclaimed_task_is_offered_again_after_a_rescan() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| ()), 50);
    report_turn(&mut state, 50, turn_state(Activity::Idle, 1));
    assert_eq!(
        woken_spawns(&scan_tasks(&mut state, vec![new_task(1, "pending", "")])),
        std::slice::from_ref(&ann)
    );
    handle_event(&mut state, CoreEvent::WatcherOverflow, NOW);
    assert_eq!(woken_spawns(&scan_tasks(&mut state, vec![new_task(1, "pending", "")])), [ann]);
}

#[test]
fn blocked_task_wakes_no_agent() {
    let mut state = new_state();
    start_member_with(&mut state, worker_request("ann", |_| ()), 50);
    report_turn(&mut state, 50, turn_state(Activity::Idle, 1));
    let mut blocked = new_task(2, "pending", "");
    blocked.blocked_by = vec![TaskId::parse("1").unwrap()];
    let busy = new_task(1, "in_progress", r#","owner":"ann""#);
    assert!(woken_spawns(&scan_tasks(&mut state, vec![busy, blocked.clone()])).is_empty());
    assert_eq!(woken_spawns(&scan_tasks(&mut state, vec![new_task(1, "completed", ""), blocked])).len(), 1);
}

#[test]
fn turn_is_logged_once_and_shown_in_status() {
    let mut state = new_state();
    start_member_with(&mut state, worker_request("ann", |_| ()), 50);
    assert_eq!(
        logged_event_kinds(&report_turn(&mut state, 50, turn_state(Activity::Active, 1))),
        ["member_active"]
    );
    assert_eq!(logged_event_kinds(&report_turn(&mut state, 50, turn_state(Activity::Active, 1))), [""; 0]);
    assert_eq!(
        logged_event_kinds(&report_turn(&mut state, 50, turn_state(Activity::Active, 2))),
        ["member_active"]
    );
    let effects = send_call(&mut state, 9, Request::Status);
    let Some(Reply::Status(status)) = reply_value(&effects, 9) else { panic!("{effects:?}") };
    assert_eq!(status.teams[0].members[0].activity_reason, "turn 2, pid 7: task 1: x");
    let mut idle = turn_state(Activity::Idle, 2);
    idle.shutdown_requested = true;
    assert_eq!(logged_event_kinds(&report_turn(&mut state, 50, idle)), ["member_idle"]);
    let effects = send_call(&mut state, 9, Request::Status);
    let Some(Reply::Status(status)) = reply_value(&effects, 9) else { panic!("{effects:?}") };
    assert_eq!(status.teams[0].members[0].flags, [protocol::control::MemberFlag::ShutdownRequested]);
}

#[test]
fn interrupt_is_answered_after_the_turn() {
    let mut state = new_state();
    start_member_with(&mut state, worker_request("ann", |_| ()), 50);
    let address = MemberAddress { team: survey_team(), name: "ann".into() };
    let effects = send_call(&mut state, 9, Request::Interrupt(address.clone()));
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::SendToShim { conn: 50, message: ToShim::Interrupt }))
    );
    assert!(reply(&effects, 9).is_none());
    let report = FromShim::Interrupted { was_in_turn: true };
    let effects = handle_event(&mut state, CoreEvent::ShimReported { conn: 50, report }, NOW);
    assert!(matches!(reply_value(&effects, 9), Some(Reply::Interrupt(reply)) if reply.was_in_turn));
    send_call(&mut state, 10, Request::Interrupt(address));
    let effects = handle_event(&mut state, CoreEvent::ConnectionClosed { conn: 50 }, NOW);
    assert!(matches!(reply(&effects, 10), Some(Response::Failed(error)) if error.kind == ErrorKind::Timeout));
    assert!(state.interrupt_waiters.is_empty());
}

#[test]
fn agent_that_runs_its_own_turns_cannot_be_interrupted() {
    let mut state = new_state();
    start_member(&mut state, "ann", 50);
    let effects = send_call(
        &mut state,
        9,
        Request::Interrupt(MemberAddress { team: survey_team(), name: "ann".into() }),
    );
    assert!(matches!(reply(&effects, 9), Some(Response::Failed(error)) if error.kind == ErrorKind::Refused));
}

#[test]
fn failed_spawn_is_respawned_with_its_session() {
    let mut state = new_state();
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |request| request.restart = RestartPolicy::OnFailure(None)),
        50,
    );
    report_turn(
        &mut state,
        50,
        TurnStatus { session_id: Some("s-1".into()), ..turn_state(Activity::Active, 1) },
    );
    let effects = report_exit(&mut state, &ann, 50, ExitReport::Signal(9));
    assert_eq!(logged_event_kinds(&effects), ["member_exited", "member_respawn_scheduled"]);
    let past = &state.teams[&survey_team()].past_members[0];
    assert_eq!((past.outcome.as_str(), past.respawns_at.is_some()), ("failed", true));
    finish_cleanup(&mut state, &ann);
    state.rescan_at = 60_000;
    assert_eq!(deadlines::next_deadline(&state), 1_500);
    let respawn = started_spawn_id(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(1_500)));
    let pid = 60;
    handle_event(&mut state, pane_opened(&respawn, pid), NOW);
    handle_event(&mut state, shim_connected(&respawn, 60, pid, None), NOW);
    let effects = handle_event(&mut state, member_registered(&respawn), NOW);
    let turn_setup = effects.iter().find_map(|effect| match effect {
        Effect::SendToShim { message: ToShim::StartAgent(start), .. } => start.turn_setup.clone(),
        _ => None,
    });
    let turn_setup = turn_setup.expect("the shim is told to start the agent");
    assert!(turn_setup.is_respawn && turn_setup.prompt.is_empty());
    assert_eq!(turn_setup.session_id.as_deref(), Some("s-1"));
    assert!(state.teams[&survey_team()].past_members.is_empty(), "the member runs again");
}

#[test]
fn member_that_was_killed_or_did_not_fail_is_not_respawned() {
    let request = || worker_request("ann", |request| request.restart = RestartPolicy::OnFailure(None));
    for exit in [ExitReport::Exit(0), ExitReport::PaneClosed] {
        let mut state = new_state();
        let ann = start_member_with(&mut state, request(), 50);
        report_exit(&mut state, &ann, 50, exit);
        assert!(state.pending_respawns.is_empty());
    }
    let mut state = new_state();
    let ann = start_member_with(&mut state, request(), 50);
    send_call(
        &mut state,
        9,
        Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] }),
    );
    report_exit(&mut state, &ann, 50, ExitReport::Signal(15));
    assert!(state.pending_respawns.is_empty());
}

#[test]
fn member_whose_tmux_server_has_ended_is_respawned_or_suspended() {
    for (restart, is_suspended) in [(RestartPolicy::Never, true), (RestartPolicy::OnFailure(None), false)] {
        let mut state = new_state();
        let ann =
            start_member_with(&mut state, worker_request("ann", |request| request.restart = restart), 50);
        report_exit(&mut state, &ann, 50, ExitReport::TmuxServerGone);
        let pending: Vec<bool> =
            state.pending_respawns.iter().map(|pending| pending.is_suspended()).collect();
        assert_eq!(pending, [is_suspended]);
        assert_eq!(state.notices.pending().len(), usize::from(is_suspended));
    }
}

#[test]
fn shutdown_cancels_a_pending_respawn() {
    let mut state = new_state();
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |request| request.restart = RestartPolicy::OnFailure(None)),
        50,
    );
    report_exit(&mut state, &ann, 50, ExitReport::Exit(1));
    finish_cleanup(&mut state, &ann);
    let targets = MemberSelection { team: survey_team(), names: vec!["ann".into()] };
    let request =
        ShutdownMembersRequest { targets, reason: None, grace_ms: 1_000, force: false, no_wait: false };
    let effects = send_call(&mut state, 9, Request::Shutdown(request));
    let effects = with_replies(&mut state, effects);
    assert!(matches!(reply_value(&effects, 9), Some(Reply::Exits(_))), "{effects:?}");
    assert!(state.pending_respawns.is_empty());
}

#[test]
fn abandoned_task_is_logged_once() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| ()), 50);
    let own_tasks = || vec![new_task(1, "in_progress", r#","owner":"ann""#)];
    assert_eq!(logged_event_kinds(&scan_tasks(&mut state, own_tasks())), ["task_created", "task_started"]);
    report_killed_shim(&mut state, &ann, PanePresence::Absent);
    let effects = finish_cleanup(&mut state, &ann);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::ScanTasks { .. }))));
    let scanned = CoreEvent::FileJobDone(FileResult::TasksScanned {
        team: survey_team(),
        members: vec![],
        result: Ok(shared_tasks(own_tasks())),
        queries: Vec::new(),
    });
    assert_eq!(logged_event_kinds(&handle_event(&mut state, scanned, NOW)), ["task_abandoned"]);
    assert_eq!(logged_event_kinds(&scan_tasks(&mut state, own_tasks())), [""; 0]);
}

#[test]
fn agent_without_a_pane_needs_no_tmux() {
    let mut state = new_state();
    state.settings.tmux_socket = None;
    let effects = send_call(&mut state, 1, worker_request("ann", |_| ()));
    assert!(
        matches!(reply(&effects, 1), Some(Response::Failed(error)) if error.kind == ErrorKind::MissingPath)
    );
    let bob = start_member_with(
        &mut state,
        worker_request("bob", |request| request.backend = Backend::InProcess),
        50,
    );
    assert!(state.agents[&bob].record.pane.is_none());
    let effects = send_call(
        &mut state,
        9,
        Request::LocatePane(MemberAddress { team: survey_team(), name: "bob".into() }),
    );
    let Some(Reply::LocatePane(LocatePaneReply::Log { path })) = reply_value(&effects, 9) else {
        panic!("{effects:?}")
    };
    assert_eq!(path, &PathBuf::from("/state/logs/agents/survey/bob.log"));
    report_exit(&mut state, &bob, 50, ExitReport::Exit(0));
    let effects = handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::MemberDeregistered {
            spawn: bob.clone(),
            approval: ShutdownApproval::NotGiven,
            error: None,
        }),
        NOW,
    );
    assert!(
        effects.iter().any(|effect| matches!(effect, Effect::CloseHandles { .. })),
        "the cleanup does not wait for a pane"
    );
}

#[test]
fn shim_that_cannot_be_started_fails_the_spawn() {
    let mut state = new_state();
    let spawn = started_spawn_id(&send_call(
        &mut state,
        1,
        worker_request("bob", |request| request.backend = Backend::InProcess),
    ));
    let result = Err(protocol::error::ErrorReport::new(ErrorKind::Io, "no"));
    let effects = handle_event(&mut state, CoreEvent::ShimStarted { spawn, result }, NOW);
    assert!(matches!(reply(&effects, 1), Some(Response::Failed(_))));
    assert!(state.agents.is_empty());
}

/// Reports the exit of an agent, as its shim does.
pub(crate) fn report_exit(state: &mut State, spawn: &SpawnId, conn: u64, exit: ExitReport) -> Vec<Effect> {
    assert!(state.agents.contains_key(spawn));
    handle_event(state, exit_reported(conn, exit), NOW)
}

/// Reports that the shim was killed, and what tmux says about its pane.
pub(crate) fn report_killed_shim(state: &mut State, spawn: &SpawnId, presence: PanePresence) {
    let report_read = FileResult::ExitReportRead { spawn: spawn.clone(), report: None };
    handle_event(state, CoreEvent::FileJobDone(report_read), NOW);
    let pane_inspected = PaneResult::PaneInspected { spawn: spawn.clone(), presence };
    handle_event(state, CoreEvent::PaneJobDone(pane_inspected), NOW);
}

/// Completes the cleanup of a spawn: its pane is closed and its member is deregistered.
pub(crate) fn finish_cleanup(state: &mut State, spawn: &SpawnId) -> Vec<Effect> {
    handle_event(state, pane_closed(spawn), NOW);
    let deregistered = FileResult::MemberDeregistered {
        spawn: spawn.clone(),
        approval: ShutdownApproval::NotGiven,
        error: None,
    };
    let effects = handle_event(state, CoreEvent::FileJobDone(deregistered), NOW);
    assert!(!state.agents.contains_key(spawn));
    effects
}

#[test]
fn only_the_shim_reports_the_activity_of_a_turn_agent() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let turn = serde_json::from_value(serde_json::json!({
        "activity": "idle", "turn_number": 1, "summary": "", "pid": null, "idle_reason": "available"
    }));
    handle_event(
        &mut state,
        CoreEvent::ShimReported { conn: 50, report: FromShim::TurnStatus(turn.unwrap()) },
        NOW,
    );
    let token = Some(state.agents[&ann].record.token.clone());
    let call = Call { token, ..*new_call(Request::ReportActivity(Activity::Active)) };
    let effects = handle_event(&mut state, CoreEvent::ClientCall { client: 9, call: Box::new(call) }, NOW);
    assert!(reply_value(&effects, 9).is_some());
    assert_eq!(state.agents[&ann].activity, Activity::Idle, "the shim would not correct a wrong activity");
}

#[test]
fn third_failed_turn_and_the_last_one_are_reported_once() {
    let mut state = new_state();
    start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let mut report = |failed_turns: u32, until: Option<u64>| {
        let reason = "exit 1: limit".to_owned();
        let pause = TurnPause::FailedTurns(FailedTurnsPause { failed_turns, reason, until });
        let turn = TurnStatus { pause: Some(pause), ..turn_state(Activity::Idle, failed_turns.into()) };
        logged_event_kinds(&report_turn(&mut state, 50, turn))
    };
    assert!(!report(2, Some(7)).contains(&"member_turns_failed".to_owned()));
    assert_eq!(report(3, Some(9)), ["member_turns_failed"]);
    assert!(report(3, Some(9)).is_empty(), "the same pause again");
    assert!(report(4, Some(11)).is_empty());
    assert_eq!(report(33, None), ["member_turns_failed"]);
    let effects = send_call(&mut state, 9, Request::Status);
    let Some(Reply::Status(status)) = reply_value(&effects, 9) else { panic!("no status") };
    assert_eq!(status.teams[0].members[0].flags, [MemberFlag::TurnsStopped]);
    assert_eq!(state.notices.pending().len(), 2);
}

#[test]
fn pause_of_an_exchange_is_logged_and_a_long_one_is_notified() {
    let mut state = new_state();
    start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let mut report = |within_ms: u64| {
        let with = AgentName::parse("bob").unwrap();
        let pause = TurnPause::Exchange(ExchangePause { with, turns: 6, within_ms, until: 90_000 });
        let turn = TurnStatus { pause: Some(pause), ..turn_state(Activity::Idle, 6) };
        logged_event_kinds(&report_turn(&mut state, 50, turn))
    };
    assert!(report(60_000).contains(&"member_exchange_paused".to_owned()));
    assert_eq!(report(3_600_000), ["member_exchange_paused"]);
    let effects = send_call(&mut state, 9, Request::Status);
    let Some(Reply::Status(status)) = reply_value(&effects, 9) else { panic!("no status") };
    assert_eq!(status.teams[0].members[0].flags, [MemberFlag::Paused]);
    assert_eq!(state.notices.pending().len(), 1);
}

#[test]
fn quiet_turn_is_reported_once_and_flagged_until_the_next_output() {
    let mut state = new_state();
    state.settings.no_output_after_ms = Some(60_000);
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    state.agents.get_mut(&ann).unwrap().has_reported_activity = true;
    let turn_start = state.agents[&ann].activity_since;
    let mut check_output = |at: u64, last_output: u64| {
        let times = vec![(ann.clone(), last_output)];
        let now = Now { mono: NOW.mono + (at - NOW.wall), wall: at };
        let effects =
            handle_event(&mut state, CoreEvent::FileJobDone(FileResult::OutputTimes { times }), now);
        (logged_event_kinds(&effects), crate::core::turns::no_output::is_quiet(&state.agents[&ann]))
    };
    assert_eq!(check_output(turn_start + 59_999, turn_start), (vec![], false));
    assert_eq!(check_output(turn_start + 60_000, turn_start), (vec!["member_no_output".to_owned()], true));
    assert_eq!(check_output(turn_start + 90_000, turn_start), (vec![], true));
    assert_eq!(
        check_output(turn_start + 90_000, turn_start + 80_000),
        (vec![], false),
        "the program has written something"
    );
    assert_eq!(
        check_output(turn_start + 140_000, turn_start + 80_000),
        (vec![], true),
        "no second report for this turn"
    );
}
