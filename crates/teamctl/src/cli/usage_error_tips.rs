//! Adds tips to clap's usage errors:
//!
//! If `--host` follows the command, the tip is to type it before the command.
//!
//! If the user typed a command of another program, such as `ls`, the tip names similar commands of
//! `teamctl`. If `spawn` lacks the `--` before the member's program, the tip is the command line
//! with `--`. If an argument is missing, the tip is the full usage.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use protocol::shell_quote::shell_quote;

/// Command names of other programs, each with the commands of `teamctl` that may be meant.
const COMMAND_SYNONYMS: [(&str, &[&str]); 23] = [
    ("add", &["spawn", "create"]),
    ("daemon", &["up"]),
    ("destroy", &["delete"]),
    ("end", &["shutdown", "down"]),
    ("exit", &["down", "shutdown"]),
    ("history", &["events"]),
    ("init", &["create"]),
    ("list", &["status"]),
    ("ls", &["status"]),
    ("mail", &["inbox"]),
    ("message", &["send"]),
    ("messages", &["inbox"]),
    ("msg", &["send"]),
    ("new", &["create", "spawn"]),
    ("open", &["attach"]),
    ("quit", &["down"]),
    ("read", &["inbox"]),
    ("remove", &["delete", "kill"]),
    ("rm", &["delete"]),
    ("start", &["up", "spawn"]),
    ("stop", &["down", "shutdown"]),
    ("tail", &["logs"]),
    ("tell", &["send"]),
];

/// Adds tips to `error`, a usage error of the parser `root`. `arguments` are the parsed arguments,
/// without the name of the program.
pub(crate) fn add_tips(error: &mut clap::Error, arguments: &[String], mut root: Command) {
    root.build();
    let command = find_command(&root, arguments);
    match error.kind() {
        ErrorKind::InvalidSubcommand if command.get_name() == root.get_name() => {
            suggest_commands(error, &root);
        }
        ErrorKind::UnknownArgument if is_host_option(error) => {
            let words = command.get_bin_name().unwrap_or_default().split(' ').skip(1).collect::<Vec<_>>();
            let tip = format!("--host comes before the command: teamctl --host NAME {}", words.join(" "));
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            error.remove(ContextKind::SuggestedArg);
        }
        ErrorKind::UnknownArgument if command.get_name() == "spawn" => suggest_program(error, arguments),
        ErrorKind::MissingRequiredArgument => {
            let usage = command.clone().render_usage();
            if ["approve", "deny"].contains(&command.get_name()) {
                let tip = "requests and their IDs: teamctl requests".into();
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
            }
            error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
        }
        _ => {}
    }
}

/// Whether the unknown argument is the option that names a host.
fn is_host_option(error: &clap::Error) -> bool {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return false };
    unknown.split('=').next() == Some("--host")
}

/// The command that the arguments name.
fn find_command<'a>(root: &'a Command, arguments: &[String]) -> &'a Command {
    let words = arguments.iter().take_while(|word| *word != "--");
    words.fold(root, |command, word| command.find_subcommand(word).unwrap_or(command))
}

/// Names the commands that may be meant, each with what it does.
fn suggest_commands(error: &mut clap::Error, root: &Command) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return };
    let Some((_, commands)) = COMMAND_SYNONYMS.iter().find(|(synonym, _)| synonym == word) else { return };
    let about = |name| root.find_subcommand(name).and_then(Command::get_about).cloned().unwrap_or_default();
    let tips = commands.iter().map(|name| format!("teamctl {name}: {}", about(name)).into());
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips.collect()));
    error.remove(ContextKind::SuggestedSubcommand);
}

/// The program of a spawn stands behind `--`. Without it, clap takes the program for another name.
fn suggest_program(error: &mut clap::Error, arguments: &[String]) {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return };
    let Some(index) = arguments.iter().position(|argument| argument == unknown) else { return };
    if unknown.starts_with('-') {
        return;
    }
    let quote = |arguments: &[String]| {
        arguments.iter().map(|argument| shell_quote(argument)).collect::<Vec<_>>().join(" ")
    };
    let (own_arguments, program_arguments) = arguments.split_at(index);
    let tip = format!(
        "the program comes after --: teamctl {} -- {}",
        quote(own_arguments),
        quote(program_arguments)
    );
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::{CommandFactory, Parser};

    fn error_text(line: &str) -> String {
        let words = std::iter::once("teamctl").chain(line.split(' '));
        let mut error = Cli::try_parse_from(words).unwrap_err();
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        add_tips(&mut error, &arguments, Cli::command());
        error.to_string()
    }

    #[test]
    fn errors_name_what_was_meant() {
        assert!(error_text("start").contains("tip: teamctl up: Start teamd"), "{}", error_text("start"));
        let spawn = error_text("-t survey spawn zed echo hi");
        assert!(spawn.contains("teamctl -t survey spawn zed -- echo hi"), "{spawn}");
        for line in ["status --host far", "-q status --host=far"] {
            let tip = "--host comes before the command: teamctl --host NAME status";
            assert!(error_text(line).contains(tip), "{}", error_text(line));
        }
        assert!(!error_text("spawn zed --modle x").contains("comes after"));
        assert!(
            error_text("kill").contains("Usage: teamctl kill [OPTIONS] <NAMES>..."),
            "{}",
            error_text("kill")
        );
        let create = error_text("task create");
        assert!(create.contains("Usage: teamctl task create [OPTIONS] <SUBJECT>"), "{create}");
        assert!(error_text("approve").contains("tip: requests and their IDs: teamctl requests"));
        assert!(error_text("deny plan-1").contains("tip: requests and their IDs: teamctl requests"));
    }

    #[test]
    fn synonyms_are_no_commands_and_stand_for_commands() {
        let root = Cli::command();
        for (synonym, commands) in COMMAND_SYNONYMS {
            assert!(root.find_subcommand(synonym).is_none(), "{synonym}");
            assert!(commands.iter().all(|command| root.find_subcommand(command).is_some()), "{commands:?}");
        }
    }
}
