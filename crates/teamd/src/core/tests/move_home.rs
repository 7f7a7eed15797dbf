//! Tests of a move of a team's home: at the new home, and at the old one.

use super::other_hosts::{
    annex_link, devbox, error_message, home_link, mirror_jobs, mirror_survey, report, use_host,
};
use super::turns_and_task_offers::{start_member_with, worker_request};
use super::*;
use crate::core::jobs::host_jobs::{HostEvent, LinkId, MirrorJob};
use mirror::MirrorNotice;
use protocol::control_socket::{HostContact, TakeHomeRequest};
use protocol::hosts_file_entry::HostName;
use protocol::team_home::MovedHome;
use std::collections::BTreeSet;

fn take() -> Request {
    Request::TakeHome(TakeHomeRequest { team: survey_team() })
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
    assert!(matches!(mirror_jobs(&effects)[..], [MirrorJob::TakeTeam { client: 3, .. }]));
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
    let moved = MovedHome { host: devbox(), epoch: 2, since: 7 };
    let notice = MirrorNotice::HomeMoved { team: survey_team(), moved };
    let effects = report(&mut state, annex_link(), HostEvent::Notice(notice));
    assert_eq!(mirror_jobs(&effects), [&MirrorJob::RemoveTeam(survey_team())]);
    let is_stopped = |effect: &Effect| matches!(effect, Effect::SendToShim { .. });
    assert!(effects.iter().any(is_stopped), "{effects:?}");
    let message = error_message(&send_call(&mut state, 1, use_host()), 1);
    assert_eq!(
        message,
        "cannot use survey here: its home is devbox since 1970-01-01T00:00:00.007Z (epoch 2)"
    );
    let contact = state.host_links.host_status(&survey_team()).first().map(|host| host.contact.clone());
    assert_eq!(contact, Some(HostContact::IsHome { since: 7, epoch: 2 }));
}
