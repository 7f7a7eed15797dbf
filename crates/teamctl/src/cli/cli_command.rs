//! The list of all commands.

use crate::acted_on_members::ActedOnMembers;
use crate::commands;
use crate::commands::run_on_other_host::TerminalUse;
use clap::Subcommand;

/// All commands. The arguments of each are in its own file.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    Up(commands::up_start_daemon::UpArgs),
    Down(commands::down_stop_daemon::DownArgs),
    Create(commands::create::CreateArgs),
    Spawn(commands::spawn::SpawnArgs),
    #[command(visible_alias = "ps")]
    Status(commands::status::StatusArgs),
    Top(commands::exec_teamd_top::TopArgs),
    Attach(commands::attach::AttachArgs),
    Capture(commands::capture::CaptureArgs),
    Hide(commands::hide_pane::HideArgs),
    Show(commands::show_hidden_pane::ShowArgs),
    Layout(commands::layout::LayoutArgs),
    Logs(commands::logs::LogsArgs),
    Send(commands::send::SendArgs),
    Broadcast(commands::broadcast::BroadcastArgs),
    Inbox(commands::inbox::InboxArgs),
    Wait(commands::wait::WaitArgs),
    Requests(commands::requests::RequestsArgs),
    Approve(commands::approve::ApproveArgs),
    Deny(commands::deny::DenyArgs),
    Mode(commands::set_permission_mode::ModeArgs),
    Interrupt(commands::interrupt::InterruptArgs),
    Shutdown(commands::shutdown::ShutdownArgs),
    AnswerShutdown(commands::answer_shutdown::AnswerShutdownArgs),
    SubmitPlan(commands::submit_plan::SubmitPlanArgs),
    Policy(commands::policy::PolicyArgs),
    Kill(commands::kill::KillArgs),
    Delete(commands::delete::DeleteArgs),
    Merge(commands::merge::MergeArgs),
    Export(commands::export::ExportArgs),
    Import(commands::import::ImportArgs),
    Home(commands::home::HomeArgs),
    Task(commands::task::TaskArgs),
    Run(commands::run_team_from_file::RunArgs),
    Ask(Box<commands::ask::AskArgs>),
    Report(commands::report::ReportArgs),
    Replay(commands::replay::ReplayArgs),
    Events(commands::events::EventsArgs),
    Why(commands::diagnose::why_no_progress::WhyArgs),
    Trace(commands::diagnose::trace_message::TraceArgs),
    #[command(flatten)]
    Integration(IntegrationCommand),
}

/// The commands that connect teamd with agent programs, shells and the system.
#[derive(Debug, Subcommand)]
pub(crate) enum IntegrationCommand {
    Profiles(commands::profiles::ProfilesArgs),
    Hosts(commands::hosts::HostsArgs),
    #[command(hide = true)]
    Annex(commands::annex::AnnexArgs),
    Setup(commands::setup_program_settings::SetupArgs),
    Doctor(commands::diagnose::doctor::DoctorArgs),
    Mcp(commands::exec_teamd_mcp::McpArgs),
    Instructions(commands::instructions::InstructionsArgs),
    Lead(commands::make_this_session_the_lead::LeadArgs),
    Help(commands::help::HelpArgs),
    Notify(commands::notify_person_by_command::NotifyArgs),
    Completions(commands::completions::CompletionsArgs),
    Man(commands::man::ManArgs),
}

impl CliCommand {
    /// Whether the command is about this installation of `teamctl`, so that `--host` does not apply.
    pub(crate) fn is_about_this_program(&self) -> bool {
        use IntegrationCommand::{Completions, Help, Hosts, Man};
        matches!(self, CliCommand::Integration(Completions(_) | Help(_) | Hosts(_) | Man(_)))
    }

    /// The running members on which the command acts. It runs on the hosts of these members.
    pub(crate) fn acted_on_members(&self) -> ActedOnMembers<'_> {
        match self {
            CliCommand::Attach(args) => args.acted_on_members(),
            CliCommand::Capture(args) => args.acted_on_members(),
            CliCommand::Hide(args) => args.acted_on_members(),
            CliCommand::Show(args) => args.acted_on_members(),
            CliCommand::Logs(args) => args.acted_on_members(),
            CliCommand::Mode(args) => args.acted_on_members(),
            CliCommand::Interrupt(args) => args.acted_on_members(),
            CliCommand::Shutdown(args) => args.acted_on_members(),
            CliCommand::Kill(args) => args.acted_on_members(),
            CliCommand::Why(args) => args.acted_on_members(),
            _ => ActedOnMembers::None,
        }
    }

    /// What the command does with the terminal and with standard input.
    pub(crate) fn terminal_use(&self) -> TerminalUse {
        match self {
            CliCommand::Attach(_) | CliCommand::Top(_) => TerminalUse::NeedsTerminal,
            CliCommand::Integration(IntegrationCommand::Mcp(_) | IntegrationCommand::Annex(_)) => {
                TerminalUse::ReadsInput
            }
            _ => TerminalUse::ReadsInputForDash,
        }
    }
}
