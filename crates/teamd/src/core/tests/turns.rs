//! Turns, tasks for whoever is idle, lives that follow a failure, agents without a pane.

use super::*;
use crate::core::deadlines;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
use crate::core::jobs::file_jobs::{FileJob, FileResult};
use crate::core::jobs::pane_jobs::PaneJob;
use crate::core::lifecycle::Lifecycle;
use protocol::control::{Backend, RestartPolicy};
use protocol::control::{LocatePaneReply, MemberAddress, TurnStatus};
use protocol::payload::IdleReason;
use protocol::shim_turn_program::{TurnProgram, Worker};
use protocol::task::Task;
use std::sync::Arc;

pub(crate) fn worker_request(name: &str, change: impl FnOnce(&mut SpawnRequest)) -> Request {
    let Request::Spawn(mut order) = spawn_request(name) else { unreachable!() };
    order.turns = Some(TurnProgram::Worker(Worker::default()));
    change(&mut order);
    Request::Spawn(order)
}

/// A running agent of this order, its join (and first process) on connection `conn`.
pub(crate) fn start_member_with(state: &mut State, order: Request, conn: u64) -> SpawnId {
    let effects = send_call(state, 1, order);
    start(state, &started_spawn_id(&effects), conn)
}

/// The life that these effects began.
pub(crate) fn started_spawn_id(effects: &[Effect]) -> SpawnId {
    let begun = effects.iter().find_map(|effect| match effect {
        Effect::Pane(PaneJob::OpenPane(opening)) => Some(opening.spawn.clone()),
        Effect::StartShim { spawn, .. } => Some(spawn.clone()),
        _ => None,
    });
    begun.expect("a life begins")
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

pub(crate) fn new_task(id: u32, status: &str, more: &str) -> Task {
    let text = format!(
        r#"{{"id":"{id}","subject":"x","description":"","status":"{status}","blocks":[],"blockedBy":[]{more}}}"#
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
fn of_many_idle_agents_one_is_woken_for_one_task() {
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
        "it has been offered"
    );
    let second =
        woken_spawns(&scan_tasks(&mut state, vec![new_task(1, "pending", ""), new_task(2, "pending", "")]));
    assert_eq!(second.len(), 1);
    assert_ne!(first, second);
    let own_tasks = woken_spawns(&scan_tasks(&mut state, vec![new_task(3, "pending", r#","owner":"c""#)]));
    assert!(own_tasks.iter().all(|id| *id == spawns[2]), "nobody else may take it");
}

#[test]
fn an_offer_that_nobody_takes_goes_to_another_after_a_while() {
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
fn a_blocked_task_wakes_nobody() {
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
fn a_turn_is_shown_with_its_evidence_and_told_once() {
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
    assert_eq!(status.teams[0].members[0].evidence, "turn 2, pid 7: task 1: x");
    let mut idle = turn_state(Activity::Idle, 2);
    idle.shutdown_requested = true;
    assert_eq!(logged_event_kinds(&report_turn(&mut state, 50, idle)), ["member_idle"]);
    let effects = send_call(&mut state, 9, Request::Status);
    let Some(Reply::Status(status)) = reply_value(&effects, 9) else { panic!("{effects:?}") };
    assert_eq!(status.teams[0].members[0].flags, [protocol::control::MemberFlag::ShutdownRequested]);
}

#[test]
fn an_interrupt_is_answered_after_the_turn() {
    let mut state = new_state();
    start_member_with(&mut state, worker_request("ann", |_| ()), 50);
    let who = MemberAddress { team: survey_team(), name: "ann".into() };
    let effects = send_call(&mut state, 9, Request::Interrupt(who.clone()));
    assert!(effects.iter().any(|e| matches!(e, Effect::SendToShim { conn: 50, message: ToShim::Interrupt })));
    assert!(reply(&effects, 9).is_none());
    let said = FromShim::Interrupted { was_in_turn: true };
    let effects = handle_event(&mut state, CoreEvent::ShimReported { conn: 50, report: said }, NOW);
    assert!(matches!(reply_value(&effects, 9), Some(Reply::Interrupt(reply)) if reply.was_in_turn));
    send_call(&mut state, 10, Request::Interrupt(who));
    let effects = handle_event(&mut state, CoreEvent::ConnectionClosed { conn: 50 }, NOW);
    assert!(matches!(reply(&effects, 10), Some(Response::Failed(fault)) if fault.kind == ErrorKind::Timeout));
    assert!(state.interrupt_waiters.is_empty());
}

#[test]
fn whose_turns_are_its_own_is_not_interrupted() {
    let mut state = new_state();
    start_member(&mut state, "ann", 50);
    let effects = send_call(
        &mut state,
        9,
        Request::Interrupt(MemberAddress { team: survey_team(), name: "ann".into() }),
    );
    assert!(matches!(reply(&effects, 9), Some(Response::Failed(fault)) if fault.kind == ErrorKind::Refused));
}

#[test]
fn a_failed_life_is_followed_by_another_with_what_it_knew() {
    let mut state = new_state();
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |order| order.restart = RestartPolicy::OnFailure),
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
    let again = started_spawn_id(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(1_500)));
    let pid = 60;
    handle_event(&mut state, pane_opened(&again, pid), NOW);
    handle_event(&mut state, shim_connected(&again, 60, pid, None), NOW);
    let effects = handle_event(&mut state, member_registered(&again), NOW);
    let go = effects.iter().find_map(|effect| match effect {
        Effect::SendToShim { message: ToShim::StartAgent(go), .. } => go.setup.clone(),
        _ => None,
    });
    let turns = go.expect("the green light");
    assert!(turns.is_respawn && turns.prompt.is_empty());
    assert_eq!(turns.session_id.as_deref(), Some("s-1"));
    assert!(state.teams[&survey_team()].past_members.is_empty(), "it lives");
}

#[test]
fn whoever_was_asked_or_ended_by_itself_stays_gone() {
    let order = || worker_request("ann", |order| order.restart = RestartPolicy::OnFailure);
    for how in [ExitReport::Exit(0), ExitReport::TmuxServerGone, ExitReport::PaneClosed] {
        let mut state = new_state();
        let ann = start_member_with(&mut state, order(), 50);
        report_exit(&mut state, &ann, 50, how.clone());
        // Nothing brings it back by itself.
        let rests = state.pending_respawns.iter().all(|resting| resting.is_suspended());
        assert_eq!(
            (state.pending_respawns.len(), rests),
            (usize::from(how == ExitReport::TmuxServerGone), true)
        );
    }
    let mut state = new_state();
    let ann = start_member_with(&mut state, order(), 50);
    send_call(
        &mut state,
        9,
        Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] }),
    );
    report_exit(&mut state, &ann, 50, ExitReport::Signal(15));
    assert!(state.pending_respawns.is_empty());
}

#[test]
fn a_shutdown_reaches_a_member_between_two_lives() {
    let mut state = new_state();
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |order| order.restart = RestartPolicy::OnFailure),
        50,
    );
    report_exit(&mut state, &ann, 50, ExitReport::Exit(1));
    finish_cleanup(&mut state, &ann);
    let targets = MemberSelection { team: survey_team(), names: vec!["ann".into()] };
    let order =
        ShutdownMembersRequest { targets, reason: None, grace_ms: 1_000, force: false, no_wait: false };
    let effects = send_call(&mut state, 9, Request::Shutdown(order));
    let effects = with_replies(&mut state, effects);
    assert!(matches!(reply_value(&effects, 9), Some(Reply::Exits(_))), "{effects:?}");
    assert!(state.pending_respawns.is_empty());
}

#[test]
fn what_a_dead_owner_left_is_told_once() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| ()), 50);
    let own_tasks = || vec![new_task(1, "in_progress", r#","owner":"ann""#)];
    assert_eq!(logged_event_kinds(&scan_tasks(&mut state, own_tasks())), ["task_created", "task_started"]);
    report_exit(&mut state, &ann, 50, ExitReport::ShimKilled);
    let effects = finish_cleanup(&mut state, &ann);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::ScanTasks { .. }))));
    let looked = CoreEvent::FileJobDone(FileResult::TasksScanned {
        team: survey_team(),
        members: vec![],
        result: Ok(shared_tasks(own_tasks())),
        queries: Vec::new(),
    });
    assert_eq!(logged_event_kinds(&handle_event(&mut state, looked, NOW)), ["task_abandoned"]);
    assert_eq!(logged_event_kinds(&scan_tasks(&mut state, own_tasks())), [""; 0]);
}

#[test]
fn an_agent_without_a_pane_is_launched_and_registered_alike() {
    let mut state = new_state();
    state.settings.tmux_socket = None;
    let effects = send_call(&mut state, 1, worker_request("ann", |_| ()));
    assert!(
        matches!(reply(&effects, 1), Some(Response::Failed(fault)) if fault.kind == ErrorKind::MissingPath)
    );
    let bob =
        start_member_with(&mut state, worker_request("bob", |order| order.backend = Backend::InProcess), 50);
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
        "no pane is waited for"
    );
}

#[test]
fn a_process_that_can_not_be_started_takes_everything_back() {
    let mut state = new_state();
    let spawn = started_spawn_id(&send_call(
        &mut state,
        1,
        worker_request("bob", |order| order.backend = Backend::InProcess),
    ));
    let result = Err(protocol::error::ErrorReport::new(ErrorKind::Io, "no"));
    let effects = handle_event(&mut state, CoreEvent::ShimStarted { spawn, result }, NOW);
    assert!(matches!(reply(&effects, 1), Some(Response::Failed(_))));
    assert!(state.agents.is_empty());
}

/// Its join reports how it ended.
pub(crate) fn report_exit(state: &mut State, spawn: &SpawnId, conn: u64, how: ExitReport) -> Vec<Effect> {
    assert!(state.agents.contains_key(spawn));
    handle_event(state, exit_reported(conn, how), NOW)
}

/// Files and pane are put in order.
pub(crate) fn finish_cleanup(state: &mut State, spawn: &SpawnId) -> Vec<Effect> {
    handle_event(state, pane_closed(spawn), NOW);
    let farewelled = FileResult::MemberDeregistered {
        spawn: spawn.clone(),
        approval: ShutdownApproval::NotGiven,
        error: None,
    };
    let effects = handle_event(state, CoreEvent::FileJobDone(farewelled), NOW);
    assert!(!state.agents.contains_key(spawn));
    effects
}

#[test]
fn of_turns_that_a_join_runs_that_alone_tells() {
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
    assert_eq!(state.agents[&ann].activity, Activity::Idle, "no join would ever say otherwise");
}

#[test]
fn quiet_turn_is_reported_once_and_flagged_until_the_next_output() {
    let mut state = new_state();
    state.settings.no_output_after_ms = Some(60_000);
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    state.agents.get_mut(&ann).unwrap().has_reported_activity = true;
    let began = state.agents[&ann].activity_since;
    let mut look = |at: u64, last_output: u64| {
        let written = vec![(ann.clone(), last_output)];
        let now = Now { mono: NOW.mono + (at - NOW.wall), wall: at };
        let effects =
            handle_event(&mut state, CoreEvent::FileJobDone(FileResult::OutputTimes { written }), now);
        (logged_event_kinds(&effects), crate::core::turns::no_output::is_quiet(&state.agents[&ann]))
    };
    assert_eq!(look(began + 59_999, began), (vec![], false));
    assert_eq!(look(began + 60_000, began), (vec!["member_no_output".to_owned()], true));
    assert_eq!(look(began + 90_000, began), (vec![], true));
    assert_eq!(look(began + 90_000, began + 80_000), (vec![], false), "the program has written something");
    assert_eq!(look(began + 140_000, began + 80_000), (vec![], true), "no second report for this turn");
}
