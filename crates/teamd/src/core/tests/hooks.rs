//! Agents with hooks, and sessions that lead.

use super::*;
use crate::core::effect::{Effect, Wake};
use crate::core::event::CoreEvent;
use crate::core::jobs::file_jobs::{FileJob, FileResult};
use crate::core::lifecycle::Lifecycle;
use crate::core::roster::record::PromptDelivery;
use protocol::control::{
    HookEvent, HookReply, HookReport, LeadProcess, LongPollEnd, LongPollRequest, MemberFlag, Process,
    SetLeadRequest,
};
use protocol::delivery::DeliveryPoint;
use protocol::event::EventKind;

/// A running agent that is fed by its hooks.
pub(crate) fn send_hook(state: &mut State, name: &str, conn: u64) -> (SpawnId, String) {
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

fn send_hook_event(state: &mut State, token: &str, said: HookEvent) -> HookReply {
    let hooked = hook_report_in(Some("s-1"), said);
    match reply_value(&send_call_as(state, 70, token, Request::ReportHook(hooked)), 70) {
        Some(Reply::ReportHook(reply)) => reply.clone(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn hook_report_in(session: Option<&str>, said: HookEvent) -> HookReport {
    let (session, above) = (session.map(str::to_owned), vec![Process { pid: 400, start_time: 4 }]);
    HookReport { leads_team: None, session_id: session, ancestors: above, usage: None, event: said }
}

fn turn_started(about: String) -> HookEvent {
    HookEvent::TurnStarted { summary: about, delivered_ids: Vec::new() }
}

fn start_long_poll(state: &mut State, client: u64, token: &str) -> Vec<Effect> {
    send_call_as(state, client, token, Request::LongPoll(LongPollRequest { leads_team: None }))
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

fn status_of(state: &mut State) -> protocol::control::MemberStatus {
    match reply_value(&send_call(state, 90, Request::Status), 90) {
        Some(Reply::Status(status)) => status.teams[0].members[0].clone(),
        other => panic!("{other:?}"),
    }
}

/// The first of a life is sent to look once more: nobody knows what came before.
fn is_waiting(state: &mut State, client: u64, token: &str) {
    send_hook_event(state, token, HookEvent::TurnEnded);
    assert_eq!(long_poll_end(&start_long_poll(state, client, token), client), None);
}

/// Of its name and in its place there is another one by now.
#[test]
fn what_comes_of_an_earlier_life_is_nobodys_word() {
    let mut state = new_state();
    let (old, token) = send_hook(&mut state, "ann", 50);
    is_waiting(&mut state, 60, &token);
    handle_event(&mut state, exit_reported(50, ExitReport::Exit(0)), NOW);
    handle_event(&mut state, member_deregistered(&old, ShutdownApproval::NotGiven, None), NOW);
    handle_event(&mut state, pane_closed(&old), NOW);
    let (new, its) = send_hook(&mut state, "ann", 51);
    is_waiting(&mut state, 61, &its);
    let before = format!("{:?}", status_of(&mut state));
    let hook = Request::ReportHook(hook_report_in(Some("s-1"), turn_started("x".to_owned())));
    for request in [
        hook,
        Request::ReportActivity(Activity::Active),
        Request::LongPoll(LongPollRequest { leads_team: None }),
    ] {
        assert_eq!(
            error_kind(&send_call_as(&mut state, 70, &token, request), 70),
            Some(ErrorKind::NotPermitted)
        );
    }
    // Its first process, on the line of then or on another.
    handle_event(&mut state, exit_reported(50, ExitReport::Exit(1)), NOW);
    let effects = handle_event(&mut state, shim_connected(&old, 52, 50, Some(3)), NOW);
    assert!(matches!(effects[0], Effect::SendToShim { conn: 52, message: ToShim::Refused }), "{effects:?}");
    handle_event(&mut state, CoreEvent::ProcessDied { watch: WatchId::Shim(old) }, NOW);
    assert_eq!(format!("{:?}", status_of(&mut state)), before);
    assert!(matches!(state.agents[&new].record.lifecycle, Lifecycle::Running(_)));
    send_hook_event(&mut state, &its, turn_started("x".to_owned()));
    assert_ne!(format!("{:?}", status_of(&mut state)), before, "its own word counts");
}

#[test]
fn status_says_whether_a_hook_waits() {
    let mut state = new_state();
    let (_, token) = send_hook(&mut state, "ann", 1);
    assert!(status_of(&mut state).evidence.contains("none of its hooks has reported yet"));
    is_waiting(&mut state, 71, &token);
    assert!(status_of(&mut state).evidence.ends_with("; its hook waits for mail"));
    send_hook_event(&mut state, &token, turn_started("x".to_owned()));
    assert!(status_of(&mut state).evidence.ends_with("; its hook looks for mail at its end"));
}

#[test]
fn mail_releases_the_hook_that_waits_and_is_remembered_for_one_that_does_not_yet() {
    let mut state = new_state();
    let (_, token) = send_hook(&mut state, "ann", 50);
    is_waiting(&mut state, 60, &token);
    assert_eq!(long_poll_end(&message_arrives(&mut state, "ann"), 60), Some(LongPollEnd::WorkMayWait));
    // It looks, and meanwhile more comes.
    message_arrives(&mut state, "ann");
    assert_eq!(long_poll_end(&start_long_poll(&mut state, 61, &token), 61), Some(LongPollEnd::WorkMayWait));
    assert_eq!(long_poll_end(&start_long_poll(&mut state, 62, &token), 62), None);
    // What came in a turn is looked for at its end anyway.
    send_hook_event(&mut state, &token, turn_started("x".into()));
    message_arrives(&mut state, "ann");
    is_waiting(&mut state, 63, &token);
}

#[test]
fn it_is_idle_once_its_hook_waits_and_its_turn_is_told_once() {
    let mut state = new_state();
    let (_, token) = send_hook(&mut state, "ann", 50);
    send_hook_event(&mut state, &token, turn_started("task 3: count".into()));
    let ended = send_hook_event(&mut state, &token, HookEvent::TurnEnded);
    assert_eq!(
        (ended.is_first_report, ended.task, ended.delivers_by_hook),
        (true, TaskId::parse("3").ok(), true)
    );
    assert!(
        !send_hook_event(&mut state, &token, HookEvent::TurnEnded).is_first_report,
        "two hooks of one turn's end"
    );
    assert_eq!(status_of(&mut state).activity, Activity::Active);
    start_long_poll(&mut state, 60, &token);
    assert_eq!(status_of(&mut state).activity, Activity::Idle);
    assert!(
        !send_hook_event(&mut state, &token, HookEvent::TurnEnded).is_first_report,
        "it was idle already"
    );
}

#[test]
fn a_newer_hook_takes_the_older_ones_place_and_a_prompt_ends_the_wait() {
    let mut state = new_state();
    let (_, token) = send_hook(&mut state, "ann", 50);
    is_waiting(&mut state, 60, &token);
    let effects = start_long_poll(&mut state, 61, &token);
    assert_eq!(
        (long_poll_end(&effects, 60), long_poll_end(&effects, 61)),
        (Some(LongPollEnd::Superseded), None)
    );
    let began = hook_report_in(None, turn_started("typed".into()));
    let effects = send_call_as(&mut state, 70, &token, Request::ReportHook(began));
    assert_eq!(long_poll_end(&effects, 61), Some(LongPollEnd::PersonTyped));
    assert_eq!(status_of(&mut state).activity, Activity::Active);
}

#[test]
fn status_says_whether_mail_would_reach_it() {
    let mut state = new_state();
    let (_, token) = send_hook(&mut state, "ann", 50);
    let reaches = |state: &mut State| status_of(state).delivery_point;
    assert_eq!(reaches(&mut state), Some(DeliveryPoint::OnPull), "no hook has said a word");
    send_hook_event(&mut state, &token, turn_started(String::new()));
    assert_eq!(reaches(&mut state), Some(DeliveryPoint::TurnEnd));
    is_waiting(&mut state, 60, &token);
    assert_eq!(reaches(&mut state), Some(DeliveryPoint::TurnEnd));
    handle_event(&mut state, CoreEvent::ConnectionClosed { conn: 60 }, NOW);
    assert_eq!(reaches(&mut state), Some(DeliveryPoint::OnPull));
    send_hook_event(&mut state, &token, HookEvent::DialogShown { text: "may I?".into() });
    assert_eq!(status_of(&mut state).flags, [MemberFlag::AtDialog]);
    send_hook_event(&mut state, &token, turn_started(String::new()));
    assert!(status_of(&mut state).flags.is_empty());
}

#[test]
fn the_agents_end_ends_the_wait_and_nobody_elses_hook_is_heard() {
    let mut state = new_state();
    let (spawn, token) = send_hook(&mut state, "ann", 50);
    is_waiting(&mut state, 60, &token);
    assert_eq!(error_kind(&start_long_poll(&mut state, 61, "other"), 61), Some(ErrorKind::NotPermitted));
    let effects = handle_event(&mut state, exit_reported(50, ExitReport::Exit(0)), NOW);
    assert_eq!(long_poll_end(&effects, 60), Some(LongPollEnd::AgentExited));
    assert!(matches!(state.agents[&spawn].record.lifecycle, Lifecycle::Exited(_)));
    assert_eq!(error_kind(&start_long_poll(&mut state, 62, &token), 62), Some(ErrorKind::NotPermitted));
}

#[test]
fn an_agent_that_is_fed_in_another_way_is_not_touched() {
    let mut state = new_state();
    let spawn = start_member(&mut state, "ann", 50);
    let token = state.agents[&spawn].record.token.clone();
    assert!(!send_hook_event(&mut state, &token, HookEvent::TurnEnded).delivers_by_hook);
    let agent = &state.agents[&spawn];
    assert!(!agent.has_reported_activity && agent.record.session.is_none());
}

#[test]
fn a_prompt_on_the_command_line_is_told_until_a_hook_has_marked_it() {
    let mut state = new_state();
    let (spawn, token) = send_hook(&mut state, "ann", 50);
    state.agents.get_mut(&spawn).unwrap().record.prompt_delivery = PromptDelivery::InArguments;
    assert_eq!(
        send_hook_event(&mut state, &token, HookEvent::SessionStarted).prompt_in_args.as_deref(),
        Some("hello")
    );
    assert_eq!(
        send_hook_event(&mut state, &token, HookEvent::TurnEnded).prompt_in_args.as_deref(),
        Some("hello"),
        "nobody marked it yet"
    );
    send_hook_event(&mut state, &token, HookEvent::PromptRead);
    assert_eq!(send_hook_event(&mut state, &token, HookEvent::TurnEnded).prompt_in_args, None);
    assert_eq!(state.agents[&spawn].record.session.as_deref(), Some("s-1"));
}

#[test]
fn a_hook_that_tells_of_a_new_session_is_answered_once_that_is_on_the_disk() {
    let mut state = new_state();
    let (_, token) = send_hook(&mut state, "ann", 50);
    let mut place = |is_it: fn(&Effect) -> bool| {
        let call = Call {
            token: Some(token.clone()),
            ..*new_call(Request::ReportHook(hook_report_in(Some("s-1"), HookEvent::SessionStarted)))
        };
        let effects =
            handle_event(&mut state, CoreEvent::ClientCall { client: 70, call: Box::new(call) }, NOW);
        effects.iter().position(is_it)
    };
    assert!(
        place(|effect| matches!(effect, Effect::File(FileJob::ReplyWhenSaved { client: 70, .. }))) > Some(0)
    );
    assert_eq!(place(|effect| matches!(effect, Effect::File(FileJob::SaveRoster(_)))), None, "nothing new");
}

#[test]
fn a_program_that_the_agents_own_runs_is_neither_fed_nor_believed() {
    let mut state = new_state();
    let (spawn, token) = send_hook(&mut state, "ann", 50);
    let process = state.agents.get_mut(&spawn).unwrap().record.lifecycle.process_mut();
    (process.shim, process.agent_pid) = (Some(Process { pid: 90, start_time: 1 }), Some(100));
    let above =
        |pids: &[u32]| pids.iter().map(|pid| Process { pid: *pid, start_time: 1 }).collect::<Vec<_>>();
    let tell = |state: &mut State, session: &str, pids: &[u32], said: HookEvent| {
        let hooked = HookReport { ancestors: above(pids), ..hook_report_in(Some(session), said) };
        match reply_value(&send_call_as(state, 70, &token, Request::ReportHook(hooked)), 70) {
            Some(Reply::ReportHook(reply)) => reply.delivers_by_hook,
            other => panic!("{other:?}"),
        }
    };
    assert!(tell(&mut state, "s-1", &[101, 100, 90], HookEvent::SessionStarted));
    assert!(tell(&mut state, "s-1", &[102, 100, 90], turn_started("task 3".into())));
    // In its shell, and left behind by one.
    for place in [&[201, 200, 110, 100, 90][..], &[201, 200, 90]] {
        for said in [HookEvent::SessionStarted, turn_started("nested".into()), HookEvent::TurnEnded] {
            assert!(!tell(&mut state, "s-2", place, said), "{place:?}");
        }
    }
    let agent = &state.agents[&spawn];
    assert_eq!(
        (agent.record.session.as_deref(), agent.long_poll.has_reported_turn_end),
        (Some("s-1"), false)
    );
    assert!(tell(&mut state, "s-3", &[103, 100, 90], HookEvent::SessionStarted), "/clear");
    assert!(!tell(&mut state, "s-1", &[104, 100, 90], HookEvent::TurnEnded));
}

#[test]
fn what_was_handed_over_is_told_at_the_turns_end() {
    let mut state = new_state();
    let (_, token) = send_hook(&mut state, "ann", 50);
    send_hook_event(
        &mut state,
        &token,
        HookEvent::TurnStarted { summary: "mail".into(), delivered_ids: vec![7, 8] },
    );
    send_hook_event(&mut state, &token, turn_started("its program tells the same".into()));
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
    send_call(state, client, Request::LongPoll(LongPollRequest { leads_team: Some(survey_team()) }))
}

#[test]
fn one_session_leads_a_team_until_it_leaves_or_ends() {
    let mut state = new_state();
    let effects = send_call(&mut state, 1, take_lead(7));
    assert!(matches!(effects[0], Effect::File(FileJob::SaveRoster(_))), "before the answer: {effects:?}");
    assert!(has_file_job(&effects, |job| matches!(job, FileJob::ReplyWhenSaved { client: 1, .. })));
    assert_eq!(error_kind(&send_call(&mut state, 2, take_lead(8)), 2), Some(ErrorKind::AlreadyExists));
    assert_eq!(error_kind(&send_call(&mut state, 3, take_lead(7)), 3), None, "the same session once more");
    let release = Request::SetLead(SetLeadRequest::Release(survey_team()));
    assert_eq!(error_kind(&send_call(&mut state, 4, release.clone()), 4), None);
    assert_eq!(error_kind(&send_call(&mut state, 5, release), 5), Some(ErrorKind::NotFound));
    send_call(&mut state, 6, take_lead(8));
    let died = |pid| {
        let process = Process { pid, start_time: 5 };
        CoreEvent::ProcessDied { watch: WatchId::Lead { team: survey_team(), process } }
    };
    handle_event(&mut state, died(7), NOW);
    assert_eq!(state.lead_sessions.len(), 1, "the process that led before");
    let effects = handle_event(&mut state, died(8), NOW);
    assert!(state.lead_sessions.is_empty());
    let logs_end =
        |effect: &Effect| matches!(effect, Effect::Log(event) if event.kind == EventKind::LeadSessionEnded);
    assert!(effects.iter().any(logs_end));
    assert_eq!(state.notices.pending().len(), 1);
    assert_eq!(state.teams[&survey_team()].lead_session_ended_at, Some(NOW.wall), "status says so");
    let release = Request::SetLead(SetLeadRequest::Release(survey_team()));
    assert_eq!(error_kind(&send_call(&mut state, 10, release.clone()), 10), None, "the note is taken off");
    assert_eq!(error_kind(&send_call(&mut state, 11, release), 11), Some(ErrorKind::NotFound));
    send_call(&mut state, 7, take_lead(9));
    assert_eq!(state.teams[&survey_team()].lead_session_ended_at, None);
}

#[test]
fn a_program_that_the_leading_one_runs_is_not_fed_and_another_in_its_place_is() {
    let mut state = new_state();
    send_call(&mut state, 1, take_lead(7));
    let tell = |state: &mut State, session: &str, pids: &[u32], said: HookEvent| {
        let above = pids.iter().map(|pid| Process { pid: *pid, start_time: 1 }).collect();
        let hooked = HookReport {
            ancestors: above,
            leads_team: Some(survey_team()),
            ..hook_report_in(Some(session), said)
        };
        let effects = send_call(state, 70, Request::ReportHook(hooked));
        match reply_value(&with_replies(state, effects), 70) {
            Some(Reply::ReportHook(reply)) => reply.delivers_by_hook,
            other => panic!("{other:?}"),
        }
    };
    assert!(tell(&mut state, "s-1", &[21, 20, 7], HookEvent::TurnEnded));
    assert!(!tell(&mut state, "s-2", &[41, 40, 30, 20, 7], HookEvent::SessionStarted));
    assert!(!tell(&mut state, "s-2", &[42, 40, 30, 20, 7], HookEvent::TurnEnded));
    assert_eq!(state.lead_sessions[&survey_team()].lead.session_id.as_deref(), Some("s-1"));
    assert!(tell(&mut state, "s-3", &[51, 50, 7], HookEvent::SessionStarted), "quit, and begun again");
    assert_eq!(state.lead_sessions[&survey_team()].lead.session_id.as_deref(), Some("s-3"));
}

#[test]
fn mail_for_the_lead_releases_its_hook_and_a_teammate_can_not_speak_for_it() {
    let mut state = new_state();
    let (_, token) = send_hook(&mut state, "ann", 50);
    assert_eq!(
        error_kind(&start_lead_poll(&mut state, 60), 60),
        Some(ErrorKind::NotPermitted),
        "nobody leads"
    );
    send_call(&mut state, 1, take_lead(7));
    assert_eq!(
        long_poll_end(&start_lead_poll(&mut state, 61), 61),
        Some(LongPollEnd::WorkMayWait),
        "nobody knows what came before"
    );
    assert_eq!(long_poll_end(&start_lead_poll(&mut state, 62), 62), None);
    assert_eq!(long_poll_end(&message_arrives(&mut state, "team-lead"), 62), Some(LongPollEnd::WorkMayWait));
    let theirs = Request::LongPoll(LongPollRequest { leads_team: Some(survey_team()) });
    assert_eq!(error_kind(&send_call_as(&mut state, 63, &token, theirs), 63), Some(ErrorKind::NotPermitted));
    assert_eq!(
        error_kind(&send_call_as(&mut state, 64, &token, take_lead(9)), 64),
        Some(ErrorKind::NotPermitted)
    );
}

#[test]
fn a_task_wakes_the_one_whose_hook_waits() {
    let mut state = new_state();
    let (ann, token) = send_hook(&mut state, "ann", 50);
    let (_, other) = send_hook(&mut state, "bob", 51);
    is_waiting(&mut state, 60, &token);
    send_hook_event(&mut state, &other, turn_started(String::new()));
    let task = protocol::task::Task::parse(r#"{"id":"3","subject":"s","status":"pending"}"#).unwrap();
    let seen = CoreEvent::FileJobDone(FileResult::TasksScanned {
        team: survey_team(),
        members: Vec::new(),
        result: Ok(vec![task.into()].into()),
        queries: Vec::new(),
    });
    let effects = handle_event(&mut state, seen, NOW);
    assert_eq!(long_poll_end(&effects, 60), Some(LongPollEnd::WorkMayWait));
    assert_eq!(state.agents[&ann].offered_task, TaskId::parse("3").ok());
    // It was not to be had after all: the same task does not wake it for ever.
    let effects = start_long_poll(&mut state, 61, &token);
    assert!(!has_file_job(&effects, |job| matches!(job, FileJob::ScanTasks { .. })), "{effects:?}");
}
