//! Spawns members of a run on other hosts, and fetches their branches. For both, the run starts the
//! program `teamctl`, which connects to the hosts. If the run file lets teamd choose the host,
//! `teamctl spawn` asks the daemon for one.

use crate::run_file::{HostChoice, HostedSpawn, RunFile};
use client::root_socket_team_and_caller::TeamContext;
use profile::build_spawn_request::SpawnOptions;
use profile::directory_environment_and_prompt::parse_env_options;
use protocol::command_for_other_host::ENV_OPTIONS_VARIABLE;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::ANY_HOST;
use protocol::team_and_member_names::TeamName;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use store::own_program;

/// Spawns a member on another host. Returns when the team's config lists the member.
///
/// # Errors
///
/// The error that `teamctl spawn` prints.
pub(crate) fn spawn_on_other_host(
    team_context: &TeamContext,
    file: &RunFile,
    hosted: &HostedSpawn,
) -> Result<(), ErrorReport> {
    let mut command = teamctl(team_context, &file.name)?;
    command.args(spawn_arguments(hosted)).current_dir(&file.cwd);
    let env = parse_env_options(&hosted.options.env)?;
    command.env(ENV_OPTIONS_VARIABLE, json!(env).to_string());
    run(command, hosted.options.prompt.clone())
}

/// Fetches the branches of members on other hosts. Does nothing if the run file gives none of these
/// members a worktree.
///
/// # Errors
///
/// The error that `teamctl hosts fetch-branch` prints.
pub(crate) fn fetch_branches_of_hosts(team_context: &TeamContext, file: &RunFile) -> Result<(), ErrorReport> {
    if file.hosted_members.values().all(|hosted| hosted.options.worktree.is_none()) {
        return Ok(());
    }
    let mut command = teamctl(team_context, &file.name)?;
    command.args(["hosts", "fetch-branch"]);
    run(command, None)
}

/// The arguments with which `teamctl` spawns the member. Options are written `--NAME=VALUE`, so
/// that a value that begins with `-` is not taken for an option. The caller writes the prompt to
/// standard input (`--prompt -`). The member's environment variables may be secret, so the caller
/// passes them in an environment variable and not as arguments.
fn spawn_arguments(hosted: &HostedSpawn) -> Vec<OsString> {
    // A run file has no keys for the last three.
    let SpawnOptions {
        name,
        profile,
        prompt,
        agent_type,
        model,
        mode,
        cwd,
        worktree,
        backend,
        allow,
        deny,
        restart,
        env: _,
        command,
        prompt_file: _,
        fresh: _,
        unique: _,
    } = &hosted.options;
    let mut arguments: Vec<OsString> = vec!["spawn".into(), name.into()];
    let mut add = |name: &str, value: &str| arguments.push(format!("--{name}={value}").into());
    match &hosted.host {
        HostChoice::Named(host) => add("host", host.as_str()),
        HostChoice::Any { needs } => {
            add("host", ANY_HOST);
            needs.iter().for_each(|need| add("needs", need));
        }
    }
    let texts = [("profile", profile), ("agent-type", agent_type), ("model", model)];
    texts.iter().for_each(|(name, text)| text.iter().for_each(|text| add(name, text)));
    mode.iter().for_each(|mode| add("mode", mode.as_str()));
    backend.iter().for_each(|backend| add("backend", backend.as_str()));
    restart.iter().for_each(|restart| add("restart", &restart.to_string()));
    let lists = [("allow", allow), ("deny", deny)];
    lists.iter().for_each(|(name, list)| list.iter().for_each(|value| add(name, value)));
    if let Some(cwd) = cwd {
        add("cwd", &cwd.to_string_lossy());
    }
    match worktree {
        Some(Some(branch)) => add("worktree", branch),
        Some(None) => arguments.push("--worktree".into()),
        None => {}
    }
    if prompt.is_some() {
        arguments.extend(["--prompt", "-"].map(OsString::from));
    }
    if !command.is_empty() {
        arguments.push("--".into());
        arguments.extend(command.iter().map(OsString::from));
    }
    arguments
}

/// `teamctl` for this team, with JSON output.
pub(crate) fn teamctl(team_context: &TeamContext, team: &TeamName) -> Result<Command, ErrorReport> {
    let mut command = Command::new(own_program()?);
    command.args(["--json", "--team", team.as_str(), "--root"]).arg(team_context.root_path()?);
    command.env_remove("TEAMD_HOST");
    if let Some(socket) = &team_context.options().socket {
        command.env("TEAMD_SOCKET", socket);
    }
    Ok(command)
}

fn run(command: Command, input: Option<String>) -> Result<(), ErrorReport> {
    let start_error = |error: std::io::Error| {
        ErrorReport::new(ErrorKind::Io, format!("cannot act on a member of another host: {error}"))
    };
    let output = run_with_input(command, input).map_err(start_error)?;
    if output.status.success() { Ok(()) } else { Err(printed_error(&output)) }
}

fn run_with_input(mut command: Command, input: Option<String>) -> std::io::Result<Output> {
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stdin = child.stdin.take();
    std::thread::scope(|scope| {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            // If the command does not read its input, its own error says why.
            scope.spawn(move || stdin.write_all(input.as_bytes()).ok());
        }
        child.wait_with_output()
    })
}

/// The error that `teamctl --json` has printed last.
fn printed_error(output: &Output) -> ErrorReport {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let object = stdout.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
    let error = object.and_then(|object| serde_json::from_value(object.get("error")?.clone()).ok());
    error.unwrap_or_else(|| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let reason = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>();
        ErrorReport::new(ErrorKind::Io, format!("cannot reach the host of a member: {}", reason.join("; ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_all_options_of_the_member() {
        let options = SpawnOptions {
            name: "ann".to_owned(),
            profile: Some("claude-turn".to_owned()),
            prompt: Some("-x".to_owned()),
            env: vec!["TOKEN=secret".to_owned()],
            cwd: Some("/srv/project".into()),
            worktree: Some(None),
            restart: "on-failure".parse().ok(),
            ..SpawnOptions::default()
        };
        let words = |hosted: &HostedSpawn| {
            let words = spawn_arguments(hosted).into_iter().map(|word| word.into_string().unwrap());
            words.collect::<Vec<_>>().join(" ")
        };
        let host = HostChoice::Any { needs: vec!["gpu".to_owned(), "big".to_owned()] };
        assert_eq!(
            words(&HostedSpawn { host: host.clone(), options }),
            "spawn ann --host=any --needs=gpu --needs=big --profile=claude-turn --restart=on-failure \
             --cwd=/srv/project --worktree --prompt -"
        );
        let command = ["sh", "--host"].map(str::to_owned).to_vec();
        let options = SpawnOptions { name: "ann".to_owned(), command, ..SpawnOptions::default() };
        assert!(words(&HostedSpawn { host, options }).ends_with(" -- sh --host"));
    }
}
