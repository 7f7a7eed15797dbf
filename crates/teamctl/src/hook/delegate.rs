//! Before a tool is used: a lead in delegate mode leads, and does nothing else. What is its team's is allowed it; all
//! else is refused, with what to do instead. Everybody else is left to their program's own rules.

use super::answer::refuse;
use super::input::Input;
use super::{Caller, Stand};
use crate::here::fault;
use crate::output;
use protocol::fault::Fault;

const WHY: &str = "You lead in delegate mode: you may spawn, message and work the task list, nothing else. Give this \
                   to a teammate: teamctl send NAME TEXT, teamctl task create SUBJECT, teamctl spawn NAME.";

pub(super) fn run(stand: &Stand<'_>) -> Result<(), Fault> {
    let Caller::Lead(lead) = &stand.caller else { return Ok(()) };
    let config = stand.here.root()?.team(&lead.team).and_then(|team| team.config()).map_err(fault)?;
    let mode = config.members.into_iter().find(|member| member.name.is_lead()).and_then(|member| member.mode);
    if mode.as_deref() == Some("delegate") && !is_of_the_team(&stand.input) {
        return output::answer(&refuse(&stand.input, WHY));
    }
    Ok(())
}

fn is_of_the_team(input: &Input) -> bool {
    let tool = input.tool.as_deref().unwrap_or_default();
    let command = input.tool_input.get("command").and_then(|command| command.as_str());
    is_team_tool(tool) || command.is_some_and(is_teamctl)
}

/// As programs name the tools of a server called `team`: `mcp__team__X`, `mcp_team_X`, `team_X`, `team-X`.
fn is_team_tool(tool: &str) -> bool {
    let tool = tool.strip_prefix("mcp__").or_else(|| tool.strip_prefix("mcp_")).unwrap_or(tool);
    tool.strip_prefix("team").is_some_and(|rest| rest.len() > 1 && rest.starts_with(['_', '-']))
}

/// One call of `teamctl` and nothing that a shell would make of it beside: no other command before, behind or within.
fn is_teamctl(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let is_ours = program == "teamctl" || program.ends_with("/teamctl") && program.starts_with('/');
    is_ours && is_one_command(command)
}

fn is_one_command(command: &str) -> bool {
    let (mut quote, mut escaped) = (None, false);
    for c in command.trim().chars() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => escaped = true,
            (_, '`' | '$') => return false,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, ';' | '&' | '|' | '<' | '>' | '(' | ')' | '\n' | '\r') => return false,
            (None, _) => {}
        }
    }
    quote.is_none() && !escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_teams_own_tools_are_known_by_every_programs_name_for_them() {
        for tool in ["mcp__team__SendMessage", "mcp_team_TaskList", "team_spawn", "team-SendMessage"] {
            assert!(is_team_tool(tool), "{tool}");
        }
        for tool in ["Bash", "mcp__teamwork__x", "teams_x", "mcp__other__team_x", "team", "team_", ""] {
            assert!(!is_team_tool(tool), "{tool}");
        }
    }

    #[test]
    fn teamctl_alone_is_allowed_in_a_shell() {
        for command in
            ["teamctl status", " teamctl send bob 'a; b & $(c)'", "/usr/bin/teamctl send bob \"a > b\""]
        {
            assert!(is_teamctl(command), "{command}");
        }
        for command in [
            "rm x",
            "teamctl status; rm x",
            "teamctl status\nrm x",
            "teamctl send bob \"$(rm x)\"",
            "teamctl send bob `rm x`",
            "teamctl status > x",
            "teamctl status | sh",
            "teamctl status & rm x",
            "teamctlx",
            "./teamctl status",
            "x/teamctl",
            "teamctl send bob 'a",
            "PATH=. teamctl status",
            "",
        ] {
            assert!(!is_teamctl(command), "{command}");
        }
    }
}
