//! `spawn`: a teammate, in a pane or without one; answers when it runs.

use super::message_input;
use crate::command_rewriter;
use crate::context::CommandContext;
use crate::output;
use client::error::unexpected_reply;
use client::suggested_commands::SuggestedCommands;
use profile::spawn_request::{SpawnOptions, build_spawn_request, profile_warnings};
use profile::worktree_spawn::{rebuild_for_worktree, worktree_request};
use protocol::control::{self, Reply, Request, SpawnReply};
use protocol::error::ErrorReport;
use std::process::ExitCode;

pub(crate) fn run(here: &CommandContext, mut args: SpawnOptions) -> Result<ExitCode, ErrorReport> {
    here.require_lead("spawn")?;
    args.prompt = args.prompt.as_deref().map(message_input::read_text).transpose()?;
    let mut request = spawn_request(here, args.clone())?;
    if !here.args.quiet {
        profile_warnings(&request)
            .iter()
            .for_each(|warning| output::print_warning(&command_rewriter::rewrite_commands(here, warning)));
    }
    if args.worktree.is_some() {
        let worktree = here.create_worktree(worktree_request(&request, &args))?;
        request = rebuild_for_worktree(&here.root()?, request, args, worktree)?;
    }
    let Reply::Spawn(reply) = here.call_daemon(Request::Spawn(Box::new(request)))? else {
        return Err(unexpected_reply());
    };
    output::print_result(
        here,
        &reply,
        &result_text(&reply, &command_rewriter::suggested_commands_for_team(here, &reply.team_name)?),
    );
    Ok(ExitCode::SUCCESS)
}

fn result_text(reply: &SpawnReply, typed: &SuggestedCommands) -> String {
    let name = output::paint(&reply.color, reply.name.as_str());
    match reply.pane.as_str() {
        "in-process" => {
            let logs = typed.command(&["logs", reply.name.as_str(), "-f"]);
            format!("{name} runs without a pane, its output: {logs}")
        }
        pane => format!("{name} runs in pane {pane} of {}, pid {}.", reply.team_name, reply.pid),
    }
}

/// The request for a team that exists.
fn spawn_request(here: &CommandContext, args: SpawnOptions) -> Result<control::SpawnRequest, ErrorReport> {
    let root = here.root()?;
    let team = here.team_name(&root)?;
    let config = root.team(&team).and_then(|team| team.config()).ok();
    build_spawn_request(root.path(), team, config.as_ref(), args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_where_to_look() {
        let reply = |pane: &str| {
            let text = format!(
                r#"{{"status":"teammate_spawned","agent_id":"ann@t","teammate_id":"ann@t","name":"ann","team_name":"t",
                "color":"blue","model":"","agent_type":"x","plan_mode_required":false,"prompt":"","pane":"{pane}",
                "pid":7,"backend":"tmux"}}"#
            );
            serde_json::from_str::<SpawnReply>(&text).unwrap()
        };
        assert_eq!(
            result_text(&reply("%3"), &SuggestedCommands::default()),
            "ann runs in pane %3 of t, pid 7."
        );
        assert_eq!(
            result_text(&reply("in-process"), &SuggestedCommands::default()),
            "ann runs without a pane, its output: teamctl logs ann -f"
        );
    }
}
