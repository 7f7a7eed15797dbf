//! Finds an option that holds a text and whose value was forgotten, as in `--reason --force`.
//!
//! A text may begin with `-`, so clap takes the next option as the text. The command would then do
//! something else than was meant, for example ask instead of end.

use clap::error::ErrorKind;
use clap::{Arg, Command};
use std::ffi::OsString;

/// Checks the arguments of this process, without the name of the program. `build_command` builds the
/// parser of all commands.
///
/// # Errors
///
/// The value of a text option is an option of the same command.
pub(super) fn check_text_values(
    arguments: impl Iterator<Item = OsString>,
    build_command: fn() -> Command,
) -> Result<(), clap::Error> {
    let arguments: Vec<String> = arguments.map_while(|argument| argument.into_string().ok()).collect();
    // Building the parser takes long, and few command lines have two such arguments.
    if !arguments.windows(2).any(|pair| pair[0].starts_with('-') && pair[1].starts_with("--")) {
        return Ok(());
    }
    let mut root = build_command();
    root.build();
    let mut command = &root;
    for (index, argument) in arguments.iter().enumerate().take_while(|(_, argument)| *argument != "--") {
        command = command.find_subcommand(argument).unwrap_or(command);
        if let Some(next) = arguments.get(index + 1)
            && let Some(option) = find_text_option(command, argument)
            && find_option(command, next).is_some()
        {
            return Err(missing_value(command.clone(), option, next));
        }
    }
    Ok(())
}

fn find_text_option<'a>(command: &'a Command, argument: &str) -> Option<&'a Arg> {
    let is_text = |option: &Arg| option.is_allow_hyphen_values_set() && option.get_action().takes_values();
    find_option(command, argument).filter(|option| is_text(option))
}

fn find_option<'a>(command: &'a Command, argument: &str) -> Option<&'a Arg> {
    let is_named = |option: &&Arg| match argument.strip_prefix("--") {
        Some(long) => option.get_long().is_some_and(|name| name == long),
        None => option.get_short().is_some_and(|name| argument == format!("-{name}")),
    };
    command.get_arguments().find(is_named)
}

fn missing_value(mut command: Command, option: &Arg, next: &str) -> clap::Error {
    let option = option.get_long().unwrap_or_default();
    let text = format!(
        "the value of --{option} is missing, because {next} is an option\n\n  \
         if {next} is meant as the text, type --{option}={next}"
    );
    command.error(ErrorKind::InvalidValue, text)
}
