//! Tests of a move of a team's home: of a lost home, and of a planned move.

use super::other_hosts::{
    annex_link, devbox, error_message, home_link, mirror_jobs, mirror_survey, place, report, use_host,
};
use super::turns_and_task_offers::{start_member_with, worker_request};
use super::*;
use crate::core::jobs::host_jobs::{HostEvent, LinkId, MirrorJob};
use crate::core::notifications_to_people::notice::NoticeKind;
use mirror::MirrorNotice;
use protocol::control_socket::{HostContact, MoveHomeRequest, TakeHomeRequest};
use protocol::hosts_file_entry::HostName;
use protocol::team_home::{HomeNameSource, HomeUsage, LocalWork, MovedHome};
use std::collections::BTreeSet;

fn take() -> Request {
    Request::TakeHome(TakeHomeRequest { team: survey_team() })
}

fn moved_to_devbox(work: LocalWork) -> MovedHome {
    let named_by = HomeNameSource::HostsFile;
    MovedHome { host: devbox(), named_by, epoch: 2, since: 7, created_at: 1, work }
}

#[test]
fn home_is_taken_only_from_a_mirror_without_contact() {
    let mut state = new_state();
    let message = error_message(&send_call(&mut state, 1, take()), 1);
    assert_eq!(message, "cannot take survey: its home is this machine already");
    mirror_survey(&mut state, home_link());
    report(&mut state, home_link(), HostEvent::Connected);
    let message = error_message(&send_call(&mut state, 2, take()), 2);
    assert_eq!(message, "cannot take survey: its home has contact");
    report(&mut state, home_link(), HostEvent::Disconnected { reason: "no route".to_owned() });
    let effects = send_call(&mut state, 3, take());
    assert!(matches!(mirror_jobs(&effects)[..], [MirrorJob::TakeTeam { client: Some(3), .. }]));
    assert!(reply(&effects, 3).is_none());
    report(&mut state, home_link(), HostEvent::TeamsChanged(BTreeSet::new()));
    let taken = HostEvent::TeamTaken { client: 3, result: Ok(()) };
    assert!(matches!(reply_value(&report(&mut state, home_link(), taken), 3), Some(Reply::Ack)));
    assert!(state.host_links.home_of(&survey_team()).is_none());
}

#[test]
fn old_home_ends_all_members_and_changes_the_team_no_more() {
    let mut state = new_state();
    let gpu = LinkId::ToAnnex(HostName::parse("gpu").unwrap());
    mirror_survey(&mut state, gpu.clone());
    start_member_with(&mut state, worker_request("ann", |_| {}), 5);
    let moved = moved_to_devbox(LocalWork::HandedOver);
    let notice = MirrorNotice::HomeMoved { team: survey_team(), moved };
    let effects = report(&mut state, annex_link(), HostEvent::Notice(notice));
    assert_eq!(mirror_jobs(&effects), [&MirrorJob::RemoveTeam(survey_team())]);
    assert!(ends_agent(&effects), "{effects:?}");
    let message = error_message(&send_call(&mut state, 1, use_host()), 1);
    assert_eq!(
        message,
        "cannot use survey here: its home is devbox since 1970-01-01T00:00:00.007Z (epoch 2)"
    );
    let contact = state.host_links.host_status(&survey_team()).first().map(|host| host.contact.clone());
    assert_eq!(contact, Some(HostContact::IsHome { since: 7, epoch: 2 }));
}

/// A host that was forgotten while it was the home learns that another one has a higher epoch.
#[test]
fn home_that_was_replaced_without_knowing_ends_its_members() {
    let mut state = new_state();
    mirror_survey(&mut state, annex_link());
    start_member_with(&mut state, worker_request("ann", |_| {}), 5);
    let moved = moved_to_devbox(LocalWork::OnlyHere);
    let notice = MirrorNotice::HomeMoved { team: survey_team(), moved };
    let effects = report(&mut state, home_link(), HostEvent::Notice(notice));
    assert_eq!(mirror_jobs(&effects), [&MirrorJob::RemoveTeam(survey_team())]);
    assert!(ends_agent(&effects), "{effects:?}");
    let notices: Vec<NoticeKind> = state.notices.pending().into_iter().map(|notice| notice.kind).collect();
    assert_eq!(notices, [NoticeKind::HomeReplaced]);
    let copy = "/state/replaced/survey.1".into();
    let notice = MirrorNotice::TeamReplaced { team: survey_team(), copy };
    let texts = logged_texts(&report(&mut state, home_link(), HostEvent::Notice(notice)));
    assert_eq!(
        texts,
        ["survey the files of its home replaced those here, which are kept in /state/replaced/survey.1"]
    );
}

fn logged_texts(effects: &[Effect]) -> Vec<String> {
    let events = effects.iter().filter_map(|effect| match effect {
        Effect::Log(event) => Some(event.to_text()),
        _ => None,
    });
    events.collect()
}

/// Two hosts have taken a lost home. Each contact reports it again.
#[test]
fn people_are_told_once_of_two_homes() {
    let mut state = new_state();
    mirror_survey(&mut state, annex_link());
    let mut report_two = |first: Option<HostName>| {
        let (team, second) = (survey_team(), HostName::parse("gpu").unwrap());
        let notice = MirrorNotice::TwoHomes { team, epoch: 2, first, second };
        logged_texts(&report(&mut state, annex_link(), HostEvent::Notice(notice)))
    };
    let texts = report_two(Some(devbox()));
    assert_eq!(
        texts,
        [
            "survey error: survey has two homes of epoch 2: devbox and gpu. Both go on, and each lacks what the other does. End one, there: teamctl export survey; teamctl delete survey --force"
        ]
    );
    assert!(report_two(None).is_empty());
    let notices: Vec<NoticeKind> = state.notices.pending().into_iter().map(|notice| notice.kind).collect();
    assert_eq!(notices, [NoticeKind::TwoHomes]);
}

/// The new home has connected over its own link before the old link has reported the move.
#[test]
fn late_report_of_a_move_leaves_the_mirror_of_the_new_home() {
    let mut state = new_state();
    mirror_survey(&mut state, home_link());
    let moved = moved_to_devbox(LocalWork::HandedOver);
    let notice = MirrorNotice::HomeMoved { team: survey_team(), moved };
    let effects = report(&mut state, annex_link(), HostEvent::Notice(notice));
    assert!(mirror_jobs(&effects).is_empty(), "{effects:?}");
    assert!(state.host_links.moved_homes.is_empty());
}

fn move_home() -> Request {
    Request::MoveHome(MoveHomeRequest { team: survey_team(), host: devbox() })
}

/// A state in which devbox has a mirror and contact. Returns the barrier of the move that client 1
/// has begun.
fn begin_move(state: &mut State) -> u64 {
    mirror_survey(state, annex_link());
    report(state, annex_link(), HostEvent::Connected);
    let effects = send_call(state, 1, move_home());
    assert!(reply(&effects, 1).is_none());
    match mirror_jobs(&effects)[..] {
        [MirrorJob::BeginMove { barrier, .. }] => *barrier,
        ref jobs => panic!("{jobs:?}"),
    }
}

fn offer(state: &mut State) {
    let number = begin_move(state);
    let effects = report(state, annex_link(), HostEvent::Notice(MirrorNotice::BarrierReached { number }));
    assert_eq!(
        mirror_jobs(&effects),
        [&MirrorJob::OfferHome { team: survey_team(), usage: HomeUsage::default() }]
    );
}

#[test]
fn home_moves_only_to_a_mirror_with_contact_and_without_members_elsewhere() {
    let mut state = new_state();
    let message = error_message(&send_call(&mut state, 1, move_home()), 1);
    assert_eq!(message, "cannot move survey to devbox: devbox has no mirror of it");
    mirror_survey(&mut state, annex_link());
    report(&mut state, annex_link(), HostEvent::Disconnected { reason: "no route".to_owned() });
    assert_eq!(error_message(&send_call(&mut state, 2, move_home()), 2), "cannot reach devbox: no route");
    report(&mut state, annex_link(), HostEvent::Connected);
    place(&mut state, 4, "bob");
    let message = error_message(&send_call(&mut state, 3, move_home()), 3);
    assert_eq!(message, "cannot move survey to devbox: bob is being spawned");
    start_member_with(&mut state, worker_request("ann", |_| {}), 5);
    let message = error_message(&send_call(&mut state, 3, move_home()), 3);
    assert_eq!(message, "cannot move survey to devbox: these members run elsewhere: ann");
    assert!(state.host_links.home_moves.is_empty());
}

#[test]
fn moving_team_is_not_changed_and_the_reply_follows_the_new_home() {
    let mut state = new_state();
    offer(&mut state);
    for (client, request) in [(2, move_home()), (3, use_host())] {
        let message = error_message(&send_call(&mut state, client, request), client);
        assert!(message.starts_with("cannot change survey here: its home moves to devbox"), "{message}");
    }
    let contacts: Vec<HostContact> =
        state.host_links.host_status(&survey_team()).into_iter().map(|host| host.contact).collect();
    assert!(matches!(contacts[..], [HostContact::Connected, HostContact::BecomesHome { .. }]));
    let moved = moved_to_devbox(LocalWork::HandedOver);
    let notice = HostEvent::Notice(MirrorNotice::HomeMoved { team: survey_team(), moved });
    assert!(matches!(reply_value(&report(&mut state, annex_link(), notice), 1), Some(Reply::Ack)));
    assert!(state.host_links.home_moves.is_empty());
}

/// Another host has taken the home, or the offered host did before the offer arrived.
#[test]
fn move_fails_if_the_new_home_lacks_what_was_done_here() {
    let mut state = new_state();
    offer(&mut state);
    let moved = moved_to_devbox(LocalWork::OnlyHere);
    let notice = HostEvent::Notice(MirrorNotice::HomeMoved { team: survey_team(), moved });
    let message = error_message(&report(&mut state, annex_link(), notice), 1);
    assert_eq!(
        message,
        "cannot move survey: devbox took its home without this machine (epoch 2), and lacks what was done here since its last contact"
    );
}

#[test]
fn failed_offer_cancels_the_move() {
    let mut state = new_state();
    offer(&mut state);
    let error = ErrorReport::new(ErrorKind::Io, "no space left");
    let failed = HostEvent::MoveFailed { team: survey_team(), error };
    let effects = report(&mut state, annex_link(), failed);
    assert_eq!(mirror_jobs(&effects), [&MirrorJob::CancelMove(survey_team())]);
    let effects = report(&mut state, annex_link(), HostEvent::MoveCancelled(survey_team()));
    assert_eq!(error_message(&effects, 1), "no space left; the home of survey is here as before");
}

/// Another job of the link fails, so the cancellation waits.
#[test]
fn client_does_not_wait_until_a_move_can_be_cancelled() {
    let mut state = new_state();
    begin_move(&mut state);
    let late = Now { mono: NOW.mono + 60_001, ..NOW };
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, late);
    assert_eq!(mirror_jobs(&effects), [&MirrorJob::CancelMove(survey_team())]);
    let later = Now { mono: late.mono + 5_000, ..NOW };
    let message = error_message(&handle_event(&mut state, CoreEvent::DeadlineReached, later), 1);
    assert_eq!(
        message,
        "cannot move survey to devbox: devbox has not answered within 60 s; survey can be changed here again once the move is cancelled"
    );
}

#[test]
fn lost_contact_cancels_a_move_until_the_home_is_offered() {
    let lost = || HostEvent::Disconnected { reason: "no route".to_owned() };
    let mut state = new_state();
    begin_move(&mut state);
    let effects = report(&mut state, annex_link(), lost());
    assert_eq!(mirror_jobs(&effects), [&MirrorJob::CancelMove(survey_team())]);
    let effects = report(&mut state, annex_link(), HostEvent::MoveCancelled(survey_team()));
    let message = error_message(&effects, 1);
    assert_eq!(message, "cannot reach devbox: no route; the home of survey is here as before");
    offer(&mut state);
    let message = error_message(&report(&mut state, annex_link(), lost()), 1);
    assert!(message.contains("until devbox answers, this machine does not change survey"), "{message}");
    assert!(state.host_links.home_moves.contains_key(&survey_team()));
    let error = ErrorReport::new(ErrorKind::Refused, "no mirror");
    let declined = HostEvent::Notice(MirrorNotice::HomeDeclined { team: survey_team(), error });
    report(&mut state, annex_link(), declined);
    assert!(state.host_links.home_moves.is_empty());
}

#[test]
fn full_disk_of_the_home_ends_the_wait_before_the_move_is_cancelled() {
    let mut state = new_state();
    begin_move(&mut state);
    let full = ErrorReport::new(ErrorKind::Io, "no space left");
    let effects = report(&mut state, annex_link(), HostEvent::Failed(full.clone()));
    assert_eq!(mirror_jobs(&effects), [&MirrorJob::CancelMove(survey_team())]);
    let cancel_failed = HostEvent::CancelFailed { team: survey_team(), error: full };
    let message = error_message(&report(&mut state, annex_link(), cancel_failed), 1);
    assert_eq!(
        message,
        "no space left; survey can be changed here again once teamd can write its files: no space left"
    );
    assert!(state.host_links.home_moves.contains_key(&survey_team()));
    report(&mut state, annex_link(), HostEvent::MoveCancelled(survey_team()));
    assert!(state.host_links.home_moves.is_empty());
}

#[test]
fn full_disk_of_the_host_cancels_a_move_until_the_home_is_offered() {
    let full = || HostEvent::StorageThere { error: Some("no space left".to_owned()) };
    let mut state = new_state();
    begin_move(&mut state);
    let effects = report(&mut state, annex_link(), full());
    assert_eq!(mirror_jobs(&effects), [&MirrorJob::CancelMove(survey_team())]);
    let effects = report(&mut state, annex_link(), HostEvent::MoveCancelled(survey_team()));
    let message = error_message(&effects, 1);
    assert_eq!(
        message,
        "cannot use devbox: it stores nothing: no space left; the home of survey is here as before"
    );
    let message = error_message(&send_call(&mut state, 2, move_home()), 2);
    assert_eq!(message, "cannot use devbox: it stores nothing: no space left");
    report(&mut state, annex_link(), HostEvent::StorageThere { error: None });
    offer(&mut state);
    let message = error_message(&report(&mut state, annex_link(), full()), 1);
    assert!(message.contains("until devbox answers, this machine does not change survey"), "{message}");
}
