//! Finds a text option whose value was forgotten, as in `shutdown ann --reason --force`.
//!
//! The value of a text option may begin with `-`, so clap would accept `--force` as the reason. The
//! command would then only ask the member to end, although the user wants to end it by force.

use clap::error::ErrorKind;
use clap::{Arg, Command};
use std::ffi::OsString;

/// The options whose value may begin with `-`. `cli::tests::text_options_are_those_of_the_parser` checks
/// this list.
pub(crate) const TEXT_OPTIONS: [&str; 9] = [
    "--active-form",
    "--command",
    "--description",
    "--prompt",
    "--reason",
    "--subject",
    "--summary",
    "--team",
    "-t",
];

/// Checks that each text option has its value. `arguments` are the arguments of this process
/// without the program's name. `build_command` builds the parser of all commands.
///
/// # Errors
///
/// `InvalidValue` if a text option is followed by an option of the same command.
pub(super) fn check_text_values(
    arguments: impl Iterator<Item = OsString>,
    build_command: fn() -> Command,
) -> Result<(), clap::Error> {
    let arguments: Vec<String> = arguments.map_while(|argument| argument.into_string().ok()).collect();
    let is_suspect = |pair: &[String]| TEXT_OPTIONS.contains(&pair[0].as_str()) && pair[1].starts_with('-');
    // Building the parser takes long, and few command lines have two such arguments.
    if !arguments.windows(2).any(is_suspect) {
        return Ok(());
    }
    let mut root = build_command();
    root.build();
    let mut command = &root;
    let mut arguments = arguments.iter().take_while(|argument| *argument != "--");
    while let Some(argument) = arguments.next() {
        match find_option(command, argument) {
            Some(option) if !option.get_action().takes_values() => {}
            Some(option) => {
                let value = arguments.next();
                if let Some(value) = value.filter(|value| find_option(command, value).is_some())
                    && option.is_allow_hyphen_values_set()
                {
                    return Err(missing_value(command.clone(), option, value));
                }
            }
            None => command = command.find_subcommand(argument).unwrap_or(command),
        }
    }
    Ok(())
}

fn find_option<'a>(command: &'a Command, argument: &str) -> Option<&'a Arg> {
    let is_named = |option: &&Arg| match argument.strip_prefix("--") {
        Some(long_name) => option.get_long().is_some_and(|name| name == long_name),
        None => option.get_short().is_some_and(|name| argument == format!("-{name}")),
    };
    command.get_arguments().find(is_named)
}

fn missing_value(mut command: Command, option: &Arg, argument: &str) -> clap::Error {
    let option = option.get_long().unwrap_or_default();
    let text = format!(
        "the value of --{option} is missing, because {argument} is an option\n\n  \
         if {argument} is meant as the text, type --{option}={argument}"
    );
    command.error(ErrorKind::InvalidValue, text)
}
