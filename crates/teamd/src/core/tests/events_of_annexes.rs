//! Tests of the events of members on another host: at the annex, and at the home.

use super::*;
use crate::core::hosts::send_logged_events::send_logged_events;
use crate::core::jobs::host_jobs::{HostEvent, LinkId, MirrorJob};
use crate::core::notifications_to_people::notice::NoticeKind;
use crate::core::state_time_and_effects_of_one_event::Context;
use mirror::MirrorNotice;
use protocol::control_socket::{ConnectHomeRequest, HomeId};
use protocol::event_log_line::{Event, EventKind};
use protocol::hosts_file_entry::HostName;
use std::collections::BTreeSet;

fn devbox() -> HostName {
    HostName::parse("devbox").unwrap()
}

fn report(state: &mut State, link: LinkId, event: HostEvent) -> Vec<Effect> {
    handle_event(state, CoreEvent::HostReported { link, event }, NOW)
}

fn mirror_survey(state: &mut State, link: LinkId) {
    report(state, link, HostEvent::TeamsChanged(BTreeSet::from([survey_team()])));
}

fn ann() -> MemberName {
    MemberName::new_unchecked("ann")
}

/// The events that are logged.
fn logged(effects: &[Effect]) -> Vec<Event> {
    let events = effects.iter().filter_map(|effect| match effect {
        Effect::Log(event) => Some(event.clone()),
        _ => None,
    });
    events.collect()
}

/// The job that follows once the events are logged.
fn job_after_log(effects: &[Effect]) -> Option<&MirrorJob> {
    effects.iter().find_map(|effect| match effect {
        Effect::File(FileJob::AwaitLoggedForMirror { job, .. }) => Some(job),
        _ => None,
    })
}

#[test]
fn annex_numbers_its_events_and_leaves_the_notice_to_the_home() {
    let mut state = new_state();
    let link = LinkId::ToHome(ConnectHomeRequest {
        home: HomeId::parse("7f").unwrap(),
        annex: devbox(),
        generation: 1,
    });
    mirror_survey(&mut state, link);
    let mut context = Context::new(&mut state, NOW);
    context.effects.push(Effect::Log(Event::for_member(
        &survey_team(),
        &ann(),
        EventKind::MemberAtDialog { text: "allow?".to_owned() },
    )));
    context.effects.push(Effect::log_team(&survey_team(), EventKind::TeamCreated));
    context.state.notices.add(&survey_team(), &ann(), None, NoticeKind::AtDialog);
    context.state.notices.add_all_tasks_done(&survey_team(), 1);
    send_logged_events(&mut context);
    let effects = context.effects.into_vec();
    let [event, created] = &logged(&effects)[..] else { panic!("{effects:?}") };
    assert!(event.number.is_some() && event.notifies && !event.time.is_empty(), "{event:?}");
    assert_eq!(created.number, None, "the home knows that");
    let sent = MirrorJob::SendEvents { team: survey_team(), events: vec![event.clone()] };
    assert_eq!(job_after_log(&effects), Some(&sent));
    assert_eq!(state.notices.next_due(), None);
}

#[test]
fn home_logs_each_event_once_and_tells_people() {
    let mut state = new_state();
    let link = LinkId::ToAnnex(devbox());
    mirror_survey(&mut state, link.clone());
    let dialog = EventKind::MemberAtDialog { text: "allow?".to_owned() };
    let event =
        Event { number: Some(7), notifies: true, ..Event::for_member(&survey_team(), &ann(), dialog) };
    let forged = Event { number: Some(8), ..Event::for_team(&survey_team(), EventKind::TeamDeleted) };
    let events = vec![event.clone().with_time(1), forged];
    let received =
        || HostEvent::Notice(MirrorNotice::EventsReceived { team: survey_team(), events: events.clone() });
    let effects = report(&mut state, link.clone(), received());
    let logged_at = Some(protocol::timestamp::iso8601(NOW.wall));
    let expected = Event { on_host: Some("devbox".to_owned()), logged_at, ..event.with_time(1) };
    assert_eq!(logged(&effects), [expected]);
    let noted = MirrorJob::NoteEventsLogged { team: survey_team(), number: 8 };
    assert_eq!(job_after_log(&effects), Some(&noted));
    let is_notice = |effect: &Effect| matches!(effect, Effect::Pane(PaneJob::NotifyAttached { text, .. }) if text.starts_with("ann@survey waits at a dialog"));
    assert!(effects.iter().any(is_notice), "{effects:?}");
    let effects = report(&mut state, link, received());
    assert_eq!(logged(&effects), []);
    assert!(!effects.iter().any(is_notice), "{effects:?}");
}

/// A compromised annex must not write about members of other hosts, nor raw text to the terminal.
#[test]
fn annex_reports_only_its_own_members_and_valid_times() {
    let mut state = new_state();
    let link = LinkId::ToAnnex(devbox());
    let other = LinkId::ToAnnex(HostName::parse("other").unwrap());
    mirror_survey(&mut state, link.clone());
    mirror_survey(&mut state, other.clone());
    let listed = MirrorNotice::MembersListed { team: survey_team(), members: BTreeSet::from([ann()]) };
    report(&mut state, other, HostEvent::Notice(listed));
    let event = |member: MemberName, number| {
        let event = Event::for_member(&survey_team(), &member, EventKind::MemberInterrupted);
        Event { number: Some(number), time: "\u{1b}[2J".to_owned(), ..event }
    };
    let bob = MemberName::new_unchecked("bob");
    let events = vec![event(ann(), 1), event(MemberName::lead(), 2), event(bob.clone(), 3)];
    let received = HostEvent::Notice(MirrorNotice::EventsReceived { team: survey_team(), events });
    let logged = logged(&report(&mut state, link, received));
    let [event] = &logged[..] else { panic!("{logged:?}") };
    assert_eq!((&event.member, &event.time), (&Some(bob), &protocol::timestamp::iso8601(NOW.wall)));
}
