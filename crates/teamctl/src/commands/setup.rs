//! `setup`: what a program's own settings must hold so that it takes part in a team. Shown as a diff; written only if
//! told to, and a copy of what was there stays.

mod merge_json;
mod merge_toml;
pub(super) mod settings_file;
mod settings_template;

use crate::context::CommandContext;
use crate::output;
use profile::ProfileRegistry;
use protocol::error::ErrorReport;
use serde::Serialize;
use serde_json::json;
use settings_file::SettingsFile;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show what a program's own settings need, and write it if told to
///
/// Hooks and MCP servers of programs that take them from their settings alone. Without --write nothing is changed. With
/// it everything else in the file stays as it is, and a copy of the file stays beside it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl setup codex\n  teamctl setup gemini --write")]
pub(crate) struct SetupArgs {
    /// The profile of the program: see teamctl profiles list
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
struct SettingsChange {
    file: PathBuf,
    /// It held everything already.
    is_up_to_date: bool,
    diff: String,
    /// Where a copy of what it was lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<PathBuf>,
}

pub(crate) fn run(here: &CommandContext, args: &SetupArgs) -> Result<ExitCode, ErrorReport> {
    let profile = ProfileRegistry::for_user().profile(&args.profile)?;
    let project = args.project.as_deref().unwrap_or(Path::new("."));
    // All are looked at before one is written.
    let targets = profile
        .settings_patches()
        .iter()
        .map(|piece| SettingsFile::read(piece, project))
        .collect::<Result<Vec<_>, _>>()?;
    let told =
        targets.iter().map(|target| apply_or_diff(target, args.write)).collect::<Result<Vec<_>, _>>()?;
    let text = result_text(&args.profile, &told, args.write);
    output::print_result(
        here,
        &json!({"profile": args.profile, "written": args.write, "files": told}),
        &text,
    );
    Ok(ExitCode::SUCCESS)
}

fn apply_or_diff(target: &SettingsFile, write: bool) -> Result<SettingsChange, ErrorReport> {
    let suffix = format!(".before-teamd-{}", store::now());
    let backup = match write && !target.is_up_to_date() {
        true => target.settings.replace(target.wanted.as_bytes(), &suffix)?,
        false => None,
    };
    let file = target.settings.path().to_owned();
    Ok(SettingsChange { file, is_up_to_date: target.is_up_to_date(), diff: target.diff(), backup })
}

fn result_text(profile: &str, told: &[SettingsChange], write: bool) -> String {
    if told.is_empty() {
        return format!("{profile} needs nothing in its settings.");
    }
    let mut lines: Vec<String> = told.iter().map(|told| change_text(told, write)).collect();
    if !write && told.iter().any(|told| !told.is_up_to_date) {
        lines.push(format!("Nothing is written yet. To write it: teamctl setup {profile} --write"));
    }
    lines.join("\n")
}

fn change_text(told: &SettingsChange, write: bool) -> String {
    let file = output::sanitize(&told.file.display().to_string());
    match (told.is_up_to_date, write, &told.backup) {
        (true, _, _) => format!("{file} holds all that is needed."),
        (_, false, _) => format!("{file} needs:\n{}", output::sanitize(told.diff.trim_end())),
        (_, true, None) => format!("{}\n{file} is written.", output::sanitize(told.diff.trim_end())),
        (_, true, Some(backup)) => {
            let backup = output::sanitize(&backup.display().to_string());
            format!(
                "{}\n{file} is written; what it was lies in {backup}.",
                output::sanitize(told.diff.trim_end())
            )
        }
    }
}
