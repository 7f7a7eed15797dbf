//! Members whose client keeps its own entry in config.json.

use super::*;
use crate::core::effect::{Effect, Wake};
use crate::core::event::CoreEvent;
use crate::core::jobs::file_jobs::{
    ConfigSnapshot, FileJob, FileResult, InboxScanResult, MessageHeader, RestoreRule,
};
use protocol::control::RestartPolicy;
use protocol::control::SetModeRequest;
use protocol::event::EventKind;
use protocol::member_request::MemberRequestKind;
use protocol::payload::Payload;
use protocol::permission_mode::PermissionMode;
use protocol::shim_turn_program::{DrivenProgram, TurnProgram};

fn start_native_member(state: &mut State) -> SpawnId {
    let ann = start_member(state, "ann", 50);
    state.agents.get_mut(&ann).unwrap().record.request_mut().delivery = Delivery::Native;
    ann
}

fn config_activity(state: &mut State, activity: Activity) -> Vec<Effect> {
    let seen = ConfigSnapshot {
        activities: vec![(AgentName::new_unchecked("ann"), activity == Activity::Active)],
        ..ConfigSnapshot::default()
    };
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::ConfigChecked { team: survey_team(), snapshot: seen }),
        NOW,
    )
}

fn writes_activity(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::WriteActivity { .. })))
}

#[test]
fn what_a_client_wrote_is_believed_and_not_written_over() {
    let mut state = new_state();
    let ann = start_native_member(&mut state);
    let effects = config_activity(&mut state, Activity::Idle);
    assert_eq!(state.agents[&ann].activity, Activity::Idle);
    assert!(!writes_activity(&effects), "{effects:?}");
    let effects = config_activity(&mut state, Activity::Active);
    assert_eq!(state.agents[&ann].activity, Activity::Active);
    assert!(!writes_activity(&effects), "{effects:?}");
}

#[test]
fn what_somebody_took_out_of_an_inbox_comes_back_to_those_that_are_fed_or_may_be() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    let guard = |state: &mut State, inbox: &str| {
        let seen = FileResult::InboxScanned {
            team: survey_team(),
            inbox: inbox.into(),
            result: Ok(InboxScanResult::default()),
        };
        handle_event(state, CoreEvent::FileJobDone(seen), NOW);
        let effects = handle_event(
            state,
            CoreEvent::InboxChanged { team: survey_team(), inbox: inbox.into(), owner_wake: Wake::Needed },
            NOW,
        );
        effects.into_iter().find_map(|effect| match effect {
            Effect::File(FileJob::ScanInbox { restore_rule: guard, .. }) => Some(guard),
            _ => None,
        })
    };
    for (feed, expected) in [
        (Delivery::Native, RestoreRule::Never),
        (Delivery::Pull, RestoreRule::ForeignProgram),
        (Delivery::Hook, RestoreRule::OwnDelivery),
        (Delivery::Acp, RestoreRule::OwnDelivery),
        (Delivery::Turn, RestoreRule::OwnDelivery),
    ] {
        state.agents.get_mut(&ann).unwrap().record.request_mut().delivery = feed;
        assert_eq!(guard(&mut state, "ann"), Some(expected), "{feed:?}");
    }
    assert_eq!(guard(&mut state, "team-lead"), Some(RestoreRule::ForeignProgram));
    assert_eq!(guard(&mut state, "former"), Some(RestoreRule::NotNow));
}

#[test]
fn what_was_put_back_is_told() {
    let mut state = new_state();
    let letter =
        MessageHeader { index: 0, from: AgentName::new_unchecked("bob"), summary: None, payload: None };
    let mail = InboxScanResult { restored: vec![letter], ..InboxScanResult::default() };
    let seen = FileResult::InboxScanned { team: survey_team(), inbox: "ann".into(), result: Ok(mail) };
    let effects = handle_event(&mut state, CoreEvent::FileJobDone(seen), NOW);
    let told = |effect: &Effect| matches!(effect, Effect::Log(event) if matches!(event.kind, EventKind::MessageRestored { .. }));
    assert!(effects.iter().any(told), "{effects:?}");
}

#[test]
fn what_is_left_of_a_long_inbox_is_looked_at_next_and_wakes_nobody() {
    let mut state = new_state();
    start_member(&mut state, "ann", 50);
    let mail = InboxScanResult { has_more: true, ..InboxScanResult::default() };
    let seen = FileResult::InboxScanned { team: survey_team(), inbox: "ann".into(), result: Ok(mail) };
    let effects = handle_event(&mut state, CoreEvent::FileJobDone(seen), NOW);
    assert!(
        matches!(&effects[..], [Effect::File(FileJob::ScanInbox { inbox, .. })] if inbox == "ann"),
        "{effects:?}"
    );
}

#[test]
fn the_mode_that_config_has_is_remembered_and_not_forgotten_with_it() {
    let mut state = new_state();
    let ann = start_native_member(&mut state);
    let modes = vec![(AgentName::new_unchecked("ann"), "acceptEdits".to_owned())];
    let seen = ConfigSnapshot { modes, ..ConfigSnapshot::default() };
    let effects = handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::ConfigChecked { team: survey_team(), snapshot: seen }),
        NOW,
    );
    assert!(matches!(effects.first(), Some(Effect::File(FileJob::SaveRoster(_)))), "{effects:?}");
    config_activity(&mut state, Activity::Active);
    assert_eq!(state.agents[&ann].record.config_mode.as_deref(), Some("acceptEdits"));
}

#[test]
fn of_the_others_config_is_our_own_word_and_tells_nothing() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    config_activity(&mut state, Activity::Idle);
    assert_eq!(state.agents[&ann].activity, Activity::Active);
}

#[test]
fn an_idle_notification_does_where_config_can_not_be_read() {
    let mut state = new_state();
    let ann = start_native_member(&mut state);
    idle_notification(&mut state);
    assert_eq!(state.agents[&ann].activity, Activity::Idle);
}

/// Its idle notification lies in the lead's inbox.
fn idle_notification(state: &mut State) {
    let payload = Payload::parse(r#"{"type":"idle_notification","from":"ann","idleReason":"available"}"#);
    let letter = MessageHeader { index: 0, from: AgentName::new_unchecked("ann"), summary: None, payload };
    let mail = InboxScanResult { new: vec![letter], ..InboxScanResult::default() };
    let inbox = FileResult::InboxScanned { team: survey_team(), inbox: "team-lead".into(), result: Ok(mail) };
    handle_event(state, CoreEvent::FileJobDone(inbox), NOW);
}

#[test]
fn a_config_that_was_mended_is_told_and_who_could_not_be_taken_off_is_tried_again() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    handle_event(&mut state, exit_reported(50, ExitReport::Exit(0)), NOW);
    let fault = protocol::error::ErrorReport::new(ErrorKind::InvalidData, "it is empty");
    handle_event(&mut state, member_deregistered(&ann, ShutdownApproval::NotGiven, Some(fault)), NOW);
    let seen = ConfigSnapshot { repaired: Some("it was empty".into()), ..ConfigSnapshot::default() };
    let effects = handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::ConfigChecked { team: survey_team(), snapshot: seen }),
        NOW,
    );
    let again = |effect: &Effect| matches!(effect, Effect::File(FileJob::DeregisterMember { .. }));
    assert!(effects.iter().any(again), "{effects:?}");
}

fn native_spawn_request(restart: RestartPolicy) -> Request {
    let Request::Spawn(mut order) = spawn_request("ann") else { panic!() };
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

fn start_agent_argv(effects: &[Effect]) -> Vec<String> {
    let go = effects.iter().find_map(|effect| match effect {
        Effect::SendToShim { message: ToShim::StartAgent(go), .. } => Some(go.argv.clone()),
        _ => None,
    });
    go.expect("the green light")
}

fn start_turn(state: &mut State, effects: &[Effect], conn: u64) -> (SpawnId, Vec<String>) {
    let spawn = opened_spawn_id(effects);
    let pid = u32::try_from(conn).unwrap();
    handle_event(state, pane_opened(&spawn, pid), NOW);
    handle_event(state, shim_connected(&spawn, conn, pid, None), NOW);
    let argv = start_agent_argv(&handle_event(state, member_registered(&spawn), NOW));
    handle_event(state, agent_started(conn), NOW);
    (spawn, argv)
}

#[test]
fn its_arguments_name_colour_and_sessions_and_a_next_life_goes_on_with_the_conversation() {
    let mut state = new_state();
    let effects = send_call(&mut state, 1, native_spawn_request(RestartPolicy::OnFailure));
    let (first, argv) = start_turn(&mut state, &effects, 50);
    assert_eq!(argv, ["c", "blue", "lead's", "open", first.as_str()]);
    // Without a turn there is nothing to go on with.
    let effects = process_dies(&mut state, &first, 50);
    let (second, argv) = start_turn(&mut state, &effects, 51);
    assert_eq!(argv[3..], ["open", second.as_str()]);
    config_activity(&mut state, Activity::Idle);
    let effects = process_dies(&mut state, &second, 51);
    let (third, argv) = start_turn(&mut state, &effects, 52);
    assert_eq!(argv[3..], ["resume", second.as_str()]);
    config_activity(&mut state, Activity::Active);
    let effects = process_dies(&mut state, &third, 52);
    let (_, argv) = start_turn(&mut state, &effects, 53);
    assert_eq!(argv[3..], ["resume", second.as_str()], "the same conversation");
}

/// Its process is killed, and its next life begins.
fn process_dies(state: &mut State, spawn: &SpawnId, conn: u64) -> Vec<Effect> {
    handle_event(state, exit_reported(conn, ExitReport::Signal(9)), NOW);
    handle_event(state, member_deregistered(spawn, ShutdownApproval::NotGiven, None), NOW);
    handle_event(state, pane_closed(spawn), NOW);
    state.rescan_at = 600_000;
    handle_event(state, CoreEvent::DeadlineReached, now_at(100_000))
}

#[test]
fn a_word_that_is_as_it_was_does_not_take_back_what_the_lead_was_told() {
    let mut state = new_state();
    let ann = start_native_member(&mut state);
    config_activity(&mut state, Activity::Active);
    idle_notification(&mut state);
    assert_eq!(state.agents[&ann].activity, Activity::Idle);
    config_activity(&mut state, Activity::Active);
    assert_eq!(state.agents[&ann].activity, Activity::Idle, "its client's write was lost");
    let (active, mended) = (vec![(AgentName::new_unchecked("ann"), false)], Some("it was empty".into()));
    let seen = ConfigSnapshot { activities: active, repaired: mended, ..ConfigSnapshot::default() };
    handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::ConfigChecked { team: survey_team(), snapshot: seen }),
        NOW,
    );
    config_activity(&mut state, Activity::Active);
    assert_eq!(state.agents[&ann].activity, Activity::Active);
}

fn program_with_mode(mode: &str) -> TurnProgram {
    let mode_ids = [(mode.to_owned(), mode.to_owned())].into();
    TurnProgram::Driven(DrivenProgram { mode_ids, ..DrivenProgram::default() })
}

#[test]
fn who_only_reads_is_set_to_no_mode_that_writes() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    let record = &mut state.agents.get_mut(&ann).unwrap().record;
    record.request_mut().agent_type = Some("Explore".to_owned());
    record.request_mut().turns = Some(program_with_mode("plan"));
    let mut set = |feed, mode| {
        state.agents.get_mut(&ann).unwrap().record.request_mut().delivery = feed;
        let order = SetModeRequest { team: survey_team(), name: "ann".to_owned(), mode };
        let effects = send_call(&mut state, 9, Request::SetMode(order));
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
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    let record = &mut state.agents.get_mut(&ann).unwrap().record;
    record.request_mut().delivery = Delivery::Acp;
    record.request_mut().turns = Some(program_with_mode("acceptEdits"));
    let mut set = |mode| {
        let order = SetModeRequest { team: survey_team(), name: "ann".to_owned(), mode };
        match reply(&send_call(&mut state, 9, Request::SetMode(order)), 9) {
            Some(Response::Failed(fault)) => fault.help.clone(),
            _ => None,
        }
    };
    assert_eq!(set(PermissionMode::DontAsk).as_deref(), Some("it has: acceptEdits"));
    assert_eq!(set(PermissionMode::AcceptEdits), None);
}

#[test]
fn who_plans_and_has_handed_in_nothing_is_said_to_need_a_turn() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    state.agents.get_mut(&ann).unwrap().record.request_mut().mode = Some(PermissionMode::Plan);
    let mut hint = |asks: &[MemberRequestKind]| {
        state.agents.get_mut(&ann).unwrap().open_requests = asks.iter().copied().collect();
        let order =
            SetModeRequest { team: survey_team(), name: "ann".to_owned(), mode: PermissionMode::Default };
        match reply(&send_call(&mut state, 9, Request::SetMode(order)), 9) {
            Some(Response::Failed(fault)) => fault.help.clone().unwrap_or_default(),
            other => panic!("{other:?}"),
        }
    };
    assert!(hint(&[]).contains("teamctl send ann TEXT"));
    assert_eq!(hint(&[MemberRequestKind::Plan]), "see: teamctl requests -t survey");
}
