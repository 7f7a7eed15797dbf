//! Tests of budgets of teams with members on other hosts: at the home, which counts, and at the annex.

use super::turns_and_task_offers::{
    finish_cleanup, report_exit, start_member_with, turn_state, worker_request,
};
use super::*;
use crate::core::jobs::host_jobs::{HostEvent, HostJob, LinkId, MirrorJob};
use crate::core::recovery;
use crate::core::tests::shutdown::next_daemon;
use mirror::MirrorNotice;
use protocol::annex_link::{HomeBudget, HomeHandover};
use protocol::control_socket::{
    ConnectHomeRequest, FIRST_LINK_GENERATION, HomeId, HostCandidate, MemberHost, MoveHomeRequest,
    PlaceMemberRequest, ResumeMembersRequest, SetPolicyRequest, TurnStatus, UseHostRequest,
};
use protocol::event_log_line::{Event, EventKind};
use protocol::hosts_file_entry::HostName;
use protocol::policy::Policy;
use protocol::team_home::HomeUsage;
use protocol::token_and_cost_usage::{Usage, UsageReport};
use std::collections::BTreeSet;

fn devbox() -> HostName {
    HostName::parse("devbox").unwrap()
}

fn annex_link() -> LinkId {
    LinkId::ToAnnex(devbox())
}

fn home_link() -> LinkId {
    LinkId::ToHome(ConnectHomeRequest {
        home: HomeId::parse("7f").unwrap(),
        annex: devbox(),
        generation: FIRST_LINK_GENERATION,
    })
}

fn report_host(state: &mut State, link: LinkId, event: HostEvent) -> Vec<Effect> {
    handle_event(state, CoreEvent::HostReported { link, event }, NOW)
}

fn state_with_link(link: LinkId, policy: Policy) -> State {
    let mut state = new_state();
    let team = state.teams.get_mut(&survey_team()).unwrap();
    (team.policy, team.usage.started_at) = (policy, NOW.wall);
    report_host(&mut state, link, HostEvent::TeamsChanged(BTreeSet::from([survey_team()])));
    state
}

fn active() -> EventKind {
    EventKind::MemberActive { summary: String::new() }
}

fn tokens(tokens: u64) -> Usage {
    Usage { tokens, microdollars: 0 }
}

/// The annex has sent the event of a member.
fn receive(state: &mut State, name: &str, number: u64, kind: EventKind) -> Vec<Effect> {
    let event = Event::for_member(&survey_team(), &MemberName::new_unchecked(name), kind);
    let events = vec![Event { number: Some(number), ..event.with_time(NOW.wall) }];
    let received = HostEvent::Notice(MirrorNotice::EventsReceived { team: survey_team(), events });
    report_host(state, annex_link(), received)
}

/// The home has sent the budget.
fn receive_budget(state: &mut State, reason: Option<&str>, member_limit: Option<Usage>) -> Vec<Effect> {
    let budget = HomeBudget { exhausted_reason: reason.map(str::to_owned), member_limit };
    let changed = MirrorNotice::BudgetChanged { team: survey_team(), budget };
    report_host(state, home_link(), HostEvent::Notice(changed))
}

fn start_turn(state: &mut State, conn: u64, turn_number: u64) -> Vec<Effect> {
    let report = FromShim::TurnStatus(turn_state(Activity::Active, turn_number));
    handle_event(state, CoreEvent::ShimReported { conn, report }, NOW)
}

fn save_policy(state: &mut State, policy: Policy) -> Vec<Effect> {
    let request = SetPolicyRequest { team: survey_team(), policy };
    let saved = FileResult::PolicySaved { client: 9, request, result: Ok(()) };
    handle_event(state, CoreEvent::FileJobDone(saved), NOW)
}

/// The members whose shares or the whole team whose budget is logged as used up.
fn exhausted(effects: &[Effect]) -> Vec<Option<MemberName>> {
    let events = effects.iter().filter_map(|effect| match effect {
        Effect::Log(event) if matches!(event.kind, EventKind::BudgetExhausted { .. }) => Some(event),
        _ => None,
    });
    events.map(|event| event.member.clone()).collect()
}

fn shutdown_requests(effects: &[Effect]) -> usize {
    let is_request = |effect: &&Effect| matches!(effect, Effect::File(FileJob::SendShutdownRequest { .. }));
    effects.iter().filter(is_request).count()
}

/// The budgets that the home sends to the annex.
fn sent_budgets(effects: &[Effect]) -> Vec<HomeBudget> {
    let budgets = effects.iter().filter_map(|effect| match effect {
        Effect::Host(HostJob::Mirror { link, job: MirrorJob::SendBudget { budget, .. } }) => {
            assert_eq!(*link, annex_link());
            Some(budget.clone())
        }
        _ => None,
    });
    budgets.collect()
}

fn reason(reason: &str) -> HomeBudget {
    HomeBudget { exhausted_reason: Some(reason.to_owned()), member_limit: None }
}

#[test]
fn turns_of_all_hosts_exhaust_the_budget_and_the_annex_is_told() {
    let budget = Policy { max_turns: Some(3), ..Policy::default() };
    let mut state = state_with_link(annex_link(), budget);
    start_member_with(&mut state, worker_request("bob", |_| {}), 50);
    assert_eq!(exhausted(&start_turn(&mut state, 50, 1)), []);
    assert_eq!(exhausted(&receive(&mut state, "ann", 7, active())), []);
    assert_eq!(exhausted(&receive(&mut state, "ann", 8, EventKind::MemberInterrupted)), []);
    let effects = receive(&mut state, "ann", 9, active());
    assert_eq!((exhausted(&effects), shutdown_requests(&effects)), (vec![None], 1), "{effects:?}");
    assert_eq!(sent_budgets(&effects), [reason("its budget of 3 turns is used up")]);
    // The budget goes out again after each connection, because a crash can have lost it.
    let effects = report_host(&mut state, annex_link(), HostEvent::Connected);
    assert_eq!(sent_budgets(&effects), [reason("its budget of 3 turns is used up")]);
    let effects = save_policy(&mut state, Policy { max_turns: Some(4), ..Policy::default() });
    assert_eq!(sent_budgets(&effects).last(), Some(&HomeBudget::default()));
}

#[test]
fn exhausted_budget_places_no_member_on_a_host() {
    let mut state = state_with_link(annex_link(), Policy { max_turns: Some(1), ..Policy::default() });
    let place = |state: &mut State| {
        let host = MemberHost::Other(devbox());
        let candidates = vec![HostCandidate { host, labels: Vec::new(), slots: None }];
        let (team, name) = (survey_team(), MemberName::new_unchecked("eve"));
        let request = PlaceMemberRequest { team, name, needs: Vec::new(), candidates };
        error_kind(&send_call(state, 1, Request::PlaceMember(request)), 1)
    };
    assert_eq!(place(&mut state), None);
    receive(&mut state, "ann", 7, active());
    assert_eq!(place(&mut state), Some(ErrorKind::Refused));
}

/// `teamctl home move` first uses the host, and ends no turn.
#[test]
fn home_of_a_team_with_an_exhausted_budget_moves() {
    let mut state = state_with_link(annex_link(), Policy { max_turns: Some(1), ..Policy::default() });
    receive(&mut state, "ann", 7, active());
    report_host(&mut state, annex_link(), HostEvent::Connected);
    let request = UseHostRequest { team: survey_team(), host: devbox(), command: vec!["ssh".into()] };
    assert_eq!(error_kind(&send_call(&mut state, 1, Request::UseHost(request)), 1), None);
    let request = MoveHomeRequest { team: survey_team(), host: devbox() };
    assert_eq!(error_kind(&send_call(&mut state, 2, Request::MoveHome(request)), 2), None);
}

#[test]
fn usage_at_the_old_home_counts_after_a_move() {
    let mut state = state_with_link(annex_link(), Policy { max_turns: Some(3), ..Policy::default() });
    receive(&mut state, "ann", 7, active());
    report_host(&mut state, annex_link(), HostEvent::Connected);
    let request = MoveHomeRequest { team: survey_team(), host: devbox() };
    let effects = send_call(&mut state, 2, Request::MoveHome(request));
    let barrier = effects.iter().find_map(|effect| match effect {
        Effect::Host(HostJob::Mirror { job: MirrorJob::BeginMove { barrier, .. }, .. }) => Some(*barrier),
        _ => None,
    });
    let reached = HostEvent::Notice(MirrorNotice::BarrierReached { number: barrier.unwrap() });
    let effects = report_host(&mut state, annex_link(), reached);
    let offered = effects.iter().find_map(|effect| match effect {
        Effect::Host(HostJob::Mirror { job: MirrorJob::OfferHome { usage, .. }, .. }) => Some(*usage),
        _ => None,
    });
    let usage = HomeUsage { turns: 1, usage: Usage::default(), started_at: NOW.wall };
    assert_eq!(offered, Some(usage));

    let mut annex = state_with_link(home_link(), Policy::default());
    report_host(&mut annex, home_link(), HostEvent::TeamsChanged(BTreeSet::new()));
    let policy = Policy { max_turns: Some(3), ..Policy::default() };
    let handover = HomeHandover { policy, usage: HomeUsage { turns: 3, ..usage }, ..HomeHandover::default() };
    let taken = MirrorNotice::HomeTaken { team: survey_team(), epoch: 2, handover: Some(Box::new(handover)) };
    assert_eq!(exhausted(&report_host(&mut annex, home_link(), HostEvent::Notice(taken))), [None]);
}

/// The mirror passes events again that the log has, if the home's daemon was killed before the
/// mirror had forgotten them. The roster may be older than the log.
#[test]
fn events_are_counted_once_across_daemons_of_the_home() {
    let policy = Policy { max_turns: Some(9), ..Policy::default() };
    let mut state = state_with_link(annex_link(), policy.clone());
    let used = |total| EventKind::MemberUsage { used: tokens(100), total: tokens(total) };
    receive(&mut state, "ann", 7, active());
    let effects = receive(&mut state, "ann", 8, used(100));
    let Effect::File(FileJob::SaveRoster(roster)) = &effects[0] else { panic!("{effects:?}") };
    let counts = |state: &State| {
        let usage = &state.teams[&survey_team()].usage;
        (usage.turns, usage.usage.tokens)
    };
    assert_eq!(roster.usage[&survey_team()].annexes["devbox"].counted, 8);
    let mut next = next_daemon(&state);
    next.teams.get_mut(&survey_team()).unwrap().policy = policy;
    recovery::recover(&mut next, NOW);
    report_host(&mut next, annex_link(), HostEvent::TeamsChanged(BTreeSet::from([survey_team()])));
    receive(&mut next, "ann", 7, active());
    receive(&mut next, "ann", 8, used(100));
    assert_eq!(counts(&next), (1, 100));
    // The log of the last daemon had this event, and its roster had not.
    next.host_links.event_numbers.logged.insert((survey_team(), "devbox".to_owned()), 9);
    let effects = receive(&mut next, "ann", 9, active());
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Log(_))), "{effects:?}");
    assert_eq!(counts(&next), (2, 100));
}

#[test]
fn usage_on_other_hosts_counts_up_to_the_share_of_a_member() {
    let policy = |share| Policy { max_tokens: Some(1_000), member_share: Some(share), ..Policy::default() };
    let mut state = state_with_link(annex_link(), policy(50));
    let used = |used, total| EventKind::MemberUsage { used: tokens(used), total: tokens(total) };
    receive(&mut state, "ann", 1, used(300, 300));
    receive(&mut state, "ann", 2, used(500, 800));
    let counted = |state: &State| state.teams[&survey_team()].usage.usage.tokens;
    assert_eq!(counted(&state), 500);
    let effects = save_policy(&mut state, policy(70));
    assert_eq!(counted(&state), 700);
    let limit = Usage { tokens: 700, microdollars: u64::MAX };
    assert_eq!(sent_budgets(&effects).last().unwrap().member_limit, Some(limit));
    let effects = receive(&mut state, "eve", 3, used(300, 300));
    assert_eq!(exhausted(&effects), [None]);
}

#[test]
fn annex_suspends_its_members_when_the_home_says_so() {
    let mut state = state_with_link(home_link(), Policy::default());
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    assert_eq!(shutdown_requests(&receive_budget(&mut state, None, None)), 0);
    let effects = receive_budget(&mut state, Some("its budget of 3 turns is used up"), None);
    assert_eq!((exhausted(&effects), shutdown_requests(&effects)), (vec![None], 1), "{effects:?}");
    let is_sent = |effect: &&Effect| matches!(effect, Effect::File(FileJob::AwaitLoggedForMirror { job: MirrorJob::SendEvents { events, .. }, .. }) if events.iter().any(|event| event.member.is_none()));
    assert_eq!(effects.iter().find(is_sent).map(|_| ()), None, "the home knows it");
    assert_eq!(state.notices.next_due(), None, "the home tells people");
    let effects = receive_budget(&mut state, Some("its budget of 3 turns is used up"), None);
    assert_eq!((exhausted(&effects), shutdown_requests(&effects)), (vec![], 0), "{effects:?}");
    report_exit(&mut state, &ann, 50, ExitReport::Exit(0));
    finish_cleanup(&mut state, &ann);
    let resume = || Request::ResumeMembers(ResumeMembersRequest { team: Some(survey_team()) });
    let effects = send_call(&mut state, 8, resume());
    assert_eq!(error_kind(&effects, 8), Some(ErrorKind::Refused));
    receive_budget(&mut state, None, None);
    let effects = send_call(&mut state, 9, resume());
    let Some(Reply::ResumeMembers(reply)) = reply_value(&effects, 9) else { panic!("{effects:?}") };
    assert_eq!(reply.members[&survey_team()].len(), 1);
}

#[test]
fn budget_that_comes_before_the_mirror_is_found_applies_to_it() {
    let mut state = state_with_link(home_link(), Policy::default());
    state.teams.remove(&survey_team());
    receive_budget(&mut state, Some("its time is used up"), None);
    let found = FileResult::TeamFound { team: survey_team(), member_count: Ok(Some(1)), waiting: None };
    handle_event(&mut state, CoreEvent::FileJobDone(found), NOW);
    let effects = send_call(&mut state, 8, worker_request("ann", |_| {}));
    assert_eq!(error_kind(&effects, 8), Some(ErrorKind::Refused));
}

#[test]
fn next_daemon_of_an_annex_suspends_the_members_without_contact() {
    let mut state = state_with_link(home_link(), Policy::default());
    start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let mut next = next_daemon(&state);
    let budget = reason("its time is used up");
    let team = mirror::MirroredTeamState { budget, ..mirror::MirroredTeamState::default() };
    let links = vec![(home_link(), [(survey_team(), team)].into())];
    crate::core::hosts::handle_host_events::load_links(&mut next, links, NOW.wall);
    let effects = recovery::recover(&mut next, NOW);
    assert_eq!((exhausted(&effects), shutdown_requests(&effects)), (vec![None], 1), "{effects:?}");
}

#[test]
fn annex_suspends_a_member_that_has_used_its_share() {
    let mut state = state_with_link(home_link(), Policy::default());
    start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    start_member_with(&mut state, worker_request("bob", |_| {}), 51);
    let share = Usage { tokens: 500, microdollars: u64::MAX };
    receive_budget(&mut state, None, Some(share));
    let report = UsageReport { session_id: None, usage: tokens(600) };
    let status = FromShim::TurnStatus(TurnStatus { usage: Some(report), ..turn_state(Activity::Idle, 1) });
    let effects = handle_event(&mut state, CoreEvent::ShimReported { conn: 50, report: status }, NOW);
    let ann = MemberName::new_unchecked("ann");
    assert_eq!((exhausted(&effects), shutdown_requests(&effects)), (vec![Some(ann)], 1), "{effects:?}");
    let used = EventKind::MemberUsage { used: tokens(600), total: tokens(600) };
    let is_logged = |effect: &Effect| matches!(effect, Effect::Log(event) if event.kind == used);
    assert!(effects.iter().any(is_logged), "{effects:?}");
}
