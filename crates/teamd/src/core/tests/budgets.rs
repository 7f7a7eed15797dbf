//! Tests of team budgets: turns, time and usage are counted, and an exhausted budget suspends the
//! members.

use super::turns_and_task_offers::*;
use super::*;
use crate::core::core_event::CoreEvent;
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::{FileResult, ShutdownAnswer};
use crate::core::jobs::pane_jobs::PaneJob;
use crate::core::state::core_state::State;
use crate::core::state::logged_tasks_messages_and_requests::EventLogCursor;
use crate::core::tests::hooks_and_lead_sessions;
use crate::core::tests::shutdown::next_daemon;
use crate::core::{deadlines, recovery};
use protocol::control_socket::{
    HookEvent, HookReport, RestartPolicy, ResumeMembersRequest, SetPolicyRequest, TurnStatus,
};
use protocol::event_log_line::EventKind;
use protocol::policy::Policy;
use protocol::token_and_cost_usage::{Usage, UsageReport};

fn state_with_policy(policy: Policy) -> State {
    let mut state = new_state();
    let team = state.teams.get_mut(&survey_team()).unwrap();
    (team.policy, team.usage.started_at) = (policy, NOW.wall);
    state
}

/// Reports the end of the turn before `number`, and the start of the turn `number`.
fn start_turn(state: &mut State, conn: u64, number: u64) -> Vec<Effect> {
    let turn_status = |activity, number| CoreEvent::ShimReported {
        conn,
        report: FromShim::TurnStatus(turn_state(activity, number)),
    };
    handle_event(state, turn_status(Activity::Idle, number - 1), NOW);
    handle_event(state, turn_status(Activity::Active, number), NOW)
}

fn logs_exhausted(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| match effect {
        Effect::Log(event) => matches!(event.kind, EventKind::BudgetExhausted { .. }),
        _ => false,
    })
}

fn shutdown_request_count(effects: &[Effect]) -> usize {
    effects
        .iter()
        .filter(|effect| matches!(effect, Effect::File(FileJob::SendShutdownRequest { .. })))
        .count()
}

fn save_policy(state: &mut State, policy: Policy) -> Vec<Effect> {
    let request = SetPolicyRequest { team: survey_team(), policy };
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::PolicySaved { client: 9, request, result: Ok(()) }),
        NOW,
    )
}

#[test]
fn last_turn_of_the_budget_suspends_all_members() {
    let mut state = state_with_policy(Policy { max_turns: Some(3), ..Policy::default() });
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    start_member_with(&mut state, worker_request("bob", |_| {}), 51);
    assert!(
        !logs_exhausted(&start_turn(&mut state, 50, 1)) && !logs_exhausted(&start_turn(&mut state, 51, 1))
    );
    let effects = start_turn(&mut state, 50, 2);
    assert!(logs_exhausted(&effects), "{effects:?}");
    assert_eq!(shutdown_request_count(&effects), 2);
    assert!(!logs_exhausted(&start_turn(&mut state, 51, 2)), "the exhausted budget is logged once");
    assert_eq!(
        error_kind(&send_call(&mut state, 8, worker_request("cat", |_| {})), 8),
        Some(ErrorKind::Refused)
    );
    report_exit(&mut state, &ann, 50, ExitReport::Exit(0));
    finish_cleanup(&mut state, &ann);
    assert!(state.pending_respawns[0].is_suspended(), "ann can be resumed");
    let resume = Request::ResumeMembers(ResumeMembersRequest { team: Some(survey_team()) });
    assert_eq!(error_kind(&send_call(&mut state, 9, resume.clone()), 9), Some(ErrorKind::Refused));
    save_policy(&mut state, Policy { max_turns: Some(100), ..Policy::default() });
    let effects = send_call(&mut state, 10, resume);
    assert!(
        matches!(reply_value(&effects, 10), Some(Reply::ResumeMembers(reply)) if reply.members[&survey_team()].len() == 1)
    );
}

#[test]
fn time_limit_is_reported_once_by_this_or_the_next_daemon() {
    let mut state = state_with_policy(Policy { max_time_ms: Some(5_000), ..Policy::default() });
    start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    save_policy(&mut state, Policy { max_time_ms: Some(8_000), ..Policy::default() });
    state.rescan_at = u64::MAX;
    let at = |ms| Now { wall: NOW.wall + ms, mono: NOW.mono + ms };
    assert_eq!(deadlines::next_deadline(&state), NOW.mono + 8_000);
    assert!(!logs_exhausted(&handle_event(&mut state, CoreEvent::DeadlineReached, at(7_999))));
    let roster_before = state.to_roster();
    assert!(logs_exhausted(&handle_event(&mut state, CoreEvent::DeadlineReached, at(8_000))));
    assert!(
        deadlines::next_deadline(&state) > NOW.mono + 8_000,
        "the passed time limit is not a deadline any more"
    );
    let roster = serde_json::from_value(serde_json::to_value(state.to_roster()).unwrap()).unwrap();
    let mut next_state = State::new(state.settings.clone(), roster, EventLogCursor::default());
    next_state.teams.get_mut(&survey_team()).unwrap().policy =
        Policy { max_time_ms: Some(8_000), ..Policy::default() };
    let effects = recovery::recover(&mut next_state, at(9_000));
    assert!(!logs_exhausted(&effects), "the earlier daemon logged it");
    let roster = serde_json::from_value(serde_json::to_value(roster_before).unwrap()).unwrap();
    let mut recovered = State::new(state.settings.clone(), roster, EventLogCursor::default());
    recovered.teams.get_mut(&survey_team()).unwrap().policy =
        Policy { max_time_ms: Some(8_000), ..Policy::default() };
    let effects = recovery::recover(&mut recovered, at(9_000));
    assert_eq!(
        (logs_exhausted(&effects), shutdown_request_count(&effects)),
        (true, 1),
        "the limit passed while no daemon ran"
    );
    let [Effect::File(FileJob::SaveRoster(roster)), ..] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(
        roster.records[0].lifecycle.shutdown_ids().len(),
        1,
        "the roster is saved before the shutdown request is sent"
    );
    assert_eq!(
        error_kind(&send_call(&mut next_state, 8, worker_request("cat", |_| {})), 8),
        Some(ErrorKind::Refused)
    );
}

#[test]
fn time_limit_includes_the_sleep_of_the_machine() {
    let mut state = state_with_policy(Policy::default());
    start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    save_policy(&mut state, Policy { max_time_ms: Some(3_600_000), ..Policy::default() });
    let after = |mono: u64, slept: u64| Now { wall: NOW.wall + mono + slept, mono: NOW.mono + mono };
    assert!(!logs_exhausted(&handle_event(&mut state, CoreEvent::DeadlineReached, after(40_000, 0))));
    assert!(!logs_exhausted(&handle_event(&mut state, CoreEvent::DeadlineReached, after(80_000, 3_000_000))));
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, after(120_000, 3_600_000));
    assert_eq!((logs_exhausted(&effects), shutdown_request_count(&effects)), (true, 1));
}

#[test]
fn killed_member_is_not_suspended_when_the_budget_is_exhausted() {
    let mut state = state_with_policy(Policy { max_turns: Some(1), ..Policy::default() });
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let bob = start_member_with(&mut state, worker_request("bob", |_| {}), 51);
    send_call(
        &mut state,
        9,
        Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] }),
    );
    assert!(logs_exhausted(&start_turn(&mut state, 51, 1)));
    report_exit(&mut state, &ann, 50, ExitReport::Signal(15));
    assert!(state.pending_respawns.is_empty(), "teamctl up --resume would start ann again");
    report_exit(&mut state, &bob, 51, ExitReport::Exit(0));
    assert_eq!(state.pending_respawns.len(), 1);
}

/// The time limit passes while no daemon runs. Recovery suspends the other members.
#[test]
fn killed_member_is_not_suspended_if_recovery_finds_the_time_limit_passed() {
    let policy = Policy { max_time_ms: Some(5_000), ..Policy::default() };
    let mut old_state = state_with_policy(policy.clone());
    let with_restarts =
        |name| worker_request(name, |request| request.restart = RestartPolicy::OnFailure(None));
    let ann = start_member_with(&mut old_state, with_restarts("ann"), 50);
    let bob = start_member_with(&mut old_state, with_restarts("bob"), 51);
    let kill = Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] });
    send_call(&mut old_state, 9, kill);
    let mut state = next_daemon(&old_state);
    state.teams.get_mut(&survey_team()).unwrap().policy = policy;
    let recovered_at = Now { wall: NOW.wall + 9_000, mono: NOW.mono + 9_000 };
    assert!(logs_exhausted(&recovery::recover(&mut state, recovered_at)));
    let mut report_killed = |spawn: &SpawnId| {
        let report = Some(ExitReport::Signal(9));
        let result = FileResult::ExitReportRead { spawn: spawn.clone(), report };
        handle_event(&mut state, CoreEvent::FileJobDone(result), recovered_at);
        state.pending_respawns.iter().map(|pending| pending.request.name.to_string()).collect::<Vec<_>>()
    };
    assert!(report_killed(&ann).is_empty(), "teamctl up --resume would start ann again");
    assert_eq!(report_killed(&bob), ["bob"]);
}

/// When the budget is exhausted, a member with a scheduled respawn is suspended, too.
#[test]
fn pending_respawn_is_suspended_when_the_budget_is_exhausted() {
    let mut state = state_with_policy(Policy { max_turns: Some(1), ..Policy::default() });
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |request| {
            request.restart = protocol::control_socket::RestartPolicy::OnFailure(None);
        }),
        50,
    );
    start_member_with(&mut state, worker_request("bob", |_| {}), 51);
    report_exit(&mut state, &ann, 50, ExitReport::Exit(1));
    finish_cleanup(&mut state, &ann);
    assert!(logs_exhausted(&start_turn(&mut state, 51, 1)));
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(10_000));
    assert!(
        !effects.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::OpenPane { .. }))),
        "{effects:?}"
    );
    assert!(state.pending_respawns[0].is_suspended());
}

#[test]
fn shutdown_for_an_exhausted_budget_cannot_be_rejected() {
    let mut state = state_with_policy(Policy { max_turns: Some(1), ..Policy::default() });
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let effects = start_turn(&mut state, 50, 1);
    let request = effects.iter().find_map(|effect| match effect {
        Effect::File(FileJob::SendShutdownRequest { request, .. }) => Some(request.clone()),
        _ => None,
    });
    let from = MemberName::new_unchecked("ann");
    let rejection =
        ShutdownAnswer { from, request: request.unwrap(), rejection_reason: Some("not yet".into()) };
    let effects = handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::ShutdownAnswers {
            team: survey_team(),
            answers: Ok(vec![rejection]),
        }),
        NOW,
    );
    assert!(ends_agent(&effects), "{effects:?}");
    // A larger budget does not cancel the shutdown: the member is suspended.
    save_policy(&mut state, Policy::default());
    report_exit(&mut state, &ann, 50, ExitReport::Signal(15));
    assert!(state.pending_respawns[0].is_suspended());
}

fn usage_report(tokens: u64) -> Usage {
    Usage { tokens, microdollars: tokens * 10 }
}

/// Reports the end of a turn with the usage so far.
fn report_usage(state: &mut State, conn: u64, session: Option<&str>, tokens: u64) -> Vec<Effect> {
    let report = UsageReport { session_id: session.map(str::to_owned), usage: usage_report(tokens) };
    let status = FromShim::TurnStatus(TurnStatus { usage: Some(report), ..turn_state(Activity::Idle, 1) });
    handle_event(state, CoreEvent::ShimReported { conn, report: status }, NOW)
}

fn counted_tokens(state: &State) -> u64 {
    state.teams[&survey_team()].usage.usage.tokens
}

#[test]
fn reported_usage_is_counted_once_and_exhausts_the_budget() {
    let mut state = state_with_policy(Policy { max_tokens: Some(1_000), ..Policy::default() });
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    start_member_with(&mut state, worker_request("bob", |_| {}), 51);
    for (tokens, expected) in [(300, 300), (300, 300), (450, 450)] {
        assert!(!logs_exhausted(&report_usage(&mut state, 50, None, tokens)));
        assert_eq!(counted_tokens(&state), expected, "a repeated report is not counted again");
    }
    assert_eq!(state.agents[&ann].record.usage(), usage_report(450));
    assert!(!logs_exhausted(&report_usage(&mut state, 51, Some("s"), 549)));
    let effects = report_usage(&mut state, 51, Some("s"), 551);
    assert!(logs_exhausted(&effects) && shutdown_request_count(&effects) == 2, "{effects:?}");
    let effects = send_call(&mut state, 8, worker_request("cat", |_| {}));
    assert_eq!(error_kind(&effects, 8), Some(ErrorKind::Refused));
    let reason = state.teams[&survey_team()].usage.exhausted_reason.clone();
    assert_eq!(reason.as_deref(), Some("its budget of 1.0k tokens is used up"));
    save_policy(&mut state, Policy { max_microdollars: Some(10_010), ..Policy::default() });
    assert_eq!(
        state.teams[&survey_team()].usage.exhausted_reason.as_deref(),
        Some("its budget of $0.02 is used up")
    );
}

/// Without a session, a spawn reports its usage since its own start. With a session, it reports the
/// usage since the start of the session, which may be an earlier spawn.
#[test]
fn usage_is_counted_across_respawns_and_daemons() {
    for (session, tokens, expected) in [(None, 300, 900), (None, 700, 1_300), (Some("s"), 700, 700)] {
        let mut state = state_with_policy(Policy::default());
        let restart = protocol::control_socket::RestartPolicy::OnFailure(None);
        let ann =
            start_member_with(&mut state, worker_request("ann", |request| request.restart = restart), 50);
        report_usage(&mut state, 50, session, 600);
        report_exit(&mut state, &ann, 50, ExitReport::Exit(1));
        finish_cleanup(&mut state, &ann);
        assert_eq!(state.teams[&survey_team()].past_members[0].usage, usage_report(600));
        let roster = serde_json::from_value(serde_json::to_value(state.to_roster()).unwrap()).unwrap();
        let mut next_state = State::new(state.settings.clone(), roster, EventLogCursor::default());
        recovery::recover(&mut next_state, NOW);
        let ann =
            started_spawn_id(&handle_event(&mut next_state, CoreEvent::DeadlineReached, now_at(10_000)));
        start(&mut next_state, &ann, 52);
        report_usage(&mut next_state, 52, session, tokens);
        assert_eq!(
            (counted_tokens(&next_state), next_state.agents[&ann].record.usage()),
            (expected, usage_report(expected)),
            "{session:?} {tokens}"
        );
    }
}

#[test]
fn usage_below_the_highest_report_of_its_session_is_not_counted() {
    let mut state = state_with_policy(Policy::default());
    start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    for (session, tokens, expected) in
        [("a", 600, 600), ("a", 0, 600), ("a", 700, 700), ("b", 10, 710), ("a", 650, 710), ("a", 710, 720)]
    {
        report_usage(&mut state, 50, Some(session), tokens);
        assert_eq!(counted_tokens(&state), expected, "{session} {tokens}");
    }
}

#[test]
fn member_that_has_used_its_share_is_suspended_alone() {
    let policy = Policy { max_tokens: Some(1_000), member_share: Some(60), ..Policy::default() };
    let mut state = state_with_policy(policy.clone());
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    start_member_with(&mut state, worker_request("bob", |_| {}), 51);
    assert_eq!(shutdown_request_count(&report_usage(&mut state, 50, None, 599)), 0);
    let effects = report_usage(&mut state, 50, None, 900_000);
    assert!(logs_exhausted(&effects) && shutdown_request_count(&effects) == 1, "{effects:?}");
    assert_eq!(counted_tokens(&state), 600, "more than its share does not count for the team");
    let effects = report_usage(&mut state, 50, None, 900_001);
    assert!(!logs_exhausted(&effects) && shutdown_request_count(&effects) == 0, "{effects:?}");
    assert_eq!(state.teams[&survey_team()].usage.exhausted_reason, None);
    report_exit(&mut state, &ann, 50, ExitReport::Signal(15));
    finish_cleanup(&mut state, &ann);
    let request = Request::ResumeMembers(ResumeMembersRequest { team: None });
    send_call(&mut state, 8, request.clone());
    let past = &state.teams[&survey_team()].past_members[0];
    assert!(past.is_suspended && past.description.contains("its share of the budget"), "{past:?}");
    save_policy(&mut state, Policy { member_share: Some(20), ..policy.clone() });
    assert_eq!(counted_tokens(&state), 200, "a smaller share counts less");
    let effects =
        save_policy(&mut state, Policy { member_share: None, max_tokens: Some(2_000_000), ..policy });
    assert!(effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::SaveRoster(_)))));
    assert_eq!(counted_tokens(&state), 900_001, "without a share, all of ann's usage counts");
    let effects = send_call(&mut state, 8, request);
    assert!(
        state.members(&survey_team()).iter().any(|agent| agent.record.request.name.as_str() == "ann"),
        "{effects:?}"
    );
}

#[test]
fn hooks_report_usage_at_the_end_of_a_turn() {
    let mut state = state_with_policy(Policy { max_microdollars: Some(5_000), ..Policy::default() });
    let (ann, token) = hooks_and_lead_sessions::start_hook_member(&mut state, "ann", 50);
    let turn_end = |tokens| HookReport {
        usage: Some(UsageReport { session_id: Some("s".to_owned()), usage: usage_report(tokens) }),
        ..super::hooks_and_lead_sessions::hook_report(Some("s"), HookEvent::TurnEnded)
    };
    let mut report_hook = |tokens| {
        hooks_and_lead_sessions::send_call_as(&mut state, 70, &token, Request::ReportHook(turn_end(tokens)))
    };
    report_hook(400);
    let effects = report_hook(500);
    assert!(logs_exhausted(&effects), "{effects:?}");
    assert_eq!(state.agents[&ann].record.usage(), usage_report(500));
}

#[test]
fn implausible_or_foreign_usage_is_not_counted_and_reported_once() {
    let mut state = state_with_policy(Policy { max_tokens: Some(1_000), ..Policy::default() });
    let (_, token) = hooks_and_lead_sessions::start_hook_member(&mut state, "ann", 50);
    let mut report_hook = |session: &str, tokens| {
        let report =
            UsageReport { session_id: Some(session.to_owned()), usage: Usage { tokens, ..Usage::default() } };
        let report = HookReport {
            usage: Some(report),
            ..super::hooks_and_lead_sessions::hook_report(Some("s"), HookEvent::TurnEnded)
        };
        let effects =
            hooks_and_lead_sessions::send_call_as(&mut state, 70, &token, Request::ReportHook(report));
        assert!(!logs_exhausted(&effects), "{effects:?}");
        let is_error = |effect: &&Effect| matches!(effect, Effect::Log(event) if matches!(event.kind, EventKind::Error { .. }));
        (counted_tokens(&state), effects.iter().filter(is_error).count())
    };
    assert_eq!(report_hook("s", 1_000_000_000_000), (0, 1));
    assert_eq!(report_hook("s", 1_000_000_000_001), (0, 0));
    assert_eq!(report_hook("other", 900), (0, 0));
    assert_eq!(report_hook("s", 900), (900, 0));
}
