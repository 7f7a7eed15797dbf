//! Tests of how members are suspended and resumed.

use super::turns_and_task_offers::*;
use super::*;
use crate::core::core_event::CoreEvent;
use crate::core::effect::Effect;
use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::pane_jobs::{PaneJob, PanePresence, PaneResult};
use crate::core::recovery;
use crate::core::roster::PidOrigin;
use crate::core::state::core_state::State;
use crate::core::state::logged_tasks_messages_and_requests::EventLogCursor;
use protocol::control_socket::{
    CreateTeamReply, PastMember, RestartPolicy, ResumeMembersRequest, TurnStatus,
};
use protocol::error_kind_and_report::ErrorReport;
use protocol::permission_mode::PermissionMode;

fn restart_daemon(old_state: &State) -> State {
    let roster = serde_json::from_value(serde_json::to_value(old_state.to_roster()).unwrap()).unwrap();
    let mut state = State::new(old_state.settings.clone(), roster, EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    state
}

/// The state after ann and bob were suspended. When the daemon was stopped, ann was running and bob
/// was waiting for its respawn.
fn suspended_state() -> State {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let bob = start_member_with(
        &mut state,
        worker_request("bob", |request| request.restart = RestartPolicy::OnFailure(None)),
        51,
    );
    report_exit(&mut state, &bob, 51, ExitReport::Exit(1));
    finish_cleanup(&mut state, &bob);
    send_call(&mut state, 9, Request::StopDaemonAndSuspend);
    report_exit(&mut state, &ann, 50, ExitReport::Exit(0));
    finish_cleanup(&mut state, &ann);
    state
}

fn past_members(state: &State) -> Vec<(String, bool, bool)> {
    let past = state.teams[&survey_team()].past_members.iter();
    past.map(|past| (past.name.to_string(), past.is_suspended, past.respawns_at.is_some())).collect()
}

#[test]
fn suspended_members_wait_until_a_client_of_the_next_daemon_resumes_them() {
    let old_state = suspended_state();
    let mut state = restart_daemon(&old_state);
    let suspended = |name: &str| (name.to_owned(), true, false);
    assert_eq!(past_members(&state), [suspended("bob"), suspended("ann")]);
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(3_600_000));
    assert!(
        !effects.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::OpenPane { .. }))),
        "{effects:?}"
    );
    let bob = &mut state.pending_respawns[0];
    assert!(bob.request.name.as_str() == "bob" && bob.respawn.first_spawned_at == NOW.wall);
    bob.respawn.first_spawned_at += 1;
    let effects = send_call(&mut state, 9, Request::ResumeMembers(ResumeMembersRequest { team: None }));
    let Some(Reply::ResumeMembers(resumed)) = reply_value(&effects, 9) else { panic!("{effects:?}") };
    let in_joining_order = ["ann", "bob"].map(MemberName::new_unchecked);
    assert_eq!(resumed.members[&survey_team()], in_joining_order);
    let opened = effects.iter().filter(|effect| matches!(effect, Effect::Pane(PaneJob::OpenPane { .. })));
    assert_eq!(opened.count(), 2);
    assert!(state.pending_respawns.is_empty());
}

/// When the daemon is stopped, the pane of cat is not open yet, and the shim of dan may start its
/// agent.
#[test]
fn reply_to_the_suspend_request_lists_suspended_members_and_interrupted_starts() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let bob = start_member_with(
        &mut state,
        worker_request("bob", |request| request.restart = RestartPolicy::OnFailure(None)),
        51,
    );
    report_exit(&mut state, &bob, 51, ExitReport::Exit(1));
    finish_cleanup(&mut state, &bob);
    started_spawn_id(&send_call(&mut state, 1, worker_request("cat", |_| {})));
    let dan = started_spawn_id(&send_call(&mut state, 2, worker_request("dan", |_| {})));
    handle_event(&mut state, pane_opened(&dan, 60), NOW);
    handle_event(&mut state, shim_connected(&dan, 60, 60, None), NOW);
    handle_event(&mut state, member_registered(&dan), NOW);
    send_call(&mut state, 9, Request::StopDaemonAndSuspend);
    report_exit(&mut state, &dan, 60, ExitReport::Signal(15));
    finish_cleanup(&mut state, &dan);
    report_exit(&mut state, &ann, 50, ExitReport::Exit(0));
    let effects = finish_cleanup(&mut state, &ann);
    let effects = with_replies(&mut state, effects);
    let Some(Reply::Exits(reply)) = reply_value(&effects, 9) else { panic!("{effects:?}") };
    let exits: Vec<_> = reply
        .exits
        .iter()
        .map(|agent| (agent.name.as_str(), agent.is_suspended, agent.description.as_str()))
        .collect();
    let interrupted = "stopped while it started";
    let expected = [
        ("bob", true, "it was between two spawns"),
        ("cat", false, interrupted),
        ("dan", false, interrupted),
        ("ann", true, "exit 0"),
    ];
    assert_eq!(exits, expected);
}

#[test]
fn members_stay_suspended_if_the_next_daemon_does_not_resume_them() {
    let mut state = restart_daemon(&suspended_state());
    send_call(&mut state, 9, Request::StopDaemon);
    assert_eq!(restart_daemon(&state).pending_respawns.len(), 2);
}

#[test]
fn kill_or_a_new_spawn_of_the_name_ends_a_suspension() {
    let mut state = restart_daemon(&suspended_state());
    send_call(
        &mut state,
        8,
        Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] }),
    );
    assert_eq!(past_members(&state)[1], ("ann".to_owned(), false, false));
    start_member_with(&mut state, worker_request("bob", |_| {}), 60);
    assert!(state.pending_respawns.is_empty(), "the suspended bob would be resumed beside the new one");
}

#[test]
fn member_that_could_not_be_resumed_stays_suspended() {
    let mut state = restart_daemon(&suspended_state());
    send_call(&mut state, 9, Request::ResumeMembers(ResumeMembersRequest { team: Some(survey_team()) }));
    let ann =
        state.members(&survey_team()).into_iter().find(|agent| agent.record.request.name.as_str() == "ann");
    let spawn = ann.unwrap().record.spawn_id.clone();
    let failure = Err(ErrorReport::new(ErrorKind::MissingPath, "cannot open a pane"));
    handle_event(&mut state, CoreEvent::PaneJobDone(PaneResult::PaneOpened { spawn, result: failure }), NOW);
    assert_eq!(state.pending_respawns.iter().filter(|pending| pending.is_suspended()).count(), 1);
    assert!(
        past_members(&state).iter().any(|(_, is_suspended, _)| *is_suspended),
        "{:?}",
        past_members(&state)
    );
}

/// After a reboot, no earlier process is alive, even if its pid is in use again.
#[test]
fn reboot_suspends_running_members_without_a_restart_policy() {
    let mut old_state = new_state();
    let ann = start_member_with(&mut old_state, worker_request("ann", |_| {}), 50);
    let bob = start_member_with(
        &mut old_state,
        worker_request("bob", |request| request.restart = RestartPolicy::OnFailure(None)),
        51,
    );
    let mut roster = old_state.to_roster();
    let origin = |boot: &str| PidOrigin { boot_id: Some(boot.to_owned()), pid_namespace: None };
    roster.pid_origin = origin("yesterday");
    roster.invalidate_after_restart(origin("today"));
    let mut state = State::new(old_state.settings.clone(), roster, EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    for spawn in [&ann, &bob] {
        handle_event(&mut state, CoreEvent::ProcessDied { watch: WatchId::Shim(spawn.clone()) }, NOW);
        handle_event(
            &mut state,
            CoreEvent::FileJobDone(FileResult::ExitReportRead { spawn: spawn.clone(), report: None }),
            NOW,
        );
        finish_cleanup(&mut state, spawn);
    }
    let mut past = past_members(&state);
    past.sort();
    assert_eq!(past, [("ann".to_owned(), true, false), ("bob".to_owned(), false, true)]);
}

/// The kernel kills everything if a container has no memory left.
#[test]
fn member_is_suspended_if_its_first_process_and_its_tmux_server_were_killed() {
    for (seen, is_suspended) in [(PanePresence::ServerGone, true), (PanePresence::Absent, false)] {
        let mut state = new_state();
        let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
        report_killed_shim(&mut state, &ann, seen);
        finish_cleanup(&mut state, &ann);
        assert_eq!(past_members(&state), [("ann".to_owned(), is_suspended, false)]);
        let description = &state.teams[&survey_team()].past_members[0].description;
        assert_eq!(
            description.starts_with("lost: its first process was killed"),
            !is_suspended,
            "{description}"
        );
    }
}

/// The state after the request to suspend the running member ann.
fn suspending_state() -> (State, SpawnId) {
    let mut state = new_state();
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |request| drop(request.env.insert("KEY".into(), "x".into()))),
        50,
    );
    send_call(&mut state, 9, Request::StopDaemonAndSuspend);
    (state, ann)
}

#[test]
fn member_is_suspended_if_the_next_daemon_receives_its_exit() {
    let (old_state, ann) = suspending_state();
    let mut state = restart_daemon(&old_state);
    handle_event(&mut state, shim_connected(&ann, 3, 50, Some(50)), NOW);
    report_exit(&mut state, &ann, 3, ExitReport::Exit(0));
    assert!(state.pending_respawns[0].is_suspended(), "the request was lost with the earlier daemon");
}

#[test]
fn kill_cancels_a_requested_suspension() {
    let (mut state, ann) = suspending_state();
    send_call(
        &mut state,
        10,
        Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] }),
    );
    report_exit(&mut state, &ann, 50, ExitReport::Signal(15));
    assert!(state.pending_respawns.is_empty(), "ann would be resumed");
}

#[test]
fn suspended_member_keeps_its_environment() {
    let (mut state, ann) = suspending_state();
    report_exit(&mut state, &ann, 50, ExitReport::Exit(0));
    assert_eq!(state.pending_respawns[0].request.env["KEY"], "x");
}

#[test]
fn new_team_of_the_same_name_has_no_suspended_members() {
    let (mut state, ann) = suspending_state();
    report_exit(&mut state, &ann, 50, ExitReport::Exit(0));
    finish_cleanup(&mut state, &ann);
    let reply = CreateTeamReply {
        team_name: survey_team(),
        team_file_path: "/r".into(),
        lead_agent_id: "team-lead@survey".into(),
        record: None,
    };
    handle_event(&mut state, team_created(Ok(reply)), NOW);
    assert!(state.pending_respawns.is_empty());
}

#[test]
fn suspended_member_stays_among_the_past_members() {
    let (mut state, ann) = suspending_state();
    report_exit(&mut state, &ann, 50, ExitReport::Exit(0));
    for n in 0..100 {
        let name = MemberName::parse(&format!("a{n}")).unwrap();
        let description = String::new();
        let past = PastMember {
            name,
            outcome: "failed".into(),
            description,
            ended_at: 1,
            respawns_at: None,
            is_suspended: false,
            respawns_exhausted_reason: None,
            usage: protocol::token_and_cost_usage::Usage::default(),
        };
        state.add_past_member(&survey_team(), past);
    }
    assert_eq!(past_members(&state)[0], ("ann".to_owned(), true, false));
    assert_eq!(past_members(&state).len(), 33);
}

fn turn_in_mode(mode: PermissionMode) -> TurnStatus {
    TurnStatus { mode: Some(mode), ..turn_state(Activity::Active, 1) }
}

fn written_modes(effects: &[Effect]) -> Vec<PermissionMode> {
    let mode = |effect: &Effect| match effect {
        Effect::File(FileJob::WriteMode { mode, .. }) => Some(*mode),
        _ => None,
    };
    effects.iter().filter_map(mode).collect()
}

/// A plan may be approved before the first turn of a resumed member.
#[test]
fn mode_in_the_first_report_of_a_spawn_is_recorded() {
    for (mode, expected) in
        [(PermissionMode::Plan, &[][..]), (PermissionMode::AcceptEdits, &[PermissionMode::AcceptEdits][..])]
    {
        let mut state = new_state();
        let request = worker_request("ann", |request| request.mode = Some(PermissionMode::Plan));
        let ann = start_member_with(&mut state, request, 50);
        let effects = report_turn(&mut state, 50, turn_in_mode(mode));
        assert_eq!(written_modes(&effects), expected);
        assert_eq!(logged_event_kinds(&effects).contains(&"mode_set".to_owned()), !expected.is_empty());
        assert_eq!(state.agents[&ann].record.config_mode.as_deref(), Some(mode.as_str()));
        let effects = report_turn(&mut state, 50, turn_in_mode(mode));
        assert_eq!(written_modes(&effects), [], "the mode has not changed");
    }
}

/// The last daemon may have ended before it learned of the mode, or before it wrote the mode.
#[test]
fn next_daemon_records_the_mode_of_a_reconnecting_shim() {
    for is_known in [false, true] {
        let mut state = new_state();
        let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
        if is_known {
            report_turn(&mut state, 50, turn_in_mode(PermissionMode::AcceptEdits));
        }
        let mut state = restart_daemon(&state);
        let hello = ShimHello {
            spawn_id: ann.as_str().to_owned(),
            agent_pid: Some(50),
            turn_status: Some(turn_in_mode(PermissionMode::AcceptEdits)),
        };
        let peer = Process { pid: 50, start_time: 5 };
        let effects = handle_event(&mut state, CoreEvent::ShimConnected { conn: 3, hello, peer }, NOW);
        assert!(written_modes(&effects).contains(&PermissionMode::AcceptEdits), "{effects:?}");
        assert_eq!(logged_event_kinds(&effects).contains(&"mode_set".to_owned()), !is_known);
        assert_eq!(state.agents[&ann].record.config_mode.as_deref(), Some("acceptEdits"));
    }
}
