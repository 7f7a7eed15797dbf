//! Help in error messages: every common error says what to do next, and each command in that help
//! exists.

use harness::{CommandOutput, TestEnv};
use std::collections::BTreeSet;

/// Commands without a team and without a daemon, and their exit codes. Each error suggests a
/// command.
const WITHOUT_TEAM: [(&str, i32); 37] = [
    ("approve perm-1", 67),
    ("attach ann", 67),
    ("broadcast hello", 67),
    ("capture ann", 67),
    ("create survey", 69),
    ("delete survey", 67),
    ("deny perm-1 --reason no", 67),
    ("down", 69),
    ("export", 67),
    ("hide ann", 67),
    ("hosts check devbox", 64),
    ("hosts install devbox", 64),
    ("import nothing.tar", 72),
    ("inbox", 67),
    ("interrupt ann", 67),
    ("kill ann", 67),
    ("layout tiled", 67),
    ("lead survey", 69),
    ("logs ann", 67),
    ("merge ann", 67),
    ("mode ann plan", 67),
    ("submit-plan nothing.md", 67),
    ("policy", 67),
    ("replay nothing.jsonl", 72),
    ("report", 67),
    ("requests", 67),
    ("answer-shutdown shutdown-1@ann --approve", 67),
    ("run nothing.toml", 72),
    ("send ann hello", 67),
    ("show ann", 67),
    ("shutdown ann", 67),
    ("spawn ann -- true", 67),
    ("task list", 67),
    ("top", 67),
    ("trace last", 67),
    ("wait", 67),
    ("why ann", 67),
];

/// Commands with a team, and their exit codes. Each error suggests a command. ann has no pane, bob
/// has one, and the second task is blocked by the first.
const WITH_TEAM: [(&str, i32); 45] = [
    ("approve perm-1", 67),
    ("attach eve", 67),
    ("attach bob@other", 67),
    ("capture ann", 67),
    ("create other --policy nothing.toml", 72),
    ("delete nothing", 67),
    ("delete survey", 76),
    ("deny perm-1 --reason no", 67),
    ("export nothing", 67),
    ("hide ann", 67),
    ("hide eve", 67),
    ("import bad.toml", 65),
    ("inbox eve", 67),
    ("interrupt bob", 76),
    ("interrupt eve", 67),
    ("kill eve", 67),
    ("lead --release -t survey", 67),
    ("logs eve", 67),
    ("merge bob", 67),
    ("merge eve", 67),
    ("mode bob plan", 76),
    ("mode eve plan", 67),
    ("submit-plan nothing.md", 72),
    ("policy nothing.toml", 72),
    ("answer-shutdown shutdown-1@ann --approve", 77),
    ("run nothing.toml", 72),
    ("send eve hello", 67),
    ("show eve", 67),
    ("shutdown eve", 67),
    ("spawn cat --profile nothing", 64),
    ("spawn cat --cwd nothing -- true", 72),
    ("spawn cat --prompt-file nothing.md --profile shell", 72),
    ("status eve", 67),
    ("task claim 2", 76),
    ("task claim 9", 67),
    ("task done 9", 67),
    ("task get 9", 67),
    ("task update 1 --add-blocked-by 2", 76),
    ("task update 9 --owner ann", 67),
    ("top", 64),
    ("trace 5c1f2a07", 67),
    ("trace last", 67),
    ("wait --for idle ann --timeout 1ms", 75),
    ("wait --for idle eve", 67),
    ("why eve", 67),
];

/// Commands as in [`WITH_TEAM`] for whose errors no command helps. The help is text.
const PROSE_HELP: [(&str, i32); 8] = [
    ("create survey", 73),
    ("inbox ann --mark-read", 77),
    ("notify hello", 78),
    ("spawn ann -- true", 73),
    ("spawn cat -- nothing", 72),
    ("spawn cat --worktree -- true", 76),
    ("spawn team-lead -- true", 64),
    ("mcp --member ann@other -t survey", 77),
];

/// Commands with an invalid file. The error has the line and column and the valid values, and needs
/// no further help.
const FILE_ERRORS: [&str; 3] = ["create other --policy bad.toml", "policy bad.toml", "run bad.toml"];

/// Commands with an invalid command line.
const TYPOS: [&str; 8] = [
    "approve",
    "layout round",
    "mode ann fast",
    "send",
    "stauts",
    "task claim x",
    "task create x --metadata {",
    "wait --timeout soon",
];

fn run_line(env: &TestEnv, line: &str) -> CommandOutput {
    let args = std::iter::once("--json").chain(line.split(' '));
    env.teamctl_with(&args.collect::<Vec<_>>(), &[])
}

/// Runs a command and returns the help of its error.
///
/// # Errors
///
/// If the exit code is wrong, or if the help is not the same in the JSON and on stderr.
fn check_help(env: &TestEnv, (line, code): &(&str, i32)) -> Result<String, String> {
    let output = run_line(env, line);
    let (exit_code, stderr) = (output.code, output.stderr.clone());
    // These programs print no JSON.
    let help = match *line {
        "top" | "mcp --member ann@other -t survey" => {
            stderr.lines().nth(1).unwrap_or_default().trim().to_owned()
        }
        _ => output.json()["error"]["help"].as_str().unwrap_or_default().to_owned(),
    };
    match exit_code == *code && !help.is_empty() && stderr.trim_end().ends_with(&help) {
        true => Ok(help),
        false => Err(format!("`{line}` ends with {exit_code} and this error: {stderr}")),
    }
}

/// The words of each teamctl command in a text, without options and arguments: `task list`.
fn commands(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let is_word =
        |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
    text.split("teamctl ").skip(1).map(move |rest| {
        let command = rest.split([';', ',', ')', '\n']).next().unwrap_or_default();
        let words = command.split(' ').skip_while(|word| *word == "help").take_while(is_word);
        // Only `task` has subcommands here.
        words.take(if command.starts_with("task ") { 2 } else { 1 }).collect()
    })
}

/// Why the help is wrong. `None` if it names at least one command and all of them exist.
fn check_command_exists(env: &TestEnv, line: &str, help: &str) -> Option<String> {
    let exists = |words: &Vec<&str>| {
        !words.is_empty() && env.teamctl_with(&[words, &["--help"][..]].concat(), &[]).code == 0
    };
    let mut commands = commands(help).peekable();
    let is_valid = commands.peek().is_some() && commands.all(|words| exists(&words));
    (!is_valid).then(|| format!("the help of `{line}` names no command, or one that does not exist: {help}"))
}

fn failures_without_help(env: &TestEnv, failures: &[(&str, i32)]) -> Vec<String> {
    let error = |failure: &(&str, i32)| match check_help(env, failure) {
        Ok(help) => check_command_exists(env, failure.0, &help),
        Err(error) => Some(error),
    };
    failures.iter().filter_map(error).collect()
}

#[test]
fn errors_without_a_team_suggest_a_command() {
    let env = TestEnv::new();
    assert_eq!(failures_without_help(&env, &WITHOUT_TEAM), Vec::<String>::new());
    env.shut_down();
}

#[test]
fn errors_with_a_team_suggest_a_command() {
    let env = TestEnv::with_team();
    env.write_file("bad.toml", "name = \"bad\"\n[policy]\nplans = \"nobody\"\n");
    env.teamctl(["task", "create", "count"]).expect_success();
    env.teamctl(["task", "create", "write", "--blocked-by", "1"]).expect_success();
    env.teamctl(["spawn", "ann", "--backend", "in-process", "--", "sleep", "3600"]).expect_success();
    env.teamctl(["spawn", "bob", "--", "sleep", "3600"]).expect_success();
    assert_eq!(failures_without_help(&env, &WITH_TEAM), Vec::<String>::new());
    let errors = PROSE_HELP.iter().filter_map(|failure| check_help(&env, failure).err());
    assert_eq!(errors.collect::<Vec<_>>(), Vec::<String>::new());
    for line in FILE_ERRORS {
        let output = run_line(&env, line);
        assert!(
            output.code == 65 && output.stderr.contains("bad.toml:3:9: plans is one of person"),
            "{output:#?}"
        );
    }
    for line in TYPOS {
        let output = run_line(&env, line);
        assert!(output.code == 64 && output.stderr.contains("try '--help'"), "{output:#?}");
    }
    env.shut_down();
}

/// If a string in the sources contains `teamctl WORD`, WORD is a command. The exceptions are the
/// words of a few sentences.
#[test]
fn commands_in_sources_exist() {
    let env = TestEnv::new();
    let other_words = ["and", "is", "of", "refused"];
    let mut unknown = BTreeSet::new();
    for (file, line) in source_strings() {
        for words in commands(&line).filter(|words| !words.is_empty()) {
            let is_command = || env.teamctl_with(&[&words[..1], &["--help"]].concat(), &[]).code == 0;
            if !other_words.contains(&words[0]) && !is_command() {
                unknown.insert(format!("{file}: {}", words.join(" ")));
            }
        }
    }
    assert_eq!(unknown, BTreeSet::new());
    env.shut_down();
}

/// File and text of each line of the sources that contains a string.
fn source_strings() -> impl Iterator<Item = (String, String)> {
    let lines = |(name, text): (String, String)| {
        let lines: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
        lines.into_iter().map(move |line| (name.clone(), line))
    };
    let lines = crate::architecture::non_test_sources().into_iter().flat_map(lines);
    let has_string = |line: &str| line.contains('"') && !line.starts_with("//");
    lines.filter(move |(name, line)| has_string(line) && name != "teamctl/src/cli/examples.rs")
}
