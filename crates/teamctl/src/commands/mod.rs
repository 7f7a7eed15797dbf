//! The verbs, one file each: its arguments on top, then what it does.

pub(crate) mod answer_shutdown;
pub(crate) mod approve;
pub(crate) mod attach;
pub(crate) mod broadcast;
pub(crate) mod capture;
pub(crate) mod command_rewriter;
pub(crate) mod completions;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod deny;
pub(crate) mod doctor;
pub(crate) mod down;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod hide;
pub(crate) mod import;
pub(crate) mod inbox;
pub(crate) mod instructions;
pub(crate) mod interrupt;
pub(crate) mod kill;
pub(crate) mod layout;
pub(crate) mod lead;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod mode;
pub(crate) mod notify;
pub(crate) mod policy;
pub(crate) mod profiles;
pub(crate) mod requests;
pub(crate) mod run;
pub(crate) mod send;
pub(crate) mod setup;
pub(crate) mod show;
pub(crate) mod shutdown;
pub(crate) mod spawn;
pub(crate) mod status;
pub(crate) mod submit_plan;
pub(crate) mod task;
pub(crate) mod top;
pub(crate) mod trace;
pub(crate) mod up;
pub(crate) mod wait;
pub(crate) mod why;

mod message_input;

use crate::cli::CliCommand;
use crate::context::CommandContext;
use protocol::error::ErrorReport;
use std::process::ExitCode;

/// Runs a verb. What it prints it has printed when this returns.
pub(crate) fn dispatch(verb: CliCommand, here: &CommandContext) -> Result<ExitCode, ErrorReport> {
    match verb {
        CliCommand::Up(args) => up::run(here, &args),
        CliCommand::Down(args) => down::run(here, &args),
        CliCommand::Create(args) => create::run(here, &args),
        CliCommand::Spawn(args) => spawn::run(here, args),
        CliCommand::Status(args) => status::run(here, &args),
        CliCommand::Top(args) => top::run(here, &args),
        CliCommand::Attach(args) => attach::run(here, &args),
        CliCommand::Capture(args) => capture::run(here, &args),
        CliCommand::Hide(args) => hide::run(here, &args),
        CliCommand::Show(args) => show::run(here, &args),
        CliCommand::Layout(args) => layout::run(here, &args),
        CliCommand::Logs(args) => logs::run(here, &args),
        CliCommand::Send(args) => send::run(here, &args),
        CliCommand::Broadcast(args) => broadcast::run(here, &args),
        CliCommand::Inbox(args) => inbox::run(here, &args),
        CliCommand::Wait(args) => wait::run(here, &args),
        CliCommand::Requests(args) => requests::run(here, &args),
        CliCommand::Approve(args) => approve::run(here, &args),
        CliCommand::Deny(args) => deny::run(here, &args),
        CliCommand::Mode(args) => mode::run(here, &args),
        CliCommand::Interrupt(args) => interrupt::run(here, &args),
        CliCommand::Shutdown(args) => shutdown::run(here, &args),
        CliCommand::Respond(args) => answer_shutdown::run(here, &args),
        CliCommand::Plan(args) => submit_plan::run(here, &args),
        CliCommand::Kill(args) => kill::run(here, &args),
        CliCommand::Delete(args) => delete::run(here, &args),
        CliCommand::Policy(args) => policy::run(here, &args),
        CliCommand::Export(args) => export::run(here, &args),
        CliCommand::Import(args) => import::run(here, &args),
        CliCommand::Task(args) => task::run(here, &args),
        CliCommand::Run(args) => run::run(here, &args),
        CliCommand::Events(args) => events::run(here, &args),
        CliCommand::Trace(args) => trace::run(here, &args),
        CliCommand::Why(args) => why::run(here, &args),
        CliCommand::Agents(args) => profiles::run(here, args),
        CliCommand::Setup(args) => setup::run(here, &args),
        CliCommand::Doctor(args) => doctor::run(here, &args),
        CliCommand::Mcp(args) => mcp::run(here, &args),
        CliCommand::Prompt(args) => instructions::run(here, &args),
        CliCommand::Hook(args) => crate::hook::run(here, &args),
        CliCommand::Lead(args) => lead::run(here, &args),
        CliCommand::Work(args) => crate::work::run(here, &args),
        CliCommand::Notify(args) => notify::run(&args),
        CliCommand::Keys(_) => crate::keys::run(here),
        CliCommand::Join(args) => crate::shim::run(&args, &here.socket()?),
        CliCommand::Record(args) => crate::output_log::run(&args),
        CliCommand::Completions(args) => completions::run(&args),
        CliCommand::Man(args) => man::run(&args),
    }
}
