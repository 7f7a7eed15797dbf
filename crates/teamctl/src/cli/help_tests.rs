//! Every verb that is listed shows in its help how it is typed, and what is shown is understood.

use super::Cli;
use clap::{Command, CommandFactory, Parser};

/// What an example may begin with beside ourselves: what our verbs are put together with.
const PROGRAMS: [&str; 6] = ["claude", "codex", "git", "printf", "ssh", "tmux"];

/// The lines below `Examples:`, up to the next paragraph.
fn examples(command: &Command) -> Vec<String> {
    let help = command.clone().render_long_help().to_string();
    let Some((_, examples)) = help.split_once("\nExamples:\n") else { return Vec::new() };
    examples.lines().take_while(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect()
}

/// The words of the first command of a line, as a shell has them, as far as examples need one.
fn shell_words(line: &str) -> Vec<String> {
    let end = [" | ", " > ", " < "].iter().filter_map(|sign| line.find(sign)).min();
    let (mut words, mut quote) = (vec![String::new()], None);
    for letter in line[..end.unwrap_or(line.len())].chars() {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, ' ') => words.push(String::new()),
            _ => words.last_mut().expect("there is one from the start").push(letter),
        }
    }
    words
}

/// Help is printed by way of an error that is none.
fn is_refused(words: &[String]) -> bool {
    Cli::try_parse_from(words).is_err_and(|error| error.use_stderr())
}

fn example_error(command: &Command, name: &str) -> Vec<String> {
    let examples = examples(command);
    if examples.is_empty() {
        return vec![format!("{name} has no examples")];
    }
    let wrong = |line: &String| {
        let words = shell_words(line);
        match words[0].as_str() {
            "teamctl" => is_refused(&words).then(|| format!("{name}: refused is {line}")),
            program => (!PROGRAMS.contains(&program)).then(|| format!("{name}: what is {line}?")),
        }
    };
    examples.iter().filter_map(wrong).collect()
}

/// Of a command, and of all below it.
fn example_errors(command: &Command, name: &str) -> Vec<String> {
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help");
    let below = verbs.flat_map(|verb| example_errors(verb, &format!("{name} {}", verb.get_name())));
    example_error(command, name).into_iter().chain(below).collect()
}

#[test]
fn every_verb_shows_how_it_is_typed_and_that_is_understood() {
    let mut teamctl = Cli::command();
    teamctl.build();
    assert_eq!(example_errors(&teamctl, "teamctl"), Vec::<String>::new());
    let with = |examples: &'static str| example_error(&Command::new("x").after_help(examples), "x");
    assert_eq!(with(""), ["x has no examples"]);
    assert_eq!(with("Examples:\n  nothing up"), ["x: what is nothing up?"]);
    assert_eq!(with("Examples:\n  teamctl stauts 'a b'"), ["x: refused is teamctl stauts 'a b'"]);
}
