//! What must hold at every crash, cancellation and reconnection in between: found by breaking it.

use super::turns::*;
use super::*;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
use crate::core::jobs::file_jobs::{FileJob, FileResult};
use crate::core::jobs::pane_jobs::{PaneJob, PaneResult};
use crate::core::recovery;
use crate::core::state::daemon::State;
use crate::core::state::logged_states::EventLogCursor;
use crate::core::state::team::ScanState;
use protocol::control::MemberAddress;
use protocol::control::RestartPolicy;
use protocol::error::ErrorReport;
use protocol::task::Task;

fn reconnect_shim(state: &mut State) -> (SpawnId, SpawnId) {
    let ann =
        start_member_with(state, worker_request("ann", |order| order.restart = RestartPolicy::OnFailure), 50);
    report_exit(state, &ann, 50, ExitReport::Signal(9));
    finish_cleanup(state, &ann);
    state.rescan_at = 600_000;
    let again = started_spawn_id(&handle_event(state, CoreEvent::DeadlineReached, now_at(1_500)));
    (ann, again)
}

#[test]
fn the_roster_keeps_a_member_whose_next_life_is_opening() {
    let mut state = new_state();
    let (_, _again) = reconnect_shim(&mut state);
    let roster = state.to_roster();
    assert!(
        !roster.pending_respawns.is_empty() || !roster.records.is_empty(),
        "a crash now forgets ann for good"
    );
}

#[test]
fn a_crash_while_the_next_life_is_registered() {
    let mut state = new_state();
    let (_, again) = reconnect_shim(&mut state);
    handle_event(&mut state, pane_opened(&again, 60), NOW);
    handle_event(&mut state, shim_connected(&again, 60, 60, None), NOW);
    let roster: Roster = serde_json::from_value(serde_json::to_value(state.to_roster()).unwrap()).unwrap();
    assert_eq!(roster.records.len(), 1);
    let setting = state.settings.clone();
    let mut state = State::new(setting, roster, EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    handle_event(&mut state, shim_connected(&again, 3, 60, None), NOW);
    finish_cleanup(&mut state, &again);
    assert!(!state.pending_respawns.is_empty(), "ann is gone for good");
}

#[test]
fn a_kill_while_the_next_life_starts() {
    for request in [
        Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] }),
        Request::Shutdown(ShutdownMembersRequest {
            targets: MemberSelection { team: survey_team(), names: vec!["ann".into()] },
            reason: None,
            grace_ms: 1_000,
            force: true,
            no_wait: false,
        }),
    ] {
        let mut state = new_state();
        reconnect_shim(&mut state);
        let effects = send_call(&mut state, 9, request);
        assert!(reply_value(&effects, 9).is_none(), "a daemon that was killed now would start it again");
        let effects = with_replies(&mut state, effects);
        assert!(matches!(reply_value(&effects, 9), Some(Reply::Exits(_))), "{effects:?}");
        assert!(state.pending_respawns.is_empty(), "told that it ended, and it comes back");
        let written = matches!(&effects[0], Effect::File(FileJob::SaveRoster(roster)) if roster.pending_respawns.is_empty());
        assert!(written, "the next daemon starts it: {effects:?}");
    }
}

#[test]
fn who_rests_when_teamd_goes_down_is_no_return() {
    let mut state = new_state();
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |order| order.restart = RestartPolicy::OnFailure),
        50,
    );
    report_exit(&mut state, &ann, 50, ExitReport::Exit(1));
    finish_cleanup(&mut state, &ann);
    assert!(state.teams[&survey_team()].past_members[0].respawns_at.is_some());
    send_call(&mut state, 9, Request::StopDaemon);
    assert!(state.pending_respawns.is_empty());
    assert_eq!(
        state.teams[&survey_team()].past_members[0].respawns_at,
        None,
        "status says that it comes back"
    );
}

/// Killed between the green light and the agent's first word.
#[test]
fn one_whose_next_life_was_cut_short_with_teamd_is_shown_until_it_begins() {
    let mut before = new_state();
    let (_, again) = reconnect_shim(&mut before);
    for event in [pane_opened(&again, 60), shim_connected(&again, 60, 60, None), member_registered(&again)] {
        handle_event(&mut before, event, NOW);
    }
    let roster = serde_json::from_value(serde_json::to_value(before.to_roster()).unwrap()).unwrap();
    let mut state = State::new(before.settings.clone(), roster, EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    handle_event(&mut state, shim_connected(&again, 3, 60, None), NOW);
    assert_eq!(state.pending_respawns.len(), 1);
    assert!(
        state.teams[&survey_team()].past_members.iter().any(|past| past.respawns_at.is_some()),
        "it is nowhere in status"
    );
}

#[test]
fn a_cancelled_rest_is_no_return() {
    let mut state = new_state();
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |order| order.restart = RestartPolicy::OnFailure),
        50,
    );
    scan_tasks(&mut state, vec![new_task(1, "in_progress", r#","owner":"ann""#)]);
    report_exit(&mut state, &ann, 50, ExitReport::Exit(1));
    finish_cleanup(&mut state, &ann);
    let own_tasks = shared_tasks(vec![new_task(1, "in_progress", r#","owner":"ann""#)]);
    let looked = FileResult::TasksScanned {
        team: survey_team(),
        members: vec![],
        result: Ok(own_tasks),
        queries: Vec::new(),
    };
    handle_event(&mut state, CoreEvent::FileJobDone(looked), NOW);
    let effects = send_call(
        &mut state,
        9,
        Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] }),
    );
    let looks = effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::ScanTasks { .. })));
    assert!(state.pending_respawns.is_empty());
    assert_eq!(
        state.teams[&survey_team()].past_members[0].respawns_at,
        None,
        "status says that it comes back"
    );
    assert!(looks, "nobody is told that task 1 is left");
}

#[test]
fn a_rest_between_failed_starts_is_shown() {
    let mut state = new_state();
    let (_, again) = reconnect_shim(&mut state);
    let result = Err(protocol::error::ErrorReport::new(ErrorKind::Io, "no"));
    handle_event(&mut state, CoreEvent::PaneJobDone(PaneResult::PaneOpened { spawn: again, result }), NOW);
    assert_eq!(state.pending_respawns.len(), 1);
    assert!(!state.teams[&survey_team()].past_members.is_empty(), "a member that rests is nowhere in status");
}

#[test]
fn where_no_number_fits_behind_a_name_a_shorter_one_is_asked_for() {
    let mut state = new_state();
    let longest = "a".repeat(64);
    start_member_with(&mut state, worker_request(&longest, |_| ()), 50);
    let effects = send_call(&mut state, 9, worker_request(&longest, |order| order.unique = true));
    let Some(protocol::control::Response::Failed(fault)) = reply(&effects, 9) else { panic!("{effects:?}") };
    assert!(fault.help.as_ref().unwrap().starts_with("choose a shorter name"), "{fault:?}");
}

/// Its lead was told that it comes back. The pane of the last start opens after all, and is closed.
#[test]
fn a_start_that_fails_once_too_often_is_its_leads_news() {
    let mut state = new_state();
    let (_, mut again) = reconnect_shim(&mut state);
    let ends = |effects: &[Effect]| {
        let end = |effect: &Effect| match effect {
            Effect::File(FileJob::DeregisterMember { record }) => record.lifecycle.exit().cloned(),
            _ => None,
        };
        effects.iter().filter_map(end).collect::<Vec<_>>()
    };
    for failure in 2..6 {
        let result = Err(ErrorReport::new(ErrorKind::Io, "no room"));
        let failed = CoreEvent::PaneJobDone(PaneResult::PaneOpened { spawn: again, result });
        assert!(ends(&handle_event(&mut state, failed, now_at(20_000 * failure))).is_empty());
        again = started_spawn_id(&handle_event(
            &mut state,
            CoreEvent::DeadlineReached,
            now_at(20_000 * (failure + 1)),
        ));
    }
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(500_000));
    let [end] = &ends(&effects)[..] else { panic!("{effects:?}") };
    assert!(end.next_step.as_ref().unwrap().contains("not started again: it failed 6 times"), "{end:?}");
    let closed = handle_event(&mut state, pane_opened(&again, 40), now_at(500_001));
    assert!(
        closed.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::ClosePane { .. }))),
        "{closed:?}"
    );
    finish_cleanup(&mut state, &again);
}

#[test]
fn an_untaken_offer_is_looked_at_again_at_the_rescan() {
    let mut state = new_state();
    start_member_with(&mut state, worker_request("ann", |_| ()), 50);
    start_member_with(&mut state, worker_request("bob", |_| ()), 51);
    report_turn(&mut state, 50, turn_state(Activity::Idle, 1));
    report_turn(&mut state, 51, turn_state(Activity::Idle, 1));
    scan_tasks(&mut state, vec![new_task(1, "pending", "")]);
    let looked = CoreEvent::FileJobDone(FileResult::TasksScanned {
        team: survey_team(),
        members: vec![],
        result: Ok(shared_tasks(vec![new_task(1, "pending", "")])),
        queries: Vec::new(),
    });
    handle_event(&mut state, looked, NOW);
    assert_eq!(state.teams[&survey_team()].watched.task_scan, ScanState::Idle);
    state.rescan_at = 0;
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(60_000));
    let looks = effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::ScanTasks { .. })));
    assert!(looks, "the offer is taken back, and nobody looks: {effects:?}");
}

#[test]
fn a_failed_look_is_repeated_at_the_rescan() {
    let mut state = new_state();
    handle_event(
        &mut state,
        CoreEvent::TaskChanged { team: survey_team(), task: TaskId::parse("1").unwrap() },
        NOW,
    );
    let fault = protocol::error::ErrorReport::new(ErrorKind::Io, "EMFILE");
    handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::TasksScanned {
            team: survey_team(),
            members: vec![],
            result: Err(fault),
            queries: Vec::new(),
        }),
        NOW,
    );
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(60_000));
    let looks = effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::ScanTasks { .. })));
    assert!(looks, "{effects:?}");
}

#[test]
fn an_interrupt_of_one_that_starts_is_answered() {
    let mut state = new_state();
    let effects = send_call(&mut state, 1, worker_request("ann", |_| ()));
    let ann = started_spawn_id(&effects);
    handle_event(&mut state, shim_connected(&ann, 50, 50, None), NOW);
    let who = MemberAddress { team: survey_team(), name: "ann".into() };
    let mut all = send_call(&mut state, 9, Request::Interrupt(who));
    let result = Err(protocol::error::ErrorReport::new(ErrorKind::Io, "no"));
    all.extend(handle_event(
        &mut state,
        CoreEvent::PaneJobDone(PaneResult::PaneOpened { spawn: ann, result }),
        NOW,
    ));
    all.extend(handle_event(&mut state, CoreEvent::ConnectionClosed { conn: 50 }, NOW));
    all.extend(handle_event(&mut state, CoreEvent::DeadlineReached, now_at(600_000)));
    assert!(reply(&all, 9).is_some(), "never answered");
}

#[test]
fn a_foreign_owner_is_not_gone() {
    let mut state = new_state();
    let members = vec![AgentName::new_unchecked("claude-mate")];
    let tasks = shared_tasks(vec![new_task(1, "in_progress", r#","owner":"claude-mate""#)]);
    let looked =
        FileResult::TasksScanned { team: survey_team(), members, result: Ok(tasks), queries: Vec::new() };
    let effects = handle_event(&mut state, CoreEvent::FileJobDone(looked), NOW);
    assert!(
        !logged_event_kinds(&effects).contains(&"task_abandoned".to_owned()),
        "{:?}",
        logged_event_kinds(&effects)
    );
}

#[test]
fn a_stopping_member_that_reconnects_says_its_turn() {
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
    let hello = protocol::control::ShimHello {
        spawn_id: ann.as_str().to_owned(),
        agent_pid: Some(50),
        turn_status: Some(turn_state(Activity::Active, 4)),
    };
    let process = Process { pid: 50, start_time: 5 };
    let effects = handle_event(&mut state, CoreEvent::ShimConnected { conn: 3, hello, peer: process }, NOW);
    assert!(state.agents[&ann].turn.is_some(), "its turn is forgotten");
    assert!(!woken_spawns(&effects).is_empty(), "not woken");
}

#[test]
fn delete_while_a_member_rests() {
    let mut state = new_state();
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |order| order.restart = RestartPolicy::OnFailure),
        50,
    );
    report_exit(&mut state, &ann, 50, ExitReport::Exit(1));
    finish_cleanup(&mut state, &ann);
    let effects = send_call(&mut state, 9, delete_request());
    assert_eq!(error_kind(&effects, 9), Some(ErrorKind::Refused), "{effects:?}");
}

#[test]
fn unique_while_the_name_rests() {
    let mut state = new_state();
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |order| order.restart = RestartPolicy::OnFailure),
        50,
    );
    report_exit(&mut state, &ann, 50, ExitReport::Exit(1));
    finish_cleanup(&mut state, &ann);
    send_call(&mut state, 9, worker_request("ann", |order| order.unique = true));
    assert!(!state.pending_respawns.is_empty(), "--unique took the name of a member that is to come back");
}

#[test]
fn a_restarted_daemon_tells_no_turn_twice() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| ()), 50);
    report_turn(&mut state, 50, turn_state(Activity::Idle, 4));
    let mut state = State::new(state.settings.clone(), state.to_roster(), EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    let hello = protocol::control::ShimHello {
        spawn_id: ann.as_str().to_owned(),
        agent_pid: Some(50),
        turn_status: Some(turn_state(Activity::Idle, 4)),
    };
    let process = Process { pid: 50, start_time: 5 };
    let effects = handle_event(&mut state, CoreEvent::ShimConnected { conn: 3, hello, peer: process }, NOW);
    assert_eq!(logged_event_kinds(&effects), ["member_adopted"]);
}

#[test]
fn an_offer_to_one_who_does_something_else_goes_on() {
    let mut state = new_state();
    start_member_with(&mut state, worker_request("ann", |_| ()), 50);
    start_member_with(&mut state, worker_request("bob", |_| ()), 51);
    let look = |state: &mut State, tasks: Vec<Task>| {
        let looked = CoreEvent::FileJobDone(FileResult::TasksScanned {
            team: survey_team(),
            members: vec![],
            result: Ok(shared_tasks(tasks)),
            queries: Vec::new(),
        });
        handle_event(state, looked, NOW)
    };
    report_turn(&mut state, 50, turn_state(Activity::Idle, 1));
    report_turn(&mut state, 51, turn_state(Activity::Idle, 1));
    look(&mut state, vec![]);
    look(&mut state, vec![]);
    handle_event(
        &mut state,
        CoreEvent::TaskChanged { team: survey_team(), task: TaskId::parse("1").unwrap() },
        NOW,
    );
    let offered = woken_spawns(&look(&mut state, vec![new_task(1, "pending", "")]));
    assert_eq!(offered.len(), 1);
    let conn = if state.agents[&offered[0]].record.request.name.as_str() == "ann" { 50 } else { 51 };
    // A message was there too, and comes first.
    let mut now = turn_state(Activity::Active, 2);
    now.summary = "message from team-lead".into();
    let mut effects = report_turn(&mut state, conn, now);
    if effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::ScanTasks { .. }))) {
        effects = look(&mut state, vec![new_task(1, "pending", "")]);
    }
    assert_eq!(
        woken_spawns(&effects).len(),
        1,
        "the other is idle, the task available, and nobody looks: {effects:?}"
    );
}

#[test]
fn a_start_that_nobody_saw_through_is_no_life_to_be_followed_by_another() {
    for agent in [None, Some(99)] {
        let mut state = new_state();
        let ann = started_spawn_id(&send_call(
            &mut state,
            1,
            worker_request("ann", |order| order.restart = RestartPolicy::OnFailure),
        ));
        handle_event(&mut state, pane_opened(&ann, 60), NOW);
        handle_event(&mut state, shim_connected(&ann, 60, 60, None), NOW);
        if agent.is_some() {
            handle_event(&mut state, member_registered(&ann), NOW);
            handle_event(&mut state, agent_started(60), NOW);
        }
        let roster: Roster =
            serde_json::from_value(serde_json::to_value(state.to_roster()).unwrap()).unwrap();
        let mut state = State::new(state.settings.clone(), roster, EventLogCursor::default());
        recovery::recover(&mut state, NOW);
        handle_event(&mut state, CoreEvent::ProcessDied { watch: WatchId::Shim(ann.clone()) }, NOW);
        handle_event(
            &mut state,
            CoreEvent::FileJobDone(FileResult::ExitReportRead { spawn: ann.clone(), ended: None }),
            NOW,
        );
        assert_eq!(state.pending_respawns.is_empty(), agent.is_none(), "{agent:?}");
    }
}

#[test]
fn a_start_that_a_new_daemon_hears_of_is_on_the_disk() {
    let mut state = new_state();
    let ann = started_spawn_id(&send_call(&mut state, 1, worker_request("ann", |_| {})));
    handle_event(&mut state, pane_opened(&ann, 60), NOW);
    handle_event(&mut state, shim_connected(&ann, 60, 60, None), NOW);
    let roster: Roster = serde_json::from_value(serde_json::to_value(state.to_roster()).unwrap()).unwrap();
    let mut state = State::new(state.settings.clone(), roster, EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    let effects = handle_event(&mut state, shim_connected(&ann, 3, 60, Some(99)), NOW);
    assert!(has_file_job(
        &effects,
        |job| matches!(job, FileJob::SaveRoster(roster) if roster.records[0].lifecycle.process().agent_pid == Some(99))
    ));
}
