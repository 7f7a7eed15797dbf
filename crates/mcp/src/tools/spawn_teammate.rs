//! `SpawnTeammate`: starts a new member. The result arrives when the member runs.

use super::input_and_output_schemas::{Property, optional_property, required_property};
use super::tool_definition::{ToolDefinition, ToolEffect};
use crate::server_context::ServerContext;
use crate::teamctl_command::TeamctlCommand;
use protocol::allowed_callers::AllowedCallers;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::ANY_HOST;
use protocol::team_and_member_names::{MemberName, TeamName};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

pub(super) struct SpawnTeammateTool;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SpawnTeammateInput {
    /// The member's name: letters, digits, - and _. Members are addressed by it.
    name: String,
    /// The member's first message. Say in it all that the member must know, because the member has
    /// not seen your conversation.
    prompt: String,
    /// The member's agent type: general-purpose (default), Explore or Plan (read-only), or one that
    /// is defined in this project.
    #[serde(default)]
    subagent_type: Option<String>,
    /// The member's model; the team's by default.
    #[serde(default)]
    model: Option<String>,
    /// The member's permission mode: default, acceptEdits, plan (it submits a plan first),
    /// bypassPermissions, dontAsk, auto.
    #[serde(default)]
    mode: Option<String>,
    /// The directory in which the member works; yours by default.
    #[serde(default)]
    cwd: Option<String>,
    /// Whether the member works in a git worktree and on a branch of its own. The worktree is
    /// beside the repository that contains the member's directory.
    #[serde(default)]
    worktree: bool,
    /// The branch of the member's worktree. If it does not exist, it is created. By default a new
    /// branch. Allowed only if worktree is true.
    #[serde(default)]
    branch: Option<String>,
    /// The name of your team. No other team is possible.
    #[serde(default)]
    team_name: Option<String>,
    /// The member's program: claude, codex, gemini, worker… `teamctl profiles` lists them. By
    /// default the configured default_profile, else claude.
    #[serde(default)]
    profile: Option<String>,
    /// The machine on which the member runs; this one by default. `teamctl hosts` lists them. If
    /// host is `any`, teamd chooses one. The profile and cwd must exist on that machine.
    #[serde(default)]
    host: Option<String>,
    /// The labels that the machine must have. Allowed only if host is any.
    #[serde(default)]
    needs: Vec<String>,
}

impl ToolDefinition for SpawnTeammateTool {
    const NAME: &'static str = "SpawnTeammate";
    const TITLE: &'static str = "Start a teammate";
    const DESCRIPTION: &'static str = "Start a teammate of your team; for the lead. It runs beside you, in its own pane if \
        there are panes, and takes messages and tasks until it is asked to shut down. The result arrives when the \
        teammate runs, not when its work is done: it sends you a message then.";
    const EFFECT: ToolEffect = ToolEffect::Additive;
    const ALLOWED_CALLERS: AllowedCallers<'static> = AllowedCallers::LeadOrPerson;
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
        optional_property("location", "string"),
        optional_property("backend", "string"),
        optional_property("host", "string"),
    ];

    async fn call(context: &Arc<ServerContext>, input: SpawnTeammateInput) -> Result<Value, ErrorReport> {
        check_own_team(&context.require_team()?, input.team_name.as_deref())?;
        spawn_command(input)?.run(context).await.map_err(without_cli_help)
    }
}

/// Replaces help that is for the command line, because a tool call has no such options.
fn without_cli_help(error: ErrorReport) -> ErrorReport {
    let help = error.help.clone().unwrap_or_default();
    match help.split_once("; any other program") {
        Some((before, _)) => error.with_help(before),
        None if help.contains("--cwd DIR") => error.with_help("name an existing directory in cwd"),
        None if help.contains("--unique") => error.with_help("take another name"),
        None if help.contains("--profile PROFILE") => {
            error.with_help("name a program in profile; teamctl profiles lists what there is")
        }
        None => error,
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
    let to_report = |error: protocol::team_and_member_names::NameError| {
        ErrorReport::new(ErrorKind::Usage, error.to_string())
    };
    let name = MemberName::parse(&input.name).map_err(to_report)?;
    // As with TeamCreate, NAME-2 is taken where the name is taken.
    let call = TeamctlCommand::new("spawn").arg(name.to_string()).flag("unique");
    let call = call.option("profile", input.profile.as_deref());
    let call =
        call.option("agent-type", input.subagent_type.as_deref()).option("model", input.model.as_deref());
    let call = call.option("mode", input.mode.as_deref()).option("cwd", input.cwd.as_deref());
    let call = add_host(call, input.host.as_deref(), &input.needs)?;
    // The prompt may be longer than an argument can be.
    let call = if input.prompt.is_empty() {
        call
    } else {
        call.option("prompt", Some("-")).with_stdin(input.prompt)
    };
    // This option is last: without a branch it would take the next argument for its value.
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

fn add_host(
    call: TeamctlCommand,
    host: Option<&str>,
    needs: &[String],
) -> Result<TeamctlCommand, ErrorReport> {
    if !needs.is_empty() && host != Some(ANY_HOST) {
        let message = "cannot use needs without host: any, which lets teamd choose the machine";
        return Err(
            ErrorReport::new(ErrorKind::Usage, message).with_help("say host: any, or leave needs out")
        );
    }
    let call = call.option("host", host);
    Ok(needs.iter().fold(call, |call, need| call.option("needs", Some(need))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(input: &Value) -> Result<String, ErrorKind> {
        let input = serde_json::from_value(input.clone()).unwrap();
        spawn_command(input).map(|call| format!("{call:?}")).map_err(|error| error.kind)
    }

    #[test]
    fn name_cannot_be_a_flag() {
        let call_with_name = |name: &str| call(&json!({"name": name, "prompt": "--all"}));
        for name in ["--all", "-", "", "a b", "../x", "team-lead --force"] {
            assert_eq!(call_with_name(name), Err(ErrorKind::Usage), "{name}");
        }
        assert!(call_with_name("ann").is_ok_and(|call| {
            call.contains(r#"args: ["spawn", "ann", "--unique", "--prompt=-"], stdin: "--all""#)
        }));
    }

    #[test]
    fn labels_go_only_with_any_host() {
        let call_with = |more: Value| {
            let mut input = json!({"name": "ann", "prompt": ""});
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            call(&input)
        };
        for (input, expected) in [
            (json!({"host": "devbox"}), r#""--unique", "--host=devbox"]"#),
            (json!({"host": "any", "needs": ["gpu", "b"]}), r#""--host=any", "--needs=gpu", "--needs=b"]"#),
        ] {
            assert!(call_with(input).is_ok_and(|call| call.contains(expected)), "{expected}");
        }
        for input in [json!({"needs": ["gpu"]}), json!({"host": "devbox", "needs": ["gpu"]})] {
            assert_eq!(call_with(input), Err(ErrorKind::Usage));
        }
    }

    #[test]
    fn help_contains_no_command_line_options() {
        let help =
            |kind, help: &str| without_cli_help(ErrorReport::new(kind, "x").with_help(help)).help.unwrap();
        assert_eq!(
            help(ErrorKind::AlreadyExists, "take another name, or let --unique choose one"),
            "take another name"
        );
        let unknown =
            "there is: a, b; any other program goes behind --, as in: teamctl spawn NAME -- PROGRAM";
        assert_eq!(help(ErrorKind::Usage, unknown), "there is: a, b");
        let missing = "name an existing one: teamctl spawn NAME --cwd DIR";
        assert_eq!(help(ErrorKind::MissingPath, missing), "name an existing directory in cwd");
        assert_eq!(help(ErrorKind::NoDaemon, "start it with: teamctl up"), "start it with: teamctl up");
    }

    #[test]
    fn worktree_option_takes_no_following_argument() {
        let command = |more: Value| {
            let mut input = json!({"name": "ann", "prompt": "go"});
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            call(&input)
        };
        let assert_has = |more: Value, expected: &str| {
            assert!(command(more).is_ok_and(|call| call.contains(expected)), "{expected}");
        };
        assert_has(json!({"worktree": true}), r#""--prompt=-", "--worktree"]"#);
        assert_has(json!({"worktree": true, "branch": "--x"}), r#""--prompt=-", "--worktree=--x"]"#);
        assert_has(json!({"branch": ""}), r#""--prompt=-"]"#);
        assert_eq!(command(json!({"branch": "x"})), Err(ErrorKind::Usage));
    }
}
