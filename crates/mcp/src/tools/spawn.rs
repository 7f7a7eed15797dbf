//! `SpawnTeammate`: a new member, which runs when the answer comes.

use super::schema::{Property, optional_property, required_property};
use super::{ToolDefinition, ToolEffect};
use crate::server_context::ServerContext;
use crate::teamctl_command::TeamctlCommand;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use store::require_lead;

/// The tool.
pub(super) struct SpawnTeammateTool;

/// Its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SpawnTeammateInput {
    /// Its name: letters, digits, - and _. Members are spoken to by it.
    name: String,
    /// Its first message, with all that it must know: it has seen nothing of your conversation.
    prompt: String,
    /// Its agent type: general-purpose (default), Explore or Plan (read-only), or one that is defined here.
    #[serde(default)]
    subagent_type: Option<String>,
    /// Its model, if not the team's.
    #[serde(default)]
    model: Option<String>,
    /// Its permission mode: default, acceptEdits, plan (it hands in a plan first), bypassPermissions, dontAsk, auto.
    #[serde(default)]
    mode: Option<String>,
    /// The directory in which it works, if not this one.
    #[serde(default)]
    cwd: Option<String>,
    /// Whether it works in a git worktree of its own beside the repository of its directory, on a branch of its own.
    #[serde(default)]
    worktree: bool,
    /// The branch of its worktree, made where it is not there; only with worktree. Without it a new one.
    #[serde(default)]
    branch: Option<String>,
    /// Your own team's: there is no other.
    #[serde(default)]
    team_name: Option<String>,
    /// The program that it is: claude, codex, gemini, worker… `teamctl agents` lists them. Without it the usual one.
    #[serde(default)]
    #[serde(rename = "agent")]
    profile: Option<String>,
}

impl ToolDefinition for SpawnTeammateTool {
    const NAME: &'static str = "SpawnTeammate";
    const TITLE: &'static str = "Start a teammate";
    const DESCRIPTION: &'static str = "Start a teammate of your team; for the lead. It runs beside you, in a pane of its own \
        where there are panes, and takes messages and tasks until it is asked to shut down. The answer comes when it \
        runs, not when it is done: it tells you by message.";
    const EFFECT: ToolEffect = ToolEffect::Additive;
    type Input = SpawnTeammateInput;
    const OUTPUT: &'static [Property] = &[
        required_property("status", "string"),
        required_property("prompt", "string"),
        required_property("teammate_id", "string"),
        required_property("agent_id", "string"),
        required_property("agent_type", "string"),
        required_property("model", "string"),
        required_property("name", "string"),
        required_property("color", "string"),
        required_property("team_name", "string"),
        required_property("plan_mode_required", "boolean"),
        optional_property("pane", "string"),
        optional_property("backend", "string"),
    ];

    async fn call(seat: &Arc<ServerContext>, input: SpawnTeammateInput) -> Result<Value, ErrorReport> {
        require_lead(seat.member(), "spawn")?;
        check_own_team(&seat.require_team()?, input.team_name.as_deref())?;
        spawn_command(input)?.run(seat).await.map_err(without_cli_help)
    }
}

/// Some of teamctl's hints are for a command line: no call of ours has such words.
fn without_cli_help(fault: ErrorReport) -> ErrorReport {
    let hint = fault.help.clone().unwrap_or_default();
    match hint.split_once("; any other program") {
        Some((before, _)) => fault.with_help(before),
        None if hint.contains("--cwd DIR") => fault.with_help("name a directory that is there in cwd"),
        None if hint.contains("--unique") => fault.with_help("take another name"),
        None if hint.contains("--agent PROFILE") => {
            fault.with_help("name a program in agent; teamctl agents lists what there is")
        }
        None => fault,
    }
}

fn check_own_team(own: &TeamName, named: Option<&str>) -> Result<(), ErrorReport> {
    match named.filter(|named| *named != own.as_str()) {
        None => Ok(()),
        Some(named) => {
            let message = format!("cannot start a member of {named}: your team is {own}");
            Err(ErrorReport::new(ErrorKind::Usage, message).with_help("leave team_name out"))
        }
    }
}

fn spawn_command(input: SpawnTeammateInput) -> Result<TeamctlCommand, ErrorReport> {
    let wrong = |error: protocol::name::NameError| ErrorReport::new(ErrorKind::Usage, error.to_string());
    let name = AgentName::parse(&input.name).map_err(wrong)?;
    let call = TeamctlCommand::new("spawn").arg(name.to_string()).option("agent", input.profile.as_deref());
    let call = call.option("type", input.subagent_type.as_deref()).option("model", input.model.as_deref());
    let call = call.option("mode", input.mode.as_deref()).option("cwd", input.cwd.as_deref());
    // Not an argument: it may be longer than one can be.
    let call = if input.prompt.is_empty() { call } else { call.arg("-").with_stdin(input.prompt) };
    // Last: without a branch it would take the word that follows for one.
    match (input.worktree, input.branch.filter(|branch| !branch.is_empty())) {
        (true, None) => Ok(call.flag("worktree")),
        (true, branch) => Ok(call.option("worktree", branch.as_deref())),
        (false, None) => Ok(call),
        (false, Some(branch)) => {
            let message = format!("cannot start {name} on the branch {branch}: it has no worktree");
            Err(ErrorReport::new(ErrorKind::Usage, message).with_help("say worktree: true beside branch"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(input: &Value) -> Result<String, ErrorKind> {
        let input = serde_json::from_value(input.clone()).unwrap();
        spawn_command(input).map(|call| format!("{call:?}")).map_err(|fault| fault.kind)
    }

    #[test]
    fn name_cannot_be_a_flag() {
        let named = |name: &str| call(&json!({"name": name, "prompt": "--all"}));
        for name in ["--all", "-", "", "a b", "../x", "team-lead --force"] {
            assert_eq!(named(name), Err(ErrorKind::Usage), "{name}");
        }
        assert!(
            named("ann").is_ok_and(|call| call.contains(r#"args: ["spawn", "ann", "-"], stdin: "--all""#))
        );
    }

    #[test]
    fn help_contains_no_command_line_options() {
        let hint =
            |kind, hint: &str| without_cli_help(ErrorReport::new(kind, "x").with_help(hint)).help.unwrap();
        assert_eq!(
            hint(ErrorKind::AlreadyExists, "take another name, or let --unique choose one"),
            "take another name"
        );
        let unknown =
            "there is: a, b; any other program goes behind --, as in: teamctl spawn NAME -- PROGRAM";
        assert_eq!(hint(ErrorKind::Usage, unknown), "there is: a, b");
        let nowhere = "name one that is there: teamctl spawn NAME --cwd DIR";
        assert_eq!(hint(ErrorKind::MissingPath, nowhere), "name a directory that is there in cwd");
        assert_eq!(hint(ErrorKind::NoDaemon, "start it with: teamctl up"), "start it with: teamctl up");
    }

    #[test]
    fn worktree_option_takes_no_following_argument() {
        let words = |more: Value| {
            let mut input = json!({"name": "ann", "prompt": "go"});
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            call(&input)
        };
        let has = |more: Value, wanted: &str| {
            assert!(words(more).is_ok_and(|call| call.contains(wanted)), "{wanted}");
        };
        has(json!({"worktree": true}), r#""-", "--worktree"]"#);
        has(json!({"worktree": true, "branch": "--x"}), r#""-", "--worktree=--x"]"#);
        has(json!({"branch": ""}), r#""-"]"#);
        assert_eq!(words(json!({"branch": "x"})), Err(ErrorKind::Usage));
    }
}
