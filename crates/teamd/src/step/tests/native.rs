//! Members whose client keeps its own entry in config.json.

use super::*;
use crate::files::{ConfigSeen, Letter, Mail};
use protocol::payload::Payload;

fn native(state: &mut State) -> SpawnId {
    let ann = running(state, "ann", 50);
    state.agents.get_mut(&ann).unwrap().record.feed = Feed::Native;
    ann
}

fn says(state: &mut State, active: bool) -> Vec<Effect> {
    let seen = ConfigSeen { active: vec![(AgentName::foreign("ann"), active)], mended: None };
    step(state, Event::Filed(FileDone::Config { team: team(), seen }), NOW)
}

fn writes_activity(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::Activity { .. })))
}

#[test]
fn what_a_client_wrote_is_believed_and_not_written_over() {
    let mut state = state();
    let ann = native(&mut state);
    let effects = says(&mut state, false);
    assert_eq!(state.agents[&ann].activity, Activity::Idle);
    assert!(!writes_activity(&effects), "{effects:?}");
    let effects = says(&mut state, true);
    assert_eq!(state.agents[&ann].activity, Activity::Active);
    assert!(!writes_activity(&effects), "{effects:?}");
}

#[test]
fn of_the_others_config_is_our_own_word_and_tells_nothing() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    says(&mut state, false);
    assert_eq!(state.agents[&ann].activity, Activity::Active);
}

#[test]
fn an_idle_notification_does_where_config_can_not_be_read() {
    let mut state = state();
    let ann = native(&mut state);
    let payload = Payload::parse(r#"{"type":"idle_notification","from":"ann","idleReason":"available"}"#);
    let letter = Letter { index: 0, from: AgentName::foreign("ann"), summary: None, payload };
    let mail = Mail { new: vec![letter], ..Mail::default() };
    let inbox = FileDone::Inbox { team: team(), inbox: "team-lead".into(), result: Ok(mail) };
    step(&mut state, Event::Filed(inbox), NOW);
    assert_eq!(state.agents[&ann].activity, Activity::Idle);
}

#[test]
fn a_config_that_was_mended_is_told_and_who_could_not_be_taken_off_is_tried_again() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    step(&mut state, Event::JoinSaid { conn: 50, said: FromJoin::Ended(Ended::Exit(0)) }, NOW);
    let fault = protocol::fault::Fault::new(Kind::Data, "it is empty");
    step(&mut state, farewelled(&ann, false, Some(fault)), NOW);
    let seen = ConfigSeen { active: vec![], mended: Some("it was empty".into()) };
    let effects = step(&mut state, Event::Filed(FileDone::Config { team: team(), seen }), NOW);
    let again = |effect: &Effect| matches!(effect, Effect::File(FileJob::Farewell { .. }));
    assert!(effects.iter().any(again), "{effects:?}");
}
