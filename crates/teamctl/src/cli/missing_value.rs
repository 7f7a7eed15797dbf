//! Finds an option that holds a text and whose value was forgotten, as in `--reason --force`.
//!
//! A text may begin with `-`, so clap takes the next option as the text. The command would then do
//! something else than was meant, for example ask instead of end.

use super::Cli;
use clap::error::ErrorKind;
use clap::{Arg, Command, CommandFactory};
use std::ffi::OsString;

/// Checks the arguments of this process, without the name of the program.
///
/// # Errors
///
/// The value of a text option is an option of the same command.
pub(super) fn check_text_values(arguments: impl Iterator<Item = OsString>) -> Result<(), clap::Error> {
    let arguments: Vec<String> = arguments.map_while(|argument| argument.into_string().ok()).collect();
    // Building the parser of all commands takes long, and few command lines have two such arguments.
    if !arguments.windows(2).any(|pair| pair[0].starts_with('-') && pair[1].starts_with("--")) {
        return Ok(());
    }
    let mut root = Cli::command();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn message(line: &str) -> Option<String> {
        let error = check_text_values(line.split(' ').map(OsString::from)).err()?;
        error.to_string().lines().next().map(str::to_owned)
    }

    #[test]
    fn option_is_no_text() {
        let missing = |option: &str, next: &str| {
            Some(format!("error: the value of {option} is missing, because {next} is an option"))
        };
        assert_eq!(message("shutdown ann --reason --force"), missing("--reason", "--force"));
        assert_eq!(message("shutdown ann --reason --json"), missing("--reason", "--json"));
        assert_eq!(
            message("task create x --description --active-form y"),
            missing("--description", "--active-form")
        );
        assert_eq!(message("status -t --json"), missing("--team", "--json"));
    }

    #[test]
    fn other_texts_are_taken() {
        for line in [
            "shutdown ann --reason=--force",
            "shutdown ann --reason --forced",
            "shutdown ann --reason -x --force",
            "send bob --summary",
            "send bob -- --reason --force",
            "spawn ann --prompt -x -- --prompt --model",
            "task list --all --available",
        ] {
            assert_eq!(message(line), None, "{line}");
        }
    }
}
