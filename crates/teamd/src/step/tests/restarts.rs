//! What must hold at every crash, cancellation and reconnection in between: found by breaking it.

use super::turns::*;
use super::*;
use protocol::control::MemberAddress;
use protocol::error::ErrorReport;
use protocol::task::Task;
use protocol::turn_program::RestartPolicy;

fn comes_back(state: &mut State) -> (SpawnId, SpawnId) {
    let ann = runs(state, worker("ann", |order| order.restart = RestartPolicy::OnFailure), 50);
    ends(state, &ann, 50, ExitReport::Signal(9));
    bury(state, &ann);
    state.rescan_at = 600_000;
    let again = begun(&step(state, Event::Deadline, at(1_500)));
    (ann, again)
}

#[test]
fn the_roster_keeps_a_member_whose_next_life_is_opening() {
    let mut state = state();
    let (_, _again) = comes_back(&mut state);
    let roster = state.roster();
    assert!(!roster.resting.is_empty() || !roster.agents.is_empty(), "a crash now forgets ann for good");
}

#[test]
fn a_crash_while_the_next_life_is_registered() {
    let mut state = state();
    let (_, again) = comes_back(&mut state);
    step(&mut state, opened(&again, 60), NOW);
    step(&mut state, joined(&again, 60, 60, None), NOW);
    let roster: Roster = serde_json::from_value(serde_json::to_value(state.roster()).unwrap()).unwrap();
    assert_eq!(roster.agents.len(), 1);
    let setting = state.setting.clone();
    let mut state = State::new(setting, roster, Tale::default());
    crate::step::restart(&mut state, NOW);
    step(&mut state, joined(&again, 3, 60, None), NOW);
    bury(&mut state, &again);
    assert!(!state.resting.is_empty(), "ann is gone for good");
}

#[test]
fn a_kill_while_the_next_life_starts() {
    for request in [
        Request::Kill(MemberSelection { team: team(), names: vec!["ann".into()] }),
        Request::Shutdown(ShutdownMembersRequest {
            targets: MemberSelection { team: team(), names: vec!["ann".into()] },
            reason: None,
            grace_ms: 1_000,
            force: true,
            no_wait: false,
        }),
    ] {
        let mut state = state();
        comes_back(&mut state);
        let effects = ask(&mut state, 9, request);
        assert!(done(&effects, 9).is_none(), "a daemon that was killed now would start it again");
        let effects = with_settled(&mut state, effects);
        assert!(matches!(done(&effects, 9), Some(Reply::Exits(_))), "{effects:?}");
        assert!(state.resting.is_empty(), "told that it ended, and it comes back");
        let written =
            matches!(&effects[0], Effect::File(FileJob::Roster(roster)) if roster.resting.is_empty());
        assert!(written, "the next daemon starts it: {effects:?}");
    }
}

#[test]
fn who_rests_when_teamd_goes_down_is_no_return() {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |order| order.restart = RestartPolicy::OnFailure), 50);
    ends(&mut state, &ann, 50, ExitReport::Exit(1));
    bury(&mut state, &ann);
    assert!(state.teams[&team()].past[0].respawns_at.is_some());
    ask(&mut state, 9, Request::StopDaemon);
    assert!(state.resting.is_empty());
    assert_eq!(state.teams[&team()].past[0].respawns_at, None, "status says that it comes back");
}

/// Killed between the green light and the agent's first word.
#[test]
fn one_whose_next_life_was_cut_short_with_teamd_is_shown_until_it_begins() {
    let mut before = state();
    let (_, again) = comes_back(&mut before);
    for event in [opened(&again, 60), joined(&again, 60, 60, None), registered(&again)] {
        step(&mut before, event, NOW);
    }
    let roster = serde_json::from_value(serde_json::to_value(before.roster()).unwrap()).unwrap();
    let mut state = State::new(before.setting.clone(), roster, Tale::default());
    crate::step::restart(&mut state, NOW);
    step(&mut state, joined(&again, 3, 60, None), NOW);
    assert_eq!(state.resting.len(), 1);
    assert!(
        state.teams[&team()].past.iter().any(|past| past.respawns_at.is_some()),
        "it is nowhere in status"
    );
}

#[test]
fn a_cancelled_rest_is_no_return() {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |order| order.restart = RestartPolicy::OnFailure), 50);
    sees(&mut state, vec![task(1, "in_progress", r#","owner":"ann""#)]);
    ends(&mut state, &ann, 50, ExitReport::Exit(1));
    bury(&mut state, &ann);
    let hers = shared(vec![task(1, "in_progress", r#","owner":"ann""#)]);
    let looked = FileDone::Tasks { team: team(), members: vec![], result: Ok(hers), asks: Vec::new() };
    step(&mut state, Event::Filed(looked), NOW);
    let effects =
        ask(&mut state, 9, Request::Kill(MemberSelection { team: team(), names: vec!["ann".into()] }));
    let looks = effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::Tasks { .. })));
    assert!(state.resting.is_empty());
    assert_eq!(state.teams[&team()].past[0].respawns_at, None, "status says that it comes back");
    assert!(looks, "nobody is told that task 1 is left");
}

#[test]
fn a_rest_between_failed_starts_is_shown() {
    let mut state = state();
    let (_, again) = comes_back(&mut state);
    let result = Err(protocol::error::ErrorReport::new(ErrorKind::Io, "no"));
    step(&mut state, Event::Paned(PaneDone::Opened { spawn: again, result }), NOW);
    assert_eq!(state.resting.len(), 1);
    assert!(!state.teams[&team()].past.is_empty(), "a member that rests is nowhere in status");
}

#[test]
fn where_no_number_fits_behind_a_name_a_shorter_one_is_asked_for() {
    let mut state = state();
    let longest = "a".repeat(64);
    runs(&mut state, worker(&longest, |_| ()), 50);
    let effects = ask(&mut state, 9, worker(&longest, |order| order.unique = true));
    let Some(protocol::control::Response::Failed(fault)) = reply(&effects, 9) else { panic!("{effects:?}") };
    assert!(fault.help.as_ref().unwrap().starts_with("take a shorter name"), "{fault:?}");
}

/// Its lead was told that it comes back. The pane of the last start opens after all, and is closed.
#[test]
fn a_start_that_fails_once_too_often_is_its_leads_news() {
    let mut state = state();
    let (_, mut again) = comes_back(&mut state);
    let ends = |effects: &[Effect]| {
        let end = |effect: &Effect| match effect {
            Effect::File(FileJob::Farewell { record }) => record.ended.clone(),
            _ => None,
        };
        effects.iter().filter_map(end).collect::<Vec<_>>()
    };
    for failure in 2..6 {
        let result = Err(ErrorReport::new(ErrorKind::Io, "no room"));
        let failed = Event::Paned(PaneDone::Opened { spawn: again, result });
        assert!(ends(&step(&mut state, failed, at(20_000 * failure))).is_empty());
        again = begun(&step(&mut state, Event::Deadline, at(20_000 * (failure + 1))));
    }
    let effects = step(&mut state, Event::Deadline, at(500_000));
    let [end] = &ends(&effects)[..] else { panic!("{effects:?}") };
    assert!(end.then.as_ref().unwrap().contains("not started again: it failed 6 times"), "{end:?}");
    let closed = step(&mut state, opened(&again, 40), at(500_001));
    assert!(closed.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::Close { .. }))), "{closed:?}");
    bury(&mut state, &again);
}

#[test]
fn an_untaken_offer_is_looked_at_again_at_the_rescan() {
    let mut state = state();
    runs(&mut state, worker("ann", |_| ()), 50);
    runs(&mut state, worker("bob", |_| ()), 51);
    says(&mut state, 50, turn(Activity::Idle, 1));
    says(&mut state, 51, turn(Activity::Idle, 1));
    sees(&mut state, vec![task(1, "pending", "")]);
    let looked = Event::Filed(FileDone::Tasks {
        team: team(),
        members: vec![],
        result: Ok(shared(vec![task(1, "pending", "")])),
        asks: Vec::new(),
    });
    step(&mut state, looked, NOW);
    assert_eq!(state.teams[&team()].looking, crate::state::Look::Rest);
    state.rescan_at = 0;
    let effects = step(&mut state, Event::Deadline, at(60_000));
    let looks = effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::Tasks { .. })));
    assert!(looks, "the offer is taken back, and nobody looks: {effects:?}");
}

#[test]
fn a_failed_look_is_repeated_at_the_rescan() {
    let mut state = state();
    step(&mut state, Event::TasksChanged { team: team(), task: TaskId::parse("1").unwrap() }, NOW);
    let fault = protocol::error::ErrorReport::new(ErrorKind::Io, "EMFILE");
    step(
        &mut state,
        Event::Filed(FileDone::Tasks { team: team(), members: vec![], result: Err(fault), asks: Vec::new() }),
        NOW,
    );
    let effects = step(&mut state, Event::Deadline, at(60_000));
    let looks = effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::Tasks { .. })));
    assert!(looks, "{effects:?}");
}

#[test]
fn an_interrupt_of_one_that_starts_is_answered() {
    let mut state = state();
    let effects = ask(&mut state, 1, worker("ann", |_| ()));
    let ann = begun(&effects);
    step(&mut state, joined(&ann, 50, 50, None), NOW);
    let who = MemberAddress { team: team(), name: "ann".into() };
    let mut all = ask(&mut state, 9, Request::Interrupt(who));
    let result = Err(protocol::error::ErrorReport::new(ErrorKind::Io, "no"));
    all.extend(step(&mut state, Event::Paned(PaneDone::Opened { spawn: ann, result }), NOW));
    all.extend(step(&mut state, Event::Closed { conn: 50 }, NOW));
    all.extend(step(&mut state, Event::Deadline, at(600_000)));
    assert!(reply(&all, 9).is_some(), "never answered");
}

#[test]
fn a_foreign_owner_is_not_gone() {
    let mut state = state();
    let members = vec![AgentName::new_unchecked("claude-mate")];
    let tasks = shared(vec![task(1, "in_progress", r#","owner":"claude-mate""#)]);
    let looked = FileDone::Tasks { team: team(), members, result: Ok(tasks), asks: Vec::new() };
    let effects = step(&mut state, Event::Filed(looked), NOW);
    assert!(!logged(&effects).contains(&"task_left".to_owned()), "{:?}", logged(&effects));
}

#[test]
fn a_stopping_member_that_reconnects_says_its_turn() {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |_| ()), 50);
    let targets = MemberSelection { team: team(), names: vec!["ann".into()] };
    ask(
        &mut state,
        9,
        Request::Shutdown(ShutdownMembersRequest {
            targets,
            reason: None,
            grace_ms: 60_000,
            force: false,
            no_wait: false,
        }),
    );
    let roster = state.roster();
    let mut state = State::new(state.setting.clone(), roster, Tale::default());
    crate::step::restart(&mut state, NOW);
    let hello = protocol::control::ShimHello {
        spawn_id: ann.as_str().to_owned(),
        agent_pid: Some(50),
        turn_status: Some(turn(Activity::Active, 4)),
    };
    let process = Process { pid: 50, start_time: 5 };
    let effects = step(&mut state, Event::Joined { conn: 3, hello, process }, NOW);
    assert!(state.agents[&ann].turn.is_some(), "its turn is forgotten");
    assert!(!woken(&effects).is_empty(), "not woken");
}

#[test]
fn delete_while_a_member_rests() {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |order| order.restart = RestartPolicy::OnFailure), 50);
    ends(&mut state, &ann, 50, ExitReport::Exit(1));
    bury(&mut state, &ann);
    let effects = ask(&mut state, 9, delete(false));
    assert_eq!(kind(&effects, 9), Some(ErrorKind::Refused), "{effects:?}");
}

#[test]
fn unique_while_the_name_rests() {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |order| order.restart = RestartPolicy::OnFailure), 50);
    ends(&mut state, &ann, 50, ExitReport::Exit(1));
    bury(&mut state, &ann);
    ask(&mut state, 9, worker("ann", |order| order.unique = true));
    assert!(!state.resting.is_empty(), "--unique took the name of a member that is to come back");
}

#[test]
fn a_restarted_daemon_tells_no_turn_twice() {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |_| ()), 50);
    says(&mut state, 50, turn(Activity::Idle, 4));
    let mut state = State::new(state.setting.clone(), state.roster(), Tale::default());
    crate::step::restart(&mut state, NOW);
    let hello = protocol::control::ShimHello {
        spawn_id: ann.as_str().to_owned(),
        agent_pid: Some(50),
        turn_status: Some(turn(Activity::Idle, 4)),
    };
    let process = Process { pid: 50, start_time: 5 };
    let effects = step(&mut state, Event::Joined { conn: 3, hello, process }, NOW);
    assert_eq!(logged(&effects), ["member_adopted"]);
}

#[test]
fn an_offer_to_one_who_does_something_else_goes_on() {
    let mut state = state();
    runs(&mut state, worker("ann", |_| ()), 50);
    runs(&mut state, worker("bob", |_| ()), 51);
    let look = |state: &mut State, tasks: Vec<Task>| {
        let looked = Event::Filed(FileDone::Tasks {
            team: team(),
            members: vec![],
            result: Ok(shared(tasks)),
            asks: Vec::new(),
        });
        step(state, looked, NOW)
    };
    says(&mut state, 50, turn(Activity::Idle, 1));
    says(&mut state, 51, turn(Activity::Idle, 1));
    look(&mut state, vec![]);
    look(&mut state, vec![]);
    step(&mut state, Event::TasksChanged { team: team(), task: TaskId::parse("1").unwrap() }, NOW);
    let offered = woken(&look(&mut state, vec![task(1, "pending", "")]));
    assert_eq!(offered.len(), 1);
    let conn = if state.agents[&offered[0]].record.name.as_str() == "ann" { 50 } else { 51 };
    // A message was there too, and comes first.
    let mut now = turn(Activity::Active, 2);
    now.summary = "message from team-lead".into();
    let mut effects = says(&mut state, conn, now);
    if effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::Tasks { .. }))) {
        effects = look(&mut state, vec![task(1, "pending", "")]);
    }
    assert_eq!(
        woken(&effects).len(),
        1,
        "the other is idle, the task available, and nobody looks: {effects:?}"
    );
}

#[test]
fn a_start_that_nobody_saw_through_is_no_life_to_be_followed_by_another() {
    for agent in [None, Some(99)] {
        let mut state = state();
        let ann = begun(&ask(&mut state, 1, worker("ann", |order| order.restart = RestartPolicy::OnFailure)));
        step(&mut state, opened(&ann, 60), NOW);
        step(&mut state, joined(&ann, 60, 60, None), NOW);
        if agent.is_some() {
            step(&mut state, registered(&ann), NOW);
            step(&mut state, started(60), NOW);
        }
        let roster: Roster = serde_json::from_value(serde_json::to_value(state.roster()).unwrap()).unwrap();
        let mut state = State::new(state.setting.clone(), roster, Tale::default());
        crate::step::restart(&mut state, NOW);
        step(&mut state, Event::Died { spawn: ann.clone() }, NOW);
        step(&mut state, Event::Filed(FileDone::LastWords { spawn: ann.clone(), ended: None }), NOW);
        assert_eq!(state.resting.is_empty(), agent.is_none(), "{agent:?}");
    }
}

#[test]
fn a_start_that_a_new_daemon_hears_of_is_on_the_disk() {
    let mut state = state();
    let ann = begun(&ask(&mut state, 1, worker("ann", |_| {})));
    step(&mut state, opened(&ann, 60), NOW);
    step(&mut state, joined(&ann, 60, 60, None), NOW);
    let roster: Roster = serde_json::from_value(serde_json::to_value(state.roster()).unwrap()).unwrap();
    let mut state = State::new(state.setting.clone(), roster, Tale::default());
    crate::step::restart(&mut state, NOW);
    let effects = step(&mut state, joined(&ann, 3, 60, Some(99)), NOW);
    assert!(job(
        &effects,
        |job| matches!(job, FileJob::Roster(roster) if roster.agents[0].agent == Some(99))
    ));
}
