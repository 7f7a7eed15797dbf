//! The verbs, one file each: its arguments on top, then what it does.

pub(crate) mod agents;
pub(crate) mod approve;
pub(crate) mod attach;
pub(crate) mod broadcast;
pub(crate) mod capture;
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
pub(crate) mod interrupt;
pub(crate) mod kill;
pub(crate) mod layout;
pub(crate) mod lead;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod mode;
pub(crate) mod notify;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod prompt;
pub(crate) mod requests;
pub(crate) mod respond;
pub(crate) mod run;
pub(crate) mod send;
pub(crate) mod setup;
pub(crate) mod show;
pub(crate) mod shutdown;
pub(crate) mod spawn;
pub(crate) mod status;
pub(crate) mod task;
pub(crate) mod top;
pub(crate) mod trace;
pub(crate) mod typed;
pub(crate) mod up;
pub(crate) mod wait;
pub(crate) mod why;

mod text;

use crate::cli::Verb;
use crate::here::Here;
use protocol::error::ErrorReport;
use std::process::ExitCode;

/// Runs a verb. What it prints it has printed when this returns.
pub(crate) fn run(verb: Verb, here: &Here) -> Result<ExitCode, ErrorReport> {
    match verb {
        Verb::Up(args) => up::run(here, &args),
        Verb::Down(args) => down::run(here, &args),
        Verb::Create(args) => create::run(here, &args),
        Verb::Spawn(args) => spawn::run(here, args),
        Verb::Status(args) => status::run(here, &args),
        Verb::Top(args) => top::run(here, &args),
        Verb::Attach(args) => attach::run(here, &args),
        Verb::Capture(args) => capture::run(here, &args),
        Verb::Hide(args) => hide::run(here, &args),
        Verb::Show(args) => show::run(here, &args),
        Verb::Layout(args) => layout::run(here, &args),
        Verb::Logs(args) => logs::run(here, &args),
        Verb::Send(args) => send::run(here, &args),
        Verb::Broadcast(args) => broadcast::run(here, &args),
        Verb::Inbox(args) => inbox::run(here, &args),
        Verb::Wait(args) => wait::run(here, &args),
        Verb::Requests(args) => requests::run(here, &args),
        Verb::Approve(args) => approve::run(here, &args),
        Verb::Deny(args) => deny::run(here, &args),
        Verb::Mode(args) => mode::run(here, &args),
        Verb::Interrupt(args) => interrupt::run(here, &args),
        Verb::Shutdown(args) => shutdown::run(here, &args),
        Verb::Respond(args) => respond::run(here, &args),
        Verb::Plan(args) => plan::run(here, &args),
        Verb::Kill(args) => kill::run(here, &args),
        Verb::Delete(args) => delete::run(here, &args),
        Verb::Policy(args) => policy::run(here, &args),
        Verb::Export(args) => export::run(here, &args),
        Verb::Import(args) => import::run(here, &args),
        Verb::Task(args) => task::run(here, &args),
        Verb::Run(args) => run::run(here, &args),
        Verb::Events(args) => events::run(here, &args),
        Verb::Trace(args) => trace::run(here, &args),
        Verb::Why(args) => why::run(here, &args),
        Verb::Agents(args) => agents::run(here, args),
        Verb::Setup(args) => setup::run(here, &args),
        Verb::Doctor(args) => doctor::run(here, &args),
        Verb::Mcp(args) => mcp::run(here, &args),
        Verb::Prompt(args) => prompt::run(here, &args),
        Verb::Hook(args) => crate::hook::run(here, &args),
        Verb::Lead(args) => lead::run(here, &args),
        Verb::Work(args) => crate::work::run(here, &args),
        Verb::Notify(args) => notify::run(&args),
        Verb::Keys(_) => crate::keys::run(here),
        Verb::Join(args) => crate::join::run(&args, &here.socket()?),
        Verb::Record(args) => crate::record::run(&args),
        Verb::Completions(args) => completions::run(&args),
        Verb::Man(args) => man::run(&args),
    }
}
