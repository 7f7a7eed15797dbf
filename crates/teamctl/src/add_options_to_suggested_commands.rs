//! Help and error texts suggest `teamctl` commands. This module adds the user's `--root`,
//! `--socket` and `-t` to them, so that each command works as it is printed.

use crate::command_context::CommandContext;
use client::suggested_commands::SuggestedCommands;
use protocol::command_for_other_host::HOST_OF_CALLER_VARIABLE;
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;
use store::env_var;

/// The commands that take no `-t`: they work on no team, or name it in an argument.
const COMMANDS_WITHOUT_TEAM: [&str; 13] = [
    "annex", "create", "delete", "doctor", "down", "export", "hosts", "lead", "profiles", "replay", "run",
    "setup", "up",
];

/// The names and aliases of all commands but `help`, which needs no options. Invariant: the
/// command-line parser accepts exactly these names and `help`;
/// `cli::tests::command_names_are_those_of_the_parser` checks this.
pub(crate) const COMMAND_NAMES: [&str; 51] = [
    "annex",
    "answer-shutdown",
    "approve",
    "ask",
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
    "home",
    "hosts",
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
    "merge",
    "mode",
    "notify",
    "policy",
    "profiles",
    "ps",
    "replay",
    "report",
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

/// Returns a builder for commands that are suggested to the user. The builder adds the `--root` and
/// `--socket` of this invocation to each command. It omits an option if the option's environment
/// variable already has the same value. If the user typed `teamctl --host NAME …` on another
/// machine, and so started this process, the builder also adds `--host NAME`.
pub(crate) fn suggested_commands(context: &CommandContext) -> SuggestedCommands {
    let options =
        [("--root", "TEAMD_ROOT", &context.args.root), ("--socket", "TEAMD_SOCKET", &context.args.socket)];
    let option = |(option, variable, path): (&str, &str, &Option<std::path::PathBuf>)| {
        let path = path.as_ref()?.display().to_string();
        (env_var(variable).as_ref() != Some(&path)).then(|| [option.to_owned(), path])
    };
    SuggestedCommands::with_options(options.into_iter().filter_map(option).flatten())
        .on_host(env_var(HOST_OF_CALLER_VARIABLE))
}

/// Like [`suggested_commands`], but the commands also get `-t TEAM` where the team is not implied.
pub(crate) fn suggested_commands_for_team(
    context: &CommandContext,
    team: &TeamName,
) -> Result<SuggestedCommands, ErrorReport> {
    let teams = context.root()?.teams()?;
    Ok(suggested_commands(context).for_team_unless_implied(team, &teams, env_var("TEAMD_TEAM").as_deref()))
}

/// Adds the options of this invocation to every `teamctl` command in `text`. Used for texts whose
/// author does not know these options, such as error messages of the daemon.
pub(crate) fn rewrite_commands(context: &CommandContext, text: &str) -> String {
    let commands = suggested_commands(context);
    let team = context.args.team.as_deref().filter(|team| env_var("TEAMD_TEAM").as_deref() != Some(team));
    let team = team.and_then(|team| TeamName::sanitize(team).ok());
    let team_commands = team.map(|team| commands.for_team(&team));
    client::suggested_commands::insert_options(text, |command, arguments| {
        let takes_team = !arguments.contains(" -t ") && !COMMANDS_WITHOUT_TEAM.contains(&command);
        let commands_for_team = team_commands.as_ref().filter(|_| takes_team);
        COMMAND_NAMES.contains(&command).then(|| commands_for_team.unwrap_or(&commands))
    })
}
