//! Tests of forgetting a host: at the home, and at the annex.

use super::other_hosts::{
    annex_link, devbox, error_message, home_link, host_job, mirror_jobs, mirror_survey, report, use_host,
};
use super::*;
use crate::core::jobs::host_jobs::{HostEvent, HostJob, LinkId, MirrorJob};
use mirror::MirrorNotice;
use protocol::control_socket::{ConnectHomeRequest, ForgetHostRequest, HomeId};
use std::collections::BTreeSet;

fn forget() -> Request {
    Request::ForgetHost(ForgetHostRequest { host: devbox() })
}

fn list_ann(state: &mut State) {
    let members = BTreeSet::from([MemberName::parse("ann").unwrap()]);
    let listed = MirrorNotice::MembersListed { team: survey_team(), members };
    report(state, annex_link(), HostEvent::Notice(listed));
}

#[test]
fn host_with_contact_and_members_is_not_forgotten() {
    let mut state = new_state();
    mirror_survey(&mut state, annex_link());
    report(&mut state, annex_link(), HostEvent::Connected);
    list_ann(&mut state);
    let effects = send_call(&mut state, 1, forget());
    assert_eq!(error_message(&effects, 1), "cannot forget devbox: it has contact, and runs ann of survey");
    let Some(Response::Failed(error)) = reply(&effects, 1) else { panic!("{effects:?}") };
    assert_eq!(error.help.as_deref(), Some("end them first: teamctl -t survey shutdown ann"));
}

#[test]
fn forgotten_host_has_no_link_and_is_usable_again() {
    let mut state = new_state();
    mirror_survey(&mut state, annex_link());
    list_ann(&mut state);
    send_call(&mut state, 9, use_host());
    let effects = send_call(&mut state, 1, forget());
    assert!(matches!(host_job(&effects), HostJob::ForgetHost(host) if *host == devbox()));
    assert!(reply(&effects, 1).is_none());
    let message = error_message(&send_call(&mut state, 2, use_host()), 2);
    assert_eq!(message, "cannot use devbox: it is being forgotten");
    let effects = report(&mut state, annex_link(), HostEvent::Forgotten(Ok(())));
    assert!(matches!(reply_value(&effects, 1), Some(Reply::Ack)));
    assert_eq!(error_message(&effects, 9), "cannot reach devbox: it was forgotten");
    mirror_survey(&mut state, annex_link());
    assert!(state.host_links.links.is_empty(), "late reports have no effect");
    send_call(&mut state, 3, use_host());
    mirror_survey(&mut state, annex_link());
    assert_eq!(state.host_links.host_status(&survey_team()).len(), 1);
}

#[test]
fn failure_to_forget_is_reported_and_keeps_the_link() {
    let mut state = new_state();
    mirror_survey(&mut state, annex_link());
    send_call(&mut state, 9, use_host());
    send_call(&mut state, 1, forget());
    let error = ErrorReport::new(ErrorKind::Io, "the disk is full");
    let effects = report(&mut state, annex_link(), HostEvent::Forgotten(Err(error)));
    assert_eq!(error_message(&effects, 1), "the disk is full");
    assert_eq!(
        error_message(&effects, 9),
        "cannot reach devbox: its link was ended to forget it, which failed: the disk is full"
    );
    assert!(state.host_links.links.contains_key(&annex_link()));
}

#[test]
fn new_generation_ends_the_earlier_one_and_a_late_connection_is_refused() {
    let mut state = new_state();
    mirror_survey(&mut state, home_link());
    let home =
        |generation| ConnectHomeRequest { home: HomeId::parse("7f").unwrap(), annex: devbox(), generation };
    let effects = send_call(&mut state, 1, Request::ConnectHome(home(2)));
    assert_eq!(mirror_jobs(&effects), [&MirrorJob::EndTeams]);
    assert!(state.host_links.links.contains_key(&LinkId::ToHome(home(2))));
    let effects = send_call(&mut state, 2, Request::ConnectHome(home(1)));
    assert_eq!(error_message(&effects, 2), "cannot use this link: its home has forgotten devbox since");
    assert!(effects.iter().any(|effect| matches!(effect, Effect::CloseConnection { conn: 2 })));
}
