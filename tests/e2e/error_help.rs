//! What is to be done next: every usual failure says it, and each command that it names is one that there is.

use harness::{CommandOutput, TestEnv};
use std::collections::BTreeSet;

/// Where there is neither a team nor a daemon: what is typed, and how it ends.
const WITHOUT_TEAM: [(&str, i32); 32] = [
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
    ("import nothing.tar", 72),
    ("inbox", 67),
    ("interrupt ann", 67),
    ("kill ann", 67),
    ("layout tiled", 67),
    ("lead survey", 69),
    ("logs ann", 67),
    ("mode ann plan", 67),
    ("submit-plan nothing.md", 67),
    ("policy", 67),
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

/// On a team with ann, who has no pane, and bob, who has one, and with two tasks, of which the second waits for the first.
const WITH_TEAM: [(&str, i32); 43] = [
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

/// The same where no command helps: it says what else does.
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

/// Files whose faults are told with their places, and what was to be: that says what is to be mended.
const FILE_ERRORS: [&str; 3] = ["create other --policy bad.toml", "policy bad.toml", "run bad.toml"];

/// What does not even parse.
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
    let words = std::iter::once("--json").chain(line.split(' '));
    env.teamctl_with(&words.collect::<Vec<_>>(), &[])
}

/// The hint, which stands in what scripts read and in what people do.
fn check_help(env: &TestEnv, (line, code): &(&str, i32)) -> Result<String, String> {
    let ran = run_line(env, line);
    let (ended, told) = (ran.code, ran.stderr.clone());
    // The screen's own program prints nothing for scripts.
    let hint = match *line {
        "top" | "mcp --member ann@other -t survey" => {
            told.lines().nth(1).unwrap_or_default().trim().to_owned()
        }
        _ => ran.json()["error"]["help"].as_str().unwrap_or_default().to_owned(),
    };
    match ended == *code && !hint.is_empty() && told.trim_end().ends_with(&hint) {
        true => Ok(hint),
        false => Err(format!("`{line}` ends with {ended}, and says: {told}")),
    }
}

/// The words of each command of ours in a text, up to the first that is no verb: `task list`.
fn commands(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let is_word =
        |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
    text.split("teamctl ").skip(1).map(move |words| {
        let whole = words.split([';', ',', ')', '\n']).next().unwrap_or_default();
        let verbs = whole.split(' ').skip_while(|word| *word == "help").take_while(is_word);
        // Of one verb alone there are several.
        verbs.take(if whole.starts_with("task ") { 2 } else { 1 }).collect()
    })
}

fn check_command_exists(env: &TestEnv, line: &str, hint: &str) -> Option<String> {
    let known = |verbs: &Vec<&str>| {
        !verbs.is_empty() && env.teamctl_with(&[verbs, &["--help"][..]].concat(), &[]).code == 0
    };
    let mut all = commands(hint).peekable();
    let good = all.peek().is_some() && all.all(|verbs| known(&verbs));
    (!good).then(|| format!("`{line}` names no command, or one that is none: {hint}"))
}

fn failures_without_help(env: &TestEnv, failures: &[(&str, i32)]) -> Vec<String> {
    let fault = |failure: &(&str, i32)| match check_help(env, failure) {
        Ok(hint) => check_command_exists(env, failure.0, &hint),
        Err(fault) => Some(fault),
    };
    failures.iter().filter_map(fault).collect()
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
    let in_words = PROSE_HELP.iter().filter_map(|failure| check_help(&env, failure).err());
    assert_eq!(in_words.collect::<Vec<_>>(), Vec::<String>::new());
    for line in FILE_ERRORS {
        let told = run_line(&env, line);
        assert!(told.code == 65 && told.stderr.contains("bad.toml:3:9: plans is one of person"), "{told:#?}");
    }
    for line in TYPOS {
        let told = run_line(&env, line);
        assert!(told.code == 64 && told.stderr.contains("try '--help'"), "{told:#?}");
    }
    env.shut_down();
}

/// Every text of the programs that has `teamctl WORD` in it names a verb, or is among the few that name none.
#[test]
fn commands_in_sources_exist() {
    let env = TestEnv::new();
    let no_verbs = ["and", "is", "of", "refused"];
    let mut unknown = BTreeSet::new();
    for (file, line) in source_strings() {
        for verbs in commands(&line).filter(|verbs| !verbs.is_empty()) {
            let is_one = || env.teamctl_with(&[&verbs[..1], &["--help"]].concat(), &[]).code == 0;
            if !no_verbs.contains(&verbs[0]) && !is_one() {
                unknown.insert(format!("{file}: {}", verbs.join(" ")));
            }
        }
    }
    assert_eq!(unknown, BTreeSet::new());
    env.shut_down();
}

/// The lines of the programs that hold a text.
fn source_strings() -> impl Iterator<Item = (String, String)> {
    let lines = |(name, text): (String, String)| {
        let lines: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
        lines.into_iter().map(move |line| (name.clone(), line))
    };
    let lines = crate::architecture::non_test_sources().into_iter().flat_map(lines);
    let is_text = |line: &str| line.contains('"') && !line.starts_with("//");
    lines.filter(move |(name, line)| is_text(line) && name != "teamctl/src/cli/examples.rs")
}
