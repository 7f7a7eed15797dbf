//! `layout`: how the panes of a team share their windows, from now on.

use crate::context::CommandContext;
use crate::output;
use clap::builder::PossibleValuesParser;
use client::error::unexpected_reply;
use protocol::control::{self, Reply, Request, SetLayoutReply, SetLayoutRequest};
use protocol::error::ErrorReport;
use std::process::ExitCode;

/// Give a team's windows a layout, those that come later too
///
/// With main-vertical and main-horizontal the first pane gets 60 % of the window. Refused (76) where a window has no
/// room for that many panes. Windows that a person made are left as they are, although a pane of the team was moved there. A zoomed window
/// keeps its zoom, and gets the layout with the next pane that comes or goes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl layout main-vertical\n  teamctl layout tiled -t survey")]
pub(crate) struct LayoutArgs {
    /// Which
    #[arg(value_parser = layout_names())]
    layout: String,
}

fn layout_names() -> PossibleValuesParser {
    PossibleValuesParser::new(control::Layout::ALL.map(|(_, word)| word))
}

pub(crate) fn run(here: &CommandContext, args: &LayoutArgs) -> Result<ExitCode, ErrorReport> {
    here.require_lead("lay out windows")?;
    let known = control::Layout::ALL.into_iter().find(|(_, word)| *word == args.layout);
    let layout = known.map(|(layout, _)| layout).unwrap_or_default();
    let team = here.team_name(&here.root()?)?;
    match here.call_daemon(Request::SetLayout(SetLayoutRequest { team, layout }))? {
        Reply::SetLayout(reply) => {
            output::print_result(here, &reply, &result_text(&reply));
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(unexpected_reply()),
    }
}

fn result_text(reply: &SetLayoutReply) -> String {
    let windows = match reply.windows {
        0 => "none yet".to_owned(),
        1 => "one window".to_owned(),
        n => format!("{n} windows"),
    };
    format!("{}: {} ({windows}).", reply.team_name, reply.layout.as_str())
}
