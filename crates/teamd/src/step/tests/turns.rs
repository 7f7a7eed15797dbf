//! Turns, tasks for whoever is idle, lives that follow a failure, agents without a pane.

use super::*;
use protocol::control::{LocatePaneReply, MemberAddress, TurnStatus};
use protocol::payload::IdleReason;
use protocol::task::Task;
use protocol::turn_program::{Backend, RestartPolicy, TurnProgram, Worker};
use std::sync::Arc;

pub(super) fn worker(name: &str, change: impl FnOnce(&mut SpawnRequest)) -> Request {
    let Request::Spawn(mut order) = order(name) else { unreachable!() };
    order.turns = Some(TurnProgram::Worker(Worker::default()));
    change(&mut order);
    Request::Spawn(order)
}

/// A running agent of this order, its join (and first process) on connection `conn`.
pub(super) fn runs(state: &mut State, order: Request, conn: u64) -> SpawnId {
    let effects = ask(state, 1, order);
    start(state, &begun(&effects), conn)
}

/// The life that these effects began.
pub(super) fn begun(effects: &[Effect]) -> SpawnId {
    let begun = effects.iter().find_map(|effect| match effect {
        Effect::Pane(PaneJob::Open(opening)) => Some(opening.spawn.clone()),
        Effect::Launch { spawn, .. } => Some(spawn.clone()),
        _ => None,
    });
    begun.expect("a life begins")
}

pub(super) fn start(state: &mut State, spawn: &SpawnId, conn: u64) -> SpawnId {
    let pid = u32::try_from(conn).unwrap();
    match state.agents[spawn].record.backend {
        Backend::InProcess => {
            step(state, Event::Launched { spawn: spawn.clone(), result: Ok(pid) }, NOW);
        }
        _ => drop(step(state, opened(spawn, pid), NOW)),
    }
    step(state, joined(spawn, conn, pid, None), NOW);
    step(state, registered(spawn), NOW);
    step(state, Event::JoinSaid { conn, said: FromShim::Started { pid } }, NOW);
    assert!(matches!(state.agents[spawn].phase, Phase::Running(_)));
    spawn.clone()
}

pub(super) fn turn(activity: Activity, number: u64) -> TurnStatus {
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

pub(super) fn says(state: &mut State, conn: u64, turn: TurnStatus) -> Vec<Effect> {
    step(state, Event::JoinSaid { conn, said: FromShim::TurnStatus(turn) }, NOW)
}

pub(super) fn logged(effects: &[Effect]) -> Vec<String> {
    let event = |effect: &Effect| match effect {
        Effect::Log(event) => {
            let value = serde_json::to_value(event).unwrap();
            Some(value["event"].as_str().unwrap().to_owned())
        }
        _ => None,
    };
    effects.iter().filter_map(event).collect()
}

pub(super) fn woken(effects: &[Effect]) -> Vec<SpawnId> {
    let wake = |effect: &Effect| match effect {
        Effect::Wake { spawn, .. } => Some(spawn.clone()),
        _ => None,
    };
    effects.iter().filter_map(wake).collect()
}

pub(super) fn task(id: u32, status: &str, more: &str) -> Task {
    let text = format!(
        r#"{{"id":"{id}","subject":"x","description":"","status":"{status}","blocks":[],"blockedBy":[]{more}}}"#
    );
    Task::parse(&text).unwrap()
}

pub(super) fn shared(tasks: Vec<Task>) -> Arc<Vec<Arc<Task>>> {
    Arc::new(tasks.into_iter().map(Arc::new).collect())
}

pub(super) fn sees(state: &mut State, tasks: Vec<Task>) -> Vec<Effect> {
    step(state, Event::TasksChanged { team: team(), task: TaskId::parse("1").unwrap() }, NOW);
    step(
        state,
        Event::Filed(FileDone::Tasks {
            team: team(),
            members: vec![],
            result: Ok(shared(tasks)),
            asks: Vec::new(),
        }),
        NOW,
    )
}

#[test]
fn of_many_idle_agents_one_is_woken_for_one_task() {
    let mut state = state();
    let spawns: Vec<SpawnId> = ["a", "b", "c"]
        .iter()
        .zip(50..)
        .map(|(name, conn)| runs(&mut state, worker(name, |_| ()), conn))
        .collect();
    (50..53).for_each(|conn| drop(says(&mut state, conn, turn(Activity::Idle, 1))));
    let first = woken(&sees(&mut state, vec![task(1, "pending", "")]));
    assert_eq!(first.len(), 1);
    assert!(woken(&sees(&mut state, vec![task(1, "pending", "")])).is_empty(), "it has been offered");
    let second = woken(&sees(&mut state, vec![task(1, "pending", ""), task(2, "pending", "")]));
    assert_eq!(second.len(), 1);
    assert_ne!(first, second);
    let hers = woken(&sees(&mut state, vec![task(3, "pending", r#","owner":"c""#)]));
    assert!(hers.iter().all(|id| *id == spawns[2]), "nobody else may take it");
}

#[test]
fn an_offer_that_nobody_takes_goes_to_another_after_a_while() {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |_| ()), 50);
    says(&mut state, 50, turn(Activity::Idle, 1));
    assert_eq!(woken(&sees(&mut state, vec![task(1, "pending", "")])), std::slice::from_ref(&ann));
    step(&mut state, Event::Overflow, NOW);
    assert_eq!(woken(&sees(&mut state, vec![task(1, "pending", "")])), [ann]);
}

#[test]
fn a_blocked_task_wakes_nobody() {
    let mut state = state();
    runs(&mut state, worker("ann", |_| ()), 50);
    says(&mut state, 50, turn(Activity::Idle, 1));
    let mut blocked = task(2, "pending", "");
    blocked.blocked_by = vec![TaskId::parse("1").unwrap()];
    let busy = task(1, "in_progress", r#","owner":"ann""#);
    assert!(woken(&sees(&mut state, vec![busy, blocked.clone()])).is_empty());
    assert_eq!(woken(&sees(&mut state, vec![task(1, "completed", ""), blocked])).len(), 1);
}

#[test]
fn a_turn_is_shown_with_its_evidence_and_told_once() {
    let mut state = state();
    runs(&mut state, worker("ann", |_| ()), 50);
    assert_eq!(logged(&says(&mut state, 50, turn(Activity::Active, 1))), ["member_active"]);
    assert_eq!(logged(&says(&mut state, 50, turn(Activity::Active, 1))), [""; 0]);
    assert_eq!(logged(&says(&mut state, 50, turn(Activity::Active, 2))), ["member_active"]);
    let effects = ask(&mut state, 9, Request::Status);
    let Some(Reply::Status(status)) = done(&effects, 9) else { panic!("{effects:?}") };
    assert_eq!(status.teams[0].members[0].evidence, "turn 2, pid 7: task 1: x");
    let mut idle = turn(Activity::Idle, 2);
    idle.shutdown_requested = true;
    assert_eq!(logged(&says(&mut state, 50, idle)), ["member_idle"]);
    let effects = ask(&mut state, 9, Request::Status);
    let Some(Reply::Status(status)) = done(&effects, 9) else { panic!("{effects:?}") };
    assert_eq!(status.teams[0].members[0].flags, [protocol::control::MemberFlag::ShutdownRequested]);
}

#[test]
fn an_interrupt_is_answered_after_the_turn() {
    let mut state = state();
    runs(&mut state, worker("ann", |_| ()), 50);
    let who = MemberAddress { team: team(), name: "ann".into() };
    let effects = ask(&mut state, 9, Request::Interrupt(who.clone()));
    assert!(effects.iter().any(|e| matches!(e, Effect::Tell { conn: 50, word: ToShim::Interrupt })));
    assert!(reply(&effects, 9).is_none());
    let said = FromShim::Interrupted { was_in_turn: true };
    let effects = step(&mut state, Event::JoinSaid { conn: 50, said }, NOW);
    assert!(matches!(done(&effects, 9), Some(Reply::Interrupt(reply)) if reply.was_in_turn));
    ask(&mut state, 10, Request::Interrupt(who));
    let effects = step(&mut state, Event::Closed { conn: 50 }, NOW);
    assert!(matches!(reply(&effects, 10), Some(Response::Failed(fault)) if fault.kind == ErrorKind::Timeout));
    assert!(state.interrupting.is_empty());
}

#[test]
fn whose_turns_are_its_own_is_not_interrupted() {
    let mut state = state();
    running(&mut state, "ann", 50);
    let effects = ask(&mut state, 9, Request::Interrupt(MemberAddress { team: team(), name: "ann".into() }));
    assert!(matches!(reply(&effects, 9), Some(Response::Failed(fault)) if fault.kind == ErrorKind::Refused));
}

#[test]
fn a_failed_life_is_followed_by_another_with_what_it_knew() {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |order| order.restart = RestartPolicy::OnFailure), 50);
    says(&mut state, 50, TurnStatus { session_id: Some("s-1".into()), ..turn(Activity::Active, 1) });
    let effects = ends(&mut state, &ann, 50, ExitReport::Signal(9));
    assert_eq!(logged(&effects), ["member_ended", "member_restarts"]);
    let past = &state.teams[&team()].past[0];
    assert_eq!((past.outcome.as_str(), past.respawns_at.is_some()), ("failed", true));
    bury(&mut state, &ann);
    state.rescan_at = 60_000;
    assert_eq!(super::super::next_deadline(&state), 1_500);
    let again = begun(&step(&mut state, Event::Deadline, at(1_500)));
    let pid = 60;
    step(&mut state, opened(&again, pid), NOW);
    step(&mut state, joined(&again, 60, pid, None), NOW);
    let effects = step(&mut state, registered(&again), NOW);
    let go = effects.iter().find_map(|effect| match effect {
        Effect::Tell { word: ToShim::StartAgent(go), .. } => go.setup.clone(),
        _ => None,
    });
    let turns = go.expect("the green light");
    assert!(turns.is_respawn && turns.prompt.is_empty());
    assert_eq!(turns.session_id.as_deref(), Some("s-1"));
    assert!(state.teams[&team()].past.is_empty(), "it lives");
}

#[test]
fn whoever_was_asked_or_ended_by_itself_stays_gone() {
    let order = || worker("ann", |order| order.restart = RestartPolicy::OnFailure);
    for how in [ExitReport::Exit(0), ExitReport::TmuxServerGone, ExitReport::PaneClosed] {
        let mut state = state();
        let ann = runs(&mut state, order(), 50);
        ends(&mut state, &ann, 50, how.clone());
        // Nothing brings it back by itself.
        let rests = state.resting.iter().all(|resting| resting.put_away);
        assert_eq!((state.resting.len(), rests), (usize::from(how == ExitReport::TmuxServerGone), true));
    }
    let mut state = state();
    let ann = runs(&mut state, order(), 50);
    ask(&mut state, 9, Request::Kill(MemberSelection { team: team(), names: vec!["ann".into()] }));
    ends(&mut state, &ann, 50, ExitReport::Signal(15));
    assert!(state.resting.is_empty());
}

#[test]
fn a_shutdown_reaches_a_member_between_two_lives() {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |order| order.restart = RestartPolicy::OnFailure), 50);
    ends(&mut state, &ann, 50, ExitReport::Exit(1));
    bury(&mut state, &ann);
    let targets = MemberSelection { team: team(), names: vec!["ann".into()] };
    let order =
        ShutdownMembersRequest { targets, reason: None, grace_ms: 1_000, force: false, no_wait: false };
    let effects = ask(&mut state, 9, Request::Shutdown(order));
    let effects = with_settled(&mut state, effects);
    assert!(matches!(done(&effects, 9), Some(Reply::Exits(_))), "{effects:?}");
    assert!(state.resting.is_empty());
}

#[test]
fn what_a_dead_owner_left_is_told_once() {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |_| ()), 50);
    let hers = || vec![task(1, "in_progress", r#","owner":"ann""#)];
    assert_eq!(logged(&sees(&mut state, hers())), ["task_created", "task_started"]);
    ends(&mut state, &ann, 50, ExitReport::ShimKilled);
    let effects = bury(&mut state, &ann);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::Tasks { .. }))));
    let looked = Event::Filed(FileDone::Tasks {
        team: team(),
        members: vec![],
        result: Ok(shared(hers())),
        asks: Vec::new(),
    });
    assert_eq!(logged(&step(&mut state, looked, NOW)), ["task_left"]);
    assert_eq!(logged(&sees(&mut state, hers())), [""; 0]);
}

#[test]
fn an_agent_without_a_pane_is_launched_and_registered_alike() {
    let mut state = state();
    state.setting.tmux_socket = None;
    let effects = ask(&mut state, 1, worker("ann", |_| ()));
    assert!(
        matches!(reply(&effects, 1), Some(Response::Failed(fault)) if fault.kind == ErrorKind::MissingPath)
    );
    let bob = runs(&mut state, worker("bob", |order| order.backend = Backend::InProcess), 50);
    assert!(state.agents[&bob].record.pane.is_none());
    let effects = ask(&mut state, 9, Request::LocatePane(MemberAddress { team: team(), name: "bob".into() }));
    let Some(Reply::LocatePane(LocatePaneReply::Log { path })) = done(&effects, 9) else {
        panic!("{effects:?}")
    };
    assert_eq!(path, &PathBuf::from("/state/logs/agents/survey/bob.log"));
    ends(&mut state, &bob, 50, ExitReport::Exit(0));
    let effects = step(
        &mut state,
        Event::Filed(FileDone::Farewelled { spawn: bob.clone(), approved: false, left: None }),
        NOW,
    );
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Forget { .. })), "no pane is waited for");
}

#[test]
fn a_process_that_can_not_be_started_takes_everything_back() {
    let mut state = state();
    let spawn = begun(&ask(&mut state, 1, worker("bob", |order| order.backend = Backend::InProcess)));
    let result = Err(protocol::error::ErrorReport::new(ErrorKind::Io, "no"));
    let effects = step(&mut state, Event::Launched { spawn, result }, NOW);
    assert!(matches!(reply(&effects, 1), Some(Response::Failed(_))));
    assert!(state.agents.is_empty());
}

/// Its join reports how it ended.
pub(super) fn ends(state: &mut State, spawn: &SpawnId, conn: u64, how: ExitReport) -> Vec<Effect> {
    assert!(state.agents.contains_key(spawn));
    step(state, ended(conn, how), NOW)
}

/// Files and pane are put in order.
pub(super) fn bury(state: &mut State, spawn: &SpawnId) -> Vec<Effect> {
    step(state, pane_closed(spawn), NOW);
    let farewelled = FileDone::Farewelled { spawn: spawn.clone(), approved: false, left: None };
    let effects = step(state, Event::Filed(farewelled), NOW);
    assert!(!state.agents.contains_key(spawn));
    effects
}

#[test]
fn of_turns_that_a_join_runs_that_alone_tells() {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |_| {}), 50);
    let turn = serde_json::from_value(serde_json::json!({
        "activity": "idle", "number": 1, "about": "", "pid": null, "reason": "available"
    }));
    step(&mut state, Event::JoinSaid { conn: 50, said: FromShim::TurnStatus(turn.unwrap()) }, NOW);
    let token = Some(state.agents[&ann].record.token.clone());
    let call = Call { token, ..*call(Request::ReportActivity(Activity::Active)) };
    let effects = step(&mut state, Event::Request { client: 9, call: Box::new(call) }, NOW);
    assert!(done(&effects, 9).is_some());
    assert_eq!(state.agents[&ann].activity, Activity::Idle, "no join would ever say otherwise");
}
