//! A team goes with all that it has, and nobody comes to it meanwhile.

use super::*;
use protocol::control::WorktreeRequest;
use protocol::error::ErrorReport;

fn wants(name: &str) -> Request {
    let name = AgentName::parse(name).unwrap();
    let (cwd, env) = ("/repo".into(), Default::default());
    Request::CreateWorktree(WorktreeRequest { team: team(), name, unique: false, cwd, branch: None, env })
}

/// What the files say to a delete by force.
fn may_delete(client: u64, result: Result<(), ErrorReport>) -> Event {
    let order = DeleteTeamRequest { team: team(), force: true, discard_worktrees: vec![] };
    Event::Filed(FileDone::MayDelete { client, order, result })
}

fn is_ending(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Tell { word: ToShim::End { .. }, .. }))
}

fn deleted(client: u64, result: Result<(), ErrorReport>) -> Event {
    Event::Filed(FileDone::Deleted { client, team: team(), result, swept: Default::default() })
}

#[test]
fn nobody_comes_from_the_accepted_delete_to_its_end() {
    let mut state = state();
    let ann = running(&mut state, "ann", 1);
    assert_eq!(kind(&ask(&mut state, 2, delete(false)), 2), Some(ErrorKind::Refused));
    opening(&ask(&mut state, 3, order("eve")));
    assert!(!is_ending(&ask(&mut state, 2, delete(true))), "first it is looked");
    let refused = |state: &mut State| {
        [order("bob"), wants("bob"), delete(true)].map(|request| kind(&ask(state, 4, request), 4))
            == [Some(ErrorKind::Refused); 3]
    };
    assert!(refused(&mut state), "while it is looked whether it may go");
    assert!(is_ending(&step(&mut state, may_delete(2, Ok(())), NOW)));
    assert!(refused(&mut state), "while its members are ended");
    step(&mut state, ended(1, ExitReport::Signal(9)), NOW);
    step(&mut state, pane_closed(&ann), NOW);
    let effects = step(&mut state, farewelled(&ann, false, None), NOW);
    assert!(job(&effects, |job| matches!(job, FileJob::Delete { .. })), "{effects:?}");
    assert!(refused(&mut state), "while its files are removed");
    let effects = step(&mut state, deleted(2, Err(ErrorReport::new(ErrorKind::Io, "no"))), NOW);
    let Some(Response::Failed(fault)) = reply(&effects, 2) else { panic!("{effects:?}") };
    assert_eq!(fault.kind, ErrorKind::Io);
    assert!(
        ["no\nBefore that: ", "ann", "eve", " ended"].iter().all(|it| fault.message.contains(it)),
        "{fault:?}"
    );
    opening(&ask(&mut state, 4, order("bob")));
}

#[test]
fn nobody_is_ended_for_a_delete_that_its_files_refuse() {
    let mut state = state();
    let ann = running(&mut state, "ann", 1);
    ask(&mut state, 2, delete(true));
    let effects =
        step(&mut state, may_delete(2, Err(ErrorReport::new(ErrorKind::Refused, "notes.txt"))), NOW);
    assert!(!is_ending(&effects) && kind(&effects, 2) == Some(ErrorKind::Refused), "{effects:?}");
    assert!(matches!(state.agents[&ann].phase, Phase::Running(_)));
    opening(&ask(&mut state, 4, order("bob")));
}

#[test]
fn a_refused_delete_keeps_nobody_out() {
    let mut state = state();
    running(&mut state, "ann", 1);
    ask(&mut state, 2, delete(false));
    opening(&ask(&mut state, 3, order("bob")));
}

#[test]
fn going_down_ends_agents_without_a_team_too() {
    let mut state = state();
    let ann = running(&mut state, "ann", 1);
    state.teams.remove(&team());
    let effects = ask(&mut state, 2, Request::StopDaemon);
    assert!(done(&effects, 2).is_none() && !effects.iter().any(|effect| matches!(effect, Effect::Exit)));
    step(&mut state, ended(1, ExitReport::Exit(0)), NOW);
    step(&mut state, pane_closed(&ann), NOW);
    let effects = step(&mut state, farewelled(&ann, false, None), NOW);
    assert!(done(&effects, 2).is_none(), "not before the roster has it");
    let effects = with_settled(&mut state, effects);
    assert!(done(&effects, 2).is_some() && effects.iter().any(|effect| matches!(effect, Effect::Exit)));
}
