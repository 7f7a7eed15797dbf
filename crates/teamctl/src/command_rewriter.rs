//! Rewrites `teamctl` commands in texts for this invocation: adds the user's `--root`, `--socket`
//! and `-t`, so that the user can type the command as it is printed.

use crate::context::CommandContext;
use client::suggested_commands::SuggestedCommands;
use protocol::error::ErrorReport;
use protocol::name::TeamName;
use store::env_var;

/// The commands that take no `-t`: they work on no team, or name it in an argument.
const COMMANDS_WITHOUT_TEAM: [&str; 10] =
    ["create", "delete", "doctor", "down", "export", "lead", "profiles", "run", "setup", "up"];

/// All commands and their aliases. Invariant: the parser knows the same ones; checked by
/// `cli::tests::command_names_are_those_of_the_parser`.
pub(crate) const COMMAND_NAMES: [&str; 44] = [
    "answer-shutdown",
    "approve",
    "attach",
    "broadcast",
    "capture",
    "completions",
    "create",
    "delete",
    "deny",
    "doctor",
    "down",
    "events",
    "export",
    "hide",
    "import",
    "inbox",
    "instructions",
    "interrupt",
    "kill",
    "layout",
    "lead",
    "logs",
    "man",
    "mcp",
    "mode",
    "notify",
    "policy",
    "profiles",
    "ps",
    "requests",
    "run",
    "send",
    "setup",
    "show",
    "shutdown",
    "spawn",
    "status",
    "submit-plan",
    "task",
    "top",
    "trace",
    "up",
    "wait",
    "why",
];

/// Commands with the root and socket of this invocation. An option that equals its environment
/// variable is left out.
pub(crate) fn suggested_commands(context: &CommandContext) -> SuggestedCommands {
    let given =
        [("--root", "TEAMD_ROOT", &context.args.root), ("--socket", "TEAMD_SOCKET", &context.args.socket)];
    let option = |(option, variable, given): (&str, &str, &Option<std::path::PathBuf>)| {
        let path = given.as_ref()?.display().to_string();
        (env_var(variable).as_ref() != Some(&path)).then(|| [option.to_owned(), path])
    };
    SuggestedCommands::with_options(given.into_iter().filter_map(option).flatten())
}

/// Commands with the options of this invocation and, if needed, `-t` for the team.
pub(crate) fn suggested_commands_for_team(
    context: &CommandContext,
    team: &TeamName,
) -> Result<SuggestedCommands, ErrorReport> {
    let teams = context.root()?.teams()?;
    Ok(suggested_commands(context).for_team_unless_implied(team, &teams, env_var("TEAMD_TEAM").as_deref()))
}

/// Rewrites every command in a text whose author does not know the options of this invocation, such
/// as an error of the daemon.
pub(crate) fn rewrite_commands(context: &CommandContext, text: &str) -> String {
    let commands = suggested_commands(context);
    let team = context.args.team.as_deref().filter(|team| env_var("TEAMD_TEAM").as_deref() != Some(team));
    let team = team.and_then(|team| TeamName::sanitize(team).ok());
    let team_commands = team.map(|team| commands.for_team(&team));
    client::suggested_commands::insert_options(text, |command, arguments| {
        let takes_team = !arguments.contains(" -t ") && !COMMANDS_WITHOUT_TEAM.contains(&command);
        let for_team = team_commands.as_ref().filter(|_| takes_team);
        COMMAND_NAMES.contains(&command).then(|| for_team.unwrap_or(&commands))
    })
}
