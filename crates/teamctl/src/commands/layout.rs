//! `layout`: sets the layout of a team's windows, including those that are opened later.

use crate::command_context::CommandContext;
use crate::output;
use clap::builder::PossibleValuesParser;
use protocol::control_socket::{self, Request, SetLayoutReply, SetLayoutRequest};
use protocol::error_kind_and_report::ErrorReport;
use std::process::ExitCode;

/// Set the layout of a team's windows
///
/// Example: teamctl layout main-vertical
///
/// Windows that open later get the same layout. In main-vertical and main-horizontal, the first
/// pane gets 60 % of the window. Exit code 76: a window has no room for so many panes.
///
/// Windows that a person created are not changed, even if a pane of the team was moved there. A
/// zoomed window gets the layout when the next pane opens or closes.
#[derive(Debug, clap::Args)]
pub(crate) struct LayoutArgs {
    /// Name of the layout
    #[arg(value_parser = layout_names())]
    layout: String,
}

fn layout_names() -> PossibleValuesParser {
    PossibleValuesParser::new(control_socket::Layout::ALL.map(|(_, name)| name))
}

pub(crate) fn run(context: &CommandContext, args: &LayoutArgs) -> Result<ExitCode, ErrorReport> {
    let entry = control_socket::Layout::ALL.into_iter().find(|(_, name)| *name == args.layout);
    let layout = entry.map(|(layout, _)| layout).unwrap_or_default();
    let team = context.team_name(&context.root()?)?;
    let request = Request::SetLayout(SetLayoutRequest { team, layout });
    let reply: SetLayoutReply = context.request(request)?;
    output::print_result(context, &reply, &result_text(&reply));
    Ok(ExitCode::SUCCESS)
}

fn result_text(reply: &SetLayoutReply) -> String {
    let windows = match reply.windows {
        0 => "none yet".to_owned(),
        1 => "one window".to_owned(),
        n => format!("{n} windows"),
    };
    format!("{}: {} ({windows}).", reply.team_name, reply.layout.as_str())
}
