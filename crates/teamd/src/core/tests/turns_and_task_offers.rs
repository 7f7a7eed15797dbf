//! Tests of turns, and of the tasks for which idle agents are woken.

use super::*;
use crate::core::core_event::CoreEvent;
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::pane_jobs::{PaneJob, PanePresence, PaneResult};
use crate::core::recovery;
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::state::core_state::State;
use crate::core::state::logged_tasks_messages_and_requests::EventLogCursor;
use protocol::control_socket::{
    Backend, ExchangePause, FailedTurnsPause, MemberAddress, MemberFlag, TurnPause, TurnStatus, UsageLimit,
};
use protocol::inbox_message_payload::IdleReason;
use protocol::task::Task;
use protocol::worker_or_program_that_runs_turns::{TurnProgram, Worker};
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
    assert_eq!(status.teams[0].members[0].flags, [protocol::control_socket::MemberFlag::ShutdownRequested]);
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
        let pause = TurnPause::FailedTurns(FailedTurnsPause { failed_turns, reason, until, limit: None });
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

/// A report that ann waits for the end of a usage limit.
fn limited_turn(until: u64, tries: u32) -> TurnStatus {
    let limit = Some(UsageLimit { until, local_time: "15:00".to_owned(), tries });
    let (reason, until) = ("exit 1: limit".to_owned(), Some(until + 1));
    let pause = TurnPause::FailedTurns(FailedTurnsPause { failed_turns: tries, reason, until, limit });
    TurnStatus { pause: Some(pause), ..turn_state(Activity::Idle, tries.into()) }
}

#[test]
fn usage_limit_is_logged_and_notified_once() {
    let mut state = new_state();
    start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let mut report = |turn| logged_event_kinds(&report_turn(&mut state, 50, turn));
    let end = NOW.wall + 3_600_000;
    assert!(report(limited_turn(end, 1)).contains(&"member_limited".to_owned()));
    assert_eq!(report(turn_state(Activity::Active, 2)), ["member_active"]);
    for tries in [2, 3] {
        assert!(
            !report(limited_turn(end, tries))
                .iter()
                .any(|kind| kind.starts_with("member_limited") || kind == "member_turns_failed"),
            "{tries}"
        );
        report(turn_state(Activity::Active, tries.into()));
    }
    assert!(report(limited_turn(NOW.wall + 5_000, 1)).contains(&"member_limited".to_owned()));
    let effects = send_call(&mut state, 9, Request::Status);
    let Some(Reply::Status(status)) = reply_value(&effects, 9) else { panic!("no status") };
    let ann = &status.teams[0].members[0];
    assert_eq!(ann.flags, [MemberFlag::Limited]);
    assert_eq!(ann.usage_limit.as_ref().unwrap().until, NOW.wall + 5_000);
    assert_eq!(state.notices.pending().len(), 1, "a short limit needs no attention");
}

#[test]
fn task_is_offered_to_an_idle_agent_that_is_not_limited() {
    let mut state = new_state();
    let _ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let bob = start_member_with(&mut state, worker_request("bob", |_| {}), 51);
    report_turn(&mut state, 50, limited_turn(9_000, 1));
    report_turn(&mut state, 51, turn_state(Activity::Idle, 1));
    let effects = scan_tasks(&mut state, vec![new_task(1, "pending", "")]);
    assert_eq!(woken_spawns(&effects), [bob]);
}

#[test]
fn pause_of_an_exchange_is_logged_and_a_long_one_is_notified() {
    let mut state = new_state();
    start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let mut report = |within_ms: u64| {
        let with = MemberName::parse("bob").unwrap();
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

#[test]
fn interrupt_of_a_starting_member_is_answered() {
    let mut state = new_state();
    let effects = send_call(&mut state, 1, worker_request("ann", |_| ()));
    let ann = started_spawn_id(&effects);
    handle_event(&mut state, shim_connected(&ann, 50, 50, None), NOW);
    let address = MemberAddress { team: survey_team(), name: "ann".into() };
    let mut effects = send_call(&mut state, 9, Request::Interrupt(address));
    let result = Err(protocol::error_kind_and_report::ErrorReport::new(ErrorKind::Io, "no"));
    effects.extend(handle_event(
        &mut state,
        CoreEvent::PaneJobDone(PaneResult::PaneOpened { spawn: ann, result }),
        NOW,
    ));
    effects.extend(handle_event(&mut state, CoreEvent::ConnectionClosed { conn: 50 }, NOW));
    effects.extend(handle_event(&mut state, CoreEvent::DeadlineReached, now_at(600_000)));
    assert!(reply(&effects, 9).is_some(), "the interrupt has no reply");
}

#[test]
fn task_of_a_foreign_member_is_not_abandoned() {
    let mut state = new_state();
    let members = vec![MemberName::new_unchecked("claude-mate")];
    let tasks = shared_tasks(vec![new_task(1, "in_progress", r#","owner":"claude-mate""#)]);
    let scanned =
        FileResult::TasksScanned { team: survey_team(), members, result: Ok(tasks), queries: Vec::new() };
    let effects = handle_event(&mut state, CoreEvent::FileJobDone(scanned), NOW);
    assert!(
        !logged_event_kinds(&effects).contains(&"task_abandoned".to_owned()),
        "{:?}",
        logged_event_kinds(&effects)
    );
}

#[test]
fn turn_of_a_stopping_member_is_known_after_its_shim_reconnects() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| ()), 50);
    let targets = MemberSelection { team: survey_team(), names: vec!["ann".into()] };
    send_call(
        &mut state,
        9,
        Request::Shutdown(ShutdownMembersRequest {
            targets,
            reason: None,
            grace_ms: 60_000,
            force: false,
            no_wait: false,
        }),
    );
    let roster = state.to_roster();
    let mut state = State::new(state.settings.clone(), roster, EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    let hello = protocol::control_socket::ShimHello {
        spawn_id: ann.as_str().to_owned(),
        agent_pid: Some(50),
        turn_status: Some(turn_state(Activity::Active, 4)),
    };
    let process = Process { pid: 50, start_time: 5 };
    let effects = handle_event(&mut state, CoreEvent::ShimConnected { conn: 3, hello, peer: process }, NOW);
    assert!(state.agents[&ann].turn.is_some(), "the turn is unknown");
    assert!(!woken_spawns(&effects).is_empty(), "the agent is not woken");
}

#[test]
fn restarted_daemon_does_not_log_a_turn_again() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| ()), 50);
    report_turn(&mut state, 50, turn_state(Activity::Idle, 4));
    let mut state = State::new(state.settings.clone(), state.to_roster(), EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    let hello = protocol::control_socket::ShimHello {
        spawn_id: ann.as_str().to_owned(),
        agent_pid: Some(50),
        turn_status: Some(turn_state(Activity::Idle, 4)),
    };
    let process = Process { pid: 50, start_time: 5 };
    let effects = handle_event(&mut state, CoreEvent::ShimConnected { conn: 3, hello, peer: process }, NOW);
    assert_eq!(logged_event_kinds(&effects), ["member_adopted"]);
}

#[test]
fn task_offered_to_a_busy_agent_is_offered_to_another() {
    let mut state = new_state();
    start_member_with(&mut state, worker_request("ann", |_| ()), 50);
    start_member_with(&mut state, worker_request("bob", |_| ()), 51);
    let scan = |state: &mut State, tasks: Vec<Task>| {
        let scanned = CoreEvent::FileJobDone(FileResult::TasksScanned {
            team: survey_team(),
            members: vec![],
            result: Ok(shared_tasks(tasks)),
            queries: Vec::new(),
        });
        handle_event(state, scanned, NOW)
    };
    report_turn(&mut state, 50, turn_state(Activity::Idle, 1));
    report_turn(&mut state, 51, turn_state(Activity::Idle, 1));
    scan(&mut state, vec![]);
    scan(&mut state, vec![]);
    handle_event(
        &mut state,
        CoreEvent::TaskChanged { team: survey_team(), task: TaskId::parse("1").unwrap() },
        NOW,
    );
    let offered = woken_spawns(&scan(&mut state, vec![new_task(1, "pending", "")]));
    assert_eq!(offered.len(), 1);
    let conn = if state.agents[&offered[0]].record.request.name.as_str() == "ann" { 50 } else { 51 };
    // The agent has a message too, and handles it first.
    let mut turn = turn_state(Activity::Active, 2);
    turn.summary = "message from team-lead".into();
    let mut effects = report_turn(&mut state, conn, turn);
    if effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::ScanTasks { .. }))) {
        effects = scan(&mut state, vec![new_task(1, "pending", "")]);
    }
    assert_eq!(woken_spawns(&effects).len(), 1, "the task is not offered to the other agent: {effects:?}");
}

#[test]
fn paused_member_is_woken_after_a_sleep_of_the_machine() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    report_turn(&mut state, 50, limited_turn(NOW.wall + 3_600_000, 1));
    let mut wakes_ann = |slept: u64| {
        let now = Now { wall: NOW.wall + 30_000 + slept, mono: NOW.mono + 30_000 };
        let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now);
        effects.iter().any(|effect| matches!(effect, Effect::WakeAgent { spawn, .. } if *spawn == ann))
    };
    assert!(!wakes_ann(0));
    assert!(wakes_ann(7_200_000));
}
