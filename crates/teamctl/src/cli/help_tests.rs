//! Tests that the help of every command has examples, and that the examples can be parsed.

use super::Cli;
use clap::{Command, CommandFactory, Parser};

/// The programs other than `teamctl` with which an example may begin.
const PROGRAMS: [&str; 6] = ["claude", "codex", "git", "printf", "ssh", "tmux"];

/// The lines below `Examples:`, up to the next paragraph.
fn examples(command: &Command) -> Vec<String> {
    let help = command.clone().render_long_help().to_string();
    let Some((_, examples)) = help.split_once("\nExamples:\n") else { return Vec::new() };
    examples.lines().take_while(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect()
}

/// Splits the first command of a line into arguments, as a shell does. Supports only the syntax
/// that the examples use.
fn split_shell_args(line: &str) -> Vec<String> {
    let end = [" | ", " > ", " < "].iter().filter_map(|operator| line.find(operator)).min();
    let (mut args, mut quote) = (vec![String::new()], None);
    for character in line[..end.unwrap_or(line.len())].chars() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None, ' ') => args.push(String::new()),
            _ => args.last_mut().expect("the list has at least one argument").push(character),
        }
    }
    args
}

/// Whether the parser rejects the arguments. A request for help is not an error.
fn is_rejected(args: &[String]) -> bool {
    Cli::try_parse_from(args).is_err_and(|error| error.use_stderr())
}

/// The errors in the examples of one command.
fn own_example_errors(command: &Command, name: &str) -> Vec<String> {
    let examples = examples(command);
    if examples.is_empty() {
        return vec![format!("{name} has no examples")];
    }
    let error = |line: &String| {
        let args = split_shell_args(line);
        match args[0].as_str() {
            "teamctl" => is_rejected(&args).then(|| format!("{name}: cannot parse: {line}")),
            program => (!PROGRAMS.contains(&program)).then(|| format!("{name}: unknown program: {line}")),
        }
    };
    examples.iter().filter_map(error).collect()
}

/// The errors in the examples of a command and all its subcommands.
fn example_errors(command: &Command, name: &str) -> Vec<String> {
    let subcommands = command
        .get_subcommands()
        .filter(|subcommand| !subcommand.is_hide_set() && subcommand.get_name() != "help");
    let errors = subcommands
        .flat_map(|subcommand| example_errors(subcommand, &format!("{name} {}", subcommand.get_name())));
    own_example_errors(command, name).into_iter().chain(errors).collect()
}

#[test]
fn examples_in_the_help_of_every_command_can_be_parsed() {
    let mut teamctl = Cli::command();
    teamctl.build();
    assert_eq!(example_errors(&teamctl, "teamctl"), Vec::<String>::new());
    let errors = |examples: &'static str| own_example_errors(&Command::new("x").after_help(examples), "x");
    assert_eq!(errors(""), ["x has no examples"]);
    assert_eq!(errors("Examples:\n  nothing up"), ["x: unknown program: nothing up"]);
    assert_eq!(errors("Examples:\n  teamctl stauts 'a b'"), ["x: cannot parse: teamctl stauts 'a b'"]);
}

#[test]
fn text_options_accept_text_with_a_leading_dash() {
    let command_lines: [&[&str]; 12] = [
        &["spawn", "ann", "--prompt", "- first"],
        &["create", "survey", "--description", "- first"],
        &["send", "ann", "- first", "--summary", "- first"],
        &["broadcast", "- first", "--summary", "- first"],
        &["shutdown", "ann", "--reason", "- first"],
        &["deny", "perm-1", "--reason", "- first"],
        &["answer-shutdown", "shutdown-1", "--reject", "--reason", "- first"],
        &["task", "create", "- first", "--json"],
        &["task", "create", "count", "--description", "- first", "--active-form", "-counting"],
        &["task", "update", "1", "--subject", "- first"],
        &["task", "update", "1", "--description", "- first"],
        &["task", "update", "1", "--active-form", "- first"],
    ];
    for args in command_lines {
        let parsed = Cli::try_parse_from([&["teamctl"], args].concat());
        assert!(parsed.is_ok(), "{args:?}: {}", parsed.unwrap_err());
    }
}
