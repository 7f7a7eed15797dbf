//! Delegate mode: the lead coordinates its team and does none of the work itself.
//!
//! In delegate mode a lead may spawn teammates, send messages, answer requests and change the task
//! list. The mode restricts only the lead's program. A person at a terminal may run every command.

use crate::split_shell_command::parse_plain_command;
use serde_json::Value;

/// Tools of agent programs, by their full names, that only coordinate a team. A lead in delegate
/// mode may call them.
const COORDINATION_TOOLS: [&str; 18] = [
    "Task",
    "Agent",
    "SendMessage",
    "TeamCreate",
    "TeamDelete",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "TaskOutput",
    "TaskStop",
    "TodoWrite",
    "TodoRead",
    "AskUserQuestion",
    "ToolSearch",
    "update_plan",
    "write_todos",
    "ask_user",
];

/// The tools of teamd's MCP server, sorted. `mcp::tools::tests::delegate_mode_knows_every_tool`
/// checks this list.
pub const TEAM_TOOLS: [&str; 15] = [
    "Approve",
    "Ask",
    "Deny",
    "MarkRead",
    "ReadInbox",
    "Requests",
    "SendMessage",
    "SpawnTeammate",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "TeamCreate",
    "TeamDelete",
    "Wait",
];

/// Subcommands of teamctl that a lead may run in delegate mode, in which it only coordinates its
/// team. `mode` is not in the list, because a lead cannot end its own delegate mode.
const COORDINATION_COMMANDS: [&str; 28] = [
    "approve",
    "broadcast",
    "capture",
    "create",
    "delete",
    "deny",
    "events",
    "help",
    "hide",
    "inbox",
    "instructions",
    "interrupt",
    "kill",
    "layout",
    "logs",
    "profiles",
    "ps",
    "report",
    "requests",
    "send",
    "show",
    "shutdown",
    "spawn",
    "status",
    "task",
    "trace",
    "wait",
    "why",
];

/// Whether a lead may call a tool in delegate mode, in which it only coordinates its team. `tool`
/// is the tool's name in the lead's program.
///
/// Every tool of teamd's MCP server is allowed, and every tool of the lead's program that only
/// coordinates a team. A shell tool is allowed if its input is one plain `teamctl` command that
/// only coordinates.
pub fn can_use_tool(tool: &str, input: &Value) -> bool {
    is_team_tool(tool)
        || COORDINATION_TOOLS.contains(&tool)
        || shell_words(input).is_some_and(|words| is_coordination_command(&words))
}

/// Why a tool call was refused, as a text for the lead's program.
pub const REFUSAL_REASON: &str = "you lead in delegate mode: spawn teammates, message them, answer their requests and work \
     the task list, and leave the work itself to them";

/// Whether `tool` is a tool of teamd's MCP server, such as `mcp__team__SendMessage`,
/// `mcp_team_SendMessage` or `team-SendMessage`. Each agent program combines the server's name and
/// the tool's name in its own way. Another server's name can begin with `team`, so the tool's name
/// must be one of teamd's.
fn is_team_tool(tool: &str) -> bool {
    let bare = tool.strip_prefix("mcp").map_or(tool, |rest| rest.trim_start_matches('_'));
    let rest = bare.strip_prefix("teamd").or_else(|| bare.strip_prefix("team"));
    let separators = ['_', '.', ':', '/', '-'];
    rest.is_some_and(|rest| {
        rest.starts_with(separators) && TEAM_TOOLS.contains(&rest.trim_start_matches(separators))
    })
}

/// The words of a shell tool's command. `None` if `input` has no command, or if the command is not
/// one plain command, for example because it has a pipe.
fn shell_words(input: &Value) -> Option<Vec<String>> {
    match input.get("command").or_else(|| input.get("cmd"))? {
        Value::String(text) => parse_plain_command(text),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            match words?.as_slice() {
                [shell, flag, text]
                    if ["sh", "bash", "/bin/sh", "/bin/bash"].contains(shell) && flag.ends_with('c') =>
                {
                    parse_plain_command(text)
                }
                words => Some(words.iter().map(|word| (*word).to_owned()).collect()),
            }
        }
        _ => None,
    }
}

fn is_coordination_command(words: &[String]) -> bool {
    let [program, words @ ..] = words else { return false };
    let mut words = words.iter().map(String::as_str);
    program == "teamctl"
        && loop {
            match words.next() {
                Some("-t" | "--team" | "--root" | "--socket") => drop(words.next()),
                Some(option) if option.starts_with('-') => {}
                Some(verb) => break COORDINATION_COMMANDS.contains(&verb),
                None => break false,
            }
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn coordination_is_allowed() {
        for tool in [
            "SendMessage",
            "TaskUpdate",
            "mcp__teamd__SpawnTeammate",
            "mcp_team_SendMessage",
            "mcp__team__SpawnTeammate",
            "team-Wait",
            "teamd__Wait",
        ] {
            assert!(can_use_tool(tool, &json!({})), "{tool}");
        }
        for command in [
            json!("teamctl spawn ann --profile worker --prompt 'count; then say it'"),
            json!("teamctl -t survey --json task list"),
            json!(["bash", "-lc", "teamctl approve perm-1"]),
            json!(["teamctl", "send", "ann", "a; b"]),
        ] {
            assert!(can_use_tool("Bash", &json!({"command": command})), "{command}");
        }
    }

    #[test]
    fn other_tools_and_commands_are_refused() {
        for tool in [
            "Read",
            "Edit",
            "Write",
            "Bash",
            "mcp__files__SendMessage",
            "mcp__teamdx__spawn",
            "mcp__teams__SendMessage",
            "mcp__team_files__write",
            "teamd-files_Write",
            "mcp__team__Write",
            "teamd",
            "team",
        ] {
            assert!(!can_use_tool(tool, &json!({"file_path": "/x"})), "{tool}");
        }
        for command in [
            json!("ls"),
            json!("teamctl"),
            json!("teamctl mode team-lead default"),
            json!("teamctl run x.toml"),
            json!("teamctl status; rm x"),
            json!("teamctl send ann \"$(cat x)\""),
            json!("teamctl inbox > x"),
            json!("./teamctl status"),
            json!("FOO=1 teamctl status"),
            json!(["bash", "-c", "teamctl status && ls"]),
            json!(["rm", "x"]),
            json!(7),
        ] {
            assert!(!can_use_tool("Bash", &json!({"command": command})), "{command}");
        }
    }
}
