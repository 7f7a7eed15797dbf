//! How `teamctl` is to be typed by whoever asked: with the options that he has typed, and the team where it takes that to
//! be understood.

use crate::context::CommandContext;
use client::suggested_commands::SuggestedCommands;
use protocol::error::ErrorReport;
use protocol::name::TeamName;
use store::env_var;

/// They are about no team, or name it behind the verb.
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

/// For what is about no one team.
pub(crate) fn suggested_commands(here: &CommandContext) -> SuggestedCommands {
    let given = [("--root", "TEAMD_ROOT", &here.args.root), ("--socket", "TEAMD_SOCKET", &here.args.socket)];
    let option = |(option, name, given): (&str, &str, &Option<std::path::PathBuf>)| {
        let path = given.as_ref()?.display().to_string();
        (env_var(name).as_ref() != Some(&path)).then(|| [option.to_owned(), path])
    };
    SuggestedCommands::with_options(given.into_iter().filter_map(option).flatten())
}

/// For what is about that team.
pub(crate) fn suggested_commands_for_team(
    here: &CommandContext,
    team: &TeamName,
) -> Result<SuggestedCommands, ErrorReport> {
    let teams = here.root()?.teams()?;
    Ok(suggested_commands(here).for_team_unless_implied(team, &teams, env_var("TEAMD_TEAM").as_deref()))
}

/// A hint of somebody who does not know what was typed here, such as the daemon: with that in each of its commands.
pub(crate) fn rewrite_commands(here: &CommandContext, hint: &str) -> String {
    let at = suggested_commands(here);
    let named = here.args.team.as_deref().filter(|team| env_var("TEAMD_TEAM").as_deref() != Some(team));
    let team = named.and_then(|team| TeamName::sanitize(team).ok()).map(|team| at.for_team(&team));
    client::suggested_commands::insert_options(hint, |verb, rest| {
        let about =
            team.as_ref().filter(|_| !rest.contains(" -t ") && !COMMANDS_WITHOUT_TEAM.contains(&verb));
        COMMAND_NAMES.contains(&verb).then(|| about.unwrap_or(&at))
    })
}
