//! Tests of agents with hooks, and of lead sessions.

use super::*;
use crate::core::core_event::CoreEvent;
use crate::core::effect::{Effect, Wake};
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::FileResult;
use crate::core::roster::agent_record::PromptDelivery;
use crate::core::spawn_lifecycle::Lifecycle;
use protocol::control_socket::{
    HookEvent, HookReply, HookReport, LeadProcess, LongPollEnd, LongPollRequest, MemberFlag, Process,
    SetLeadRequest,
};
use protocol::delivery_kind::DeliveryPoint;
use protocol::event_log_line::EventKind;
use protocol::length_limits_of_texts::SHOWN_TEXT_BYTES;

/// Starts a member with hook delivery. Returns its spawn id and its token.
pub(crate) fn start_hook_member(state: &mut State, name: &str, conn: u64) -> (SpawnId, String) {
    let spawn = start_member(state, name, conn);
    let record = &mut state.agents.get_mut(&spawn).unwrap().record;
    record.request_mut().delivery = Delivery::Hook;
    (spawn, record.token.clone())
}

pub(crate) fn send_call_as(state: &mut State, client: u64, token: &str, request: Request) -> Vec<Effect> {
    let call = Call { token: Some(token.to_owned()), ..*new_call(request) };
    let effects = handle_event(state, CoreEvent::ClientCall { client, call: Box::new(call) }, NOW);
    with_replies(state, effects)
}

fn send_hook_event(state: &mut State, token: &str, event: HookEvent) -> HookReply {
    let report = hook_report(Some("s-1"), event);
    match reply_value(&send_call_as(state, 70, token, Request::ReportHook(report)), 70) {
        Some(Reply::ReportHook(reply)) => reply.clone(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn hook_report(session: Option<&str>, event: HookEvent) -> HookReport {
    let (session, ancestors) = (session.map(str::to_owned), vec![Process { pid: 400, start_time: 4 }]);
    HookReport { leads_team: None, session_id: session, ancestors, usage: None, event }
}

fn turn_started(summary: String) -> HookEvent {
    HookEvent::TurnStarted { summary, delivered_ids: Vec::new() }
}

fn start_long_poll(state: &mut State, client: u64, token: &str) -> Vec<Effect> {
    start_long_poll_of_hook(state, client, token, 0)
}

fn start_long_poll_of_hook(state: &mut State, client: u64, token: &str, hook_started_at: u64) -> Vec<Effect> {
    let request = LongPollRequest { leads_team: None, hook_started_at };
    send_call_as(state, client, token, Request::LongPoll(request))
}

fn long_poll_end(effects: &[Effect], client: u64) -> Option<LongPollEnd> {
    match reply_value(effects, client) {
        Some(Reply::LongPoll(released)) => Some(*released),
        _ => None,
    }
}

fn message_arrives(state: &mut State, inbox: &str) -> Vec<Effect> {
    handle_event(
        state,
        CoreEvent::InboxChanged { team: survey_team(), inbox: inbox.to_owned(), owner_wake: Wake::Done },
        NOW,
    )
}

fn member_status(state: &mut State) -> protocol::control_socket::MemberStatus {
    match reply_value(&send_call(state, 90, Request::Status), 90) {
        Some(Reply::Status(status)) => status.teams[0].members[0].clone(),
        other => panic!("{other:?}"),
    }
}

/// Reports the end of a turn, and starts a long poll that the daemon holds.
fn end_turn_and_wait(state: &mut State, client: u64, token: &str) {
    send_hook_event(state, token, HookEvent::TurnEnded);
    assert_eq!(long_poll_end(&start_long_poll(state, client, token), client), None);
}

/// A new spawn has the name and the pane of the earlier one.
#[test]
fn reports_of_an_earlier_spawn_are_ignored() {
    let mut state = new_state();
    let (old, token) = start_hook_member(&mut state, "ann", 50);
    end_turn_and_wait(&mut state, 60, &token);
    handle_event(&mut state, exit_reported(50, ExitReport::Exit(0)), NOW);
    handle_event(&mut state, member_deregistered(&old, ShutdownApproval::NotGiven, None), NOW);
    handle_event(&mut state, pane_closed(&old), NOW);
    let (new, new_token) = start_hook_member(&mut state, "ann", 51);
    end_turn_and_wait(&mut state, 61, &new_token);
    let before = format!("{:?}", member_status(&mut state));
    let report = Request::ReportHook(hook_report(Some("s-1"), turn_started("x".to_owned())));
    for request in [
        report,
        Request::ReportActivity(Activity::Active),
        Request::LongPoll(LongPollRequest { leads_team: None, hook_started_at: 0 }),
    ] {
        assert_eq!(
            error_kind(&send_call_as(&mut state, 70, &token, request), 70),
            Some(ErrorKind::NotPermitted)
        );
    }
    // The shim of the earlier spawn, on its old connection and on a new one.
    handle_event(&mut state, exit_reported(50, ExitReport::Exit(1)), NOW);
    let effects = handle_event(&mut state, shim_connected(&old, 52, 50, Some(3)), NOW);
    assert!(matches!(effects[0], Effect::SendToShim { conn: 52, message: ToShim::Refused }), "{effects:?}");
    handle_event(&mut state, CoreEvent::ProcessDied { watch: WatchId::Shim(old) }, NOW);
    assert_eq!(format!("{:?}", member_status(&mut state)), before);
    assert!(matches!(state.agents[&new].record.lifecycle, Lifecycle::Running(_)));
    send_hook_event(&mut state, &new_token, turn_started("x".to_owned()));
    assert_ne!(format!("{:?}", member_status(&mut state)), before, "a report of the new spawn counts");
}

#[test]
fn status_shows_whether_a_hook_waits() {
    let mut state = new_state();
    let (_, token) = start_hook_member(&mut state, "ann", 1);
    assert!(member_status(&mut state).activity_reason.contains("none of its hooks has reported yet"));
    end_turn_and_wait(&mut state, 71, &token);
    assert!(member_status(&mut state).activity_reason.ends_with("; its hook waits for mail"));
    send_hook_event(&mut state, &token, turn_started("x".to_owned()));
    assert!(member_status(&mut state).activity_reason.ends_with("; its hook looks for mail at its end"));
}

#[test]
fn message_ends_the_held_long_poll_or_the_next_one() {
    let mut state = new_state();
    let (_, token) = start_hook_member(&mut state, "ann", 50);
    end_turn_and_wait(&mut state, 60, &token);
    assert_eq!(long_poll_end(&message_arrives(&mut state, "ann"), 60), Some(LongPollEnd::WorkMayWait));
    // Another message arrives while the hook reads the inbox.
    message_arrives(&mut state, "ann");
    assert_eq!(long_poll_end(&start_long_poll(&mut state, 61, &token), 61), Some(LongPollEnd::WorkMayWait));
    assert_eq!(long_poll_end(&start_long_poll(&mut state, 62, &token), 62), None);
    // A hook reads the inbox at the end of each turn, so a message that arrives during a turn does
    // not end the next long poll.
    send_hook_event(&mut state, &token, turn_started("x".into()));
    message_arrives(&mut state, "ann");
    end_turn_and_wait(&mut state, 63, &token);
}

#[test]
fn agent_is_idle_once_its_hook_waits_and_a_turn_end_counts_once() {
    let mut state = new_state();
    let (_, token) = start_hook_member(&mut state, "ann", 50);
    send_hook_event(&mut state, &token, turn_started("task 3: count".into()));
    let reply = send_hook_event(&mut state, &token, HookEvent::TurnEnded);
    assert_eq!(
        (reply.is_first_report, reply.task, reply.delivers_by_hook),
        (true, TaskId::parse("3").ok(), true)
    );
    assert!(
        !send_hook_event(&mut state, &token, HookEvent::TurnEnded).is_first_report,
        "a second hook reports the same end"
    );
    assert_eq!(member_status(&mut state).activity, Activity::Active);
    start_long_poll(&mut state, 60, &token);
    assert_eq!(member_status(&mut state).activity, Activity::Idle);
    assert!(
        !send_hook_event(&mut state, &token, HookEvent::TurnEnded).is_first_report,
        "the agent was already idle"
    );
}

#[test]
fn older_hook_that_polls_again_does_not_replace_the_newer() {
    let mut state = new_state();
    let (_, token) = start_hook_member(&mut state, "ann", 50);
    end_turn_and_wait(&mut state, 60, &token);
    start_long_poll_of_hook(&mut state, 61, &token, 1_000);
    let effects = start_long_poll_of_hook(&mut state, 62, &token, 999);
    assert_eq!(
        (long_poll_end(&effects, 61), long_poll_end(&effects, 62)),
        (None, Some(LongPollEnd::Superseded))
    );
    let effects = message_arrives(&mut state, "ann");
    assert_eq!(long_poll_end(&effects, 61), Some(LongPollEnd::WorkMayWait));
}

#[test]
fn newer_long_poll_replaces_the_older_and_a_prompt_ends_it() {
    let mut state = new_state();
    let (_, token) = start_hook_member(&mut state, "ann", 50);
    end_turn_and_wait(&mut state, 60, &token);
    let effects = start_long_poll(&mut state, 61, &token);
    assert_eq!(
        (long_poll_end(&effects, 60), long_poll_end(&effects, 61)),
        (Some(LongPollEnd::Superseded), None)
    );
    let turn_start = hook_report(None, turn_started("typed".into()));
    let effects = send_call_as(&mut state, 70, &token, Request::ReportHook(turn_start));
    assert_eq!(long_poll_end(&effects, 61), Some(LongPollEnd::PersonTyped));
    assert_eq!(member_status(&mut state).activity, Activity::Active);
}

#[test]
fn status_shows_when_messages_reach_the_agent() {
    let mut state = new_state();
    let (_, token) = start_hook_member(&mut state, "ann", 50);
    let delivery_point = |state: &mut State| member_status(state).delivery_point;
    assert_eq!(delivery_point(&mut state), Some(DeliveryPoint::OnPull), "no hook has reported yet");
    send_hook_event(&mut state, &token, turn_started(String::new()));
    assert_eq!(delivery_point(&mut state), Some(DeliveryPoint::TurnEnd));
    end_turn_and_wait(&mut state, 60, &token);
    assert_eq!(delivery_point(&mut state), Some(DeliveryPoint::TurnEnd));
    handle_event(&mut state, CoreEvent::ConnectionClosed { conn: 60 }, NOW);
    assert_eq!(delivery_point(&mut state), Some(DeliveryPoint::OnPull));
    send_hook_event(&mut state, &token, HookEvent::DialogShown { text: "may I?".into() });
    assert_eq!(member_status(&mut state).flags, [MemberFlag::AtDialog]);
    send_hook_event(&mut state, &token, turn_started(String::new()));
    assert!(member_status(&mut state).flags.is_empty());
}

#[test]
fn exit_of_the_agent_ends_its_long_poll_and_other_tokens_are_refused() {
    let mut state = new_state();
    let (spawn, token) = start_hook_member(&mut state, "ann", 50);
    end_turn_and_wait(&mut state, 60, &token);
    assert_eq!(error_kind(&start_long_poll(&mut state, 61, "other"), 61), Some(ErrorKind::NotPermitted));
    let effects = handle_event(&mut state, exit_reported(50, ExitReport::Exit(0)), NOW);
    assert_eq!(long_poll_end(&effects, 60), Some(LongPollEnd::AgentExited));
    assert!(matches!(state.agents[&spawn].record.lifecycle, Lifecycle::Exited(_)));
    assert_eq!(error_kind(&start_long_poll(&mut state, 62, &token), 62), Some(ErrorKind::NotPermitted));
}

#[test]
fn hook_report_of_an_agent_without_hook_delivery_changes_nothing() {
    let mut state = new_state();
    let spawn = start_member(&mut state, "ann", 50);
    let token = state.agents[&spawn].record.token.clone();
    assert!(!send_hook_event(&mut state, &token, HookEvent::TurnEnded).delivers_by_hook);
    let agent = &state.agents[&spawn];
    assert!(!agent.has_reported_activity && agent.record.session.is_none());
}

#[test]
fn prompt_in_arguments_is_in_each_reply_until_a_hook_has_marked_it_as_read() {
    let mut state = new_state();
    let (spawn, token) = start_hook_member(&mut state, "ann", 50);
    state.agents.get_mut(&spawn).unwrap().record.prompt_delivery = PromptDelivery::InArguments;
    assert_eq!(
        send_hook_event(&mut state, &token, HookEvent::SessionStarted).prompt_in_args.as_deref(),
        Some("hello")
    );
    assert_eq!(
        send_hook_event(&mut state, &token, HookEvent::TurnEnded).prompt_in_args.as_deref(),
        Some("hello"),
        "no hook has marked the prompt as read"
    );
    send_hook_event(&mut state, &token, HookEvent::PromptRead);
    assert_eq!(send_hook_event(&mut state, &token, HookEvent::TurnEnded).prompt_in_args, None);
    assert_eq!(state.agents[&spawn].record.session.as_deref(), Some("s-1"));
}

#[test]
fn report_of_a_new_session_is_answered_after_the_roster_is_saved() {
    let mut state = new_state();
    let (_, token) = start_hook_member(&mut state, "ann", 50);
    let mut effect_position = |is_wanted: fn(&Effect) -> bool| {
        let call = Call {
            token: Some(token.clone()),
            ..*new_call(Request::ReportHook(hook_report(Some("s-1"), HookEvent::SessionStarted)))
        };
        let effects =
            handle_event(&mut state, CoreEvent::ClientCall { client: 70, call: Box::new(call) }, NOW);
        effects.iter().position(is_wanted)
    };
    assert!(
        effect_position(|effect| matches!(effect, Effect::File(FileJob::ReplyWhenSaved { client: 70, .. })))
            > Some(0)
    );
    assert_eq!(
        effect_position(|effect| matches!(effect, Effect::File(FileJob::SaveRoster(_)))),
        None,
        "the session is already saved"
    );
}

#[test]
fn hook_reports_of_a_nested_session_are_ignored() {
    let mut state = new_state();
    let (spawn, token) = start_hook_member(&mut state, "ann", 50);
    let process = state.agents.get_mut(&spawn).unwrap().record.lifecycle.process_mut();
    (process.shim, process.agent_pid) = (Some(Process { pid: 90, start_time: 1 }), Some(100));
    let to_ancestors =
        |pids: &[u32]| pids.iter().map(|pid| Process { pid: *pid, start_time: 1 }).collect::<Vec<_>>();
    let report_hook = |state: &mut State, session: &str, pids: &[u32], event: HookEvent| {
        let report = HookReport { ancestors: to_ancestors(pids), ..hook_report(Some(session), event) };
        match reply_value(&send_call_as(state, 70, &token, Request::ReportHook(report)), 70) {
            Some(Reply::ReportHook(reply)) => reply.delivers_by_hook,
            other => panic!("{other:?}"),
        }
    };
    assert!(report_hook(&mut state, "s-1", &[101, 100, 90], HookEvent::SessionStarted));
    assert!(report_hook(&mut state, "s-1", &[102, 100, 90], turn_started("task 3".into())));
    // A session in a shell of the agent, and a session whose shell has ended.
    for nested_pids in [&[201, 200, 110, 100, 90][..], &[201, 200, 90]] {
        for event in [HookEvent::SessionStarted, turn_started("nested".into()), HookEvent::TurnEnded] {
            assert!(!report_hook(&mut state, "s-2", nested_pids, event), "{nested_pids:?}");
        }
    }
    let agent = &state.agents[&spawn];
    assert_eq!(
        (agent.record.session.as_deref(), agent.long_poll.has_reported_turn_end),
        (Some("s-1"), false)
    );
    assert!(
        report_hook(&mut state, "s-3", &[103, 100, 90], HookEvent::SessionStarted),
        "/clear starts a new session"
    );
    assert!(!report_hook(&mut state, "s-1", &[104, 100, 90], HookEvent::TurnEnded));
}

#[test]
fn ids_of_delivered_messages_are_in_the_reply_to_the_turn_end() {
    let mut state = new_state();
    let (_, token) = start_hook_member(&mut state, "ann", 50);
    send_hook_event(
        &mut state,
        &token,
        HookEvent::TurnStarted { summary: "mail".into(), delivered_ids: vec![7, 8] },
    );
    send_hook_event(&mut state, &token, turn_started("the program reports the same turn".into()));
    assert_eq!(send_hook_event(&mut state, &token, HookEvent::TurnEnded).delivered_ids, [7, 8]);
}

fn take_lead(pid: u32) -> Request {
    Request::SetLead(SetLeadRequest::Take(LeadProcess {
        team: survey_team(),
        pid,
        start_time: 5,
        pane: Some("%3".into()),
        tmux_socket: None,
        session_id: None,
    }))
}

fn start_lead_poll(state: &mut State, client: u64) -> Vec<Effect> {
    send_call(
        state,
        client,
        Request::LongPoll(LongPollRequest { leads_team: Some(survey_team()), hook_started_at: 0 }),
    )
}

#[test]
fn one_session_leads_a_team_until_it_is_released_or_ends() {
    let mut state = new_state();
    let effects = send_call(&mut state, 1, take_lead(7));
    assert!(
        matches!(effects[0], Effect::File(FileJob::SaveRoster(_))),
        "the roster is saved first: {effects:?}"
    );
    assert!(has_file_job(&effects, |job| matches!(job, FileJob::ReplyWhenSaved { client: 1, .. })));
    assert_eq!(error_kind(&send_call(&mut state, 2, take_lead(8)), 2), Some(ErrorKind::AlreadyExists));
    assert_eq!(error_kind(&send_call(&mut state, 3, take_lead(7)), 3), None, "the same process leads again");
    let release = Request::SetLead(SetLeadRequest::Release(survey_team()));
    assert_eq!(error_kind(&send_call(&mut state, 4, release.clone()), 4), None);
    assert_eq!(error_kind(&send_call(&mut state, 5, release), 5), Some(ErrorKind::NotFound));
    send_call(&mut state, 6, take_lead(8));
    let process_died = |pid| {
        let process = Process { pid, start_time: 5 };
        CoreEvent::ProcessDied { watch: WatchId::Lead { team: survey_team(), process } }
    };
    handle_event(&mut state, process_died(7), NOW);
    assert_eq!(state.lead_sessions.len(), 1, "the exit of an earlier lead process changes nothing");
    let effects = handle_event(&mut state, process_died(8), NOW);
    assert!(state.lead_sessions.is_empty());
    let logs_end =
        |effect: &Effect| matches!(effect, Effect::Log(event) if event.kind == EventKind::LeadSessionEnded);
    assert!(effects.iter().any(logs_end));
    assert_eq!(state.notices.pending().len(), 1);
    assert_eq!(state.teams[&survey_team()].lead_session_ended_at, Some(NOW.wall), "status shows the end");
    let release = Request::SetLead(SetLeadRequest::Release(survey_team()));
    assert_eq!(
        error_kind(&send_call(&mut state, 10, release.clone()), 10),
        None,
        "the release clears the time of the end"
    );
    assert_eq!(error_kind(&send_call(&mut state, 11, release), 11), Some(ErrorKind::NotFound));
    send_call(&mut state, 7, take_lead(9));
    assert_eq!(state.teams[&survey_team()].lead_session_ended_at, None);
}

#[test]
fn hook_reports_of_a_session_nested_in_the_lead_are_ignored_and_a_new_lead_session_is_adopted() {
    let mut state = new_state();
    send_call(&mut state, 1, take_lead(7));
    let report_hook = |state: &mut State, session: &str, pids: &[u32], event: HookEvent| {
        let ancestors = pids.iter().map(|pid| Process { pid: *pid, start_time: 1 }).collect();
        let report =
            HookReport { ancestors, leads_team: Some(survey_team()), ..hook_report(Some(session), event) };
        let effects = send_call(state, 70, Request::ReportHook(report));
        match reply_value(&with_replies(state, effects), 70) {
            Some(Reply::ReportHook(reply)) => reply.delivers_by_hook,
            other => panic!("{other:?}"),
        }
    };
    assert!(report_hook(&mut state, "s-1", &[21, 20, 7], HookEvent::TurnEnded));
    assert!(!report_hook(&mut state, "s-2", &[41, 40, 30, 20, 7], HookEvent::SessionStarted));
    assert!(!report_hook(&mut state, "s-2", &[42, 40, 30, 20, 7], HookEvent::TurnEnded));
    assert_eq!(state.lead_sessions[&survey_team()].lead.session_id.as_deref(), Some("s-1"));
    assert!(
        report_hook(&mut state, "s-3", &[51, 50, 7], HookEvent::SessionStarted),
        "the program was quit and started again"
    );
    assert_eq!(state.lead_sessions[&survey_team()].lead.session_id.as_deref(), Some("s-3"));
}

#[test]
fn message_for_the_lead_ends_its_long_poll_and_a_member_cannot_act_as_lead() {
    let mut state = new_state();
    let (_, token) = start_hook_member(&mut state, "ann", 50);
    assert_eq!(
        error_kind(&start_lead_poll(&mut state, 60), 60),
        Some(ErrorKind::NotPermitted),
        "the team has no lead session"
    );
    send_call(&mut state, 1, take_lead(7));
    assert_eq!(
        long_poll_end(&start_lead_poll(&mut state, 61), 61),
        Some(LongPollEnd::WorkMayWait),
        "a message may have arrived earlier"
    );
    assert_eq!(long_poll_end(&start_lead_poll(&mut state, 62), 62), None);
    assert_eq!(long_poll_end(&message_arrives(&mut state, "team-lead"), 62), Some(LongPollEnd::WorkMayWait));
    let lead_poll =
        Request::LongPoll(LongPollRequest { leads_team: Some(survey_team()), hook_started_at: 0 });
    assert_eq!(
        error_kind(&send_call_as(&mut state, 63, &token, lead_poll), 63),
        Some(ErrorKind::NotPermitted)
    );
    assert_eq!(
        error_kind(&send_call_as(&mut state, 64, &token, take_lead(9)), 64),
        Some(ErrorKind::NotPermitted)
    );
}

#[test]
fn task_wakes_the_agent_whose_hook_waits() {
    let mut state = new_state();
    let (ann, token) = start_hook_member(&mut state, "ann", 50);
    let (_, bob_token) = start_hook_member(&mut state, "bob", 51);
    end_turn_and_wait(&mut state, 60, &token);
    send_hook_event(&mut state, &bob_token, turn_started(String::new()));
    let task = protocol::task::Task::parse(r#"{"id":"3","subject":"s","status":"pending"}"#).unwrap();
    let scanned = CoreEvent::FileJobDone(FileResult::TasksScanned {
        team: survey_team(),
        members: Vec::new(),
        result: Ok(vec![task.into()].into()),
        queries: Vec::new(),
    });
    let effects = handle_event(&mut state, scanned, NOW);
    assert_eq!(long_poll_end(&effects, 60), Some(LongPollEnd::WorkMayWait));
    assert_eq!(state.agents[&ann].offered_task, TaskId::parse("3").ok());
    // The agent did not claim the task. The same task does not end its next long poll.
    let effects = start_long_poll(&mut state, 61, &token);
    assert!(!has_file_job(&effects, |job| matches!(job, FileJob::ScanTasks { .. })), "{effects:?}");
}

#[test]
fn prompt_in_a_turn_keeps_its_task_for_the_next_daemon() {
    let task = |state: &State, spawn: &SpawnId| state.agents[spawn].record.hook_state.task;
    let mut state = new_state();
    let (ann, token) = start_hook_member(&mut state, "ann", 50);
    send_hook_event(&mut state, &token, turn_started("task 3: count".to_owned()));
    let mut state = notifications_to_people::restart_daemon(&state);
    assert_eq!((task(&state, &ann), &state.agents[&ann].turn), (TaskId::parse("3").ok(), &None));
    for _ in 0..2 {
        send_hook_event(&mut state, &token, turn_started("a person's words".to_owned()));
        assert_eq!(task(&state, &ann), TaskId::parse("3").ok());
    }
    assert_eq!(send_hook_event(&mut state, &token, HookEvent::TurnEnded).task, TaskId::parse("3").ok());
    assert_eq!(task(&state, &ann), None);
    // The hook at the end of the turn delivers the next task.
    send_hook_event(&mut state, &token, turn_started("task 4: next".to_owned()));
    assert_eq!(task(&state, &ann), TaskId::parse("4").ok());
    let mut state = notifications_to_people::restart_daemon(&state);
    send_hook_event(&mut state, &token, turn_started("task 5: a turn of its own".to_owned()));
    assert_eq!(task(&state, &ann), TaskId::parse("5").ok());
}

#[test]
fn long_text_of_a_hook_is_refused_and_a_kept_one_is_shortened() {
    let mut state = new_state();
    let (spawn, token) = start_hook_member(&mut state, "ann", 50);
    let long_session = "s".repeat(4 << 20);
    for report in [
        hook_report(Some(&long_session), HookEvent::SessionStarted),
        hook_report(Some("s-1"), HookEvent::DialogShown { text: "x".repeat(4 << 20) }),
    ] {
        let effects = send_call_as(&mut state, 70, &token, Request::ReportHook(report));
        assert_eq!(error_kind(&effects, 70), Some(ErrorKind::Usage));
    }
    assert_eq!(state.agents[&spawn].record.session, None);
    send_hook_event(&mut state, &token, HookEvent::DialogShown { text: "x".repeat(60 << 10) });
    let dialog = state.agents[&spawn].record.hook_state.dialog.clone().unwrap();
    assert!(dialog.len() <= SHOWN_TEXT_BYTES && dialog.ends_with('…'), "{} bytes", dialog.len());
}
