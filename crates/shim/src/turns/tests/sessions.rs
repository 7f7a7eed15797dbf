//! Tests of sessions and respawns.

use super::*;

#[test]
fn a_life_again_takes_up_what_the_last_one_left() {
    let ground = TestTeam::new();
    let (left, failed) = (ground.task("left"), ground.task("failed"));
    for task in [&left, &failed] {
        ground.team.tasks().claim(Some(&task.id), &name("ann")).unwrap();
    }
    ground.team.tasks().fail(&failed.id, "exit 1").unwrap();
    ground.write("bob", "hi");
    let (stage, _) = ground.run(agent(), again(), vec![ends(0), ends(0)]);
    let texts = stage.texts();
    assert!(texts.len() == 2 && texts[0].contains("left") && texts[1].contains("hi"), "{texts:?}");
    assert_eq!(ground.team.tasks().get(&left.id).unwrap().status, TaskStatus::Completed);
}

#[test]
fn a_turn_that_fails_on_an_earlier_lifes_session_is_run_once_more_with_a_new_one() {
    let program = || {
        let (first, next) = (["p", "{session}"], ["q", "{session}"]);
        let [first, next] = [first, next].map(|words| words.map(str::to_owned).to_vec());
        TurnProgram::PerTurn(PerTurnProgram {
            first_argv: first,
            later_argv: next,
            session: SessionSource::Generated,
            ..PerTurnProgram::default()
        })
    };
    let run = |scenes: Vec<ScriptedEvent>| {
        let ground = TestTeam::new();
        let task = ground.task("left");
        ground.team.tasks().claim(Some(&task.id), &name("ann")).unwrap();
        let (stage, _) = ground.run_again_on(ground.stage(scenes), program(), again(), Some("old"));
        let argv = stage.begun.iter().map(|process| process.argv[0].clone()).collect::<Vec<_>>();
        (argv, ground.idles().len(), ground.team.tasks().get(&task.id).unwrap())
    };
    let (argv, idles, task) = run(vec![ends(1), ends(0)]);
    assert_eq!((argv.join(" "), idles, task.status), ("q p".to_owned(), 1, TaskStatus::Completed));
    let (argv, idles, task) = run(vec![ends(1), ends(2)]);
    assert_eq!((argv.join(" "), idles), ("q p".to_owned(), 1), "once, and told once");
    assert!(task.failure().unwrap().starts_with("exit 2"));
    let id = TaskId::from_number(1).unwrap();
    let fails = after(move |team| drop(team.tasks().fail(&id, "no access").unwrap()), 1);
    let (argv, _, task) = run(vec![fails]);
    assert_eq!((argv.join(" "), task.failure()), ("q".to_owned(), Some("no access")));
}

#[test]
fn a_session_that_was_told_is_told_on_at_once() {
    let ground = TestTeam::new();
    let told = SessionSource::OutputKey { key: "id".into() };
    let program = PerTurnProgram {
        first_argv: vec!["p".into()],
        later_argv: vec!["q".into(), "{session}".into()],
        session: told,
        ..PerTurnProgram::default()
    };
    ground.write("bob", "one");
    ground.write("bob", "two");
    let tells: ScriptedEvent = Box::new(|_| ExecutorEvent::SessionStarted("abc".to_owned()));
    let (stage, _) = ground.run(TurnProgram::PerTurn(program), nothing(), vec![tells, ends(0), ends(0)]);
    assert_eq!(stage.begun[1].argv, ["q", "abc"]);
    let session = stage.told.iter().find(|now| now.session_id.is_some()).unwrap();
    assert_eq!((session.turn_number, session.pid), (1, Some(77)));
}
