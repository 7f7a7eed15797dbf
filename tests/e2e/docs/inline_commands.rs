//! Commands in running text and in tables, also without the word `teamctl`: each names a verb that is there, and options
//! that it takes.

use super::{document_paths, read_document};
use harness::TestEnv;
use std::collections::HashMap;

/// The words of every span of code that begins with `teamctl`, behind that, or with one of these verbs and has options.
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

/// What `teamctl --help` lists.
fn list_commands(env: &TestEnv) -> Vec<String> {
    let help = env.teamctl(["--help"]).expect_success();
    let (_, list) = help.split_once("Commands:\n").unwrap();
    list.lines().map_while(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

/// What is asked for help: the verb, also behind `help`, and the verb's own where it has such.
fn help_command(words: &[String]) -> Vec<&str> {
    let is_word = |word: &&String| word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
    let own = if words.first().is_some_and(|word| word == "task" || word == "profiles") { 2 } else { 1 };
    let words = words.iter().filter(|word| !word.starts_with('-') && *word != "help").take(own);
    words.take_while(is_word).map(String::as_str).collect()
}

/// `[--mode`, `--mode=plan`, `--json,` give `--mode` and `--json`.
fn options(words: &[String]) -> impl Iterator<Item = &str> {
    let ours = words.iter().take_while(|word| *word != "--");
    let bare = ours.map(|word| word.trim_matches(['[', ']', '(', ')', ',', '…', '"', '\'']));
    bare.filter(|word| word.starts_with("--")).map(|word| word.split('=').next().unwrap_or(word))
}

/// The help of a verb; none where there is no such verb.
#[derive(Default)]
struct HelpTexts(HashMap<String, Option<String>>);

impl HelpTexts {
    fn get(&mut self, env: &TestEnv, verb: &[&str]) -> Option<&str> {
        let help = || {
            let ran = env.teamctl_with(&[verb, &["--help"]].concat(), &[]);
            (ran.code == 0).then_some(ran.stdout)
        };
        self.0.entry(verb.join(" ")).or_insert_with(help).as_deref()
    }

    fn command_error(&mut self, env: &TestEnv, words: &[String]) -> Option<String> {
        let said = words.join(" ");
        let Some(help) = self.get(env, &help_command(words)) else {
            return Some(format!("there is no such verb: teamctl {said}"));
        };
        let known: Vec<&str> = help.split([' ', '\n', '[', ']', ',', '|', '=']).collect();
        let unknown = options(words).find(|option| !known.contains(option));
        unknown.map(|option| format!("{option} is no option: teamctl {said}"))
    }
}

/// What `make` is told to do.
fn make_targets(text: &str) -> Vec<&str> {
    let spans = text.split('`').filter_map(|span| span.strip_prefix("make "));
    spans.filter_map(|rest| rest.split_whitespace().next()).collect()
}

#[test]
fn make_targets_in_docs_exist() {
    let makefile = read_document("Makefile");
    let there = |word: &str| makefile.lines().any(|line| line.starts_with(&format!("{word}:")));
    for page in document_paths() {
        let text = read_document(&page);
        let unknown: Vec<&str> = make_targets(&text).into_iter().filter(|word| !there(word)).collect();
        assert!(unknown.is_empty(), "{page}: make {unknown:?}");
    }
    assert!(there("bench") && !there("nothing") && make_targets("`make bench`").contains(&"bench"));
}

#[test]
fn inline_commands_and_options_exist() {
    let (env, mut helps, mut count) = (TestEnv::new(), HelpTexts::default(), 0);
    let (verbs, mut faults) = (list_commands(&env), Vec::new());
    for page in document_paths() {
        let all = commands(&read_document(&page), &verbs);
        count += all.len();
        let wrong = all.iter().filter_map(|words| helps.command_error(&env, words));
        faults.extend(wrong.map(|fault| format!("{page}: {fault}")));
    }
    assert_eq!(faults, Vec::<String>::new());
    assert!(count > 100, "{count} commands are few");
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for wrong in ["stauts", "status --al", "task creat x"] {
        assert!(helps.command_error(&env, &words(wrong)).is_some(), "{wrong}");
    }
    env.shut_down();
}
