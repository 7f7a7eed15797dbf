//! Defines the command line of `teamctl`, and calls the function of the command that the user
//! typed. clap prints the doc comments of the argument structs as help texts and man pages.

mod cli_command;
mod forgotten_option_value;
pub(crate) mod help_layout;
#[cfg(test)]
mod help_tests;
mod route_to_hosts_of_members;
pub(crate) mod usage_error_tips;
mod who_may_run_each_command;

pub(crate) use cli_command::{CliCommand, IntegrationCommand};
pub(crate) use forgotten_option_value::TEXT_OPTIONS;

use crate::command_context::{CommandContext, GlobalArgs};
use crate::commands;
use crate::commands::run_on_other_host::{self, RemoteRunReason};
use crate::use_other_hosts::check_may_use_other_hosts;
use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use protocol::error_kind_and_report::ErrorReport;
use std::process::ExitCode;

/// Run teams of coding agents in tmux
#[derive(Debug, Parser)]
#[command(
    name = "teamctl",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "\
Without a file:\n  teamctl up\n  teamctl create survey\n  teamctl spawn ann --profile worker\n  \
teamctl task create 'count the lines' --command 'wc -l *.md'\n  teamctl status\n  \
teamctl shutdown --all\n  teamctl delete survey\n  teamctl down\n\n\
TEAMD_ROOT, TEAMD_SOCKET, TEAMD_TEAM and TEAMD_HOST in the environment replace --root, --socket, -t and --host.\n\
An agent that runs teamctl acts as itself; anyone else acts as the team's lead.\n\
`teamctl help COMMAND` explains a command.\n\
`teamctl help --all` lists all commands."
)]
pub(crate) struct CommandLine<C: Subcommand> {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: C,
}

/// The command line with all commands.
pub(crate) type Cli = CommandLine<CliCommand>;

/// Parses the arguments of this process.
///
/// Building one parser for all commands takes longer than sending a message. So the most frequent
/// commands have small parsers, which are tried first. If no small parser accepts the arguments,
/// the full parser parses them. Only the full parser reports errors and prints help.
pub(crate) fn parse_command_line() -> Result<Cli, clap::Error> {
    forgotten_option_value::check_text_values(std::env::args_os().skip(1), Cli::command)?;
    parse_quickly::<FrequentCommand>()
        .or_else(parse_quickly::<FrequentTaskCommand>)
        .map_or_else(|| Cli::from_arg_matches(&full_parser().try_get_matches()?), Ok)
}

/// The parser of all commands, which reports errors and prints help.
pub(crate) fn full_parser() -> Command {
    Cli::command().defer(help_layout::list_frequent_commands)
}

/// Parses the arguments with a parser that has only the commands of the type `C`. Returns `None` if
/// this parser does not accept the arguments. The caller then tries the next parser.
fn parse_quickly<C: Subcommand + Into<CliCommand>>() -> Option<Cli> {
    let is_command = |argument: std::ffi::OsString| argument.to_str().is_some_and(C::has_subcommand);
    let may_succeed = std::env::args_os().skip(1).any(is_command);
    let line = may_succeed.then(CommandLine::<C>::try_parse)?.ok()?;
    Some(CommandLine { global: line.global, command: line.command.into() })
}

/// The most frequent commands of agents, hooks and scripts.
#[derive(Debug, Subcommand)]
enum FrequentCommand {
    Send(commands::send::SendArgs),
    Inbox(commands::inbox::InboxArgs),
    Status(commands::status::StatusArgs),
}

/// The subcommands of `task`, separate from [`FrequentCommand`] because their parser is large.
#[derive(Debug, Subcommand)]
enum FrequentTaskCommand {
    Task(commands::task::TaskArgs),
}

impl From<FrequentTaskCommand> for CliCommand {
    fn from(FrequentTaskCommand::Task(task): FrequentTaskCommand) -> CliCommand {
        CliCommand::Task(task)
    }
}

impl From<FrequentCommand> for CliCommand {
    fn from(command: FrequentCommand) -> CliCommand {
        match command {
            FrequentCommand::Send(args) => CliCommand::Send(args),
            FrequentCommand::Inbox(args) => CliCommand::Inbox(args),
            FrequentCommand::Status(args) => CliCommand::Status(args),
        }
    }
}

/// Runs a command, which prints its results. First checks that the caller may run it.
pub(crate) fn dispatch(command: CliCommand, context: &CommandContext) -> Result<ExitCode, ErrorReport> {
    if let Some(host) = context.args.host.as_ref().filter(|_| !command.is_about_this_program()) {
        check_may_use_other_hosts(context)?;
        return run_on_other_host::run(context, host, &RemoteRunReason::Typed, command.terminal_use());
    }
    command.check_asked_program()?;
    command.allowed_callers().check("run this command", &context.caller_name())?;
    route_to_hosts_of_members::dispatch(command, context, dispatch_here)
}

/// Runs a command on this host.
fn dispatch_here(command: CliCommand, context: &CommandContext) -> Result<ExitCode, ErrorReport> {
    match command {
        CliCommand::Up(args) => commands::up_start_daemon::run(context, &args),
        CliCommand::Down(args) => commands::down_stop_daemon::run(context, &args),
        CliCommand::Create(args) => commands::create::run(context, &args),
        CliCommand::Spawn(args) => commands::spawn::run(context, args),
        CliCommand::Status(args) => commands::status::run(context, &args),
        CliCommand::Top(args) => commands::exec_teamd_top::run(context, &args),
        CliCommand::Attach(args) => commands::attach::run(context, &args),
        CliCommand::Capture(args) => commands::capture::run(context, &args),
        CliCommand::Hide(args) => commands::hide_pane::run(context, &args),
        CliCommand::Show(args) => commands::show_hidden_pane::run(context, &args),
        CliCommand::Layout(args) => commands::layout::run(context, &args),
        CliCommand::Logs(args) => commands::logs::run(context, &args),
        CliCommand::Send(args) => commands::send::run(context, &args),
        CliCommand::Broadcast(args) => commands::broadcast::run(context, &args),
        CliCommand::Inbox(args) => commands::inbox::run(context, &args),
        CliCommand::Wait(args) => commands::wait::run(context, &args),
        CliCommand::Requests(args) => commands::requests::run(context, &args),
        CliCommand::Approve(args) => commands::approve::run(context, &args),
        CliCommand::Deny(args) => commands::deny::run(context, &args),
        CliCommand::Mode(args) => commands::set_permission_mode::run(context, &args),
        CliCommand::Interrupt(args) => commands::interrupt::run(context, &args),
        CliCommand::Shutdown(args) => commands::shutdown::run(context, &args),
        CliCommand::AnswerShutdown(args) => commands::answer_shutdown::run(context, &args),
        CliCommand::SubmitPlan(args) => commands::submit_plan::run(context, &args),
        CliCommand::Kill(args) => commands::kill::run(context, &args),
        CliCommand::Delete(args) => commands::delete::run(context, &args),
        CliCommand::Policy(args) => commands::policy::run(context, &args),
        CliCommand::Merge(args) => commands::merge::run(context, &args),
        CliCommand::Export(args) => commands::export::run(context, &args),
        CliCommand::Import(args) => commands::import::run(context, &args),
        CliCommand::Home(args) => commands::home::run(context, &args),
        CliCommand::Task(args) => commands::task::run(context, &args),
        CliCommand::Run(args) => commands::run_team_from_file::run(context, &args),
        CliCommand::Ask(args) => commands::ask::run(context, *args),
        CliCommand::Events(args) => commands::events::run(context, &args),
        CliCommand::Trace(args) => commands::diagnose::trace_message::run(context, &args),
        CliCommand::Report(args) => commands::report::run(context, &args),
        CliCommand::Replay(args) => commands::replay::run(context, &args),
        CliCommand::Why(args) => commands::diagnose::why_no_progress::run(context, &args),
        CliCommand::Integration(command) => dispatch_integration(command, context),
    }
}

fn dispatch_integration(
    command: IntegrationCommand,
    context: &CommandContext,
) -> Result<ExitCode, ErrorReport> {
    match command {
        IntegrationCommand::Profiles(args) => commands::profiles::run(context, args),
        IntegrationCommand::Hosts(args) => commands::hosts::run(context, &args),
        IntegrationCommand::Annex(args) => commands::annex::run(context, args),
        IntegrationCommand::Setup(args) => commands::setup_program_settings::run(context, &args),
        IntegrationCommand::Doctor(args) => commands::diagnose::doctor::run(context, &args),
        IntegrationCommand::Mcp(args) => commands::exec_teamd_mcp::run(context, &args),
        IntegrationCommand::Instructions(args) => commands::instructions::run(context, &args),
        IntegrationCommand::Lead(args) => commands::make_this_session_the_lead::run(context, &args),
        IntegrationCommand::Notify(args) => commands::notify_person_by_command::run(&args),
        IntegrationCommand::Help(args) => commands::help::run(&args, Cli::command()),
        IntegrationCommand::Completions(args) => commands::completions::run(&args, &Cli::command()),
        IntegrationCommand::Man(args) => commands::man::run(&args, Cli::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_parsers_agree_with_the_parser_of_all_commands() {
        fn parse_quickly<C: Subcommand + Into<CliCommand>>(arguments: &[&str]) -> Option<String> {
            let line = CommandLine::<C>::try_parse_from(arguments).ok()?;
            let line = CommandLine::<CliCommand> { global: line.global, command: line.command.into() };
            Some(format!("{line:?}"))
        }
        for (line, is_quick) in [
            ("teamctl send bob hello --team survey", true),
            ("teamctl --json -t survey inbox --unread", true),
            ("teamctl -q status", true),
            ("teamctl task claim 3", true),
            ("teamctl task list --available --root /r", true),
            ("teamctl status -t -x", true),
            ("teamctl create send", false),
            ("teamctl send", false),
        ] {
            let arguments: Vec<&str> = line.split(' ').collect();
            let quick = parse_quickly::<FrequentCommand>(&arguments)
                .or_else(|| parse_quickly::<FrequentTaskCommand>(&arguments));
            assert_eq!(quick.is_some(), is_quick, "{line}");
            let full = Cli::try_parse_from(&arguments).ok().map(|line| format!("{line:?}"));
            assert!(quick.is_none() || quick == full, "{line}: {quick:?}, {full:?}");
        }
    }

    #[test]
    fn command_names_are_those_of_the_parser() {
        let command = Cli::command();
        let names = command.get_subcommands().flat_map(|command| command.get_name_and_visible_aliases());
        let names = names.filter(|name| *name != "help");
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        assert_eq!(names, crate::add_options_to_suggested_commands::COMMAND_NAMES);
    }

    #[test]
    fn team_name_may_begin_with_a_hyphen() {
        let line = Cli::try_parse_from(["teamctl", "up", "--resume", "-t", "-x"]).unwrap();
        assert!(format!("{line:?}").contains(r#"team: Some("-x")"#), "{line:?}");
    }

    #[test]
    fn text_options_are_those_of_the_parser() {
        let mut root = Cli::command();
        root.build();
        let mut commands = vec![&root];
        let mut options = std::collections::BTreeSet::new();
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands());
            let is_text =
                |arg: &&clap::Arg| arg.is_allow_hyphen_values_set() && arg.get_action().takes_values();
            for option in command.get_arguments().filter(is_text) {
                options.extend(option.get_long().map(|long| format!("--{long}")));
                options.extend(option.get_short().map(|short| format!("-{short}")));
            }
        }
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        assert_eq!(options, forgotten_option_value::TEXT_OPTIONS);
    }

    fn missing_value_message(line: &str) -> Option<String> {
        let error =
            forgotten_option_value::check_text_values(line.split(' ').map(Into::into), Cli::command).err()?;
        error.to_string().lines().next().map(str::to_owned)
    }

    #[test]
    fn option_is_no_text() {
        let error_text = |option: &str, argument: &str| {
            Some(format!("error: the value of {option} is missing, because {argument} is an option"))
        };
        assert_eq!(missing_value_message("shutdown ann --reason --force"), error_text("--reason", "--force"));
        assert_eq!(missing_value_message("shutdown ann --reason --json"), error_text("--reason", "--json"));
        assert_eq!(
            missing_value_message("task create x --description --active-form y"),
            error_text("--description", "--active-form")
        );
        assert_eq!(missing_value_message("status -t --json"), error_text("--team", "--json"));
        assert_eq!(missing_value_message("shutdown ann --reason -q"), error_text("--reason", "-q"));
    }

    #[test]
    fn other_texts_are_taken() {
        for line in [
            "shutdown ann --reason=--force",
            "shutdown ann --reason --forced",
            "shutdown ann --reason -x --force",
            "send bob --summary",
            "shutdown -t status --reason --command",
            "send bob -- --reason --force",
            "spawn ann --prompt -x -- --prompt --model",
            "task list --all --available",
        ] {
            assert_eq!(missing_value_message(line), None, "{line}");
        }
    }
}
