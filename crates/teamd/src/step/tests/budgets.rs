//! What a team may use up, and what follows when it has.

use super::turns::*;
use super::*;
use crate::files::ShutdownAnswer;
use protocol::control::{HookEvent, HookReport, ResumeMembersRequest, SetPolicyRequest, TurnStatus};
use protocol::event::EventKind;
use protocol::policy::Policy;
use protocol::usage::{Usage, UsageReport};

fn with(policy: Policy) -> State {
    let mut state = state();
    let known = state.teams.get_mut(&team()).unwrap();
    (known.policy, known.spent.since) = (policy, NOW.wall);
    state
}

fn turns(state: &mut State, conn: u64, number: u64) -> Vec<Effect> {
    let said =
        |activity, number| Event::JoinSaid { conn, said: FromShim::TurnStatus(turn(activity, number)) };
    step(state, said(Activity::Idle, number - 1), NOW);
    step(state, said(Activity::Active, number), NOW)
}

fn is_spent(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| match effect {
        Effect::Log(event) => matches!(event.kind, EventKind::BudgetExhausted { .. }),
        _ => false,
    })
}

fn asked(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::File(FileJob::Ask { .. }))).count()
}

fn written(state: &mut State, policy: Policy) {
    let order = SetPolicyRequest { team: team(), policy };
    step(state, Event::Filed(FileDone::PolicySet { client: 9, order, result: Ok(()) }), NOW);
}

#[test]
fn with_its_last_turn_its_members_are_asked_to_end_once_and_rest() {
    let mut state = with(Policy { max_turns: Some(3), ..Policy::default() });
    let ann = runs(&mut state, worker("ann", |_| {}), 50);
    runs(&mut state, worker("bob", |_| {}), 51);
    assert!(!is_spent(&turns(&mut state, 50, 1)) && !is_spent(&turns(&mut state, 51, 1)));
    let effects = turns(&mut state, 50, 2);
    assert!(is_spent(&effects), "{effects:?}");
    assert_eq!(asked(&effects), 2);
    assert!(!is_spent(&turns(&mut state, 51, 2)), "it is told once");
    assert_eq!(kind(&ask(&mut state, 8, worker("cat", |_| {})), 8), Some(ErrorKind::Refused));
    ends(&mut state, &ann, 50, ExitReport::Exit(0));
    bury(&mut state, &ann);
    assert!(state.resting[0].put_away, "ann is to be had back");
    let back = Request::ResumeMembers(ResumeMembersRequest { team: Some(team()) });
    assert_eq!(kind(&ask(&mut state, 9, back.clone()), 9), Some(ErrorKind::Refused));
    written(&mut state, Policy { max_turns: Some(100), ..Policy::default() });
    let effects = ask(&mut state, 10, back);
    assert!(
        matches!(done(&effects, 10), Some(Reply::ResumeMembers(back)) if back.members[&team()].len() == 1)
    );
}

#[test]
fn its_time_is_over_at_its_moment_for_the_next_daemon_too() {
    let mut state = with(Policy { max_time_ms: Some(5_000), ..Policy::default() });
    runs(&mut state, worker("ann", |_| {}), 50);
    written(&mut state, Policy { max_time_ms: Some(8_000), ..Policy::default() });
    state.rescan_at = u64::MAX;
    let at = |ms| Now { wall: NOW.wall + ms, mono: NOW.mono + ms };
    assert_eq!(crate::step::next_deadline(&state), NOW.mono + 8_000);
    assert!(!is_spent(&step(&mut state, Event::Deadline, at(7_999))));
    let before = state.roster();
    assert!(is_spent(&step(&mut state, Event::Deadline, at(8_000))));
    assert!(crate::step::next_deadline(&state) > NOW.mono + 8_000, "it would wake for ever");
    let roster = serde_json::from_value(serde_json::to_value(state.roster()).unwrap()).unwrap();
    let mut next = State::new(state.setting.clone(), roster, Tale::default());
    next.teams.get_mut(&team()).unwrap().policy = Policy { max_time_ms: Some(8_000), ..Policy::default() };
    let effects = crate::step::restart(&mut next, at(9_000));
    assert!(!is_spent(&effects), "it was told");
    let roster = serde_json::from_value(serde_json::to_value(before).unwrap()).unwrap();
    let mut late = State::new(state.setting.clone(), roster, Tale::default());
    late.teams.get_mut(&team()).unwrap().policy = Policy { max_time_ms: Some(8_000), ..Policy::default() };
    let effects = crate::step::restart(&mut late, at(9_000));
    assert_eq!((is_spent(&effects), asked(&effects)), (true, 1), "over while no daemon looked");
    let [Effect::File(FileJob::Roster(roster)), ..] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(roster.agents[0].asked.len(), 1, "the roster goes ahead of the question");
    assert_eq!(kind(&ask(&mut next, 8, worker("cat", |_| {})), 8), Some(ErrorKind::Refused));
}

#[test]
fn while_the_machine_sleeps_its_time_goes_on() {
    let mut state = with(Policy::default());
    runs(&mut state, worker("ann", |_| {}), 50);
    written(&mut state, Policy { max_time_ms: Some(3_600_000), ..Policy::default() });
    let awake = |mono: u64, slept: u64| Now { wall: NOW.wall + mono + slept, mono: NOW.mono + mono };
    assert!(!is_spent(&step(&mut state, Event::Deadline, awake(40_000, 0))));
    assert!(!is_spent(&step(&mut state, Event::Deadline, awake(80_000, 3_000_000))));
    let effects = step(&mut state, Event::Deadline, awake(120_000, 3_600_000));
    assert_eq!((is_spent(&effects), asked(&effects)), (true, 1));
}

#[test]
fn whoever_was_killed_just_then_does_not_rest() {
    let mut state = with(Policy { max_turns: Some(1), ..Policy::default() });
    let ann = runs(&mut state, worker("ann", |_| {}), 50);
    let bob = runs(&mut state, worker("bob", |_| {}), 51);
    ask(&mut state, 9, Request::Kill(MemberSelection { team: team(), names: vec!["ann".into()] }));
    assert!(is_spent(&turns(&mut state, 51, 1)));
    ends(&mut state, &ann, 50, ExitReport::Signal(15));
    assert!(state.resting.is_empty(), "up --resume would bring it back");
    ends(&mut state, &bob, 51, ExitReport::Exit(0));
    assert_eq!(state.resting.len(), 1);
}

/// Whoever failed just then comes back with all others alone.
#[test]
fn between_two_lives_one_rests_with_the_others() {
    let mut state = with(Policy { max_turns: Some(1), ..Policy::default() });
    let ann = runs(
        &mut state,
        worker("ann", |order| order.restart = protocol::turn_program::RestartPolicy::OnFailure),
        50,
    );
    runs(&mut state, worker("bob", |_| {}), 51);
    ends(&mut state, &ann, 50, ExitReport::Exit(1));
    bury(&mut state, &ann);
    assert!(is_spent(&turns(&mut state, 51, 1)));
    let effects = step(&mut state, Event::Deadline, at(10_000));
    assert!(
        !effects.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::Open { .. }))),
        "{effects:?}"
    );
    assert!(state.resting[0].put_away);
}

#[test]
fn nobody_says_no_to_the_end_of_a_budget() {
    let mut state = with(Policy { max_turns: Some(1), ..Policy::default() });
    let ann = runs(&mut state, worker("ann", |_| {}), 50);
    let effects = turns(&mut state, 50, 1);
    let request = effects.iter().find_map(|effect| match effect {
        Effect::File(FileJob::Ask { request, .. }) => Some(request.clone()),
        _ => None,
    });
    let from = AgentName::new_unchecked("ann");
    let no = ShutdownAnswer { from, request: request.unwrap(), rejected: Some("not yet".into()) };
    let effects =
        step(&mut state, Event::Filed(FileDone::Answers { team: team(), answers: Ok(vec![no]) }), NOW);
    assert!(
        effects.iter().any(|effect| matches!(effect, Effect::Tell { word: ToShim::End { .. }, .. })),
        "{effects:?}"
    );
    // More that comes too late lets it rest all the same.
    written(&mut state, Policy::default());
    ends(&mut state, &ann, 50, ExitReport::Signal(15));
    assert!(state.resting[0].put_away);
}

fn used(tokens: u64) -> Usage {
    Usage { tokens, microdollars: tokens * 10 }
}

/// A turn's end, with what its program has told so far.
fn told(state: &mut State, conn: u64, session: Option<&str>, tokens: u64) -> Vec<Effect> {
    let report = UsageReport { session_id: session.map(str::to_owned), usage: used(tokens) };
    let said = FromShim::TurnStatus(TurnStatus { usage: Some(report), ..turn(Activity::Idle, 1) });
    step(state, Event::JoinSaid { conn, said }, NOW)
}

fn spent(state: &State) -> u64 {
    state.teams[&team()].spent.used.tokens
}

#[test]
fn what_programs_tell_is_counted_once_and_ends_the_budget() {
    let mut state = with(Policy { max_tokens: Some(1_000), ..Policy::default() });
    let ann = runs(&mut state, worker("ann", |_| {}), 50);
    runs(&mut state, worker("bob", |_| {}), 51);
    for (tokens, all) in [(300, 300), (300, 300), (450, 450)] {
        assert!(!is_spent(&told(&mut state, 50, None, tokens)));
        assert_eq!(spent(&state), all, "a join that comes back tells the same again");
    }
    assert_eq!(state.agents[&ann].record.used(), used(450));
    assert!(!is_spent(&told(&mut state, 51, Some("s"), 549)));
    let effects = told(&mut state, 51, Some("s"), 551);
    assert!(is_spent(&effects) && asked(&effects) == 2, "{effects:?}");
    let refused = ask(&mut state, 8, worker("cat", |_| {}));
    assert_eq!(kind(&refused, 8), Some(ErrorKind::Refused));
    let why = state.teams[&team()].spent.why.clone();
    assert_eq!(why.as_deref(), Some("its budget of 1.0k tokens is used up"));
    written(&mut state, Policy { max_microdollars: Some(10_010), ..Policy::default() });
    assert_eq!(state.teams[&team()].spent.why.as_deref(), Some("its budget of $0.02 is used up"));
}

/// A life counts from its own beginning, a session from that of the first life that had it.
#[test]
fn the_next_life_and_the_next_daemon_go_on_with_the_count() {
    for (session, more, all) in [(None, 300, 900), (None, 700, 1_300), (Some("s"), 700, 700)] {
        let mut state = with(Policy::default());
        let restart = protocol::turn_program::RestartPolicy::OnFailure;
        let ann = runs(&mut state, worker("ann", |order| order.restart = restart), 50);
        told(&mut state, 50, session, 600);
        ends(&mut state, &ann, 50, ExitReport::Exit(1));
        bury(&mut state, &ann);
        assert_eq!(state.teams[&team()].past[0].usage, used(600));
        let roster = serde_json::from_value(serde_json::to_value(state.roster()).unwrap()).unwrap();
        let mut next = State::new(state.setting.clone(), roster, Tale::default());
        crate::step::restart(&mut next, NOW);
        let ann = begun(&step(&mut next, Event::Deadline, at(10_000)));
        start(&mut next, &ann, 52);
        told(&mut next, 52, session, more);
        assert_eq!((spent(&next), next.agents[&ann].record.used()), (all, used(all)), "{session:?} {more}");
    }
}

#[test]
fn what_is_told_again_in_part_or_of_an_earlier_session_counts_nothing() {
    let mut state = with(Policy::default());
    runs(&mut state, worker("ann", |_| {}), 50);
    for (session, tokens, all) in
        [("a", 600, 600), ("a", 0, 600), ("a", 700, 700), ("b", 10, 710), ("a", 650, 710), ("a", 710, 720)]
    {
        told(&mut state, 50, Some(session), tokens);
        assert_eq!(spent(&state), all, "{session} {tokens}");
    }
}

#[test]
fn hooks_tell_at_a_turns_end() {
    let mut state = with(Policy { max_microdollars: Some(5_000), ..Policy::default() });
    let (ann, token) = super::hooks::hooked(&mut state, "ann", 50);
    let ended = |tokens| HookReport {
        usage: Some(UsageReport { session_id: Some("s".to_owned()), usage: used(tokens) }),
        ..super::hooks::hooked_in(Some("s"), HookEvent::TurnEnded)
    };
    let mut hook = |tokens| super::hooks::ask_as(&mut state, 70, &token, Request::ReportHook(ended(tokens)));
    hook(400);
    let effects = hook(500);
    assert!(is_spent(&effects), "{effects:?}");
    assert_eq!(state.agents[&ann].record.used(), used(500));
}
