//! What a team may use up, and what follows when it has.

use super::turns::*;
use super::*;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
use crate::core::jobs::file_jobs::{FileJob, FileResult, ShutdownAnswer};
use crate::core::jobs::pane_jobs::PaneJob;
use crate::core::state::daemon::State;
use crate::core::state::logged_states::EventLogCursor;
use crate::core::tests::hooks;
use crate::core::tests::shutdown::next_daemon;
use crate::core::{deadlines, recovery};
use protocol::control::{
    HookEvent, HookReport, RestartPolicy, ResumeMembersRequest, SetPolicyRequest, TurnStatus,
};
use protocol::event::EventKind;
use protocol::policy::Policy;
use protocol::usage::{Usage, UsageReport};

fn state_with_policy(policy: Policy) -> State {
    let mut state = new_state();
    let known = state.teams.get_mut(&survey_team()).unwrap();
    (known.policy, known.usage.started_at) = (policy, NOW.wall);
    state
}

fn run_turns(state: &mut State, conn: u64, number: u64) -> Vec<Effect> {
    let said = |activity, number| CoreEvent::ShimReported {
        conn,
        report: FromShim::TurnStatus(turn_state(activity, number)),
    };
    handle_event(state, said(Activity::Idle, number - 1), NOW);
    handle_event(state, said(Activity::Active, number), NOW)
}

fn reports_exhausted(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| match effect {
        Effect::Log(event) => matches!(event.kind, EventKind::BudgetExhausted { .. }),
        _ => false,
    })
}

fn shutdown_requested_of(effects: &[Effect]) -> usize {
    effects
        .iter()
        .filter(|effect| matches!(effect, Effect::File(FileJob::SendShutdownRequest { .. })))
        .count()
}

fn policy_saved(state: &mut State, policy: Policy) {
    let order = SetPolicyRequest { team: survey_team(), policy };
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::PolicySaved { client: 9, order, result: Ok(()) }),
        NOW,
    );
}

#[test]
fn with_its_last_turn_its_members_are_asked_to_end_once_and_rest() {
    let mut state = state_with_policy(Policy { max_turns: Some(3), ..Policy::default() });
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    start_member_with(&mut state, worker_request("bob", |_| {}), 51);
    assert!(
        !reports_exhausted(&run_turns(&mut state, 50, 1))
            && !reports_exhausted(&run_turns(&mut state, 51, 1))
    );
    let effects = run_turns(&mut state, 50, 2);
    assert!(reports_exhausted(&effects), "{effects:?}");
    assert_eq!(shutdown_requested_of(&effects), 2);
    assert!(!reports_exhausted(&run_turns(&mut state, 51, 2)), "it is told once");
    assert_eq!(
        error_kind(&send_call(&mut state, 8, worker_request("cat", |_| {})), 8),
        Some(ErrorKind::Refused)
    );
    report_exit(&mut state, &ann, 50, ExitReport::Exit(0));
    finish_cleanup(&mut state, &ann);
    assert!(state.pending_respawns[0].is_suspended(), "ann is to be had back");
    let back = Request::ResumeMembers(ResumeMembersRequest { team: Some(survey_team()) });
    assert_eq!(error_kind(&send_call(&mut state, 9, back.clone()), 9), Some(ErrorKind::Refused));
    policy_saved(&mut state, Policy { max_turns: Some(100), ..Policy::default() });
    let effects = send_call(&mut state, 10, back);
    assert!(
        matches!(reply_value(&effects, 10), Some(Reply::ResumeMembers(back)) if back.members[&survey_team()].len() == 1)
    );
}

#[test]
fn its_time_is_over_at_its_moment_for_the_next_daemon_too() {
    let mut state = state_with_policy(Policy { max_time_ms: Some(5_000), ..Policy::default() });
    start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    policy_saved(&mut state, Policy { max_time_ms: Some(8_000), ..Policy::default() });
    state.rescan_at = u64::MAX;
    let at = |ms| Now { wall: NOW.wall + ms, mono: NOW.mono + ms };
    assert_eq!(deadlines::next_deadline(&state), NOW.mono + 8_000);
    assert!(!reports_exhausted(&handle_event(&mut state, CoreEvent::DeadlineReached, at(7_999))));
    let before = state.to_roster();
    assert!(reports_exhausted(&handle_event(&mut state, CoreEvent::DeadlineReached, at(8_000))));
    assert!(deadlines::next_deadline(&state) > NOW.mono + 8_000, "it would wake for ever");
    let roster = serde_json::from_value(serde_json::to_value(state.to_roster()).unwrap()).unwrap();
    let mut next = State::new(state.settings.clone(), roster, EventLogCursor::default());
    next.teams.get_mut(&survey_team()).unwrap().policy =
        Policy { max_time_ms: Some(8_000), ..Policy::default() };
    let effects = recovery::recover(&mut next, at(9_000));
    assert!(!reports_exhausted(&effects), "it was told");
    let roster = serde_json::from_value(serde_json::to_value(before).unwrap()).unwrap();
    let mut late = State::new(state.settings.clone(), roster, EventLogCursor::default());
    late.teams.get_mut(&survey_team()).unwrap().policy =
        Policy { max_time_ms: Some(8_000), ..Policy::default() };
    let effects = recovery::recover(&mut late, at(9_000));
    assert_eq!(
        (reports_exhausted(&effects), shutdown_requested_of(&effects)),
        (true, 1),
        "over while no daemon looked"
    );
    let [Effect::File(FileJob::SaveRoster(roster)), ..] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(roster.records[0].lifecycle.shutdown_ids().len(), 1, "the roster goes ahead of the question");
    assert_eq!(
        error_kind(&send_call(&mut next, 8, worker_request("cat", |_| {})), 8),
        Some(ErrorKind::Refused)
    );
}

#[test]
fn while_the_machine_sleeps_its_time_goes_on() {
    let mut state = state_with_policy(Policy::default());
    start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    policy_saved(&mut state, Policy { max_time_ms: Some(3_600_000), ..Policy::default() });
    let awake = |mono: u64, slept: u64| Now { wall: NOW.wall + mono + slept, mono: NOW.mono + mono };
    assert!(!reports_exhausted(&handle_event(&mut state, CoreEvent::DeadlineReached, awake(40_000, 0))));
    assert!(!reports_exhausted(&handle_event(
        &mut state,
        CoreEvent::DeadlineReached,
        awake(80_000, 3_000_000)
    )));
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, awake(120_000, 3_600_000));
    assert_eq!((reports_exhausted(&effects), shutdown_requested_of(&effects)), (true, 1));
}

#[test]
fn whoever_was_killed_just_then_does_not_rest() {
    let mut state = state_with_policy(Policy { max_turns: Some(1), ..Policy::default() });
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let bob = start_member_with(&mut state, worker_request("bob", |_| {}), 51);
    send_call(
        &mut state,
        9,
        Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] }),
    );
    assert!(reports_exhausted(&run_turns(&mut state, 51, 1)));
    report_exit(&mut state, &ann, 50, ExitReport::Signal(15));
    assert!(state.pending_respawns.is_empty(), "up --resume would bring it back");
    report_exit(&mut state, &bob, 51, ExitReport::Exit(0));
    assert_eq!(state.pending_respawns.len(), 1);
}

/// The time limit passes while no daemon runs. Recovery suspends the other members.
#[test]
fn killed_member_is_not_suspended_if_recovery_finds_the_time_limit_passed() {
    let policy = Policy { max_time_ms: Some(5_000), ..Policy::default() };
    let mut before = state_with_policy(policy.clone());
    let restarted = |name| worker_request(name, |order| order.restart = RestartPolicy::OnFailure);
    let ann = start_member_with(&mut before, restarted("ann"), 50);
    let bob = start_member_with(&mut before, restarted("bob"), 51);
    let kill = Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] });
    send_call(&mut before, 9, kill);
    let mut state = next_daemon(&before);
    state.teams.get_mut(&survey_team()).unwrap().policy = policy;
    let late = Now { wall: NOW.wall + 9_000, mono: NOW.mono + 9_000 };
    assert!(reports_exhausted(&recovery::recover(&mut state, late)));
    let mut report_killed = |spawn: &SpawnId| {
        let ended = Some(ExitReport::Signal(9));
        let report = FileResult::ExitReportRead { spawn: spawn.clone(), ended };
        handle_event(&mut state, CoreEvent::FileJobDone(report), late);
        state.pending_respawns.iter().map(|pending| pending.request.name.to_string()).collect::<Vec<_>>()
    };
    assert!(report_killed(&ann).is_empty(), "teamctl up --resume would start ann again");
    assert_eq!(report_killed(&bob), ["bob"]);
}

/// Whoever failed just then comes back with all others alone.
#[test]
fn between_two_lives_one_rests_with_the_others() {
    let mut state = state_with_policy(Policy { max_turns: Some(1), ..Policy::default() });
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |order| order.restart = protocol::control::RestartPolicy::OnFailure),
        50,
    );
    start_member_with(&mut state, worker_request("bob", |_| {}), 51);
    report_exit(&mut state, &ann, 50, ExitReport::Exit(1));
    finish_cleanup(&mut state, &ann);
    assert!(reports_exhausted(&run_turns(&mut state, 51, 1)));
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(10_000));
    assert!(
        !effects.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::OpenPane { .. }))),
        "{effects:?}"
    );
    assert!(state.pending_respawns[0].is_suspended());
}

#[test]
fn nobody_says_no_to_the_end_of_a_budget() {
    let mut state = state_with_policy(Policy { max_turns: Some(1), ..Policy::default() });
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let effects = run_turns(&mut state, 50, 1);
    let request = effects.iter().find_map(|effect| match effect {
        Effect::File(FileJob::SendShutdownRequest { request, .. }) => Some(request.clone()),
        _ => None,
    });
    let from = AgentName::new_unchecked("ann");
    let no = ShutdownAnswer { from, request: request.unwrap(), rejection_reason: Some("not yet".into()) };
    let effects = handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::ShutdownAnswers { team: survey_team(), answers: Ok(vec![no]) }),
        NOW,
    );
    assert!(
        effects.iter().any(|effect| matches!(effect, Effect::SendToShim { message: ToShim::End { .. }, .. })),
        "{effects:?}"
    );
    // More that comes too late lets it rest all the same.
    policy_saved(&mut state, Policy::default());
    report_exit(&mut state, &ann, 50, ExitReport::Signal(15));
    assert!(state.pending_respawns[0].is_suspended());
}

fn usage_report(tokens: u64) -> Usage {
    Usage { tokens, microdollars: tokens * 10 }
}

/// A turn's end, with what its program has told so far.
fn budget_of(state: &mut State, conn: u64, session: Option<&str>, tokens: u64) -> Vec<Effect> {
    let report = UsageReport { session_id: session.map(str::to_owned), usage: usage_report(tokens) };
    let said = FromShim::TurnStatus(TurnStatus { usage: Some(report), ..turn_state(Activity::Idle, 1) });
    handle_event(state, CoreEvent::ShimReported { conn, report: said }, NOW)
}

fn exhausted_state(state: &State) -> u64 {
    state.teams[&survey_team()].usage.usage.tokens
}

#[test]
fn what_programs_tell_is_counted_once_and_ends_the_budget() {
    let mut state = state_with_policy(Policy { max_tokens: Some(1_000), ..Policy::default() });
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    start_member_with(&mut state, worker_request("bob", |_| {}), 51);
    for (tokens, all) in [(300, 300), (300, 300), (450, 450)] {
        assert!(!reports_exhausted(&budget_of(&mut state, 50, None, tokens)));
        assert_eq!(exhausted_state(&state), all, "a join that comes back tells the same again");
    }
    assert_eq!(state.agents[&ann].record.usage(), usage_report(450));
    assert!(!reports_exhausted(&budget_of(&mut state, 51, Some("s"), 549)));
    let effects = budget_of(&mut state, 51, Some("s"), 551);
    assert!(reports_exhausted(&effects) && shutdown_requested_of(&effects) == 2, "{effects:?}");
    let refused = send_call(&mut state, 8, worker_request("cat", |_| {}));
    assert_eq!(error_kind(&refused, 8), Some(ErrorKind::Refused));
    let why = state.teams[&survey_team()].usage.exhausted_reason.clone();
    assert_eq!(why.as_deref(), Some("its budget of 1.0k tokens is used up"));
    policy_saved(&mut state, Policy { max_microdollars: Some(10_010), ..Policy::default() });
    assert_eq!(
        state.teams[&survey_team()].usage.exhausted_reason.as_deref(),
        Some("its budget of $0.02 is used up")
    );
}

/// A life counts from its own beginning, a session from that of the first life that had it.
#[test]
fn the_next_life_and_the_next_daemon_go_on_with_the_count() {
    for (session, more, all) in [(None, 300, 900), (None, 700, 1_300), (Some("s"), 700, 700)] {
        let mut state = state_with_policy(Policy::default());
        let restart = protocol::control::RestartPolicy::OnFailure;
        let ann = start_member_with(&mut state, worker_request("ann", |order| order.restart = restart), 50);
        budget_of(&mut state, 50, session, 600);
        report_exit(&mut state, &ann, 50, ExitReport::Exit(1));
        finish_cleanup(&mut state, &ann);
        assert_eq!(state.teams[&survey_team()].past_members[0].usage, usage_report(600));
        let roster = serde_json::from_value(serde_json::to_value(state.to_roster()).unwrap()).unwrap();
        let mut next = State::new(state.settings.clone(), roster, EventLogCursor::default());
        recovery::recover(&mut next, NOW);
        let ann = started_spawn_id(&handle_event(&mut next, CoreEvent::DeadlineReached, now_at(10_000)));
        start(&mut next, &ann, 52);
        budget_of(&mut next, 52, session, more);
        assert_eq!(
            (exhausted_state(&next), next.agents[&ann].record.usage()),
            (all, usage_report(all)),
            "{session:?} {more}"
        );
    }
}

#[test]
fn what_is_told_again_in_part_or_of_an_earlier_session_counts_nothing() {
    let mut state = state_with_policy(Policy::default());
    start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    for (session, tokens, all) in
        [("a", 600, 600), ("a", 0, 600), ("a", 700, 700), ("b", 10, 710), ("a", 650, 710), ("a", 710, 720)]
    {
        budget_of(&mut state, 50, Some(session), tokens);
        assert_eq!(exhausted_state(&state), all, "{session} {tokens}");
    }
}

#[test]
fn hooks_tell_at_a_turns_end() {
    let mut state = state_with_policy(Policy { max_microdollars: Some(5_000), ..Policy::default() });
    let (ann, token) = hooks::send_hook(&mut state, "ann", 50);
    let ended = |tokens| HookReport {
        usage: Some(UsageReport { session_id: Some("s".to_owned()), usage: usage_report(tokens) }),
        ..super::hooks::hook_report_in(Some("s"), HookEvent::TurnEnded)
    };
    let mut hook = |tokens| hooks::send_call_as(&mut state, 70, &token, Request::ReportHook(ended(tokens)));
    hook(400);
    let effects = hook(500);
    assert!(reports_exhausted(&effects), "{effects:?}");
    assert_eq!(state.agents[&ann].record.usage(), usage_report(500));
}
