//! `setup`: what a program's own settings must hold so that it takes part in a team. Shown as a diff; written only if
//! told to, and a copy of what was there stays.

mod json;
pub(super) mod target;
mod template;
mod toml;

use crate::here::{Here, fault};
use crate::output;
use crate::profile::Shelf;
use protocol::error::ErrorReport;
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use target::Target;

/// Show what a program's own settings need, and write it if told to
///
/// Hooks and MCP servers of programs that take them from their settings alone. Without --write nothing is changed. With
/// it everything else in the file stays as it is, and a copy of the file stays beside it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl setup codex\n  teamctl setup gemini --write")]
pub(crate) struct Setup {
    /// The profile of the program: see teamctl agents list
    #[arg(value_name = "PROFILE")]
    profile: String,
    /// Write it
    #[arg(long)]
    write: bool,
    /// Where the settings of a project lie, for programs that have such [default: here]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

/// One file, as `--json` tells it.
#[derive(Debug, Serialize)]
struct Told {
    file: PathBuf,
    /// It held everything already.
    ready: bool,
    diff: String,
    /// Where a copy of what it was lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<PathBuf>,
}

pub(crate) fn run(here: &Here, args: &Setup) -> Result<ExitCode, ErrorReport> {
    let profile = Shelf::of_user().profile(&args.profile)?;
    let project = args.project.as_deref().unwrap_or(Path::new("."));
    // All are looked at before one is written.
    let targets =
        profile.setup().iter().map(|piece| Target::of(piece, project)).collect::<Result<Vec<_>, _>>()?;
    let told = targets.iter().map(|target| told(target, args.write)).collect::<Result<Vec<_>, _>>()?;
    let text = sentences(&args.profile, &told, args.write);
    output::done(here, &json!({"profile": args.profile, "written": args.write, "files": told}), &text);
    Ok(ExitCode::SUCCESS)
}

fn told(target: &Target, write: bool) -> Result<Told, ErrorReport> {
    let suffix = format!(".before-teamd-{}", crate::here::now());
    let backup = match write && !target.is_ready() {
        true => target.settings.replace(target.wanted.as_bytes(), &suffix).map_err(fault)?,
        false => None,
    };
    let file = target.settings.path().to_owned();
    Ok(Told { file, ready: target.is_ready(), diff: target.diff(), backup })
}

fn sentences(profile: &str, told: &[Told], write: bool) -> String {
    if told.is_empty() {
        return format!("{profile} needs nothing in its settings.");
    }
    let mut lines: Vec<String> = told.iter().map(|told| sentence(told, write)).collect();
    if !write && told.iter().any(|told| !told.ready) {
        lines.push(format!("Nothing is written yet. To write it: teamctl setup {profile} --write"));
    }
    lines.join("\n")
}

fn sentence(told: &Told, write: bool) -> String {
    let file = output::clean(&told.file.display().to_string());
    match (told.ready, write, &told.backup) {
        (true, _, _) => format!("{file} holds all that is needed."),
        (_, false, _) => format!("{file} needs:\n{}", output::clean(told.diff.trim_end())),
        (_, true, None) => format!("{}\n{file} is written.", output::clean(told.diff.trim_end())),
        (_, true, Some(backup)) => {
            let backup = output::clean(&backup.display().to_string());
            format!(
                "{}\n{file} is written; what it was lies in {backup}.",
                output::clean(told.diff.trim_end())
            )
        }
    }
}
