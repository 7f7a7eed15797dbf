//! The approval of a plan, where it takes another life to leave plan mode.

use super::turns::*;
use super::*;
use crate::files::{Letter, Mail};
use crate::roster::Told;
use protocol::capabilities::RosterFile;
use protocol::control::{
    HookEvent, HookReport, HookSource, LaunchArgv, LongPollEnd, LongPollRequest, ResumeArgv,
};
use protocol::payload::Payload;
use protocol::permission_mode::PermissionMode;

/// An order whose lives begin with `plan`, `ask` or `edit`, resumed ones with the session behind it.
fn planner(feed: Delivery) -> Request {
    let Request::Spawn(mut order) = order("ann") else { unreachable!() };
    let life = |mode: &str| {
        let resume = ResumeArgv { argv: vec![mode.to_owned(), "{session}".to_owned()] };
        LaunchArgv { argv: vec![mode.to_owned()], resume_argv: Some(resume) }
    };
    (order.argv, order.mode, order.delivery) = (vec!["plan".into()], Some("plan".into()), feed);
    order.has_deferred_variables = true;
    order.approved = [("default".to_owned(), life("ask")), ("acceptEdits".to_owned(), life("edit"))].into();
    Request::Spawn(order)
}

/// The yes lies in its inbox.
fn approve(state: &mut State, mode: &str) -> Vec<Effect> {
    let text = format!(
        r#"{{"type":"plan_approval_response","requestId":"p-1","approved":true,"timestamp":"2099-01-01T00:00:00.000Z","permissionMode":"{mode}"}}"#
    );
    let letter = Letter { index: 0, from: AgentName::lead(), summary: None, payload: Payload::parse(&text) };
    let mail = Mail { new: vec![letter], ..Mail::default() };
    step(state, Event::Filed(FileDone::Inbox { team: team(), inbox: "ann".into(), result: Ok(mail) }), NOW)
}

/// Whether its join was told to end it.
fn pressed(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Tell { word: ToShim::End { .. }, .. }))
}

fn as_ann(state: &mut State, client: u64, spawn: &SpawnId, request: Request) -> Vec<Effect> {
    let token = state.agents[spawn].record.token.clone();
    let call = Call { token: Some(token), ..*call(request) };
    step(state, Event::Request { client, call: Box::new(call) }, NOW)
}

fn parks(state: &mut State, client: u64, spawn: &SpawnId) -> Vec<Effect> {
    as_ann(state, client, spawn, Request::LongPoll(LongPollRequest { leads_team: None }))
}

/// What its next life runs.
fn next_life(state: &mut State, spawn: &SpawnId) -> (Vec<String>, SpawnId) {
    bury(state, spawn);
    let again = begun(&step(state, Event::Deadline, NOW));
    step(state, opened(&again, 60), NOW);
    step(state, joined(&again, 60, 60, None), NOW);
    let effects = step(state, registered(&again), NOW);
    let go = effects.iter().find_map(|effect| match effect {
        Effect::Tell { word: ToShim::StartAgent(go), .. } => Some(go.argv.clone()),
        _ => None,
    });
    step(state, started(60), NOW);
    (go.expect("it goes"), again)
}

#[test]
fn its_life_ends_once_its_hook_has_written_and_the_next_begins_in_that_mode() {
    let mut state = state();
    let ann = runs(&mut state, planner(Delivery::Hook), 50);
    let hooked = super::hooks::hooked_in(Some("s-1"), HookEvent::SessionStarted);
    as_ann(&mut state, 70, &ann, Request::ReportHook(hooked));
    approve(&mut state, "acceptEdits");
    assert!(!pressed(&step(&mut state, Event::Deadline, NOW)), "its hook may be writing");
    assert!(state.roster().agents[0].goes_on);
    let effects = parks(&mut state, 71, &ann);
    assert!(matches!(done(&effects, 71), Some(Reply::LongPoll(LongPollEnd::AgentExited))), "{effects:?}");
    assert!(pressed(&step(&mut state, Event::Deadline, NOW)));
    let effects = ends(&mut state, &ann, 50, ExitReport::Signal(15));
    assert!(job(
        &effects,
        |job| matches!(job, FileJob::Farewell { record } if record.ended.as_ref().is_some_and(|end| end.told == Told::Nobody))
    ));
    let (argv, again) = next_life(&mut state, &ann);
    assert_eq!(argv, ["edit", "s-1"]);
    let record = &state.agents[&again].record;
    assert!(record.plan_approved && !record.goes_on && record.mode.as_deref() == Some("acceptEdits"));
    assert!(record.comeback.as_ref().unwrap().failures.is_empty());
    // A failure is none that anybody asked to follow.
    ends(&mut state, &again, 60, ExitReport::Exit(1));
    assert!(state.resting.is_empty());
}

#[test]
fn its_life_does_not_end_at_the_end_of_its_turn_where_something_is_written_about_that() {
    let told =
        [(Delivery::Keys, vec![], false), (Delivery::Hook, vec![7], false), (Delivery::Hook, vec![], true)];
    for (feed, handed, at_once) in told {
        let mut state = state();
        let ann = runs(&mut state, planner(feed), 50);
        let speaker = if feed == Delivery::Keys { HookSource::Typist } else { HookSource::Program };
        let says = |state: &mut State, said| {
            let hooked = HookReport { source: speaker, ..super::hooks::hooked_in(None, said) };
            as_ann(state, 70, &ann, Request::ReportHook(hooked))
        };
        says(&mut state, HookEvent::TurnStarted { summary: String::new(), delivered_ids: handed });
        approve(&mut state, "acceptEdits");
        says(&mut state, HookEvent::TurnEnded);
        assert_eq!(pressed(&step(&mut state, Event::Deadline, NOW)), at_once, "{feed:?}");
        if !at_once {
            parks(&mut state, 71, &ann);
            assert!(pressed(&step(&mut state, Event::Deadline, NOW)), "{feed:?}");
        }
    }
}

#[test]
fn who_is_asked_to_end_before_its_plan_is_carried_out_is_fed_that() {
    for feed in [Delivery::Keys, Delivery::Hook] {
        let mut state = state();
        let ann = runs(&mut state, planner(feed), 50);
        let speaker = if feed == Delivery::Keys { HookSource::Typist } else { HookSource::Program };
        let hooked = HookReport { source: speaker, ..super::hooks::hooked_in(None, HookEvent::TurnEnded) };
        approve(&mut state, "acceptEdits");
        let targets = MemberSelection { team: team(), names: vec!["ann".into()] };
        let shutdown =
            ShutdownMembersRequest { targets, reason: None, grace_ms: 9_000, force: false, no_wait: false };
        ask(&mut state, 9, Request::Shutdown(shutdown));
        let effects = as_ann(&mut state, 70, &ann, Request::ReportHook(hooked));
        assert!(
            matches!(done(&effects, 70), Some(Reply::ReportHook(reply)) if reply.delivers_by_hook),
            "{effects:?}"
        );
        // It is sent to look, and not away.
        assert!(!matches!(
            done(&parks(&mut state, 71, &ann), 71),
            Some(Reply::LongPoll(LongPollEnd::AgentExited))
        ));
    }
}

#[test]
fn a_hook_that_never_waits_is_waited_for_with_a_deadline_and_another_feed_for_a_moment() {
    for (feed, until) in [(Delivery::Hook, 11_000), (Delivery::Keys, 11_000), (Delivery::Pull, 1_500)] {
        let mut state = state();
        runs(&mut state, planner(feed), 50);
        approve(&mut state, "plan");
        assert!(!pressed(&step(&mut state, Event::Deadline, at(until - 1))), "{feed:?}");
        assert!(pressed(&step(&mut state, Event::Deadline, at(until))), "{feed:?}");
        let comeback = state.agents.values().next().unwrap().record.comeback.clone().unwrap();
        assert_eq!(comeback.approved.unwrap().as_str(), "default", "the program has no other");
    }
}

#[test]
fn the_roster_tells_in_which_modes_a_plan_can_be_carried_out() {
    let mut state = state();
    runs(&mut state, planner(Delivery::Hook), 50);
    let roster = serde_json::to_vec(&state.roster()).unwrap();
    let ability = RosterFile::parse_or_default(Some(&roster))
        .member_capabilities(&team(), &AgentName::new_unchecked("ann"));
    let followed =
        [PermissionMode::AcceptEdits, PermissionMode::DontAsk].map(|mode| ability.supported_mode(mode));
    assert_eq!(followed, [PermissionMode::AcceptEdits, PermissionMode::Default]);
}

#[test]
fn a_new_daemon_ends_the_life_that_planned_and_begins_the_next_without_a_session() {
    let mut state = state();
    let ann = runs(&mut state, planner(Delivery::Pull), 50);
    approve(&mut state, "acceptEdits");
    let roster = serde_json::from_value(serde_json::to_value(state.roster()).unwrap()).unwrap();
    let mut state = State::new(state.setting.clone(), roster, Tale::default());
    crate::step::restart(&mut state, NOW);
    step(&mut state, Event::Deadline, NOW);
    assert!(pressed(&step(&mut state, joined(&ann, 3, 50, Some(99)), NOW)));
    ends(&mut state, &ann, 3, ExitReport::Signal(15));
    assert_eq!(next_life(&mut state, &ann).0, ["edit"]);
}

#[test]
fn who_is_asked_to_end_or_killed_in_between_does_not_come_back() {
    let all = || MemberSelection { team: team(), names: vec!["ann".into()] };
    let shutdown =
        ShutdownMembersRequest { targets: all(), reason: None, grace_ms: 9, force: false, no_wait: false };
    for request in [Request::Kill(all()), Request::Shutdown(shutdown)] {
        for pressed_first in [true, false] {
            let mut state = state();
            let ann = runs(&mut state, planner(Delivery::Pull), 50);
            approve(&mut state, "default");
            if pressed_first {
                step(&mut state, Event::Deadline, at(1_500));
            }
            ask(&mut state, 9, request.clone());
            ends(&mut state, &ann, 50, ExitReport::Signal(15));
            bury(&mut state, &ann);
            assert!(state.resting.is_empty(), "{request:?} {pressed_first}");
        }
    }
}
