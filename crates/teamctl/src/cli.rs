//! What the user may type. The doc comments are the help texts and the man pages.

#[cfg(test)]
mod help_tests;

use crate::commands;
use crate::context::{CommandContext, GlobalArgs};
use clap::{CommandFactory, Parser, Subcommand};
use protocol::error::ErrorReport;
use std::process::ExitCode;

/// Drive teams of coding agents in tmux
///
/// A whole team from a file: teamctl run FILE. By hand: up, create, spawn, task create, status; and at the end
/// shutdown, delete, down. Inside an agent team and sender are known; elsewhere you are the lead.
#[derive(Debug, Parser)]
#[command(
    name = "teamctl",
    version,
    max_term_width = 100,
    after_help = "Examples:\n  teamctl run survey.toml\n  teamctl up\n  teamctl create survey\n  teamctl spawn ann --profile worker\n  teamctl help spawn"
)]
pub(crate) struct CommandLine<V: Subcommand> {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) verb: V,
}

/// Any line.
pub(crate) type Cli = CommandLine<CliCommand>;

/// What was typed. To make the parser of all verbs takes longer than to send a message: it is made where a line is none
/// of those that are said all day, and to tell what is wrong, or to help.
pub(crate) fn parse_command_line() -> Result<Cli, clap::Error> {
    alone::<Often>().or_else(alone::<OfTasks>).map_or_else(Cli::try_parse, Ok)
}

fn alone<V: Subcommand + Into<CliCommand>>() -> Option<Cli> {
    let is_one = |word: std::ffi::OsString| word.to_str().is_some_and(V::has_subcommand);
    let might_be = std::env::args_os().skip(1).any(is_one);
    let line = might_be.then(CommandLine::<V>::try_parse)?.ok()?;
    Some(CommandLine { global: line.global, verb: line.verb.into() })
}

/// What agents, hooks and scripts say all day.
#[derive(Debug, Subcommand)]
enum Often {
    Send(commands::send::SendArgs),
    Inbox(commands::inbox::InboxArgs),
    Status(commands::status::StatusArgs),
}

/// The same, with many verbs of its own.
#[derive(Debug, Subcommand)]
enum OfTasks {
    Task(commands::task::TaskArgs),
}

impl From<OfTasks> for CliCommand {
    fn from(OfTasks::Task(task): OfTasks) -> CliCommand {
        CliCommand::Task(task)
    }
}

impl From<Often> for CliCommand {
    fn from(often: Often) -> CliCommand {
        match often {
            Often::Send(it) => CliCommand::Send(it),
            Often::Inbox(it) => CliCommand::Inbox(it),
            Often::Status(it) => CliCommand::Status(it),
        }
    }
}

/// One verb each; its arguments stand in its own file.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    Up(commands::up::UpArgs),
    Down(commands::down::DownArgs),
    Create(commands::create::CreateArgs),
    Spawn(profile::spawn_request::SpawnOptions),
    #[command(visible_alias = "ps")]
    Status(commands::status::StatusArgs),
    Top(commands::top::TopArgs),
    Attach(commands::attach::AttachArgs),
    Capture(commands::capture::CaptureArgs),
    Hide(commands::hide::HideArgs),
    Show(commands::show::ShowArgs),
    Layout(commands::layout::LayoutArgs),
    Logs(commands::logs::LogsArgs),
    Send(commands::send::SendArgs),
    Broadcast(commands::broadcast::BroadcastArgs),
    Inbox(commands::inbox::InboxArgs),
    Wait(commands::wait::WaitArgs),
    Requests(commands::requests::RequestsArgs),
    Approve(commands::approve::ApproveArgs),
    Deny(commands::deny::DenyArgs),
    Mode(commands::mode::ModeArgs),
    Interrupt(commands::interrupt::InterruptArgs),
    Shutdown(commands::shutdown::ShutdownArgs),
    AnswerShutdown(commands::answer_shutdown::AnswerShutdownArgs),
    SubmitPlan(commands::submit_plan::SubmitPlanArgs),
    Policy(commands::policy::PolicyArgs),
    Kill(commands::kill::KillArgs),
    Delete(commands::delete::DeleteArgs),
    Export(commands::export::ExportArgs),
    Import(commands::import::ImportArgs),
    Task(commands::task::TaskArgs),
    Run(commands::run::RunArgs),
    Events(commands::events::EventsArgs),
    Why(commands::why::WhyArgs),
    Trace(commands::trace::TraceArgs),
    Profiles(commands::profiles::ProfilesArgs),
    Setup(commands::setup::SetupArgs),
    Doctor(commands::doctor::DoctorArgs),
    Mcp(commands::mcp::McpArgs),
    Instructions(commands::instructions::InstructionsArgs),
    Lead(commands::lead::LeadArgs),
    Notify(commands::notify::NotifyArgs),
    Completions(commands::completions::CompletionsArgs),
    Man(commands::man::ManArgs),
}

/// Runs a verb. What it prints it has printed when this returns.
pub(crate) fn dispatch(verb: CliCommand, here: &CommandContext) -> Result<ExitCode, ErrorReport> {
    match verb {
        CliCommand::Up(args) => commands::up::run(here, &args),
        CliCommand::Down(args) => commands::down::run(here, &args),
        CliCommand::Create(args) => commands::create::run(here, &args),
        CliCommand::Spawn(args) => commands::spawn::run(here, args),
        CliCommand::Status(args) => commands::status::run(here, &args),
        CliCommand::Top(args) => commands::top::run(here, &args),
        CliCommand::Attach(args) => commands::attach::run(here, &args),
        CliCommand::Capture(args) => commands::capture::run(here, &args),
        CliCommand::Hide(args) => commands::hide::run(here, &args),
        CliCommand::Show(args) => commands::show::run(here, &args),
        CliCommand::Layout(args) => commands::layout::run(here, &args),
        CliCommand::Logs(args) => commands::logs::run(here, &args),
        CliCommand::Send(args) => commands::send::run(here, &args),
        CliCommand::Broadcast(args) => commands::broadcast::run(here, &args),
        CliCommand::Inbox(args) => commands::inbox::run(here, &args),
        CliCommand::Wait(args) => commands::wait::run(here, &args),
        CliCommand::Requests(args) => commands::requests::run(here, &args),
        CliCommand::Approve(args) => commands::approve::run(here, &args),
        CliCommand::Deny(args) => commands::deny::run(here, &args),
        CliCommand::Mode(args) => commands::mode::run(here, &args),
        CliCommand::Interrupt(args) => commands::interrupt::run(here, &args),
        CliCommand::Shutdown(args) => commands::shutdown::run(here, &args),
        CliCommand::AnswerShutdown(args) => commands::answer_shutdown::run(here, &args),
        CliCommand::SubmitPlan(args) => commands::submit_plan::run(here, &args),
        CliCommand::Kill(args) => commands::kill::run(here, &args),
        CliCommand::Delete(args) => commands::delete::run(here, &args),
        CliCommand::Policy(args) => commands::policy::run(here, &args),
        CliCommand::Export(args) => commands::export::run(here, &args),
        CliCommand::Import(args) => commands::import::run(here, &args),
        CliCommand::Task(args) => commands::task::run(here, &args),
        CliCommand::Run(args) => commands::run::run(here, &args),
        CliCommand::Events(args) => commands::events::run(here, &args),
        CliCommand::Trace(args) => commands::trace::run(here, &args),
        CliCommand::Why(args) => commands::why::run(here, &args),
        CliCommand::Profiles(args) => commands::profiles::run(here, args),
        CliCommand::Setup(args) => commands::setup::run(here, &args),
        CliCommand::Doctor(args) => commands::doctor::run(here, &args),
        CliCommand::Mcp(args) => commands::mcp::run(here, &args),
        CliCommand::Instructions(args) => commands::instructions::run(here, &args),
        CliCommand::Lead(args) => commands::lead::run(here, &args),
        CliCommand::Notify(args) => commands::notify::run(&args),
        CliCommand::Completions(args) => commands::completions::run(&args, &Cli::command()),
        CliCommand::Man(args) => commands::man::run(&args, Cli::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_all_day_is_understood_as_the_parser_of_all_verbs_does() {
        fn quick<V: Subcommand + Into<CliCommand>>(words: &[&str]) -> Option<String> {
            let line = CommandLine::<V>::try_parse_from(words).ok()?;
            Some(format!("{:?}", CommandLine::<CliCommand> { global: line.global, verb: line.verb.into() }))
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
            let words: Vec<&str> = line.split(' ').collect();
            let found = quick::<Often>(&words).or_else(|| quick::<OfTasks>(&words));
            assert_eq!(found.is_some(), is_quick, "{line}");
            let whole = Cli::try_parse_from(&words).ok().map(|line| format!("{line:?}"));
            assert!(found.is_none() || found == whole, "{line}: {found:?}, {whole:?}");
        }
    }

    #[test]
    fn command_names_are_those_of_the_parser() {
        let command = Cli::command();
        let names = command.get_subcommands().flat_map(|command| command.get_name_and_visible_aliases());
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        assert_eq!(names, crate::command_rewriter::COMMAND_NAMES);
    }

    #[test]
    fn a_team_may_be_called_as_an_option_is() {
        let line = Cli::try_parse_from(["teamctl", "up", "--resume", "-t", "-x"]).unwrap();
        assert!(format!("{line:?}").contains(r#"team: Some("-x")"#), "{line:?}");
    }
}
