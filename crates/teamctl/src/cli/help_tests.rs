//! Tests that the help of every command has a short summary and examples, and that the examples can
//! be parsed.

use super::Cli;
use super::help_layout::list_frequent_commands;
use clap::{Command, CommandFactory, Parser};

/// The programs other than `teamctl` with which an example may begin.
const PROGRAMS: [&str; 6] = ["claude", "codex", "git", "printf", "ssh", "tmux"];

/// The summary of a command may have this many words.
const MAX_SUMMARY_WORDS: usize = 10;

/// The example below the summary. `None` if the paragraph below the summary is something else.
fn first_example(command: &Command) -> Option<String> {
    let help = command.clone().render_long_help().to_string();
    help.lines().nth(2)?.strip_prefix("Example: ").map(str::to_owned)
}

/// The lines below `Examples:` or `Without a file:`, up to the next paragraph.
fn more_examples(command: &Command) -> Vec<String> {
    let help = command.clone().render_long_help().to_string();
    let lists = ["\nExamples:\n", "\nWithout a file:\n"];
    let Some((_, examples)) = lists.iter().find_map(|title| help.split_once(title)) else {
        return Vec::new();
    };
    examples.lines().take_while(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect()
}

/// Splits a line of an example into arguments, as a shell does, up to the first `|`, `>` or `<`.
/// Supports only the syntax that the examples use.
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

/// Why the summary of a command is wrong.
fn summary_error(command: &Command, name: &str) -> Option<String> {
    let summary = command.get_about().map(ToString::to_string).unwrap_or_default();
    let count = summary.split_whitespace().count();
    (!(1..=MAX_SUMMARY_WORDS).contains(&count)).then(|| format!("{name}: {count} words: {summary}"))
}

/// The errors in the summary and the examples of one command.
fn own_errors(command: &Command, name: &str) -> Vec<String> {
    let Some(first) = first_example(command) else {
        return vec![format!("{name}: no example below the summary")];
    };
    let error = |line: &String| {
        let args = split_shell_args(line);
        match args[0].as_str() {
            "teamctl" => is_rejected(&args).then(|| format!("{name}: cannot parse: {line}")),
            program => (!PROGRAMS.contains(&program)).then(|| format!("{name}: unknown program: {line}")),
        }
    };
    let examples = std::iter::once(first).chain(more_examples(command));
    examples.filter_map(|line| error(&line)).chain(summary_error(command, name)).collect()
}

/// The errors in the help of a command and all its subcommands.
fn help_errors(command: &Command, name: &str) -> Vec<String> {
    let subcommands = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    let errors = subcommands
        .flat_map(|subcommand| help_errors(subcommand, &format!("{name} {}", subcommand.get_name())));
    own_errors(command, name).into_iter().chain(errors).collect()
}

#[test]
fn every_command_has_a_short_summary_and_examples_that_can_be_parsed() {
    let commands = Cli::command();
    let names = commands.get_subcommands().map(|command| (command, command.get_name()));
    let errors: Vec<String> = names.flat_map(|(command, name)| help_errors(command, name)).collect();
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!(own_errors(&list_frequent_commands(Cli::command()), "teamctl"), Vec::<String>::new());
    let errors = |summary: &str, example: &str, more: &'static str| {
        let command = Command::new("x").about(summary.to_owned()).after_help(more);
        own_errors(&command.long_about(format!("{summary}\n\n{example}")), "x")
    };
    assert_eq!(errors("Do it", "Nothing", ""), ["x: no example below the summary"]);
    assert_eq!(errors("Do it", "Example: nothing up", ""), ["x: unknown program: nothing up"]);
    let cannot_parse = ["x: cannot parse: teamctl stauts 'a b'"];
    assert_eq!(errors("Do it", "Example: teamctl stauts 'a b'", ""), cannot_parse);
    assert_eq!(errors("Do it", "Example: teamctl up", "Examples:\n  teamctl stauts 'a b'"), cannot_parse);
    let long = "one two three four five six seven eight nine ten eleven";
    assert_eq!(errors(long, "Example: teamctl up", ""), [format!("x: 11 words: {long}")]);
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
