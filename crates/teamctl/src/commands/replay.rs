//! `teamctl replay`: plays the record of a team. On a terminal, `teamd-top` shows the record as a
//! film. Without a terminal, the record is printed as text. With `--check`, teamd gets the recorded
//! inputs again, and its decisions are compared with those in the record.

mod check_record;
mod text_lines;

use super::exec_teamd_top::{POPUP_VARIABLES, exec_screen, exec_screen_in_tmux};
use crate::command_context::CommandContext;
use crate::output;
use client::read_team_record::{FILM_SPEEDS, TeamRecord, parse_size, read_start};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use serde_json::json;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

/// Play the record of a team
///
/// Example: teamctl replay survey.jsonl
///
/// `teamctl create --record` and `teamctl run --record` record a team. The film has the screen of
/// `teamctl top` and a time line. Space pauses, + and - change the speed, left and right skip 10 s.
/// ] } ) jump to the next message, failure or request, and [ { ( to the previous one. No key acts on
/// a team.
///
/// If nothing happened for more than 5 s, the film goes on after 5 s. Without a terminal, the
/// record is printed as text.
///
/// With --check, the installed teamd gets the recorded actions of people and agents, and decides
/// again. The exit code is 0 if its decisions are those of the record. Otherwise it is 1, and the
/// command prints a diff.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl replay survey.jsonl --text | grep failed\n  teamctl replay survey.jsonl --asciinema survey.cast --speed 4\n  teamctl replay survey.jsonl --check"
)]
pub(crate) struct ReplayArgs {
    /// The record
    file: PathBuf,
    /// Print one line for each message, task, turn, request and exit
    #[arg(long, conflicts_with_all = ["asciinema", "panes"])]
    text: bool,
    /// Write a film for asciinema to a file, which must not exist yet; - writes to standard output
    #[arg(long, value_name = "FILE", conflicts_with = "panes")]
    asciinema: Option<PathBuf>,
    /// Columns and lines of the film for asciinema [default: 120x40]
    #[arg(long, value_name = "WxH", requires = "asciinema", value_parser = check_size)]
    size: Option<String>,
    /// Speed of the film
    #[arg(long, value_name = "N", default_value = "1", value_parser = FILM_SPEEDS)]
    speed: String,
    /// Do not shorten the pauses in which nothing happened
    #[arg(long)]
    keep_pauses: bool,
    /// Open a tmux window with the film and a pane with the output of each member
    #[arg(long)]
    panes: bool,
    /// Check whether the installed teamd decides as recorded; if not, print the differences
    #[arg(long, conflicts_with_all = ["text", "asciinema", "panes", "keep_pauses", "speed"])]
    check: bool,
}

fn check_size(text: &str) -> Result<String, String> {
    let error = || "a size is COLUMNSxLINES, from 40x10 to 1000x1000, for example 120x40".to_owned();
    parse_size(text).map(|_| text.to_owned()).ok_or_else(error)
}

pub(crate) fn run(context: &CommandContext, args: &ReplayArgs) -> Result<ExitCode, ErrorReport> {
    // Errors of most wrong files are printed here, in the form of all commands.
    read_start(&args.file)?;
    if args.check {
        return check_record::check_record(context, &args.file);
    }
    if let Some(path) = &args.asciinema {
        let size = args.size.clone().unwrap_or_else(|| "120x40".to_owned());
        let cast = ["--asciinema".into(), path.into(), "--size".into(), size.into()];
        return Err(exec_screen(&[film_arguments(args, args.file.clone()), cast.to_vec()].concat())?);
    }
    if args.panes {
        return Err(exec_panes(args)?);
    }
    if args.text || context.args.json || !std::io::stdout().is_terminal() {
        return print_text(context, args);
    }
    Err(exec_screen(&film_arguments(args, args.file.clone()))?)
}

fn film_arguments(args: &ReplayArgs, file: PathBuf) -> Vec<OsString> {
    let mut arguments = vec!["--replay".into(), file.into(), "--speed".into(), args.speed.clone().into()];
    arguments.extend(args.keep_pauses.then(|| "--keep-pauses".into()));
    arguments
}

/// Executes tmux, which opens the window of the film. Returns only if that fails.
fn exec_panes(args: &ReplayArgs) -> Result<ErrorReport, ErrorReport> {
    let file = args.file.canonicalize().unwrap_or_else(|_| args.file.clone());
    let mut arguments = film_arguments(args, file);
    arguments.push("--panes".into());
    // The new pane has its own value of the variable.
    let variables: Vec<&str> = POPUP_VARIABLES.into_iter().filter(|name| *name != "TMUX_PANE").collect();
    let opened = exec_screen_in_tmux(&["new-window", "-n", "replay"], &variables, &arguments)?;
    Ok(opened.unwrap_or_else(|| {
        ErrorReport::new(ErrorKind::Refused, "cannot open panes: this is not inside tmux")
            .with_help("without panes: teamctl replay FILE; with them, start tmux first")
    }))
}

fn print_text(context: &CommandContext, args: &ReplayArgs) -> Result<ExitCode, ErrorReport> {
    let record = TeamRecord::read(&args.file)?;
    for line in text_lines::text_lines(&record) {
        let object = json!({"offset_ms": line.offset, "text": line.text});
        output::print_item(context, &object, &output::sanitize(&line.to_string()));
    }
    if let Some(missing) = record.missing_part() {
        output::print_warning(&missing);
    }
    Ok(ExitCode::SUCCESS)
}
