//! Runs `teamctl`, and builds the `teamctl` commands that the screen shows to people.

use crate::args::ScreenArgs;
use crate::ui_events_and_effects::ActionResult;
use client::suggested_commands::SuggestedCommands;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::find_sibling_program::installed_program;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use store::{Durability, Root};

/// Runs the `teamctl` of this installation and waits for it.
pub(crate) fn run_teamctl(arguments: &ScreenArgs, args: &[&str]) -> std::io::Result<Output> {
    start_teamctl(arguments, args, "")?.wait_with_output()
}

/// Starts `teamctl` with `input` on standard input. The process gets a process group of its own, so
/// that the terminal's signals, such as Ctrl-C, do not reach it.
pub(crate) fn start_teamctl<S: AsRef<std::ffi::OsStr>>(
    arguments: &ScreenArgs,
    args: &[S],
    input: &str,
) -> std::io::Result<Child> {
    let mut command = Command::new(teamctl_path()?);
    command.args(root_args(arguments)).args(["--team", arguments.team.as_str()]).args(args);
    if let Some(socket) = unusual_socket(arguments) {
        // The socket is passed in a variable, not as the option `--socket`. If no daemon answers at
        // the socket of the variable, `teamctl` looks for the daemon at another socket. With the
        // option it would not.
        command.env("TEAMD_SOCKET", socket);
    }
    command.stdin(memory_file(input)?).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).spawn()
}

/// Replaces this process by `teamctl top` without a team. Returns only if that fails.
pub(crate) fn exec_teamctl_top(arguments: &ScreenArgs) -> ErrorReport {
    let exec = |path: PathBuf| Command::new(path).args(location_args(arguments)).arg("top").exec();
    let error = teamctl_path().map_or_else(|error| error, exec);
    ErrorReport::new(ErrorKind::Io, format!("cannot start teamctl top: {error}"))
        .with_help("start it yourself: teamctl top")
}

/// The result of a command: its output or its error as one line.
pub(crate) fn command_result(output: std::io::Result<Output>) -> ActionResult {
    let output = match output {
        Ok(output) => output,
        Err(error) => return ActionResult::failure(format!("cannot start teamctl: {error}")),
    };
    let joined_lines = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines.join(" ").trim_start_matches("teamctl: ").trim_start_matches("error: ").to_owned()
    };
    let (stdout, stderr) = (joined_lines(&output.stdout), joined_lines(&output.stderr));
    match output.status.success() {
        true if stdout.is_empty() => ActionResult::success("done"),
        true => ActionResult::success(stdout),
        false if stderr.is_empty() => ActionResult::failure(stdout),
        false => ActionResult::failure(stderr),
    }
}

/// Returns the options `--root` and `--socket` for `teamctl`. Each option is left out if `teamctl`
/// finds the same path without the option. `teamctl` repeats its options in the commands that it
/// suggests, so an unnecessary option would make these commands longer.
fn location_args(arguments: &ScreenArgs) -> Vec<OsString> {
    let socket = unusual_socket(arguments).into_iter().flat_map(|socket| ["--socket".into(), socket.into()]);
    root_args(arguments).into_iter().chain(socket).collect()
}

/// The option `--root`, if it is needed.
fn root_args(arguments: &ScreenArgs) -> Vec<OsString> {
    let root = store::resolve_root_path(path_variable("TEAMD_ROOT").as_deref()).ok();
    let root = root.and_then(|root| root.canonicalize().ok());
    match root.as_ref() == Some(&arguments.root) {
        true => Vec::new(),
        false => vec!["--root".into(), arguments.root.clone().into()],
    }
}

/// The socket, if `teamctl` would not try it first.
fn unusual_socket(arguments: &ScreenArgs) -> Option<&Path> {
    let usual = path_variable("TEAMD_SOCKET")
        .unwrap_or_else(|| store::directories_for_root(&arguments.root).control_socket());
    (usual != arguments.socket).then_some(&arguments.socket)
}

fn path_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Creates a file without a name, with the content `text`, to be read from the beginning as a
/// child's standard input. A pipe is not used, because writing to it can block and would need a
/// thread.
pub(crate) fn memory_file(text: &str) -> std::io::Result<File> {
    let mut file = platform::system().unnamed_file()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// Builds `teamctl` commands about the team, as a person must type them in this environment.
pub(crate) fn suggested_commands(arguments: &ScreenArgs) -> SuggestedCommands {
    let root = Root::open(&arguments.root, &arguments.state_dir, Durability::Process).ok();
    let teams = root.and_then(|root| root.teams().ok()).unwrap_or_default();
    let team_from_env = std::env::var("TEAMD_TEAM").ok().filter(|team| !team.is_empty());
    commands_without_team(arguments).for_team_unless_implied(
        &arguments.team,
        &teams,
        team_from_env.as_deref(),
    )
}

/// Builds `teamctl` commands without a team, as a person must type them in this environment.
pub(crate) fn commands_without_team(arguments: &ScreenArgs) -> SuggestedCommands {
    SuggestedCommands::with_options(
        location_args(arguments).into_iter().map(|argument| argument.to_string_lossy().into_owned()),
    )
}

/// The command that attaches a terminal to a member's pane.
pub(crate) fn attach_command(arguments: &ScreenArgs, name: &str, commands: &SuggestedCommands) -> String {
    commands.for_team(&arguments.team).command_for_name("attach", name, &[])
}

fn teamctl_path() -> std::io::Result<PathBuf> {
    Ok(installed_program(&std::env::current_exe()?, "teamctl", Path::is_file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attach_command_includes_options() {
        let args = ["--root", "/r", "--state-dir", "/s", "--socket", "/c", "--team", "survey"];
        let arguments = ScreenArgs::parse(args.map(OsString::from)).unwrap();
        let with_root = SuggestedCommands::with_options(["--root", "/a b"].map(str::to_owned));
        let command = |name: &str, commands: &SuggestedCommands| attach_command(&arguments, name, commands);
        assert_eq!(command("ann", &SuggestedCommands::default()), "teamctl attach -t survey ann");
        assert_eq!(command("-x", &with_root), "teamctl attach --root '/a b' -t survey -- -x");
    }
}
