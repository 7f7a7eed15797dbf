//! Lays out the help texts of `teamctl`. The help of `teamctl` itself lists the commands in groups,
//! each below a heading such as `Watch`, with a summary of each command. clap cannot group
//! subcommands, so this module renders the list, and the help template contains the rendered list
//! instead of clap's list.

use clap::Command;
use clap::builder::Resettable;
use std::fmt::Write;

/// A heading in the list of commands, and the names of the commands below this heading, in the
/// order in which the help shows them.
type Heading = (&'static str, &'static [&'static str]);

/// The commands that `teamctl help` lists.
const FREQUENT_COMMANDS: [Heading; 7] = [
    ("Start and stop", &["run", "up", "down", "ask"]),
    (
        "Teams and members",
        &["create", "spawn", "lead", "policy", "mode", "interrupt", "shutdown", "kill", "delete"],
    ),
    ("Watch", &["status", "report", "top", "attach", "logs", "replay"]),
    ("Messages and tasks", &["send", "broadcast", "inbox", "wait", "task", "merge"]),
    ("Requests", &["requests", "approve", "deny"]),
    ("When something is wrong", &["why", "trace", "events", "doctor"]),
    ("Set up", &["profiles", "setup", "hosts", "home"]),
];

/// The commands that only `teamctl help --all` lists.
const OTHER_COMMANDS: [Heading; 4] = [
    ("Panes", &["capture", "hide", "show", "layout"]),
    ("Archives", &["export", "import"]),
    ("For agents", &["mcp", "instructions", "submit-plan", "answer-shutdown"]),
    ("Other", &["notify", "completions", "man", "help"]),
];

/// Makes the help of `teamctl` list the frequent commands.
pub(crate) fn list_frequent_commands(teamctl: Command) -> Command {
    let list = render_list(&teamctl, &FREQUENT_COMMANDS);
    with_command_list(teamctl, &list)
}

/// Makes the help of `teamctl` list all commands, for `teamctl help --all`.
pub(crate) fn list_all_commands(teamctl: Command) -> Command {
    let list = render_list(&teamctl, &[&FREQUENT_COMMANDS[..], &OTHER_COMMANDS].concat());
    with_command_list(teamctl, &list)
}

fn render_list(teamctl: &Command, headings: &[Heading]) -> String {
    let header = teamctl.get_styles().get_header();
    let mut list = String::new();
    for (heading, names) in headings {
        write!(list, "{header}{heading}:{header:#}\n{}\n", render_lines(teamctl, names)).ok();
    }
    list
}

/// Renders one line for each command: its name and its summary.
fn render_lines(teamctl: &Command, names: &[&str]) -> String {
    let literal = teamctl.get_styles().get_literal();
    let commands = names.iter().filter_map(|name| teamctl.find_subcommand(name));
    let line = |command: &Command| {
        let summary = command.get_about().map(ToString::to_string).unwrap_or_default();
        format!("  {literal}{:<15}{literal:#}  {summary}\n", command.get_name())
    };
    commands.map(line).collect()
}

fn with_command_list(teamctl: Command, list: &str) -> Command {
    let header = *teamctl.get_styles().get_header();
    let teamctl = teamctl.mut_subcommands(|command| command.defer(with_short_layout));
    teamctl.help_template(format!(
        "{{about-with-newline}}\nExample: teamctl run survey.toml\n\n{{usage-heading}} {{usage}}\n\n\
         {list}{header}Options:{header:#}\n{{options}}{{after-help}}"
    ))
}

/// Makes `-h` and `--help` of a command print the same page: the whole description, then each
/// option on one line. If a command has a long description, clap prints each option on several
/// lines. To avoid that, this function sets the whole description as the short description, and
/// removes the long one.
fn with_short_layout(command: Command) -> Command {
    let description = command.get_long_about().or(command.get_about()).cloned().unwrap_or_default();
    let command = command.about(description).long_about(Resettable::Reset);
    command.mut_subcommands(|subcommand| subcommand.defer(with_short_layout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, full_parser};
    use clap::CommandFactory;

    #[test]
    fn every_command_is_below_one_heading() {
        let headings = FREQUENT_COMMANDS.iter().chain(&OTHER_COMMANDS);
        let mut listed: Vec<&str> = headings.flat_map(|(_, names)| names.iter().copied()).collect();
        listed.sort_unstable();
        let teamctl = Cli::command();
        let shown = teamctl.get_subcommands().filter(|command| !command.is_hide_set());
        let mut names: Vec<&str> = shown.map(Command::get_name).collect();
        names.sort_unstable();
        assert_eq!(listed, names);
    }

    #[test]
    fn help_of_a_command_begins_with_summary_and_example() {
        for (words, page) in [
            ("show --help", "Show a hidden member's pane again\n\nExample: teamctl show ann\n\nThe pane "),
            ("task get -h", "Show a task in full\n\nExample: teamctl task get 3\n\nUsage: teamctl task get "),
        ] {
            let help = full_parser().try_get_matches_from(format!("teamctl {words}").split(' ')).unwrap_err();
            assert!(help.to_string().starts_with(page), "{help}");
            assert!(help.to_string().contains("\n      --json  "), "{help}");
        }
    }

    #[test]
    fn help_names_the_full_list_in_its_last_line() {
        let help = list_frequent_commands(Cli::command()).render_help().to_string();
        assert!(
            help.trim_end().lines().last().is_some_and(|line| line.contains("teamctl help --all")),
            "{help}"
        );
        assert!(help.contains("\nRequests:\n  requests ") && !help.contains("\n  man "), "{help}");
        let help = list_all_commands(Cli::command()).render_help().to_string();
        assert!(help.contains("\nRequests:\n  requests ") && help.contains("\n  man "), "{help}");
    }
}
