//! Members that are put to rest, and brought back on another day.

use super::turns::*;
use super::*;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
use crate::core::jobs::file_jobs::FileResult;
use crate::core::jobs::pane_jobs::{PaneJob, PaneResult};
use crate::core::recovery;
use crate::core::state::daemon::State;
use crate::core::state::logged_states::EventLogCursor;
use protocol::control::RestartPolicy;
use protocol::control::{CreateTeamReply, PastMember, ResumeMembersRequest};
use protocol::error::ErrorReport;

fn restart_daemon(before: &State) -> State {
    let roster = serde_json::from_value(serde_json::to_value(before.to_roster()).unwrap()).unwrap();
    let mut state = State::new(before.settings.clone(), roster, EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    state
}

/// Ann lives, and bob is between two lives when the daemon goes down.
fn suspended_state() -> State {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let bob = start_member_with(
        &mut state,
        worker_request("bob", |order| order.restart = RestartPolicy::OnFailure),
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
fn whoever_is_put_to_rest_waits_for_the_next_daemon_and_for_somebody_who_asks() {
    let before = suspended_state();
    let mut state = restart_daemon(&before);
    let rests = |name: &str| (name.to_owned(), true, false);
    assert_eq!(past_members(&state), [rests("bob"), rests("ann")]);
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(3_600_000));
    assert!(
        !effects.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::OpenPane { .. }))),
        "{effects:?}"
    );
    let effects = send_call(&mut state, 9, Request::ResumeMembers(ResumeMembersRequest { team: None }));
    let Some(Reply::ResumeMembers(back)) = reply_value(&effects, 9) else { panic!("{effects:?}") };
    assert_eq!(back.members[&survey_team()].len(), 2);
    let opened = effects.iter().filter(|effect| matches!(effect, Effect::Pane(PaneJob::OpenPane { .. })));
    assert_eq!(opened.count(), 2);
    assert!(state.pending_respawns.is_empty());
}

/// Cat's pane is being made, and dan has the green light, when the daemon goes down.
#[test]
fn who_asks_for_their_rest_is_told_who_rests_and_who_had_no_life_to_go_on_with() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let bob = start_member_with(
        &mut state,
        worker_request("bob", |order| order.restart = RestartPolicy::OnFailure),
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
    let told: Vec<_> = reply
        .exits
        .iter()
        .map(|agent| (agent.name.as_str(), agent.is_suspended, agent.description.as_str()))
        .collect();
    let cut_short = "stopped while it started";
    let wanted = [
        ("bob", true, "it was between two spawns"),
        ("cat", false, cut_short),
        ("dan", false, cut_short),
        ("ann", true, "exit 0"),
    ];
    assert_eq!(told, wanted);
}

#[test]
fn another_day_without_them_lets_them_rest_on() {
    let mut state = restart_daemon(&suspended_state());
    send_call(&mut state, 9, Request::StopDaemon);
    assert_eq!(restart_daemon(&state).pending_respawns.len(), 2);
}

#[test]
fn a_rest_ends_with_the_name_by_kill_and_with_the_team() {
    let mut state = restart_daemon(&suspended_state());
    send_call(
        &mut state,
        8,
        Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] }),
    );
    assert_eq!(past_members(&state)[1], ("ann".to_owned(), false, false));
    start_member_with(&mut state, worker_request("bob", |_| {}), 60);
    assert!(state.pending_respawns.is_empty(), "bob would come back beside the new one");
}

#[test]
fn who_could_not_be_brought_back_rests_on() {
    let mut state = restart_daemon(&suspended_state());
    send_call(&mut state, 9, Request::ResumeMembers(ResumeMembersRequest { team: Some(survey_team()) }));
    let ann =
        state.members(&survey_team()).into_iter().find(|agent| agent.record.request.name.as_str() == "ann");
    let life = ann.unwrap().record.spawn_id.clone();
    let refused = Err(ErrorReport::new(ErrorKind::MissingPath, "cannot open a pane"));
    handle_event(
        &mut state,
        CoreEvent::PaneJobDone(PaneResult::PaneOpened { spawn: life, result: refused }),
        NOW,
    );
    assert_eq!(state.pending_respawns.iter().filter(|resting| resting.is_suspended()).count(), 1);
    assert!(past_members(&state).iter().any(|(_, rests, _)| *rests), "{:?}", past_members(&state));
}

/// No process of before is alive, whoever has its number.
#[test]
fn after_a_start_of_the_machine_whoever_ran_rests_but_for_those_that_are_started_again() {
    let mut before = new_state();
    let ann = start_member_with(&mut before, worker_request("ann", |_| {}), 50);
    let bob = start_member_with(
        &mut before,
        worker_request("bob", |order| order.restart = RestartPolicy::OnFailure),
        51,
    );
    let mut roster = before.to_roster();
    roster.boot_id = Some("yesterday".into());
    roster.invalidate_after_reboot(Some("today".into()));
    let mut state = State::new(before.settings.clone(), roster, EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    for life in [&ann, &bob] {
        handle_event(&mut state, CoreEvent::ProcessDied { watch: WatchId::Shim(life.clone()) }, NOW);
        handle_event(
            &mut state,
            CoreEvent::FileJobDone(FileResult::ExitReportRead { spawn: life.clone(), ended: None }),
            NOW,
        );
        finish_cleanup(&mut state, life);
    }
    let mut past = past_members(&state);
    past.sort();
    assert_eq!(past, [("ann".to_owned(), true, false), ("bob".to_owned(), false, true)]);
}

fn suspending_state() -> (State, SpawnId) {
    let mut state = new_state();
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |order| drop(order.env.insert("KEY".into(), "x".into()))),
        50,
    );
    send_call(&mut state, 9, Request::StopDaemonAndSuspend);
    (state, ann)
}

#[test]
fn who_was_asked_to_rest_does_whoever_hears_of_its_end() {
    let (before, ann) = suspending_state();
    let mut state = restart_daemon(&before);
    handle_event(&mut state, shim_connected(&ann, 3, 50, Some(50)), NOW);
    report_exit(&mut state, &ann, 3, ExitReport::Exit(0));
    assert!(state.pending_respawns[0].is_suspended(), "it was lost with the daemon that asked");
}

#[test]
fn a_kill_is_for_good_whatever_was_asked_before() {
    let (mut state, ann) = suspending_state();
    send_call(
        &mut state,
        10,
        Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] }),
    );
    report_exit(&mut state, &ann, 50, ExitReport::Signal(15));
    assert!(state.pending_respawns.is_empty(), "it would be brought back");
}

#[test]
fn it_comes_back_with_its_environment_to_the_daemon_that_put_it_to_rest() {
    let (mut state, ann) = suspending_state();
    report_exit(&mut state, &ann, 50, ExitReport::Exit(0));
    assert_eq!(state.pending_respawns[0].request.env["KEY"], "x");
}

#[test]
fn a_team_that_is_made_where_another_was_removed_has_none_of_its_rests() {
    let (mut state, ann) = suspending_state();
    report_exit(&mut state, &ann, 50, ExitReport::Exit(0));
    finish_cleanup(&mut state, &ann);
    let made = CreateTeamReply {
        team_name: survey_team(),
        team_file_path: "/r".into(),
        lead_agent_id: "team-lead@survey".into(),
    };
    let created = FileResult::TeamCreated { client: 8, policy: Default::default(), result: Ok(made) };
    handle_event(&mut state, CoreEvent::FileJobDone(created), NOW);
    assert!(state.pending_respawns.is_empty());
}

#[test]
fn who_rests_is_not_forgotten_however_many_have_ended_since() {
    let (mut state, ann) = suspending_state();
    report_exit(&mut state, &ann, 50, ExitReport::Exit(0));
    for n in 0..100 {
        let name = AgentName::parse(&format!("a{n}")).unwrap();
        let how = String::new();
        let past = PastMember {
            name,
            outcome: "failed".into(),
            description: how,
            ended_at: 1,
            respawns_at: None,
            is_suspended: false,
            usage: protocol::usage::Usage::default(),
        };
        state.add_past_member(&survey_team(), past);
    }
    assert_eq!(past_members(&state)[0], ("ann".to_owned(), true, false));
    assert_eq!(past_members(&state).len(), 33);
}
