//! Tests of links to other hosts: at the home, and at the annex.

use super::turns_and_task_offers::{finish_cleanup, report_exit, start_member_with, worker_request};
use super::*;
use crate::core::effect::Wake;
use crate::core::jobs::file_jobs::RestoreRule;
use crate::core::jobs::host_jobs::{ConnectAttempt, HostEvent, HostJob, LinkId, MirrorJob};
use mirror::{FileChange, MirrorNotice, TaskCheck};
use protocol::annex_link::HomeBudget;
use protocol::control_socket::{
    AwaitHostRequest, ConfirmTaskRequest, ConnectHomeRequest, HomeId, HostCandidate, HostContact, MemberHost,
    PlaceMemberReply, PlaceMemberRequest, RestartPolicy, SetPolicyRequest, UseHostRequest,
};
use protocol::event_log_line::EventKind;
use protocol::hosts_file_entry::HostName;
use protocol::policy::Policy;
use std::collections::BTreeSet;

pub(super) fn devbox() -> HostName {
    HostName::parse("devbox").unwrap()
}

pub(super) fn annex_link() -> LinkId {
    LinkId::ToAnnex(devbox())
}

pub(super) fn home_link() -> LinkId {
    LinkId::ToHome(ConnectHomeRequest { home: HomeId::parse("7f").unwrap(), annex: devbox(), generation: 1 })
}

pub(super) fn use_host() -> Request {
    Request::UseHost(UseHostRequest {
        team: survey_team(),
        host: devbox(),
        command: vec!["ssh".to_owned(), "devbox".to_owned()],
    })
}

pub(super) fn report(state: &mut State, link: LinkId, event: HostEvent) -> Vec<Effect> {
    handle_event(state, CoreEvent::HostReported { link, event }, NOW)
}

pub(super) fn mirror_survey(state: &mut State, link: LinkId) {
    report(state, link, HostEvent::TeamsChanged(BTreeSet::from([survey_team()])));
}

fn lose(state: &mut State) -> Vec<Effect> {
    report(state, annex_link(), HostEvent::Disconnected { reason: "no route".to_owned() })
}

pub(super) fn host_job(effects: &[Effect]) -> &HostJob {
    let mut jobs = effects.iter().filter_map(|effect| match effect {
        Effect::Host(job) => Some(job),
        _ => None,
    });
    jobs.next().expect("there is a job for a link")
}

/// The jobs for mirrors.
pub(super) fn mirror_jobs(effects: &[Effect]) -> Vec<&MirrorJob> {
    let jobs = effects.iter().filter_map(|effect| match effect {
        Effect::Host(HostJob::Mirror { job, .. }) => Some(job),
        _ => None,
    });
    jobs.collect()
}

pub(super) fn error_message(effects: &[Effect], client: u64) -> String {
    match reply(effects, client) {
        Some(Response::Failed(error)) => error.message.clone(),
        other => panic!("an error is expected: {other:?}"),
    }
}

/// Sends a `use_host` call of client 9. Returns its barrier.
fn send_use_host(state: &mut State, expected: ConnectAttempt) -> u64 {
    let effects = send_call(state, 9, use_host());
    assert!(reply(&effects, 9).is_none());
    match host_job(&effects) {
        HostJob::UseHost { attempt, barrier, .. } if *attempt == expected => *barrier,
        job => panic!("{job:?}"),
    }
}

#[test]
fn use_host_is_answered_when_the_mirror_exists() {
    let mut state = new_state();
    let barrier = send_use_host(&mut state, ConnectAttempt::WhenDue);
    let effects = report(&mut state, annex_link(), HostEvent::Connected);
    assert_eq!(mirror_jobs(&effects), [&MirrorJob::SendBarrier(barrier)]);
    mirror_survey(&mut state, annex_link());
    let reached = |number| HostEvent::Notice(MirrorNotice::BarrierReached { number });
    let effects = report(&mut state, annex_link(), reached(barrier + 1));
    assert!(reply(&effects, 9).is_none());
    let effects = report(&mut state, annex_link(), reached(barrier));
    assert!(matches!(reply_value(&effects, 9), Some(Reply::Ack)));
    let hosts = state.host_links.host_status(&survey_team());
    assert!(matches!(&hosts[..], [host] if host.contact == HostContact::Connected));
}

#[test]
fn status_says_why_a_host_stores_nothing() {
    let mut state = new_state();
    mirror_survey(&mut state, annex_link());
    let storage_error = |state: &State| state.host_links.host_status(&survey_team())[0].storage_error.clone();
    let full = || HostEvent::StorageThere { error: Some("no space".to_owned()) };
    for (event, expected) in [
        (HostEvent::Connected, None),
        (full(), Some("no space")),
        (HostEvent::StorageThere { error: None }, None),
        (full(), Some("no space")),
        (HostEvent::Disconnected { reason: "no route".to_owned() }, None),
        // The connect command was changed, so the next connection replaces this one.
        (full(), Some("no space")),
        (HostEvent::Connected, None),
    ] {
        report(&mut state, annex_link(), event);
        assert_eq!(storage_error(&state).as_deref(), expected);
    }
}

#[test]
fn use_host_fails_if_the_host_is_out_of_reach_and_the_next_one_connects_at_once() {
    let mut state = new_state();
    send_use_host(&mut state, ConnectAttempt::WhenDue);
    let effects = lose(&mut state);
    assert_eq!(error_message(&effects, 9), "cannot reach devbox: no route");
    let is_lost = |effect: &Effect| matches!(effect, Effect::Log(event) if matches!(event.kind, EventKind::HostLost { .. }));
    assert!(effects.iter().any(is_lost));
    assert!(!lose(&mut state).iter().any(is_lost), "a repeated failure is not logged");
    send_use_host(&mut state, ConnectAttempt::Now);
    send_use_host(&mut state, ConnectAttempt::WhenDue);
}

#[test]
fn refused_team_ends_the_wait_and_so_does_the_timeout() {
    let mut state = new_state();
    send_use_host(&mut state, ConnectAttempt::WhenDue);
    let error = ErrorReport::new(ErrorKind::AlreadyExists, "there is another survey");
    let refused = MirrorNotice::TeamRefused { team: survey_team(), error };
    let effects = report(&mut state, annex_link(), HostEvent::Notice(refused));
    assert_eq!(error_message(&effects, 9), "there is another survey");
    send_use_host(&mut state, ConnectAttempt::WhenDue);
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(NOW.mono + 60_000));
    assert_eq!(error_kind(&effects, 9), Some(ErrorKind::Timeout));
}

#[test]
fn await_host_survives_an_interruption() {
    let mut state = new_state();
    let request = || Request::AwaitHost(AwaitHostRequest { team: survey_team(), host: devbox() });
    let effects = send_call(&mut state, 8, request());
    assert_eq!(error_kind(&effects, 8), Some(ErrorKind::NotFound));
    mirror_survey(&mut state, annex_link());
    let effects = send_call(&mut state, 9, request());
    let [MirrorJob::SendBarrier(barrier)] = mirror_jobs(&effects)[..] else { panic!("{effects:?}") };
    assert!(reply(&lose(&mut state), 9).is_none());
    let effects = report(&mut state, annex_link(), HostEvent::Connected);
    let budget = MirrorJob::SendBudget { team: survey_team(), budget: HomeBudget::default() };
    assert_eq!(mirror_jobs(&effects), [&budget, &MirrorJob::SendBarrier(*barrier)]);
    let reached = HostEvent::Notice(MirrorNotice::BarrierReached { number: *barrier });
    assert!(matches!(reply_value(&report(&mut state, annex_link(), reached), 9), Some(Reply::Ack)));
}

#[test]
fn only_changes_of_mirrored_teams_are_compared() {
    let mut state = new_state();
    let change = || CoreEvent::TaskChanged { team: survey_team(), task: TaskId::parse("3").unwrap() };
    assert!(mirror_jobs(&handle_event(&mut state, change(), NOW)).is_empty());
    mirror_survey(&mut state, annex_link());
    let effects = handle_event(&mut state, change(), NOW);
    let expected = FileChange::Task(TaskId::parse("3").unwrap());
    assert_eq!(mirror_jobs(&effects), [&MirrorJob::Compare { team: survey_team(), change: expected }]);
    let effects = handle_event(&mut state, CoreEvent::WatcherOverflow, NOW);
    assert_eq!(mirror_jobs(&effects), [&MirrorJob::CompareAll]);
}

#[test]
fn ended_mirror_is_deleted_with_its_members() {
    let mut state = new_state();
    mirror_survey(&mut state, home_link());
    let ended = HostEvent::Notice(MirrorNotice::TeamEnded { team: survey_team() });
    let effects = report(&mut state, home_link(), ended);
    assert!(has_file_job(&effects, |job| matches!(job, FileJob::DeleteTeam { client: None, .. })));
    let deleted = CoreEvent::FileJobDone(FileResult::TeamDeleted {
        client: None,
        team: survey_team(),
        result: Ok(()),
        worktrees: Default::default(),
    });
    let effects = handle_event(&mut state, deleted, NOW);
    assert_eq!(mirror_jobs(&effects), [&MirrorJob::RemoveTeam(survey_team())]);
}

#[test]
fn new_home_ends_the_mirror_of_the_earlier_home() {
    let mut state = new_state();
    mirror_survey(&mut state, home_link());
    let home = HomeId::parse("8a").unwrap();
    let new_home = LinkId::ToHome(ConnectHomeRequest { home, annex: devbox(), generation: 1 });
    let replaced = HostEvent::Notice(MirrorNotice::HomeReplaced { team: survey_team() });
    let effects = report(&mut state, new_home, replaced);
    let HostJob::Mirror { link, job } = host_job(&effects) else { panic!("{effects:?}") };
    assert_eq!((link, job), (&home_link(), &MirrorJob::EndTeam(survey_team())));
}

fn confirm_task() -> Request {
    Request::ConfirmTask(ConfirmTaskRequest {
        team: survey_team(),
        task: TaskId::parse("3").unwrap(),
        owner: MemberName::parse("ann").unwrap(),
    })
}

#[test]
fn task_is_confirmed_only_after_the_decision_of_the_home() {
    let mut state = new_state();
    assert!(reply_value(&send_call(&mut state, 9, confirm_task()), 9).is_none(), "there is no link");
    mirror_survey(&mut state, home_link());
    let effects = send_call(&mut state, 9, confirm_task());
    assert!(matches!(mirror_jobs(&effects)[..], [MirrorJob::CheckTask { client: 9, .. }]));
    let checked = |result| HostEvent::TaskChecked { client: 9, result };
    let effects = report(&mut state, home_link(), checked(Ok(TaskCheck::Undecided)));
    assert!(reply(&effects, 9).is_none());
    let task = TaskId::parse("3").unwrap();
    let decided = MirrorNotice::TaskChangeAnswered { team: survey_team(), task, error: None };
    let effects = report(&mut state, home_link(), HostEvent::Notice(decided));
    assert!(matches!(mirror_jobs(&effects)[..], [MirrorJob::CheckTask { client: 9, .. }]));
    let effects = report(&mut state, home_link(), checked(Ok(TaskCheck::Decided)));
    assert!(matches!(reply_value(&effects, 9), Some(Reply::Ack)));
}

#[test]
fn confirmation_ends_with_the_connection_or_the_mirror() {
    let mut state = new_state();
    mirror_survey(&mut state, home_link());
    send_call(&mut state, 9, confirm_task());
    handle_event(&mut state, CoreEvent::ConnectionClosed { conn: 9 }, NOW);
    assert!(state.host_links.task_waiters.is_empty());
    send_call(&mut state, 10, confirm_task());
    let effects = report(&mut state, home_link(), HostEvent::TeamsChanged(BTreeSet::new()));
    assert_eq!(error_kind(&effects, 10), Some(ErrorKind::Timeout));
}

#[test]
fn mirror_uses_no_other_host() {
    let mut state = new_state();
    mirror_survey(&mut state, home_link());
    assert_eq!(error_kind(&send_call(&mut state, 9, use_host()), 9), Some(ErrorKind::Refused));
}

/// A call of `client` to place the member `name` here or on devbox, which have one slot and two.
pub(super) fn place(state: &mut State, client: u64, name: &str) -> Vec<Effect> {
    place_with_slots(state, client, name, 1)
}

/// The same with `home_slots` slots here.
fn place_with_slots(state: &mut State, client: u64, name: &str, home_slots: u32) -> Vec<Effect> {
    let candidate = |host, slots| HostCandidate { host, labels: Vec::new(), slots: Some(slots) };
    let candidates = vec![candidate(MemberHost::Home, home_slots), candidate(MemberHost::Other(devbox()), 2)];
    let (team, name) = (survey_team(), MemberName::parse(name).unwrap());
    let request = PlaceMemberRequest { team, name, needs: Vec::new(), candidates };
    send_call(state, client, Request::PlaceMember(request))
}

fn placed_host(effects: &[Effect], client: u64) -> Option<String> {
    match reply_value(effects, client) {
        Some(Reply::PlaceMember(PlaceMemberReply { host })) => Some(host.to_string()),
        _ => None,
    }
}

fn list_members(state: &mut State, names: &[&str]) {
    let members = names.iter().map(|name| MemberName::parse(name).unwrap()).collect();
    let notice = MirrorNotice::MembersListed { team: survey_team(), members };
    report(state, annex_link(), HostEvent::Notice(notice));
}

#[test]
fn each_slot_is_given_once_and_a_closed_connection_frees_it() {
    let mut state = new_state();
    for (client, name, host) in [(1, "ann", "home"), (2, "bob", "devbox"), (3, "eve", "devbox")] {
        assert_eq!(placed_host(&place(&mut state, client, name), client).as_deref(), Some(host), "{name}");
    }
    let effects = place(&mut state, 4, "dan");
    let expected = "cannot place dan on a host: home is full (1 of 1 slots), devbox is full (2 of 2 slots)";
    assert_eq!(error_message(&effects, 4), expected);
    handle_event(&mut state, CoreEvent::ConnectionClosed { conn: 2 }, NOW);
    assert_eq!(placed_host(&place(&mut state, 4, "dan"), 4).as_deref(), Some("devbox"));
}

#[test]
fn listed_members_of_an_annex_use_slots_until_they_or_the_mirror_end() {
    let mut state = new_state();
    mirror_survey(&mut state, annex_link());
    list_members(&mut state, &["ann"]);
    assert_eq!(placed_host(&place(&mut state, 1, "bob"), 1).as_deref(), Some("home"));
    assert_eq!(placed_host(&place(&mut state, 2, "eve"), 2).as_deref(), Some("devbox"));
    // Eve is listed while her client still holds the slot, and counts once.
    list_members(&mut state, &["ann", "eve"]);
    assert!(error_message(&place(&mut state, 3, "dan"), 3).contains("devbox is full (2 of 2 slots)"));
    handle_event(&mut state, CoreEvent::ConnectionClosed { conn: 2 }, NOW);
    assert!(error_message(&place(&mut state, 3, "dan"), 3).contains("devbox is full (2 of 2 slots)"));
    list_members(&mut state, &["ann"]);
    assert_eq!(placed_host(&place(&mut state, 3, "dan"), 3).as_deref(), Some("devbox"));
    assert!(error_message(&place(&mut state, 4, "sue"), 4).contains("devbox is full"));
    report(&mut state, annex_link(), HostEvent::TeamsChanged(BTreeSet::new()));
    assert_eq!(placed_host(&place(&mut state, 4, "sue"), 4).as_deref(), Some("devbox"));
}

#[test]
fn messages_to_listed_members_are_restored_at_the_home() {
    let mut state = new_state();
    mirror_survey(&mut state, annex_link());
    list_members(&mut state, &["ann"]);
    let mut restore_rule = |inbox: &str| {
        let (team, inbox) = (survey_team(), inbox.to_owned());
        let change = CoreEvent::InboxChanged { team, inbox, owner_wake: Wake::Needed };
        handle_event(&mut state, change, NOW).into_iter().find_map(|effect| match effect {
            Effect::File(FileJob::ScanInbox { restore_rule, .. }) => Some(restore_rule),
            _ => None,
        })
    };
    assert_eq!(restore_rule("ann"), Some(RestoreRule::OwnDelivery));
    assert_eq!(restore_rule("former"), Some(RestoreRule::NotNow));
}

#[test]
fn mirror_places_no_members() {
    let mut state = new_state();
    mirror_survey(&mut state, home_link());
    assert_eq!(error_kind(&place(&mut state, 9, "ann"), 9), Some(ErrorKind::Refused));
}

#[test]
fn reservations_for_one_name_are_counted_one_by_one() {
    let mut state = new_state();
    mirror_survey(&mut state, annex_link());
    for (client, host) in [(1, "home"), (2, "devbox"), (3, "devbox")] {
        assert_eq!(placed_host(&place(&mut state, client, "ann"), client).as_deref(), Some(host));
    }
    assert!(error_message(&place(&mut state, 4, "ann"), 4).contains("devbox is full (2 of 2 slots)"));
    // One of the two reservations is for the listed member.
    list_members(&mut state, &["ann"]);
    assert!(error_message(&place(&mut state, 4, "ann"), 4).contains("devbox is full (2 of 2 slots)"));
}

#[test]
fn member_that_was_listed_before_does_not_hide_a_reservation_for_its_name() {
    let mut state = new_state();
    mirror_survey(&mut state, annex_link());
    list_members(&mut state, &["ann"]);
    assert_eq!(placed_host(&place(&mut state, 1, "bob"), 1).as_deref(), Some("home"));
    assert_eq!(placed_host(&place(&mut state, 2, "ann"), 2).as_deref(), Some("devbox"), "it becomes ann-2");
    assert!(error_message(&place(&mut state, 3, "eve"), 3).contains("devbox is full (2 of 2 slots)"));
}

#[test]
fn member_with_a_number_from_unique_counts_once() {
    let mut state = new_state();
    mirror_survey(&mut state, annex_link());
    list_members(&mut state, &["ann"]);
    assert_eq!(placed_host(&place(&mut state, 1, "bob"), 1).as_deref(), Some("home"));
    assert_eq!(placed_host(&place(&mut state, 2, "ann"), 2).as_deref(), Some("devbox"));
    list_members(&mut state, &["ann-2"]);
    assert_eq!(placed_host(&place(&mut state, 3, "eve"), 3).as_deref(), Some("devbox"), "one slot is free");
    assert!(error_message(&place(&mut state, 4, "dan"), 4).contains("devbox is full (2 of 2 slots)"));
}

#[test]
fn members_between_spawns_keep_their_slots_at_home() {
    let restart = |request: &mut SpawnRequest| request.restart = RestartPolicy::OnFailure(None);
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", restart), 50);
    report_exit(&mut state, &ann, 50, ExitReport::Exit(1));
    finish_cleanup(&mut state, &ann);
    assert!(state.agents.is_empty() && state.pending_respawns.len() == 1);
    assert_eq!(placed_host(&place(&mut state, 1, "bob"), 1).as_deref(), Some("devbox"));
}

#[test]
fn mirror_gets_no_budget() {
    let mut state = new_state();
    let home = ConnectHomeRequest { home: HomeId::parse("7f").unwrap(), annex: devbox(), generation: 1 };
    let event = HostEvent::TeamsChanged(BTreeSet::from([survey_team()]));
    handle_event(&mut state, CoreEvent::HostReported { link: LinkId::ToHome(home), event }, NOW);
    let policy = Policy { max_turns: Some(3), ..Policy::default() };
    let request = Request::SetPolicy(SetPolicyRequest { team: survey_team(), policy });
    let message = error_message(&send_call(&mut state, 1, request), 1);
    assert_eq!(message, "cannot set a budget for survey: this host has only a mirror of the team");
}
