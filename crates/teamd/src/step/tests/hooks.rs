//! Agents with hooks, and sessions that lead.

use super::*;
use protocol::control::{
    HookEvent, HookReply, HookReport, HookSource, LeadProcess, LongPollEnd, LongPollRequest, MemberFlag,
    Process, SetLeadRequest,
};
use protocol::delivery::DeliveryPoint;

/// A running agent that is fed by its hooks.
pub(super) fn hooked(state: &mut State, name: &str, conn: u64) -> (SpawnId, String) {
    let spawn = running(state, name, conn);
    let record = &mut state.agents.get_mut(&spawn).unwrap().record;
    record.feed = Delivery::Hook;
    (spawn, record.token.clone())
}

pub(super) fn ask_as(state: &mut State, client: u64, token: &str, request: Request) -> Vec<Effect> {
    let call = Call { token: Some(token.to_owned()), ..*call(request) };
    let effects = step(state, Event::Request { client, call: Box::new(call) }, NOW);
    with_settled(state, effects)
}

fn say(state: &mut State, token: &str, said: HookEvent) -> HookReply {
    let hooked = hooked_in(Some("s-1"), said);
    match done(&ask_as(state, 70, token, Request::ReportHook(hooked)), 70) {
        Some(Reply::ReportHook(reply)) => reply.clone(),
        other => panic!("{other:?}"),
    }
}

pub(super) fn hooked_in(session: Option<&str>, said: HookEvent) -> HookReport {
    let (session, above) = (session.map(str::to_owned), vec![Process { pid: 400, start_time: 4 }]);
    HookReport {
        leads_team: None,
        session_id: session,
        ancestors: above,
        source: HookSource::Program,
        usage: None,
        event: said,
    }
}

fn began(about: String) -> HookEvent {
    HookEvent::TurnStarted { summary: about, delivered_ids: Vec::new() }
}

fn park(state: &mut State, client: u64, token: &str) -> Vec<Effect> {
    ask_as(state, client, token, Request::LongPoll(LongPollRequest { leads_team: None }))
}

fn released(effects: &[Effect], client: u64) -> Option<LongPollEnd> {
    match done(effects, client) {
        Some(Reply::LongPoll(released)) => Some(*released),
        _ => None,
    }
}

fn mail(state: &mut State, inbox: &str) -> Vec<Effect> {
    step(state, Event::InboxChanged { team: team(), inbox: inbox.to_owned(), rung: true }, NOW)
}

fn shown(state: &mut State) -> protocol::control::MemberStatus {
    match done(&ask(state, 90, Request::Status), 90) {
        Some(Reply::Status(status)) => status.teams[0].members[0].clone(),
        other => panic!("{other:?}"),
    }
}

/// The first of a life is sent to look once more: nobody knows what came before.
fn parked(state: &mut State, client: u64, token: &str) {
    say(state, token, HookEvent::TurnEnded);
    assert_eq!(released(&park(state, client, token), client), None);
}

/// Of its name and in its place there is another one by now.
#[test]
fn what_comes_of_an_earlier_life_is_nobodys_word() {
    let mut state = state();
    let (old, token) = hooked(&mut state, "ann", 50);
    parked(&mut state, 60, &token);
    step(&mut state, ended(50, ExitReport::Exit(0)), NOW);
    step(&mut state, farewelled(&old, false, None), NOW);
    step(&mut state, pane_closed(&old), NOW);
    let (new, its) = hooked(&mut state, "ann", 51);
    parked(&mut state, 61, &its);
    let before = format!("{:?}", shown(&mut state));
    let hook = Request::ReportHook(hooked_in(Some("s-1"), began("x".to_owned())));
    for request in [
        hook,
        Request::ReportActivity(Activity::Active),
        Request::LongPoll(LongPollRequest { leads_team: None }),
    ] {
        assert_eq!(kind(&ask_as(&mut state, 70, &token, request), 70), Some(ErrorKind::NotPermitted));
    }
    // Its first process, on the line of then or on another.
    step(&mut state, ended(50, ExitReport::Exit(1)), NOW);
    let effects = step(&mut state, joined(&old, 52, 50, Some(3)), NOW);
    assert!(matches!(effects[0], Effect::Tell { conn: 52, word: ToShim::Refused }), "{effects:?}");
    step(&mut state, Event::Died { spawn: old }, NOW);
    assert_eq!(format!("{:?}", shown(&mut state)), before);
    assert!(matches!(state.agents[&new].phase, Phase::Running(_)));
    say(&mut state, &its, began("x".to_owned()));
    assert_ne!(format!("{:?}", shown(&mut state)), before, "its own word counts");
}

#[test]
fn whose_mail_is_typed_has_no_hook_that_could_be_told_of() {
    let mut state = state();
    let (ann, token) = hooked(&mut state, "ann", 1);
    assert!(shown(&mut state).evidence.contains("no hook of it has said anything"));
    parked(&mut state, 71, &token);
    assert!(shown(&mut state).evidence.ends_with("; its hook waits for mail"));
    let fed_by = |state: &mut State, feed| state.agents.get_mut(&ann).unwrap().record.feed = feed;
    fed_by(&mut state, Delivery::Keys);
    assert!(shown(&mut state).evidence.ends_with("; what types its mail into its pane waits for some"));
    // Its typist is another that is heard; here the same.
    fed_by(&mut state, Delivery::Hook);
    say(&mut state, &token, began("x".to_owned()));
    assert!(shown(&mut state).evidence.ends_with("; its hook looks for mail at its end"));
    fed_by(&mut state, Delivery::Keys);
    assert!(shown(&mut state).evidence.ends_with("; its mail is typed into its pane at its end"));
}

#[test]
fn mail_releases_the_hook_that_waits_and_is_remembered_for_one_that_does_not_yet() {
    let mut state = state();
    let (_, token) = hooked(&mut state, "ann", 50);
    parked(&mut state, 60, &token);
    assert_eq!(released(&mail(&mut state, "ann"), 60), Some(LongPollEnd::WorkMayWait));
    // It looks, and meanwhile more comes.
    mail(&mut state, "ann");
    assert_eq!(released(&park(&mut state, 61, &token), 61), Some(LongPollEnd::WorkMayWait));
    assert_eq!(released(&park(&mut state, 62, &token), 62), None);
    // What came in a turn is looked for at its end anyway.
    say(&mut state, &token, began("x".into()));
    mail(&mut state, "ann");
    parked(&mut state, 63, &token);
}

#[test]
fn it_is_idle_once_its_hook_waits_and_its_turn_is_told_once() {
    let mut state = state();
    let (_, token) = hooked(&mut state, "ann", 50);
    say(&mut state, &token, began("task 3: count".into()));
    let ended = say(&mut state, &token, HookEvent::TurnEnded);
    assert_eq!(
        (ended.is_first_report, ended.task, ended.delivers_by_hook),
        (true, TaskId::parse("3").ok(), true)
    );
    assert!(!say(&mut state, &token, HookEvent::TurnEnded).is_first_report, "two hooks of one turn's end");
    assert_eq!(shown(&mut state).activity, Activity::Active);
    park(&mut state, 60, &token);
    assert_eq!(shown(&mut state).activity, Activity::Idle);
    assert!(!say(&mut state, &token, HookEvent::TurnEnded).is_first_report, "it was idle already");
}

#[test]
fn a_newer_hook_takes_the_older_ones_place_and_a_prompt_ends_the_wait() {
    let mut state = state();
    let (_, token) = hooked(&mut state, "ann", 50);
    parked(&mut state, 60, &token);
    let effects = park(&mut state, 61, &token);
    assert_eq!((released(&effects, 60), released(&effects, 61)), (Some(LongPollEnd::Superseded), None));
    let began = hooked_in(None, began("typed".into()));
    let effects = ask_as(&mut state, 70, &token, Request::ReportHook(began));
    assert_eq!(released(&effects, 61), Some(LongPollEnd::PersonTyped));
    assert_eq!(shown(&mut state).activity, Activity::Active);
}

#[test]
fn status_says_whether_mail_would_reach_it() {
    let mut state = state();
    let (_, token) = hooked(&mut state, "ann", 50);
    let reaches = |state: &mut State| shown(state).delivery_point;
    assert_eq!(reaches(&mut state), Some(DeliveryPoint::OnPull), "no hook has said a word");
    say(&mut state, &token, began(String::new()));
    assert_eq!(reaches(&mut state), Some(DeliveryPoint::TurnEnd));
    parked(&mut state, 60, &token);
    assert_eq!(reaches(&mut state), Some(DeliveryPoint::TurnEnd));
    step(&mut state, Event::Closed { conn: 60 }, NOW);
    assert_eq!(reaches(&mut state), Some(DeliveryPoint::OnPull));
    say(&mut state, &token, HookEvent::DialogShown { text: "may I?".into() });
    assert_eq!(shown(&mut state).flags, [MemberFlag::AtDialog]);
    say(&mut state, &token, began(String::new()));
    assert!(shown(&mut state).flags.is_empty());
}

#[test]
fn the_agents_end_ends_the_wait_and_nobody_elses_hook_is_heard() {
    let mut state = state();
    let (spawn, token) = hooked(&mut state, "ann", 50);
    parked(&mut state, 60, &token);
    assert_eq!(kind(&park(&mut state, 61, "other"), 61), Some(ErrorKind::NotPermitted));
    let effects = step(&mut state, ended(50, ExitReport::Exit(0)), NOW);
    assert_eq!(released(&effects, 60), Some(LongPollEnd::AgentExited));
    assert!(matches!(state.agents[&spawn].phase, Phase::Gone(_)));
    assert_eq!(kind(&park(&mut state, 62, &token), 62), Some(ErrorKind::NotPermitted));
}

#[test]
fn an_agent_that_is_fed_in_another_way_is_not_touched() {
    let mut state = state();
    let spawn = running(&mut state, "ann", 50);
    let token = state.agents[&spawn].record.token.clone();
    assert!(!say(&mut state, &token, HookEvent::TurnEnded).delivers_by_hook);
    let agent = &state.agents[&spawn];
    assert!(!agent.has_said && agent.record.session.is_none());
}

#[test]
fn a_prompt_on_the_command_line_is_told_until_a_hook_has_marked_it() {
    let mut state = state();
    let (spawn, token) = hooked(&mut state, "ann", 50);
    state.agents.get_mut(&spawn).unwrap().record.prompted = true;
    assert_eq!(say(&mut state, &token, HookEvent::SessionStarted).prompt_in_args.as_deref(), Some("hello"));
    assert_eq!(
        say(&mut state, &token, HookEvent::TurnEnded).prompt_in_args.as_deref(),
        Some("hello"),
        "nobody marked it yet"
    );
    say(&mut state, &token, HookEvent::PromptRead);
    assert_eq!(say(&mut state, &token, HookEvent::TurnEnded).prompt_in_args, None);
    assert_eq!(state.agents[&spawn].record.session.as_deref(), Some("s-1"));
}

#[test]
fn a_hook_that_tells_of_a_new_session_is_answered_once_that_is_on_the_disk() {
    let mut state = state();
    let (_, token) = hooked(&mut state, "ann", 50);
    let mut place = |is_it: fn(&Effect) -> bool| {
        let call = Call {
            token: Some(token.clone()),
            ..*call(Request::ReportHook(hooked_in(Some("s-1"), HookEvent::SessionStarted)))
        };
        let effects = step(&mut state, Event::Request { client: 70, call: Box::new(call) }, NOW);
        effects.iter().position(is_it)
    };
    assert!(place(|effect| matches!(effect, Effect::File(FileJob::Settled { client: 70, .. }))) > Some(0));
    assert_eq!(place(|effect| matches!(effect, Effect::File(FileJob::Roster(_)))), None, "nothing new");
}

#[test]
fn a_program_that_the_agents_own_runs_is_neither_fed_nor_believed() {
    let mut state = state();
    let (spawn, token) = hooked(&mut state, "ann", 50);
    let record = &mut state.agents.get_mut(&spawn).unwrap().record;
    (record.join, record.agent) = (Some(Process { pid: 90, start_time: 1 }), Some(100));
    let above =
        |pids: &[u32]| pids.iter().map(|pid| Process { pid: *pid, start_time: 1 }).collect::<Vec<_>>();
    let tell = |state: &mut State, session: &str, pids: &[u32], said: HookEvent| {
        let hooked = HookReport { ancestors: above(pids), ..hooked_in(Some(session), said) };
        match done(&ask_as(state, 70, &token, Request::ReportHook(hooked)), 70) {
            Some(Reply::ReportHook(reply)) => reply.delivers_by_hook,
            other => panic!("{other:?}"),
        }
    };
    assert!(tell(&mut state, "s-1", &[101, 100, 90], HookEvent::SessionStarted));
    assert!(tell(&mut state, "s-1", &[102, 100, 90], began("task 3".into())));
    // In its shell, and left behind by one.
    for place in [&[201, 200, 110, 100, 90][..], &[201, 200, 90]] {
        for said in [HookEvent::SessionStarted, began("nested".into()), HookEvent::TurnEnded] {
            assert!(!tell(&mut state, "s-2", place, said), "{place:?}");
        }
    }
    let agent = &state.agents[&spawn];
    assert_eq!((agent.record.session.as_deref(), agent.hooks.ended), (Some("s-1"), false));
    assert!(tell(&mut state, "s-3", &[103, 100, 90], HookEvent::SessionStarted), "/clear");
    assert!(!tell(&mut state, "s-1", &[104, 100, 90], HookEvent::TurnEnded));
}

#[test]
fn one_that_is_typed_to_is_heard_by_its_typist_alone() {
    let mut state = state();
    let (spawn, token) = hooked(&mut state, "ann", 50);
    state.agents.get_mut(&spawn).unwrap().record.feed = Delivery::Keys;
    let typist = |said| HookReport { source: HookSource::Typist, ..hooked_in(None, said) };
    ask_as(&mut state, 70, &token, Request::ReportHook(typist(HookEvent::TurnEnded)));
    park(&mut state, 60, &token);
    assert_eq!(released(&park(&mut state, 61, &token), 61), None);
    assert!(!say(&mut state, &token, began("its program's own hook".into())).delivers_by_hook);
    assert!(state.agents[&spawn].hooks.parked.is_some(), "the typist waits on");
}

#[test]
fn what_was_handed_over_is_told_at_the_turns_end() {
    let mut state = state();
    let (_, token) = hooked(&mut state, "ann", 50);
    say(&mut state, &token, HookEvent::TurnStarted { summary: "mail".into(), delivered_ids: vec![7, 8] });
    say(&mut state, &token, began("its program tells the same".into()));
    assert_eq!(say(&mut state, &token, HookEvent::TurnEnded).delivered_ids, [7, 8]);
}

fn lead(pid: u32) -> Request {
    Request::SetLead(SetLeadRequest::Take(LeadProcess {
        team: team(),
        pid,
        start_time: 5,
        pane: Some("%3".into()),
        tmux_socket: None,
        session_id: None,
    }))
}

fn park_lead(state: &mut State, client: u64) -> Vec<Effect> {
    ask(state, client, Request::LongPoll(LongPollRequest { leads_team: Some(team()) }))
}

#[test]
fn one_session_leads_a_team_until_it_leaves_or_ends() {
    let mut state = state();
    let effects = ask(&mut state, 1, lead(7));
    assert!(matches!(effects[0], Effect::File(FileJob::Roster(_))), "before the answer: {effects:?}");
    assert!(job(&effects, |job| matches!(job, FileJob::Settled { client: 1, .. })));
    assert_eq!(kind(&ask(&mut state, 2, lead(8)), 2), Some(ErrorKind::AlreadyExists));
    assert_eq!(kind(&ask(&mut state, 3, lead(7)), 3), None, "the same session once more");
    let release = Request::SetLead(SetLeadRequest::Release(team()));
    assert_eq!(kind(&ask(&mut state, 4, release.clone()), 4), None);
    assert_eq!(kind(&ask(&mut state, 5, release), 5), Some(ErrorKind::NotFound));
    ask(&mut state, 6, lead(8));
    let life = state.leads[&team()].life.clone();
    step(&mut state, Event::Died { spawn: life }, NOW);
    assert!(state.leads.is_empty());
}

#[test]
fn a_program_that_the_leading_one_runs_is_not_fed_and_another_in_its_place_is() {
    let mut state = state();
    ask(&mut state, 1, lead(7));
    let tell = |state: &mut State, session: &str, pids: &[u32], said: HookEvent| {
        let above = pids.iter().map(|pid| Process { pid: *pid, start_time: 1 }).collect();
        let hooked =
            HookReport { ancestors: above, leads_team: Some(team()), ..hooked_in(Some(session), said) };
        let effects = ask(state, 70, Request::ReportHook(hooked));
        match done(&with_settled(state, effects), 70) {
            Some(Reply::ReportHook(reply)) => reply.delivers_by_hook,
            other => panic!("{other:?}"),
        }
    };
    assert!(tell(&mut state, "s-1", &[21, 20, 7], HookEvent::TurnEnded));
    assert!(!tell(&mut state, "s-2", &[41, 40, 30, 20, 7], HookEvent::SessionStarted));
    assert!(!tell(&mut state, "s-2", &[42, 40, 30, 20, 7], HookEvent::TurnEnded));
    assert_eq!(state.leads[&team()].lead.session_id.as_deref(), Some("s-1"));
    assert!(tell(&mut state, "s-3", &[51, 50, 7], HookEvent::SessionStarted), "quit, and begun again");
    assert_eq!(state.leads[&team()].lead.session_id.as_deref(), Some("s-3"));
}

#[test]
fn mail_for_the_lead_releases_its_hook_and_a_teammate_can_not_speak_for_it() {
    let mut state = state();
    let (_, token) = hooked(&mut state, "ann", 50);
    assert_eq!(kind(&park_lead(&mut state, 60), 60), Some(ErrorKind::NotPermitted), "nobody leads");
    ask(&mut state, 1, lead(7));
    assert_eq!(
        released(&park_lead(&mut state, 61), 61),
        Some(LongPollEnd::WorkMayWait),
        "nobody knows what came before"
    );
    assert_eq!(released(&park_lead(&mut state, 62), 62), None);
    assert_eq!(released(&mail(&mut state, "team-lead"), 62), Some(LongPollEnd::WorkMayWait));
    let theirs = Request::LongPoll(LongPollRequest { leads_team: Some(team()) });
    assert_eq!(kind(&ask_as(&mut state, 63, &token, theirs), 63), Some(ErrorKind::NotPermitted));
    assert_eq!(kind(&ask_as(&mut state, 64, &token, lead(9)), 64), Some(ErrorKind::NotPermitted));
}

#[test]
fn a_task_wakes_the_one_whose_hook_waits() {
    let mut state = state();
    let (ann, token) = hooked(&mut state, "ann", 50);
    let (_, other) = hooked(&mut state, "bob", 51);
    parked(&mut state, 60, &token);
    say(&mut state, &other, began(String::new()));
    let task = protocol::task::Task::parse(r#"{"id":"3","subject":"s","status":"pending"}"#).unwrap();
    let seen = Event::Filed(FileDone::Tasks {
        team: team(),
        members: Vec::new(),
        result: Ok(vec![task.into()].into()),
        asks: Vec::new(),
    });
    let effects = step(&mut state, seen, NOW);
    assert_eq!(released(&effects, 60), Some(LongPollEnd::WorkMayWait));
    assert_eq!(state.agents[&ann].offered, TaskId::parse("3").ok());
    // It was not to be had after all: the same task does not wake it for ever.
    let effects = park(&mut state, 61, &token);
    assert!(!job(&effects, |job| matches!(job, FileJob::Tasks { .. })), "{effects:?}");
}
