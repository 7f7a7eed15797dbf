//! Commands in running text and in tables of the documents, also without the word `teamctl`: each
//! names a command and options that exist.

use super::{document_paths, read_document};
use harness::TestEnv;
use std::collections::HashMap;

/// The words of every code span that is a command: a span that begins with `teamctl`, without that
/// word, or a span that begins with one of `verbs` and has options.
fn commands(text: &str, verbs: &[String]) -> Vec<Vec<String>> {
    let prose = text.split("```").step_by(2).collect::<Vec<_>>().join("\n\n");
    let spans = prose.split("\n\n").flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2));
    let words =
        spans.map(|span| span.split_whitespace().map(|word| word.replace('\\', "")).collect::<Vec<_>>());
    let commands = words.filter_map(|words| match words.split_first()? {
        (teamctl, rest) if teamctl == "teamctl" => Some(rest.to_vec()),
        (verb, rest) if verbs.contains(verb) && options(rest).next().is_some() => Some(words),
        _ => None,
    });
    commands.collect()
}

/// The commands that `teamctl help --all` lists.
fn list_commands(env: &TestEnv) -> Vec<String> {
    let help = env.teamctl(["help", "--all"]).expect_success();
    let lines = help.lines().take_while(|line| *line != "Options:");
    lines.filter_map(|line| Some(line.strip_prefix("  ")?.split(' ').next()?.to_owned())).collect()
}

/// The commands that have subcommands.
const GROUPS: [&str; 4] = ["home", "hosts", "profiles", "task"];

/// The command whose help describes `words`: one of `GROUPS` with its subcommand, any other without.
/// A leading `help` is skipped.
fn help_command(words: &[String]) -> Vec<&str> {
    let is_word = |word: &&String| word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
    let length = if words.first().is_some_and(|word| GROUPS.contains(&word.as_str())) { 2 } else { 1 };
    let words = words.iter().filter(|word| !word.starts_with('-') && *word != "help").take(length);
    words.take_while(is_word).map(String::as_str).collect()
}

/// `[--mode`, `--mode=plan`, `--json,` give `--mode` and `--json`.
fn options(words: &[String]) -> impl Iterator<Item = &str> {
    let args = words.iter().take_while(|word| *word != "--");
    let trimmed_words = args.map(|word| word.trim_matches(['[', ']', '(', ')', ',', '…', '"', '\'']));
    trimmed_words.filter(|word| word.starts_with("--")).map(|word| word.split('=').next().unwrap_or(word))
}

/// Help texts by command. `None` means that there is no such command.
#[derive(Default)]
struct HelpTexts(HashMap<String, Option<String>>);

impl HelpTexts {
    fn get(&mut self, env: &TestEnv, verb: &[&str]) -> Option<&str> {
        let help = || {
            let output = env.teamctl_with(&[verb, &["--help"]].concat(), &[]);
            (output.code == 0).then_some(output.stdout)
        };
        self.0.entry(verb.join(" ")).or_insert_with(help).as_deref()
    }

    /// Why the command is wrong. `None` if it is right.
    fn command_error(&mut self, env: &TestEnv, words: &[String]) -> Option<String> {
        let command = words.join(" ");
        let Some(help) = self.get(env, &help_command(words)) else {
            return Some(format!("there is no such command: teamctl {command}"));
        };
        let help_words: Vec<&str> = help.split([' ', '\n', '[', ']', ',', '|', '=']).collect();
        let unknown = options(words).find(|option| !help_words.contains(option));
        unknown.map(|option| format!("there is no option {option}: teamctl {command}"))
    }
}

/// The target of every code span that begins with `make`.
fn make_targets(text: &str) -> Vec<&str> {
    let spans = text.split('`').filter_map(|span| span.strip_prefix("make "));
    spans.filter_map(|rest| rest.split_whitespace().next()).collect()
}

#[test]
fn make_targets_in_docs_exist() {
    let makefile = read_document("Makefile");
    let is_target = |target: &str| makefile.lines().any(|line| line.starts_with(&format!("{target}:")));
    for page in document_paths() {
        let text = read_document(&page);
        let unknown: Vec<&str> =
            make_targets(&text).into_iter().filter(|target| !is_target(target)).collect();
        assert!(unknown.is_empty(), "{page}: make {unknown:?}");
    }
    assert!(is_target("bench") && !is_target("nothing") && make_targets("`make bench`").contains(&"bench"));
}

#[test]
fn inline_commands_and_options_exist() {
    let (env, mut helps, mut count) = (TestEnv::new(), HelpTexts::default(), 0);
    let (verbs, mut errors) = (list_commands(&env), Vec::new());
    for page in document_paths() {
        let commands = commands(&read_document(&page), &verbs);
        count += commands.len();
        let page_errors = commands.iter().filter_map(|words| helps.command_error(&env, words));
        errors.extend(page_errors.map(|error| format!("{page}: {error}")));
    }
    assert_eq!(errors, Vec::<String>::new());
    assert!(count > 100, "there are more than 100 commands: {count}");
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for invalid in ["stauts", "status --al", "task creat x"] {
        assert!(helps.command_error(&env, &words(invalid)).is_some(), "{invalid}");
    }
    env.shut_down();
}
