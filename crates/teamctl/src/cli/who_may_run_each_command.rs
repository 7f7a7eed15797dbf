//! Who may run each command (docs/permissions.md). `cli::dispatch` checks this before it runs a
//! command. The program does not compile if a command is missing here.

use super::cli_command::{CliCommand, IntegrationCommand};
use crate::use_other_hosts::check_not_asked;
use protocol::allowed_callers::AllowedCallers;
use protocol::error_kind_and_report::ErrorReport;

impl CliCommand {
    /// Refuses the commands of a program that `teamctl ask` has started, except those that only show
    /// something. Without this check, such a program would count as a person.
    pub(super) fn check_asked_program(&self) -> Result<(), ErrorReport> {
        let only_shows = matches!(
            self,
            CliCommand::Status(_)
                | CliCommand::Integration(
                    IntegrationCommand::Profiles(_)
                        | IntegrationCommand::Help(_)
                        | IntegrationCommand::Completions(_)
                        | IntegrationCommand::Man(_)
                )
        );
        if only_shows { Ok(()) } else { check_not_asked() }
    }

    /// Returns who may run this command with these arguments. This is checked before the command
    /// runs. A command that changes team files makes further checks, for example whether the caller
    /// may change this task.
    pub(super) fn allowed_callers(&self) -> AllowedCallers<'_> {
        match self {
            CliCommand::Status(_)
            | CliCommand::Send(_)
            | CliCommand::Broadcast(_)
            | CliCommand::Wait(_)
            | CliCommand::AnswerShutdown(_)
            | CliCommand::SubmitPlan(_)
            | CliCommand::Events(_) => AllowedCallers::Everyone,
            CliCommand::Up(args) => args.allowed_callers(),
            CliCommand::Policy(args) => args.allowed_callers(),
            CliCommand::Task(args) => args.allowed_callers(),
            CliCommand::Inbox(args) => args.allowed_callers(),
            CliCommand::Why(args) => args.allowed_callers(),
            CliCommand::Capture(args) => AllowedCallers::MemberLeadOrPerson(&args.name),
            CliCommand::Logs(args) => AllowedCallers::MemberLeadOrPerson(&args.name),
            CliCommand::Down(_)
            | CliCommand::Create(_)
            | CliCommand::Spawn(_)
            | CliCommand::Top(_)
            | CliCommand::Attach(_)
            | CliCommand::Hide(_)
            | CliCommand::Show(_)
            | CliCommand::Layout(_)
            | CliCommand::Requests(_)
            | CliCommand::Approve(_)
            | CliCommand::Deny(_)
            | CliCommand::Mode(_)
            | CliCommand::Interrupt(_)
            | CliCommand::Shutdown(_)
            | CliCommand::Kill(_)
            | CliCommand::Delete(_)
            | CliCommand::Merge(_)
            | CliCommand::Export(_)
            | CliCommand::Import(_)
            | CliCommand::Home(_)
            | CliCommand::Run(_)
            | CliCommand::Ask(_)
            | CliCommand::Report(_)
            | CliCommand::Replay(_)
            | CliCommand::Trace(_) => AllowedCallers::LeadOrPerson,
            CliCommand::Integration(command) => command.allowed_callers(),
        }
    }
}

impl IntegrationCommand {
    fn allowed_callers(&self) -> AllowedCallers<'_> {
        match self {
            IntegrationCommand::Doctor(args) => args.allowed_callers(),
            IntegrationCommand::Setup(args) => args.allowed_callers(),
            IntegrationCommand::Profiles(_)
            | IntegrationCommand::Mcp(_)
            | IntegrationCommand::Instructions(_)
            | IntegrationCommand::Help(_)
            | IntegrationCommand::Notify(_)
            | IntegrationCommand::Completions(_)
            | IntegrationCommand::Man(_) => AllowedCallers::Everyone,
            IntegrationCommand::Lead(_) | IntegrationCommand::Hosts(_) | IntegrationCommand::Annex(_) => {
                AllowedCallers::LeadOrPerson
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use super::*;
    use clap::{CommandFactory, Parser};
    use std::collections::BTreeSet;

    const PAGE: &str = include_str!("../../../../docs/permissions.md");

    /// The rows of the page's table of commands: who may run them, and the command lines.
    fn documented_commands() -> Vec<(&'static str, Vec<&'static str>)> {
        let table = PAGE.split("<!-- permissions: commands -->\n").nth(1).unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        rows.map(|row| {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            (cells[0], cells[1].split(", ").map(|command| command.trim_matches('`')).collect())
        })
        .collect()
    }

    fn parse(command: &str) -> CliCommand {
        let words = command.split(' ').map(|word| if word == "ID" { "1" } else { word });
        let line = Cli::try_parse_from(std::iter::once("teamctl").chain(words));
        line.unwrap_or_else(|error| panic!("{command}: {error}")).command
    }

    #[test]
    fn page_says_who_may_run_each_command() {
        for (caller, commands) in documented_commands() {
            for command in commands {
                let parsed = parse(command);
                let expected = match parsed.allowed_callers() {
                    AllowedCallers::Everyone => "everyone",
                    AllowedCallers::MemberLeadOrPerson("NAME") => "the member NAME, the lead, a person",
                    AllowedCallers::LeadOrPerson => "the lead, a person",
                    AllowedCallers::MemberLeadOrPerson(other) => panic!("{command}: {other}"),
                };
                assert_eq!(caller, expected, "{command}");
            }
        }
    }

    #[test]
    fn page_has_every_command() {
        let command_names = |command: &clap::Command| -> BTreeSet<String> {
            command.get_subcommands().map(|command| command.get_name().to_owned()).collect()
        };
        let root = Cli::command();
        let commands = documented_commands().into_iter().flat_map(|(_, commands)| commands);
        let words: Vec<Vec<&str>> = commands.map(|command| command.split(' ').collect()).collect();
        let first_words: BTreeSet<String> = words.iter().map(|words| words[0].to_owned()).collect();
        assert_eq!(first_words, command_names(&root));
        let task_commands = words.iter().filter(|words| words[0] == "task").map(|words| words[1].to_owned());
        assert_eq!(
            task_commands.collect::<BTreeSet<_>>(),
            command_names(root.find_subcommand("task").unwrap())
        );
    }
}
