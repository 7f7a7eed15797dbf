use super::*;

fn argv(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

fn builder(
    first: &[&str],
    later: &[&str],
    session: SessionSource,
    earlier_session: Option<&str>,
) -> TurnBuilder {
    let program = PerTurnProgram {
        first_argv: argv(first),
        later_argv: argv(later),
        session,
        ..PerTurnProgram::default()
    };
    let state = tempfile::tempdir().unwrap().keep().join("state");
    TurnBuilder::new(TurnProgram::PerTurn(program), earlier_session.map(str::to_owned), state, "ann@t")
}

/// The command of a turn on a prompt.
fn turn_command(builder: &mut TurnBuilder, text: &str) -> TurnCommand {
    match builder.turn_input(&TurnSubject::Prompt(text.to_owned()), None).unwrap() {
        TurnInput::Command(command) => command,
        TurnInput::Text(text) => panic!("{text}: the turn has no command line"),
    }
}

#[test]
fn prompt_goes_into_the_argument_with_its_variable_or_to_standard_input() {
    let mut with_argument = builder(&["p", "-m={prompt};", "{cwd}"], &[], SessionSource::NoSession, None);
    let command = turn_command(&mut with_argument, "a {session} {prompt}\0b");
    assert_eq!(command.argv, ["p", "-m=a {session} {prompt}b;", "{cwd}"]);
    assert_eq!(command.stdin, None);
    let mut with_stdin = builder(&["p"], &[], SessionSource::NoSession, None);
    assert_eq!(turn_command(&mut with_stdin, "hi").stdin.as_deref(), Some("hi"));
}

#[test]
fn prompt_prefix_comes_before_the_first_prompt_of_each_session() {
    let builder_with_prefix = |first: &[&str], session| {
        let mut builder = builder(first, &[], session, None);
        if let TurnProgram::PerTurn(program) = &mut builder.program {
            program.prompt_prefix = "You are ann.".to_owned();
        }
        builder
    };
    let mut generated = builder_with_prefix(&["p", "{session}"], SessionSource::Generated);
    assert_eq!(turn_command(&mut generated, "hi").stdin.as_deref(), Some("You are ann.\n\nhi"));
    generated.note_turn_end(IdleReason::Available);
    assert_eq!(turn_command(&mut generated, "hi").stdin.as_deref(), Some("hi"));
    generated.note_turn_end(IdleReason::Available);
    let mut without_session = builder_with_prefix(&["p"], SessionSource::NoSession);
    for _ in 0..2 {
        assert_eq!(
            turn_command(&mut without_session, "hi").stdin.as_deref(),
            Some("You are ann.\n\nhi"),
            "each turn is a new session"
        );
        without_session.note_turn_end(IdleReason::Available);
    }
}

#[test]
fn suffix_of_a_variable_selects_the_encoding_of_prompt_and_session() {
    let first = ["sh", "-c", "echo {prompt_sh} >{session_sh}; echo '{prompt_json}'"];
    let command =
        turn_command(&mut builder(&first, &[], SessionSource::Generated, Some("s 1")), "a 'b' {session}");
    assert_eq!(command.argv[2], "echo 'a '\\''b'\\'' {session}' >'s 1'; echo '\"a 'b' {session}\"'");
    assert_eq!(command.stdin, None, "the prompt is in an argument");
}

#[test]
fn prompt_is_never_an_option() {
    let argv = |first: &[&str]| {
        turn_command(&mut builder(first, &[], SessionSource::NoSession, None), "--yolo").argv
    };
    assert_eq!(argv(&["p", "{prompt}"]), ["p", " --yolo"]);
    assert_eq!(argv(&["p", "--", "{prompt}"]), ["p", "--", "--yolo"]);
    assert_eq!(argv(&["p", "-m={prompt}"]), ["p", "-m=--yolo"]);
    assert_eq!(argv(&["p", "{prompt}", "--"]), ["p", " --yolo", "--"]);
    assert_eq!(argv(&["p", "{prompt_sh}"]), ["p", "' --yolo'"]);
}

#[test]
fn every_turn_names_the_generated_session() {
    let later = ["p", "--resume", "{session}"];
    let mut generated = builder(&["p", "--id", "{session}"], &later, SessionSource::Generated, None);
    let first = turn_command(&mut generated, "x");
    let id = generated.session_id().unwrap();
    assert_eq!(first.argv, ["p", "--id", &id]);
    generated.note_turn_end(IdleReason::Available);
    for reason in [IdleReason::Failed, IdleReason::Interrupted, IdleReason::Available] {
        assert_eq!(turn_command(&mut generated, "y").argv, ["p", "--resume", &id]);
        generated.note_turn_end(reason);
    }
}

#[test]
fn session_without_a_successful_turn_is_replaced_after_a_failure() {
    let mut generated = builder(&["p", "{session}"], &["q", "{session}"], SessionSource::Generated, None);
    let first = turn_command(&mut generated, "x").argv;
    generated.note_turn_end(IdleReason::Interrupted);
    assert_eq!(turn_command(&mut generated, "x").argv, ["q", &first[1]], "the session may exist");
    generated.note_turn_end(IdleReason::Failed);
    let retry = turn_command(&mut generated, "x").argv;
    assert_eq!(retry[0], "p");
    assert_ne!(retry[1], first[1], "the old id may be in use");
}

#[test]
fn session_id_in_the_output_is_used_once_it_is_known() {
    let session = SessionSource::OutputKey { key: "id".into() };
    let mut builder = builder(&["p"], &["q", "{session}"], session, None);
    assert_eq!(turn_command(&mut builder, "x").output_fields.session_key.as_deref(), Some("id"));
    builder.note_turn_end(IdleReason::Available);
    assert_eq!(turn_command(&mut builder, "x").argv, ["p"], "no session id is known");
    builder.set_session_id("abc".into());
    builder.note_turn_end(IdleReason::Available);
    let command = turn_command(&mut builder, "x");
    assert_eq!((command.argv, command.output_fields.session_key), (argv(&["q", "abc"]), None));
}

#[test]
fn session_of_an_earlier_spawn_is_resumed_in_the_first_turn() {
    let mut generated = builder(&["p"], &["q", "{session}"], SessionSource::Generated, Some("old"));
    assert_eq!(turn_command(&mut generated, "x").argv, ["q", "old"]);
    generated.note_turn_end(IdleReason::Failed);
    assert_eq!(turn_command(&mut generated, "x").argv, ["p"], "the session may no longer exist");
    let mut without_session = builder(&["p"], &[], SessionSource::NoSession, None);
    assert_eq!(
        (turn_command(&mut without_session, "x").argv, turn_command(&mut without_session, "x").argv),
        (argv(&["p"]), argv(&["p"]))
    );
}

#[test]
fn prompt_that_is_too_long_for_an_argument_is_in_a_file_during_the_turn() {
    let mut long = builder(&["p", "{prompt}"], &[], SessionSource::NoSession, None);
    let text = "x".repeat(MAX_ARGUMENT_BYTES + 1);
    let command = turn_command(&mut long, &text);
    let path = command.argv[1].split(' ').find(|part| part.starts_with('/')).unwrap().to_owned();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    long.remove_prompt_file();
    assert!(!std::path::Path::new(&path).exists());
    let short = turn_command(&mut long, &text[1..]);
    assert_eq!(short.argv[1].len(), MAX_ARGUMENT_BYTES);
}

#[test]
fn worker_runs_the_command_of_the_task_unless_it_has_its_own() {
    let task = r#"{"id":"3","subject":"s\u0000","status":"pending","metadata":{"command":"theirs"}}"#;
    let subject = TurnSubject::Task(Box::new(Task::parse(task).unwrap()));
    let command_for = |worker: &Worker| worker_command(worker, &subject).unwrap();
    let command = command_for(&Worker::default());
    assert_eq!(command.argv, ["sh", "-c", "theirs"]);
    assert!(command.env.contains(&("TASK_ID".into(), "3".into())));
    assert!(command.env.contains(&("TASK_SUBJECT".into(), "s".into())));
    assert!(command.env.contains(&("GIT_PAGER".into(), "cat".into())));
    assert_eq!(command_for(&Worker { run: Some("ours".into()), ..Worker::default() }).argv[2], "ours");
    let without_command =
        TurnSubject::Task(Box::new(Task::parse(r#"{"id":"3","subject":"s","status":"pending"}"#).unwrap()));
    assert!(worker_command(&Worker::default(), &without_command).unwrap_err().contains("no command"));
}
