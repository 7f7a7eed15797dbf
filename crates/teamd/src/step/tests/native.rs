//! Members whose client keeps its own entry in config.json.

use super::*;
use crate::files::{ConfigSeen, Guard, Letter, Mail};
use protocol::control::SetModeRequest;
use protocol::event::EventKind;
use protocol::member_request::MemberRequestKind;
use protocol::payload::Payload;
use protocol::permission_mode::PermissionMode;
use protocol::turn_program::RestartPolicy;

fn native(state: &mut State) -> SpawnId {
    let ann = running(state, "ann", 50);
    state.agents.get_mut(&ann).unwrap().record.feed = Delivery::Native;
    ann
}

fn says(state: &mut State, active: bool) -> Vec<Effect> {
    let seen =
        ConfigSeen { active: vec![(AgentName::new_unchecked("ann"), active)], ..ConfigSeen::default() };
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
fn what_somebody_took_out_of_an_inbox_comes_back_to_those_that_are_fed_or_may_be() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    let guard = |state: &mut State, inbox: &str| {
        let seen = FileDone::Inbox { team: team(), inbox: inbox.into(), result: Ok(Mail::default()) };
        step(state, Event::Filed(seen), NOW);
        let effects =
            step(state, Event::InboxChanged { team: team(), inbox: inbox.into(), rung: false }, NOW);
        effects.into_iter().find_map(|effect| match effect {
            Effect::File(FileJob::Inbox { guard, .. }) => Some(guard),
            _ => None,
        })
    };
    for (feed, expected) in [
        (Delivery::Native, Guard::Never),
        (Delivery::Pull, Guard::Looks),
        (Delivery::Hook, Guard::Fed),
        (Delivery::Acp, Guard::Fed),
        (Delivery::Turn, Guard::Fed),
        (Delivery::Keys, Guard::Fed),
    ] {
        state.agents.get_mut(&ann).unwrap().record.feed = feed;
        assert_eq!(guard(&mut state, "ann"), Some(expected), "{feed:?}");
    }
    assert_eq!(guard(&mut state, "team-lead"), Some(Guard::Looks));
    assert_eq!(guard(&mut state, "former"), Some(Guard::Later));
}

#[test]
fn what_was_put_back_is_told() {
    let mut state = state();
    let letter = Letter { index: 0, from: AgentName::new_unchecked("bob"), summary: None, payload: None };
    let mail = Mail { put_back: vec![letter], ..Mail::default() };
    let seen = FileDone::Inbox { team: team(), inbox: "ann".into(), result: Ok(mail) };
    let effects = step(&mut state, Event::Filed(seen), NOW);
    let told = |effect: &Effect| matches!(effect, Effect::Log(event) if matches!(event.kind, EventKind::MessageRestored { .. }));
    assert!(effects.iter().any(told), "{effects:?}");
}

#[test]
fn what_is_left_of_a_long_inbox_is_looked_at_next_and_wakes_nobody() {
    let mut state = state();
    running(&mut state, "ann", 50);
    let mail = Mail { more: true, ..Mail::default() };
    let seen = FileDone::Inbox { team: team(), inbox: "ann".into(), result: Ok(mail) };
    let effects = step(&mut state, Event::Filed(seen), NOW);
    assert!(
        matches!(&effects[..], [Effect::File(FileJob::Inbox { inbox, .. })] if inbox == "ann"),
        "{effects:?}"
    );
}

#[test]
fn the_mode_that_config_has_is_remembered_and_not_forgotten_with_it() {
    let mut state = state();
    let ann = native(&mut state);
    let modes = vec![(AgentName::new_unchecked("ann"), "acceptEdits".to_owned())];
    let seen = ConfigSeen { modes, ..ConfigSeen::default() };
    let effects = step(&mut state, Event::Filed(FileDone::Config { team: team(), seen }), NOW);
    assert!(matches!(effects.first(), Some(Effect::File(FileJob::Roster(_)))), "{effects:?}");
    says(&mut state, true);
    assert_eq!(state.agents[&ann].record.mode.as_deref(), Some("acceptEdits"));
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
    told_idle(&mut state);
    assert_eq!(state.agents[&ann].activity, Activity::Idle);
}

/// Its idle notification lies in the lead's inbox.
fn told_idle(state: &mut State) {
    let payload = Payload::parse(r#"{"type":"idle_notification","from":"ann","idleReason":"available"}"#);
    let letter = Letter { index: 0, from: AgentName::new_unchecked("ann"), summary: None, payload };
    let mail = Mail { new: vec![letter], ..Mail::default() };
    let inbox = FileDone::Inbox { team: team(), inbox: "team-lead".into(), result: Ok(mail) };
    step(state, Event::Filed(inbox), NOW);
}

#[test]
fn a_config_that_was_mended_is_told_and_who_could_not_be_taken_off_is_tried_again() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    step(&mut state, ended(50, ExitReport::Exit(0)), NOW);
    let fault = protocol::error::ErrorReport::new(ErrorKind::InvalidData, "it is empty");
    step(&mut state, farewelled(&ann, false, Some(fault)), NOW);
    let seen = ConfigSeen { mended: Some("it was empty".into()), ..ConfigSeen::default() };
    let effects = step(&mut state, Event::Filed(FileDone::Config { team: team(), seen }), NOW);
    let again = |effect: &Effect| matches!(effect, Effect::File(FileJob::Farewell { .. }));
    assert!(effects.iter().any(again), "{effects:?}");
}

fn native_order(restart: RestartPolicy) -> Request {
    let Request::Spawn(mut order) = order("ann") else { panic!() };
    let argv = |word: &str| ["c", "{color}", "{lead_session}", word, "{session}"].map(str::to_owned).to_vec();
    *order = SpawnRequest {
        delivery: Delivery::Native,
        argv: argv("open"),
        has_deferred_variables: true,
        resume_argv: Some(protocol::control::ResumeArgv { argv: argv("resume") }),
        restart,
        ..*order
    };
    Request::Spawn(order)
}

fn argv(effects: &[Effect]) -> Vec<String> {
    let go = effects.iter().find_map(|effect| match effect {
        Effect::Tell { word: ToShim::StartAgent(go), .. } => Some(go.argv.clone()),
        _ => None,
    });
    go.expect("the green light")
}

fn begins(state: &mut State, effects: &[Effect], conn: u64) -> (SpawnId, Vec<String>) {
    let spawn = opening(effects);
    let pid = u32::try_from(conn).unwrap();
    step(state, opened(&spawn, pid), NOW);
    step(state, joined(&spawn, conn, pid, None), NOW);
    let argv = argv(&step(state, registered(&spawn), NOW));
    step(state, started(conn), NOW);
    (spawn, argv)
}

#[test]
fn its_arguments_name_colour_and_sessions_and_a_next_life_goes_on_with_the_conversation() {
    let mut state = state();
    let effects = ask(&mut state, 1, native_order(RestartPolicy::OnFailure));
    let (first, argv) = begins(&mut state, &effects, 50);
    assert_eq!(argv, ["c", "blue", "lead's", "open", first.as_str()]);
    // Without a turn there is nothing to go on with.
    let effects = dies(&mut state, &first, 50);
    let (second, argv) = begins(&mut state, &effects, 51);
    assert_eq!(argv[3..], ["open", second.as_str()]);
    says(&mut state, false);
    let effects = dies(&mut state, &second, 51);
    let (third, argv) = begins(&mut state, &effects, 52);
    assert_eq!(argv[3..], ["resume", second.as_str()]);
    says(&mut state, true);
    let effects = dies(&mut state, &third, 52);
    let (_, argv) = begins(&mut state, &effects, 53);
    assert_eq!(argv[3..], ["resume", second.as_str()], "the same conversation");
}

/// Its process is killed, and its next life begins.
fn dies(state: &mut State, spawn: &SpawnId, conn: u64) -> Vec<Effect> {
    step(state, ended(conn, ExitReport::Signal(9)), NOW);
    step(state, farewelled(spawn, false, None), NOW);
    step(state, pane_closed(spawn), NOW);
    state.rescan_at = 600_000;
    step(state, Event::Deadline, at(100_000))
}

#[test]
fn a_word_that_is_as_it_was_does_not_take_back_what_the_lead_was_told() {
    let mut state = state();
    let ann = native(&mut state);
    says(&mut state, true);
    told_idle(&mut state);
    assert_eq!(state.agents[&ann].activity, Activity::Idle);
    says(&mut state, true);
    assert_eq!(state.agents[&ann].activity, Activity::Idle, "its client's write was lost");
    let (active, mended) = (vec![(AgentName::new_unchecked("ann"), false)], Some("it was empty".into()));
    let seen = ConfigSeen { active, mended, ..ConfigSeen::default() };
    step(&mut state, Event::Filed(FileDone::Config { team: team(), seen }), NOW);
    says(&mut state, true);
    assert_eq!(state.agents[&ann].activity, Activity::Active);
}

#[test]
fn who_only_reads_is_set_to_no_mode_that_writes() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    let record = &mut state.agents.get_mut(&ann).unwrap().record;
    (record.agent_type, record.modes) = (Some("Explore".to_owned()), vec!["plan".to_owned()]);
    let mut set = |feed, mode| {
        state.agents.get_mut(&ann).unwrap().record.feed = feed;
        let order = SetModeRequest { team: team(), name: "ann".to_owned(), mode };
        let effects = ask(&mut state, 9, Request::SetMode(order));
        match reply(&effects, 9) {
            Some(Response::Failed(fault)) => Some(fault.message.clone()),
            _ => None,
        }
    };
    for mode in [PermissionMode::BypassPermissions, PermissionMode::AcceptEdits, PermissionMode::Default] {
        let refused = set(Delivery::Acp, mode).unwrap();
        assert!(refused.contains("it is of type Explore, and only reads"), "{refused}");
    }
    assert_eq!(set(Delivery::Acp, PermissionMode::Plan), None);
    assert_eq!(set(Delivery::Native, PermissionMode::AcceptEdits), None, "its program knows the type");
}

#[test]
fn a_session_is_set_to_no_mode_that_it_has_not() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    let record = &mut state.agents.get_mut(&ann).unwrap().record;
    (record.feed, record.modes) = (Delivery::Acp, vec!["acceptEdits".to_owned()]);
    let mut set = |mode| {
        let order = SetModeRequest { team: team(), name: "ann".to_owned(), mode };
        match reply(&ask(&mut state, 9, Request::SetMode(order)), 9) {
            Some(Response::Failed(fault)) => fault.help.clone(),
            _ => None,
        }
    };
    assert_eq!(set(PermissionMode::DontAsk).as_deref(), Some("it has: acceptEdits"));
    assert_eq!(set(PermissionMode::AcceptEdits), None);
}

#[test]
fn who_plans_and_has_handed_in_nothing_is_said_to_need_a_turn() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    state.agents.get_mut(&ann).unwrap().record.plan_mode_required = true;
    let mut hint = |asks: &[MemberRequestKind]| {
        state.agents.get_mut(&ann).unwrap().asks = asks.iter().copied().collect();
        let order = SetModeRequest { team: team(), name: "ann".to_owned(), mode: PermissionMode::Default };
        match reply(&ask(&mut state, 9, Request::SetMode(order)), 9) {
            Some(Response::Failed(fault)) => fault.help.clone().unwrap_or_default(),
            other => panic!("{other:?}"),
        }
    };
    assert!(hint(&[]).contains("teamctl send ann TEXT"));
    assert_eq!(hint(&[MemberRequestKind::Plan]), "see: teamctl requests -t survey");
}
