//! What every command gets: the options that hold for all commands, and the caller's team.

use clap::Args;
use client::team_context::{TeamContext, TeamOptions};
use std::ops::Deref;
use std::path::PathBuf;

/// Accepted before and after every verb.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// The directory that holds teams/ and tasks/ [default: $CLAUDE_CONFIG_DIR, else ~/.claude]
    #[arg(long, global = true, env = "TEAMD_ROOT", value_name = "DIR", hide_env_values = true)]
    pub(crate) root: Option<PathBuf>,
    /// The daemon's control socket [default: in the runtime directory, one per root]
    #[arg(long, global = true, env = "TEAMD_SOCKET", value_name = "PATH", hide_env_values = true)]
    pub(crate) socket: Option<PathBuf>,
    /// The team; may be left out where there is just one
    // A team of another program's may be called -x.
    #[arg(
        short,
        long,
        global = true,
        env = "TEAMD_TEAM",
        value_name = "TEAM",
        hide_env_values = true,
        allow_hyphen_values = true
    )]
    pub(crate) team: Option<String>,
    /// Print one JSON object (streams: one per line)
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print nothing but errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

/// The options of this call and the team that they name. Dereferences to the team context, which most commands need.
#[derive(Debug)]
pub(crate) struct CommandContext {
    pub(crate) args: GlobalArgs,
    team_context: TeamContext,
}

impl CommandContext {
    pub(crate) fn new(args: GlobalArgs) -> CommandContext {
        let options =
            TeamOptions { root: args.root.clone(), socket: args.socket.clone(), team: args.team.clone() };
        CommandContext { args, team_context: TeamContext::new(options) }
    }
}

impl Deref for CommandContext {
    type Target = TeamContext;

    fn deref(&self) -> &TeamContext {
        &self.team_context
    }
}
