//! The context of a command: the global options, and the team that they name.

use clap::Args;
use client::root_socket_team_and_caller::{TeamContext, TeamOptions};
use std::ops::Deref;
use std::path::PathBuf;

/// The options of all commands, accepted before and after the command's name. Only `--host` must be
/// before it, because `spawn` has an option of that name.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Directory of teams/ and tasks/ [default: $CLAUDE_CONFIG_DIR or ~/.claude]
    #[arg(long, global = true, env = "TEAMD_ROOT", value_name = "DIR", hide_env = true)]
    pub(crate) root: Option<PathBuf>,
    /// Control socket of teamd [default: the one for this root]
    #[arg(long, global = true, env = "TEAMD_SOCKET", value_name = "PATH", hide_env = true)]
    pub(crate) socket: Option<PathBuf>,
    /// Team; not needed if there is only one, or only one with the member
    #[arg(
        short,
        long,
        global = true,
        env = "TEAMD_TEAM",
        value_name = "TEAM",
        hide_env = true,
        // A team of another program may have a name that begins with a hyphen, such as `-x`.
        allow_hyphen_values = true
    )]
    pub(crate) team: Option<String>,
    /// Run the command on this host of `teamctl hosts`, with the files and teams there. Type this
    /// option before the command
    #[arg(long, env = "TEAMD_HOST", value_name = "NAME", hide_env = true)]
    pub(crate) host: Option<String>,
    /// Print one JSON object; with a stream, one per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

/// The global options of this invocation, and the [`TeamContext`] made from them: root, control
/// socket and team. Dereferences to the `TeamContext`, because most commands mainly use its
/// methods.
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

    /// Returns a copy of this context for the team `name`, which an argument of the command names.
    /// If `name` is `None`, the copy keeps the team of the option `-t`.
    pub(crate) fn with_team_argument(&self, name: Option<&str>) -> CommandContext {
        let team = name.map(str::to_owned).or_else(|| self.args.team.clone());
        CommandContext::new(GlobalArgs { team, ..self.args.clone() })
    }
}

impl Deref for CommandContext {
    type Target = TeamContext;

    fn deref(&self) -> &TeamContext {
        &self.team_context
    }
}
