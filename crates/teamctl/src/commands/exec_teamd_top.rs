//! `teamctl top`: determines the team and executes `teamd-top`, the program that draws the screen.
//!
//! `teamd-top` is a separate program because its libraries would slow down the start of every
//! `teamctl` command. If several teams are possible, `teamd-top` gets all of them and lets the user
//! choose.

use crate::command_context::CommandContext;
use client::tmux_missing_error::tmux_failed;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::find_sibling_program::installed_program;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use store::{env_var, own_program};

/// The file name of the program that draws the screen.
const SCREEN_PROGRAM: &str = "teamd-top";

/// Environment variables of `teamctl` that are passed on to `teamd-top` in a tmux popup. Otherwise
/// tmux would give the popup the values of the tmux server.
pub(super) const POPUP_VARIABLES: [&str; 13] = [
    "HOME",
    "PATH",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "TEAMD_ROOT",
    "TEAMD_SOCKET",
    "TEAMD_DURABILITY",
    "TMUX_PANE",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "NO_COLOR",
];

/// Watch and control a team on one screen
///
/// Example: teamctl top
///
/// The screen shows members, requests, tasks and messages. The first line counts what needs
/// attention: requests, failed tasks, and unread messages to the lead. With several teams and no
/// -t, one key chooses the team.
///
/// The key ? lists all keys. Enter shows details; for a member, also why it makes no progress. y
/// approves a request and n denies it, after you have read it to its end. s sends a message, x asks
/// a member to shut down, K kills a member after a confirmation. The key a goes to the member's
/// pane, / filters, q quits.
///
/// The screen works from 40 columns and 10 lines on, without colors (NO_COLOR), in ASCII (LANG=C),
/// and without the daemon. From 160 columns on, the lists are in two columns.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl top --popup\n  tmux bind-key t run-shell -b 'teamctl top --popup 2>&1'"
)]
pub(crate) struct TopArgs {
    /// Open the screen in a popup of tmux
    #[arg(long)]
    popup: bool,
}

/// Executes the screen. Returns only if that fails.
pub(crate) fn run(context: &CommandContext, args: &TopArgs) -> Result<ExitCode, ErrorReport> {
    let teams = context.candidate_teams(&context.root()?)?;
    let mut arguments: Vec<OsString> = vec!["--root".into(), context.root_path()?.into()];
    arguments.extend([
        "--state-dir".into(),
        context.directories()?.state_dir.into(),
        "--socket".into(),
        context.daemon_socket()?.into(),
    ]);
    arguments.extend(teams.iter().flat_map(|team| ["--team".into(), team.as_str().into()]));
    if !args.popup {
        return Err(exec_screen(&arguments)?);
    }
    arguments.push("--popup".into());
    let words = ["display-popup", "-E", "-w", "90%", "-h", "90%"];
    match exec_screen_in_tmux(&words, &POPUP_VARIABLES, &arguments)? {
        Some(error) => Err(error),
        None => Err(ErrorReport::new(ErrorKind::Refused, "cannot open a popup: this is not inside tmux")
            .with_help("without one: teamctl top")),
    }
}

/// Executes the program that draws the screen. Returns only if that fails.
pub(super) fn exec_screen(arguments: &[OsString]) -> Result<ErrorReport, ErrorReport> {
    let program = screen_program()?;
    let error = Command::new(&program).args(arguments).exec();
    let message = format!("cannot start {}: {error}", program.display());
    Ok(ErrorReport::new(ErrorKind::MissingPath, message).with_help("install all programs: make install"))
}

/// Executes a tmux command that opens a window or a popup with `teamd-top` in it. `variables` names
/// the environment variables of this process that `teamd-top` gets. Returns the error if tmux can't
/// be executed, or `None` if this process is not inside tmux.
pub(super) fn exec_screen_in_tmux(
    words: &[&str],
    variables: &[&str],
    arguments: &[OsString],
) -> Result<Option<ErrorReport>, ErrorReport> {
    let Some(socket) = env_var("TMUX").and_then(|tmux| tmux.split(',').next().map(str::to_owned)) else {
        return Ok(None);
    };
    let mut command = Command::new("tmux");
    command.args(["-u", "-S", &socket]).args(words).args(["--", "env"]);
    let assignment = |name: &&str| Some(OsString::from(format!("{name}={}", env_var(name)?)));
    command.args(variables.iter().filter_map(assignment).map(|argument| escape_for_tmux(&argument)));
    command
        .arg(escape_for_tmux(screen_program()?.as_os_str()))
        .args(arguments.iter().map(|argument| escape_for_tmux(argument)));
    Ok(Some(tmux_failed(&command.exec())))
}

fn screen_program() -> Result<PathBuf, ErrorReport> {
    Ok(installed_program(&own_program()?, SCREEN_PROGRAM, Path::is_file))
}

/// Escapes a semicolon at the end of a word, which tmux would take for the end of the command.
fn escape_for_tmux(argument: &OsStr) -> OsString {
    if argument.as_encoded_bytes().ends_with(b";") {
        let text = argument.to_string_lossy();
        return format!("{}\\;", &text[..text.len() - 1]).into();
    }
    argument.to_owned()
}
