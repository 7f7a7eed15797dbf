//! `teamctl spawn`: starts a teammate, in a pane or without one, and waits until it runs. With
//! `--host`, the teammate runs on another machine.

mod on_other_host;
mod place_member;
mod record_worktree_on_other_host;

use super::hosts::read_hosts::HostSource;
use super::text_or_stdin;
use crate::add_options_to_suggested_commands;
use crate::command_context::CommandContext;
use crate::output;
use crate::use_other_hosts::{check_may_use_other_hosts, env_options_of_starter};
use client::suggested_commands::SuggestedCommands;
use place_member::{HostChoices, check_host_options, place_member};
use profile::build_spawn_request::{SpawnOptions, build_spawn_request, profile_warnings};
use profile::build_worktree_and_spawn_requests::{rebuild_for_worktree, submodule_warning, worktree_request};
use protocol::command_for_other_host::HOST_OF_CALLER_VARIABLE;
use protocol::control_socket::{Backend, EarlierMessages, MemberHost, Request, SpawnReply, SpawnRequest};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::{ANY_HOST, HOME_HOST};
use protocol::inbox_file::InboxEntry;
use protocol::inbox_message_payload::Payload;
use protocol::team_and_member_names::MemberName;
use serde_json::json;
use std::process::ExitCode;
use store::env_var;

// The description of the command is that of the options. A doc comment would replace it.
#[derive(Debug, clap::Args)]
pub(crate) struct SpawnArgs {
    #[command(flatten)]
    options: SpawnOptions,
    /// Run the member on this host of `teamctl hosts`, or on `any`: then teamd chooses a host with
    /// a free slot. Programs, profiles and paths are those on the host. The default of --cwd is the
    /// directory in which the host's connect command starts programs: with ssh, the home directory
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Labels that the host must have, with --host any
    #[arg(long, value_name = "LABEL,…", value_delimiter = ',')]
    needs: Vec<String>,
}

pub(crate) fn run(context: &CommandContext, mut args: SpawnArgs) -> Result<ExitCode, ErrorReport> {
    args.options.env.extend(env_options_of_starter().iter().map(|(name, value)| format!("{name}={value}")));
    check_name(&args.options.name)?;
    check_host_options(args.host.as_deref(), &args.needs)?;
    let Some(host) = &args.host else {
        // If another machine runs this command, its name for this host is in the answer.
        return run_here(context, args.options, env_var(HOST_OF_CALLER_VARIABLE).as_deref());
    };
    check_may_use_other_hosts(context)?;
    let team = context.team()?;
    let mut source = HostSource::default();
    let hosts = match source.read_for_team(context, team.name())? {
        Ok(hosts) => hosts,
        Err(code) => return Ok(code),
    };
    let choices = match host.as_str() {
        ANY_HOST => {
            source.check_run_file_of_team()?;
            HostChoices::Described { hosts: &hosts, needs: &args.needs }
        }
        host => HostChoices::Named(source.find(&hosts, host)?.0),
    };
    on_other_host::check_is_home(&team)?;
    let placement = place_member(context, (team.name(), &args.options.name), &choices)?;
    match placement.host.clone() {
        MemberHost::Home => {
            let code = run_here(context, args.options, Some(HOME_HOST));
            drop(placement);
            code
        }
        MemberHost::Other(host) => {
            let (host, entry) = source.find(&hosts, host.as_str())?;
            on_other_host::run(context, (&host, &entry), (&team, &args.options), placement)
        }
    }
}

/// Spawns the member on this machine. `host` is the name of this machine in the output. It is
/// `None` if the command has no `--host` and was not called from another machine.
fn run_here(
    context: &CommandContext,
    mut args: SpawnOptions,
    host: Option<&str>,
) -> Result<ExitCode, ErrorReport> {
    args.prompt = args.prompt.as_deref().map(text_or_stdin::read_text).transpose()?;
    let mut request = spawn_request(context, args.clone())?;
    print_warnings(context, &profile_warnings(&request));
    print_warnings(context, unused_model_warning(&request, args.model.as_deref()).as_slice());
    if args.worktree.is_some() {
        let worktree = context.create_worktree(worktree_request(&request, &args))?;
        if !worktree.is_reused {
            print_warnings(context, submodule_warning(&request.cwd).as_slice());
        }
        request = rebuild_for_worktree(&context.root()?, request, args, worktree)?;
    }
    let earlier_count = earlier_message_count(context, &request);
    let reply: SpawnReply = context.request(Request::Spawn(Box::new(request)))?;
    let commands = add_options_to_suggested_commands::suggested_commands_for_team(context, &reply.team_name)?;
    let text = [
        Some(result_text(&reply, host, &commands)),
        earlier_messages_text(reply.name.as_str(), earlier_count),
    ];
    let mut result = json!(reply);
    if let Some(host) = host {
        result["host"] = json!(host);
    }
    output::print_result(context, &result, &text.into_iter().flatten().collect::<Vec<_>>().join("\n"));
    Ok(ExitCode::SUCCESS)
}

/// The number of unread messages to an earlier member of the same name. The new member will get
/// them.
fn earlier_message_count(context: &CommandContext, request: &SpawnRequest) -> usize {
    if request.earlier_messages == EarlierMessages::Discard {
        return 0;
    }
    let unread_entries = context
        .root()
        .ok()
        .and_then(|root| root.team(&request.team).ok()?.inbox(&request.name).read_unread().ok());
    let is_text =
        |entry: &InboxEntry| entry.unread().is_some_and(|message| Payload::parse(&message.text).is_none());
    unread_entries.unwrap_or_default().iter().filter(|entry| is_text(entry)).count()
}

fn earlier_messages_text(name: &str, count: usize) -> Option<String> {
    let messages = match count {
        0 => return None,
        1 => "1 unread message".to_owned(),
        count => format!("{count} unread messages"),
    };
    Some(format!("{name} gets {messages} to an earlier member of this name (with --fresh it would not)"))
}

/// Checks the name of the new member.
///
/// # Errors
///
/// `Usage`. The help of the error suggests a similar valid name, if there is one.
fn check_name(name: &str) -> Result<(), ErrorReport> {
    let Err(error) = MemberName::parse(name) else { return Ok(()) };
    let valid_name = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-', "-");
    let error = ErrorReport::new(ErrorKind::Usage, error.to_string());
    Err(match MemberName::parse(&valid_name) {
        Ok(valid_name) => error.with_help(format!("a name that fits: {valid_name}")),
        Err(_) => error,
    })
}

/// The warning if the user has chosen a model and the program is not told about it.
fn unused_model_warning(request: &SpawnRequest, model: Option<&str>) -> Option<String> {
    let model = model?;
    let turns =
        request.turns.as_ref().and_then(|turns| serde_json::to_string(turns).ok()).unwrap_or_default();
    let is_used = turns.contains(model) || request.argv.iter().any(|argument| argument.contains(model));
    (!is_used).then(|| {
        format!(
            "warning: the program of {} is not told the model {model}: nothing says how it takes one (the key \
             `model` of a profile, docs/agents.md)",
            request.name
        )
    })
}

fn print_warnings(context: &CommandContext, warnings: &[String]) {
    for warning in warnings.iter().filter(|_| !context.args.quiet) {
        output::print_warning(&add_options_to_suggested_commands::rewrite_commands(context, warning));
    }
}

/// The answer for people. `host` is the name of the host on which the member runs, if it matters.
fn result_text(reply: &SpawnReply, host: Option<&str>, commands: &SuggestedCommands) -> String {
    let name = output::paint(&reply.color, reply.name.as_str());
    let place = host.map(|host| format!(" on {host}")).unwrap_or_default();
    match reply.pane.as_str() {
        "in-process" => {
            let logs = commands.command(&["logs", reply.name.as_str(), "-f"]);
            format!("{name} runs{place} without a pane, its output: {logs}")
        }
        _ if reply.backend == Backend::Iterm2.as_str() => {
            let attach = commands.command_for_name("attach", reply.name.as_str(), &[]);
            format!("{name} runs{place} in iTerm2, pid {}. Go there: {attach}", reply.pid)
        }
        pane => {
            let attach = commands.command_for_name("attach", reply.name.as_str(), &[]);
            let window = reply.location.as_ref().map(|place| format!(", window {place}")).unwrap_or_default();
            let window = output::sanitize(&window);
            format!("{name} runs{place} in pane {pane}{window}, pid {}. Go there: {attach}", reply.pid)
        }
    }
}

/// Builds the request for the selected team.
fn spawn_request(context: &CommandContext, args: SpawnOptions) -> Result<SpawnRequest, ErrorReport> {
    let root = context.root()?;
    let team = context.team_name(&root)?;
    let config = root.team(&team).and_then(|team| team.config()).ok();
    build_spawn_request(root.path(), team, config.as_ref(), args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_names_the_pane_or_the_command_for_the_output() {
        let reply = |pane: &str| {
            let text = format!(
                r#"{{"status":"teammate_spawned","agent_id":"ann@t","teammate_id":"ann@t","name":"ann","team_name":"t",
                "color":"blue","model":"","agent_type":"x","plan_mode_required":false,"prompt":"","pane":"{pane}","location":"teamd:2",
                "pid":7,"backend":"tmux"}}"#
            );
            serde_json::from_str::<SpawnReply>(&text).unwrap()
        };
        assert_eq!(
            result_text(&reply("%3"), Some("devbox"), &SuggestedCommands::default()),
            "ann runs on devbox in pane %3, window teamd:2, pid 7. Go there: teamctl attach ann"
        );
        assert_eq!(
            result_text(&reply("in-process"), None, &SuggestedCommands::default()),
            "ann runs without a pane, its output: teamctl logs ann -f"
        );
    }
}
