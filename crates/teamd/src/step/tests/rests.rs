//! Members that are put to rest, and brought back on another day.

use super::turns::*;
use super::*;
use protocol::control::{CreateTeamReply, PastMember, ResumeMembersRequest};
use protocol::error::ErrorReport;
use protocol::turn_program::RestartPolicy;

fn tomorrow(before: &State) -> State {
    let roster = serde_json::from_value(serde_json::to_value(before.roster()).unwrap()).unwrap();
    let mut state = State::new(before.setting.clone(), roster, Tale::default());
    crate::step::restart(&mut state, NOW);
    state
}

/// Ann lives, and bob is between two lives when the daemon goes down.
fn put_to_rest() -> State {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |_| {}), 50);
    let bob = runs(&mut state, worker("bob", |order| order.restart = RestartPolicy::OnFailure), 51);
    ends(&mut state, &bob, 51, ExitReport::Exit(1));
    bury(&mut state, &bob);
    ask(&mut state, 9, Request::StopDaemonAndSuspend);
    ends(&mut state, &ann, 50, ExitReport::Exit(0));
    bury(&mut state, &ann);
    state
}

fn past(state: &State) -> Vec<(String, bool, bool)> {
    let past = state.teams[&team()].past.iter();
    past.map(|past| (past.name.to_string(), past.is_suspended, past.respawns_at.is_some())).collect()
}

#[test]
fn whoever_is_put_to_rest_waits_for_the_next_daemon_and_for_somebody_who_asks() {
    let before = put_to_rest();
    let mut state = tomorrow(&before);
    let rests = |name: &str| (name.to_owned(), true, false);
    assert_eq!(past(&state), [rests("bob"), rests("ann")]);
    let effects = step(&mut state, Event::Deadline, at(3_600_000));
    assert!(
        !effects.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::Open { .. }))),
        "{effects:?}"
    );
    let effects = ask(&mut state, 9, Request::ResumeMembers(ResumeMembersRequest { team: None }));
    let Some(Reply::ResumeMembers(back)) = done(&effects, 9) else { panic!("{effects:?}") };
    assert_eq!(back.members[&team()].len(), 2);
    let opened = effects.iter().filter(|effect| matches!(effect, Effect::Pane(PaneJob::Open { .. })));
    assert_eq!(opened.count(), 2);
    assert!(state.resting.is_empty());
}

/// Cat's pane is being made, and dan has the green light, when the daemon goes down.
#[test]
fn who_asks_for_their_rest_is_told_who_rests_and_who_had_no_life_to_go_on_with() {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |_| {}), 50);
    let bob = runs(&mut state, worker("bob", |order| order.restart = RestartPolicy::OnFailure), 51);
    ends(&mut state, &bob, 51, ExitReport::Exit(1));
    bury(&mut state, &bob);
    begun(&ask(&mut state, 1, worker("cat", |_| {})));
    let dan = begun(&ask(&mut state, 2, worker("dan", |_| {})));
    step(&mut state, opened(&dan, 60), NOW);
    step(&mut state, joined(&dan, 60, 60, None), NOW);
    step(&mut state, registered(&dan), NOW);
    ask(&mut state, 9, Request::StopDaemonAndSuspend);
    ends(&mut state, &dan, 60, ExitReport::Signal(15));
    bury(&mut state, &dan);
    ends(&mut state, &ann, 50, ExitReport::Exit(0));
    let effects = bury(&mut state, &ann);
    let effects = with_settled(&mut state, effects);
    let Some(Reply::Exits(reply)) = done(&effects, 9) else { panic!("{effects:?}") };
    let told: Vec<_> = reply
        .exits
        .iter()
        .map(|agent| (agent.name.as_str(), agent.is_suspended, agent.description.as_str()))
        .collect();
    let cut_short = "stopped while it started";
    let wanted = [
        ("bob", true, "it was between two lives"),
        ("cat", false, cut_short),
        ("dan", false, cut_short),
        ("ann", true, "exit 0"),
    ];
    assert_eq!(told, wanted);
}

#[test]
fn another_day_without_them_lets_them_rest_on() {
    let mut state = tomorrow(&put_to_rest());
    ask(&mut state, 9, Request::StopDaemon);
    assert_eq!(tomorrow(&state).resting.len(), 2);
}

#[test]
fn a_rest_ends_with_the_name_by_kill_and_with_the_team() {
    let mut state = tomorrow(&put_to_rest());
    ask(&mut state, 8, Request::Kill(MemberSelection { team: team(), names: vec!["ann".into()] }));
    assert_eq!(past(&state)[1], ("ann".to_owned(), false, false));
    runs(&mut state, worker("bob", |_| {}), 60);
    assert!(state.resting.is_empty(), "bob would come back beside the new one");
}

#[test]
fn who_could_not_be_brought_back_rests_on() {
    let mut state = tomorrow(&put_to_rest());
    ask(&mut state, 9, Request::ResumeMembers(ResumeMembersRequest { team: Some(team()) }));
    let ann = state.members(&team()).into_iter().find(|agent| agent.record.name.as_str() == "ann");
    let life = ann.unwrap().record.spawn.clone();
    let refused = Err(ErrorReport::new(ErrorKind::MissingPath, "cannot open a pane"));
    step(&mut state, Event::Paned(PaneDone::Opened { spawn: life, result: refused }), NOW);
    assert_eq!(state.resting.iter().filter(|resting| resting.put_away).count(), 1);
    assert!(past(&state).iter().any(|(_, rests, _)| *rests), "{:?}", past(&state));
}

/// No process of before is alive, whoever has its number.
#[test]
fn after_a_start_of_the_machine_whoever_ran_rests_but_for_those_that_are_started_again() {
    let mut before = state();
    let ann = runs(&mut before, worker("ann", |_| {}), 50);
    let bob = runs(&mut before, worker("bob", |order| order.restart = RestartPolicy::OnFailure), 51);
    let mut roster = before.roster();
    roster.boot = Some("yesterday".into());
    roster.disown_before(Some("today".into()));
    let mut state = State::new(before.setting.clone(), roster, Tale::default());
    crate::step::restart(&mut state, NOW);
    for life in [&ann, &bob] {
        step(&mut state, Event::Died { spawn: life.clone() }, NOW);
        step(&mut state, Event::Filed(FileDone::LastWords { spawn: life.clone(), ended: None }), NOW);
        bury(&mut state, life);
    }
    let mut past = past(&state);
    past.sort();
    assert_eq!(past, [("ann".to_owned(), true, false), ("bob".to_owned(), false, true)]);
}

fn asked_to_rest() -> (State, SpawnId) {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |order| drop(order.env.insert("KEY".into(), "x".into()))), 50);
    ask(&mut state, 9, Request::StopDaemonAndSuspend);
    (state, ann)
}

#[test]
fn who_was_asked_to_rest_does_whoever_hears_of_its_end() {
    let (before, ann) = asked_to_rest();
    let mut state = tomorrow(&before);
    step(&mut state, joined(&ann, 3, 50, Some(50)), NOW);
    ends(&mut state, &ann, 3, ExitReport::Exit(0));
    assert!(state.resting[0].put_away, "it was lost with the daemon that asked");
}

#[test]
fn a_kill_is_for_good_whatever_was_asked_before() {
    let (mut state, ann) = asked_to_rest();
    ask(&mut state, 10, Request::Kill(MemberSelection { team: team(), names: vec!["ann".into()] }));
    ends(&mut state, &ann, 50, ExitReport::Signal(15));
    assert!(state.resting.is_empty(), "it would be brought back");
}

#[test]
fn it_comes_back_with_its_environment_to_the_daemon_that_put_it_to_rest() {
    let (mut state, ann) = asked_to_rest();
    ends(&mut state, &ann, 50, ExitReport::Exit(0));
    assert_eq!(state.resting[0].comeback.order.env["KEY"], "x");
}

#[test]
fn a_team_that_is_made_where_another_was_removed_has_none_of_its_rests() {
    let (mut state, ann) = asked_to_rest();
    ends(&mut state, &ann, 50, ExitReport::Exit(0));
    bury(&mut state, &ann);
    let made = CreateTeamReply {
        team_name: team(),
        team_file_path: "/r".into(),
        lead_agent_id: "team-lead@survey".into(),
    };
    let created = FileDone::Created { client: 8, policy: Default::default(), result: Ok(made) };
    step(&mut state, Event::Filed(created), NOW);
    assert!(state.resting.is_empty());
}

#[test]
fn who_rests_is_not_forgotten_however_many_have_ended_since() {
    let (mut state, ann) = asked_to_rest();
    ends(&mut state, &ann, 50, ExitReport::Exit(0));
    for n in 0..100 {
        let name = AgentName::parse(&format!("a{n}")).unwrap();
        let how = String::new();
        let past = PastMember {
            name,
            outcome: "failed".into(),
            description: how,
            ended_at: 1,
            respawns_at: None,
            is_suspended: false,
            usage: protocol::usage::Usage::default(),
        };
        state.remember_past(&team(), past);
    }
    assert_eq!(past(&state)[0], ("ann".to_owned(), true, false));
    assert_eq!(past(&state).len(), 33);
}
