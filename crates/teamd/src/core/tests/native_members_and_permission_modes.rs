//! Tests of members whose program keeps its own entry in config.json, and of permission modes.

use super::*;
use crate::core::core_event::CoreEvent;
use crate::core::effect::{Effect, Wake};
use crate::core::jobs::file_jobs::{FileJob, RestoreRule};
use crate::core::jobs::file_results::{ConfigSnapshot, FileResult, InboxScanResult, MessageHeader};
use protocol::control_socket::{RestartPolicy, SetModeRequest};
use protocol::event_log_line::EventKind;
use protocol::inbox_message_payload::Payload;
use protocol::member_request::MemberRequestKind;
use protocol::permission_mode::PermissionMode;
use protocol::worker_or_program_that_runs_turns::{DrivenProgram, TurnProgram};

fn start_native_member(state: &mut State) -> SpawnId {
    let ann = start_member(state, "ann", 50);
    state.agents.get_mut(&ann).unwrap().record.request_mut().delivery = Delivery::Native;
    ann
}

fn scan_config_activity(state: &mut State, activity: Activity) -> Vec<Effect> {
    let snapshot = ConfigSnapshot {
        activities: vec![(MemberName::new_unchecked("ann"), activity == Activity::Active)],
        ..ConfigSnapshot::default()
    };
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::ConfigChecked { team: survey_team(), snapshot }),
        NOW,
    )
}

fn writes_activity(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::WriteActivity { .. })))
}

#[test]
fn activity_in_config_is_adopted_and_not_overwritten() {
    let mut state = new_state();
    let ann = start_native_member(&mut state);
    let effects = scan_config_activity(&mut state, Activity::Idle);
    assert_eq!(state.agents[&ann].activity, Activity::Idle);
    assert!(!writes_activity(&effects), "{effects:?}");
    let effects = scan_config_activity(&mut state, Activity::Active);
    assert_eq!(state.agents[&ann].activity, Activity::Active);
    assert!(!writes_activity(&effects), "{effects:?}");
}

#[test]
fn delivery_decides_how_removed_messages_are_restored() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    let restore_rule = |state: &mut State, inbox: &str| {
        let scanned = FileResult::InboxScanned {
            team: survey_team(),
            inbox: inbox.into(),
            result: Ok(InboxScanResult::default()),
        };
        handle_event(state, CoreEvent::FileJobDone(scanned), NOW);
        let effects = handle_event(
            state,
            CoreEvent::InboxChanged { team: survey_team(), inbox: inbox.into(), owner_wake: Wake::Needed },
            NOW,
        );
        effects.into_iter().find_map(|effect| match effect {
            Effect::File(FileJob::ScanInbox { restore_rule, .. }) => Some(restore_rule),
            _ => None,
        })
    };
    for (delivery, expected) in [
        (Delivery::Native, RestoreRule::Never),
        (Delivery::Pull, RestoreRule::ForeignProgram),
        (Delivery::Hook, RestoreRule::OwnDelivery),
        (Delivery::Acp, RestoreRule::OwnDelivery),
        (Delivery::Turn, RestoreRule::OwnDelivery),
    ] {
        state.agents.get_mut(&ann).unwrap().record.request_mut().delivery = delivery;
        assert_eq!(restore_rule(&mut state, "ann"), Some(expected), "{delivery:?}");
    }
    assert_eq!(restore_rule(&mut state, "team-lead"), Some(RestoreRule::ForeignProgram));
    assert_eq!(restore_rule(&mut state, "former"), Some(RestoreRule::NotNow));
}

#[test]
fn restored_message_is_logged() {
    let mut state = new_state();
    let header =
        MessageHeader { index: 0, from: MemberName::new_unchecked("bob"), summary: None, payload: None };
    let scan = InboxScanResult { restored: vec![header], ..InboxScanResult::default() };
    let scanned = FileResult::InboxScanned { team: survey_team(), inbox: "ann".into(), result: Ok(scan) };
    let effects = handle_event(&mut state, CoreEvent::FileJobDone(scanned), NOW);
    let logs_restored = |effect: &Effect| matches!(effect, Effect::Log(event) if matches!(event.kind, EventKind::MessageRestored { .. }));
    assert!(effects.iter().any(logs_restored), "{effects:?}");
}

#[test]
fn rest_of_a_long_inbox_is_scanned_once_its_beginning_is_logged_and_wakes_no_agent() {
    let mut state = new_state();
    start_member(&mut state, "ann", 50);
    let scan = InboxScanResult { has_more: true, ..InboxScanResult::default() };
    let scanned = FileResult::InboxScanned { team: survey_team(), inbox: "ann".into(), result: Ok(scan) };
    let effects = handle_event(&mut state, CoreEvent::FileJobDone(scanned), NOW);
    assert!(matches!(&effects[..], [Effect::File(FileJob::AwaitLogged { .. })]), "{effects:?}");
    let logged = FileResult::Logged { team: survey_team(), inbox: "ann".into() };
    let effects = handle_event(&mut state, CoreEvent::FileJobDone(logged), NOW);
    assert!(
        matches!(&effects[..], [Effect::File(FileJob::ScanInbox { inbox, .. })] if inbox == "ann"),
        "{effects:?}"
    );
}

#[test]
fn mode_in_config_is_saved_and_kept_when_config_loses_it() {
    let mut state = new_state();
    let ann = start_native_member(&mut state);
    let modes = vec![(MemberName::new_unchecked("ann"), "acceptEdits".to_owned())];
    let snapshot = ConfigSnapshot { modes, ..ConfigSnapshot::default() };
    let effects = handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::ConfigChecked { team: survey_team(), snapshot }),
        NOW,
    );
    assert!(matches!(effects.first(), Some(Effect::File(FileJob::SaveRoster(_)))), "{effects:?}");
    scan_config_activity(&mut state, Activity::Active);
    assert_eq!(state.agents[&ann].record.config_mode.as_deref(), Some("acceptEdits"));
}

#[test]
fn activity_in_config_is_ignored_for_other_deliveries() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    scan_config_activity(&mut state, Activity::Idle);
    assert_eq!(state.agents[&ann].activity, Activity::Active);
}

#[test]
fn idle_notification_makes_a_native_member_idle() {
    let mut state = new_state();
    let ann = start_native_member(&mut state);
    find_idle_notification(&mut state);
    assert_eq!(state.agents[&ann].activity, Activity::Idle);
}

/// Handles an inbox scan that finds ann's idle notification in the lead's inbox.
fn find_idle_notification(state: &mut State) {
    let payload = Payload::parse(r#"{"type":"idle_notification","from":"ann","idleReason":"available"}"#);
    let header = MessageHeader { index: 0, from: MemberName::new_unchecked("ann"), summary: None, payload };
    let scan = InboxScanResult { new: vec![header], ..InboxScanResult::default() };
    let scanned =
        FileResult::InboxScanned { team: survey_team(), inbox: "team-lead".into(), result: Ok(scan) };
    handle_event(state, CoreEvent::FileJobDone(scanned), NOW);
}

#[test]
fn failed_deregistration_is_repeated_after_config_was_repaired() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    handle_event(&mut state, exit_reported(50, ExitReport::Exit(0)), NOW);
    let error = protocol::error_kind_and_report::ErrorReport::new(ErrorKind::InvalidData, "it is empty");
    handle_event(&mut state, member_deregistered(&ann, ShutdownApproval::NotGiven, Some(error)), NOW);
    let snapshot = ConfigSnapshot { repaired: Some("it was empty".into()), ..ConfigSnapshot::default() };
    let effects = handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::ConfigChecked { team: survey_team(), snapshot }),
        NOW,
    );
    let deregisters = |effect: &Effect| matches!(effect, Effect::File(FileJob::DeregisterMember { .. }));
    assert!(effects.iter().any(deregisters), "{effects:?}");
}

fn native_spawn_request(restart: RestartPolicy) -> Request {
    let Request::Spawn(mut request) = spawn_request("ann") else { panic!() };
    let argv =
        |command: &str| ["c", "{color}", "{lead_session}", command, "{session}"].map(str::to_owned).to_vec();
    *request = SpawnRequest {
        delivery: Delivery::Native,
        argv: argv("open"),
        has_deferred_variables: true,
        resume_argv: Some(protocol::control_socket::ResumeArgv { argv: argv("resume") }),
        restart,
        ..*request
    };
    Request::Spawn(request)
}

fn start_agent_argv(effects: &[Effect]) -> Vec<String> {
    let argv = effects.iter().find_map(|effect| match effect {
        Effect::SendToShim { message: ToShim::StartAgent(start_agent), .. } => Some(start_agent.argv.clone()),
        _ => None,
    });
    argv.expect("the shim may start the agent")
}

fn finish_start(state: &mut State, effects: &[Effect], conn: u64) -> (SpawnId, Vec<String>) {
    let spawn = opened_spawn_id(effects);
    let pid = u32::try_from(conn).unwrap();
    handle_event(state, pane_opened(&spawn, pid), NOW);
    handle_event(state, shim_connected(&spawn, conn, pid, None), NOW);
    let argv = start_agent_argv(&handle_event(state, member_registered(&spawn), NOW));
    handle_event(state, agent_started(conn), NOW);
    (spawn, argv)
}

#[test]
fn arguments_have_color_and_session_ids_and_a_respawn_resumes_the_session() {
    let mut state = new_state();
    let effects = send_call(&mut state, 1, native_spawn_request(RestartPolicy::OnFailure(None)));
    let (first, argv) = finish_start(&mut state, &effects, 50);
    assert_eq!(argv, ["c", "blue", "lead's", "open", first.as_str()]);
    // The first spawn had no turn, so there is no session to resume.
    let effects = kill_and_respawn(&mut state, &first, 50);
    let (second, argv) = finish_start(&mut state, &effects, 51);
    assert_eq!(argv[3..], ["open", second.as_str()]);
    scan_config_activity(&mut state, Activity::Idle);
    let effects = kill_and_respawn(&mut state, &second, 51);
    let (third, argv) = finish_start(&mut state, &effects, 52);
    assert_eq!(argv[3..], ["resume", second.as_str()]);
    scan_config_activity(&mut state, Activity::Active);
    let effects = kill_and_respawn(&mut state, &third, 52);
    let (_, argv) = finish_start(&mut state, &effects, 53);
    assert_eq!(argv[3..], ["resume", second.as_str()], "the same session is resumed");
}

/// Reports that the process of a spawn was killed, and starts the respawn.
fn kill_and_respawn(state: &mut State, spawn: &SpawnId, conn: u64) -> Vec<Effect> {
    handle_event(state, exit_reported(conn, ExitReport::Signal(9)), NOW);
    handle_event(state, member_deregistered(spawn, ShutdownApproval::NotGiven, None), NOW);
    handle_event(state, pane_closed(spawn), NOW);
    state.rescan_at = 600_000;
    handle_event(state, CoreEvent::DeadlineReached, now_at(100_000))
}

#[test]
fn unchanged_activity_in_config_does_not_override_an_idle_notification() {
    let mut state = new_state();
    let ann = start_native_member(&mut state);
    scan_config_activity(&mut state, Activity::Active);
    find_idle_notification(&mut state);
    assert_eq!(state.agents[&ann].activity, Activity::Idle);
    scan_config_activity(&mut state, Activity::Active);
    assert_eq!(state.agents[&ann].activity, Activity::Idle, "the program's write was lost");
    let (activities, repaired) =
        (vec![(MemberName::new_unchecked("ann"), false)], Some("it was empty".into()));
    let snapshot = ConfigSnapshot { activities, repaired, ..ConfigSnapshot::default() };
    handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::ConfigChecked { team: survey_team(), snapshot }),
        NOW,
    );
    scan_config_activity(&mut state, Activity::Active);
    assert_eq!(state.agents[&ann].activity, Activity::Active);
}

fn program_with_mode(mode: &str) -> TurnProgram {
    let mode_ids = [(mode.to_owned(), mode.to_owned())].into();
    TurnProgram::Driven(DrivenProgram { mode_ids, ..DrivenProgram::default() })
}

#[test]
fn read_only_agent_type_cannot_be_set_to_a_writing_mode() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    let record = &mut state.agents.get_mut(&ann).unwrap().record;
    record.request_mut().agent_type = Some("Explore".to_owned());
    record.request_mut().turns = Some(program_with_mode("plan"));
    let mut set_mode = |delivery, mode| {
        state.agents.get_mut(&ann).unwrap().record.request_mut().delivery = delivery;
        let request = SetModeRequest { team: survey_team(), name: "ann".to_owned(), mode };
        let effects = send_call(&mut state, 9, Request::SetMode(request));
        match reply(&effects, 9) {
            Some(Response::Failed(error)) => Some(error.message.clone()),
            _ => None,
        }
    };
    for mode in [PermissionMode::BypassPermissions, PermissionMode::AcceptEdits, PermissionMode::Default] {
        let message = set_mode(Delivery::Acp, mode).unwrap();
        assert!(message.contains("it is of type Explore, and only reads"), "{message}");
    }
    assert_eq!(set_mode(Delivery::Acp, PermissionMode::Plan), None);
    assert_eq!(
        set_mode(Delivery::Native, PermissionMode::AcceptEdits),
        None,
        "a native program enforces its agent type itself"
    );
}

#[test]
fn mode_that_the_session_does_not_have_is_refused() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    let record = &mut state.agents.get_mut(&ann).unwrap().record;
    record.request_mut().delivery = Delivery::Acp;
    record.request_mut().turns = Some(program_with_mode("acceptEdits"));
    let mut set_mode = |mode| {
        let request = SetModeRequest { team: survey_team(), name: "ann".to_owned(), mode };
        match reply(&send_call(&mut state, 9, Request::SetMode(request)), 9) {
            Some(Response::Failed(error)) => error.help.clone(),
            _ => None,
        }
    };
    assert_eq!(set_mode(PermissionMode::DontAsk).as_deref(), Some("it has: acceptEdits"));
    assert_eq!(set_mode(PermissionMode::AcceptEdits), None);
}

#[test]
fn help_for_a_planning_member_depends_on_whether_it_has_submitted_a_plan() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    state.agents.get_mut(&ann).unwrap().record.request_mut().mode = Some(PermissionMode::Plan);
    let mut help_text = |open_requests: &[MemberRequestKind]| {
        state.agents.get_mut(&ann).unwrap().open_requests = open_requests.iter().copied().collect();
        let request =
            SetModeRequest { team: survey_team(), name: "ann".to_owned(), mode: PermissionMode::Default };
        match reply(&send_call(&mut state, 9, Request::SetMode(request)), 9) {
            Some(Response::Failed(error)) => error.help.clone().unwrap_or_default(),
            other => panic!("{other:?}"),
        }
    };
    assert!(help_text(&[]).contains("teamctl send ann TEXT"));
    assert_eq!(help_text(&[MemberRequestKind::Plan]), "see: teamctl requests -t survey");
}
