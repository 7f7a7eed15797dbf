//! `top`: the screen, which is a program of its own beside ours: what draws it would slow every other verb. Whose team it
//! shows is settled here, and handed over in its arguments; where several may be meant it has them all, and asks.

use crate::context::CommandContext;
use client::tmux_command::tmux_failed;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::installed_program::installed_program;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use store::{env_var, own_program};

/// The screen's program.
const SCREEN_PROGRAM: &str = "teamd-top";

/// What in a popup must be as it is here: tmux would set some of it as its server has it.
const POPUP_VARIABLES: [&str; 13] = [
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

/// Watch a team on one screen, and steer it with keys
///
/// Members with what they do, since when, their task, unread mail and the last line of their output; requests, tasks and
/// what they wait for, messages. Enter shows all of one, of a member also why it is not moving and what its pane shows; y and n answer a request once it was shown to its end; s sends,
/// x asks to shut down, K kills (asked twice), a goes to the pane, / filters, ? tells all keys, q leaves. Works without
/// colour (NO_COLOR), in ASCII (LANG=C), from 40 columns and 10 lines on, and with the daemon dead. Where there are several
/// teams and none is named, one key chooses.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl top\n  teamctl top -t survey\n  teamctl top --popup\n  tmux bind-key t run-shell -b 'teamctl top --popup 2>&1'"
)]
pub(crate) struct TopArgs {
    /// In a popup of tmux, over what is there
    #[arg(long)]
    popup: bool,
}

/// Becomes the screen; returns only where it can't.
pub(crate) fn run(here: &CommandContext, args: &TopArgs) -> Result<ExitCode, ErrorReport> {
    here.require_lead("watch the whole team")?;
    let teams = here.candidate_teams(&here.root()?)?;
    let program = installed_program(&own_program()?, SCREEN_PROGRAM, Path::is_file);
    let mut words: Vec<OsString> = vec!["--root".into(), here.root_path()?.into()];
    words.extend([
        "--state-dir".into(),
        here.directories()?.state_dir.into(),
        "--socket".into(),
        here.socket()?.into(),
    ]);
    words.extend(teams.iter().flat_map(|team| ["--team".into(), team.as_str().into()]));
    if args.popup {
        return Err(exec_popup(&program, &words));
    }
    let error = Command::new(&program).args(&words).exec();
    let message = format!("cannot start {}: {error}", program.display());
    Err(ErrorReport::new(ErrorKind::MissingPath, message).with_help("install all programs: make install"))
}

/// Becomes tmux, which waits until the popup has closed.
fn exec_popup(program: &Path, words: &[OsString]) -> ErrorReport {
    let Some(socket) = env_var("TMUX").and_then(|tmux| tmux.split(',').next().map(str::to_owned)) else {
        return ErrorReport::new(ErrorKind::Refused, "cannot open a popup: this is not inside tmux")
            .with_help("without one: teamctl top");
    };
    let mut command = Command::new("tmux");
    command.args(["-u", "-S", &socket, "display-popup", "-E", "-w", "90%", "-h", "90%", "--", "env"]);
    let set = |name: &&str| Some(OsString::from(format!("{name}={}", env_var(name)?)));
    command.args(POPUP_VARIABLES.iter().filter_map(set).map(|word| escape_for_tmux(&word)));
    command
        .arg(escape_for_tmux(program.as_os_str()))
        .args(words.iter().map(|word| escape_for_tmux(word)))
        .arg("--popup");
    tmux_failed(&command.exec())
}

/// To tmux a semicolon at a word's end begins another command.
fn escape_for_tmux(word: &std::ffi::OsStr) -> OsString {
    let mut plain = word.to_owned();
    if word.as_encoded_bytes().ends_with(b";") {
        let text = word.to_string_lossy();
        plain = format!("{}\\;", &text[..text.len() - 1]).into();
    }
    plain
}
