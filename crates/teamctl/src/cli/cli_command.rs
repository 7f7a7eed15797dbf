//! The list of all commands.

use crate::commands;
use clap::Subcommand;

/// All commands. The arguments of each are in its own file.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    Up(commands::up::UpArgs),
    Down(commands::down::DownArgs),
    Create(commands::create::CreateArgs),
    Spawn(profile::build_spawn_request::SpawnOptions),
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
    Why(commands::diagnose::why::WhyArgs),
    Trace(commands::diagnose::trace::TraceArgs),
    #[command(flatten)]
    Integration(IntegrationCommand),
}

/// The commands that connect teamd with agent programs, shells and the system.
#[derive(Debug, Subcommand)]
pub(crate) enum IntegrationCommand {
    Profiles(commands::profiles::ProfilesArgs),
    Setup(commands::setup::SetupArgs),
    Doctor(commands::diagnose::doctor::DoctorArgs),
    Mcp(commands::mcp::McpArgs),
    Instructions(commands::instructions::InstructionsArgs),
    Lead(commands::lead::LeadArgs),
    Help(commands::help::HelpArgs),
    Notify(commands::notify::NotifyArgs),
    Completions(commands::completions::CompletionsArgs),
    Man(commands::man::ManArgs),
}
