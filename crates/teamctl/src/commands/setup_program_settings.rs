//! `teamctl setup`: shows, as a diff, the changes to an agent program's own settings that the
//! program needs to take part in a team. With `--write` the command makes a backup and writes the
//! changes.

pub(super) mod current_and_merged_settings;
mod merge_json;
mod merge_toml;
mod settings_comparison;

use crate::command_context::CommandContext;
use crate::output;
use current_and_merged_settings::SettingsFile;
use profile::ProfileRegistry;
use protocol::allowed_callers::AllowedCallers;
use protocol::error_kind_and_report::ErrorReport;
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show or write the settings that a program needs
///
/// Example: teamctl setup codex
///
/// Some programs take hooks and MCP servers only from their settings. Without --write, the command
/// shows what would change. With --write, it keeps a backup next to each changed file; other
/// settings stay unchanged.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl setup gemini --write")]
pub(crate) struct SetupArgs {
    /// Profile of the program; `teamctl profiles` lists them
    #[arg(value_name = "PROFILE")]
    profile: String,
    /// Write the changes
    #[arg(long)]
    write: bool,
    /// Directory of the project, for programs with settings per project [default: the current
    /// directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

impl SetupArgs {
    /// Who may run the command with these arguments.
    pub(crate) fn allowed_callers(&self) -> AllowedCallers<'static> {
        if self.write { AllowedCallers::LeadOrPerson } else { AllowedCallers::Everyone }
    }
}

/// The result for one settings file, as in `--json`.
#[derive(Debug, Serialize)]
struct SettingsChange {
    file: PathBuf,
    /// The file has everything that is needed.
    is_up_to_date: bool,
    diff: String,
    /// The backup of the old file. `None` if the file was not changed or did not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<PathBuf>,
}

pub(crate) fn run(context: &CommandContext, args: &SetupArgs) -> Result<ExitCode, ErrorReport> {
    let profile = ProfileRegistry::for_user().profile(&args.profile)?;
    let project = args.project.as_deref().unwrap_or(Path::new("."));
    let mode = if args.write { SetupMode::Write } else { SetupMode::ShowDiff };
    // All files are read before one is written, so that an error leaves all of them unchanged.
    let files = profile
        .settings_patches()
        .iter()
        .map(|patch| SettingsFile::read(patch, project))
        .collect::<Result<Vec<_>, _>>()?;
    let changes = files.iter().map(|file| apply(file, mode)).collect::<Result<Vec<_>, _>>()?;
    let text = result_text(&args.profile, &changes, mode);
    let object = json!({"profile": args.profile, "written": args.write, "files": changes});
    output::print_result(context, &object, &text);
    Ok(ExitCode::SUCCESS)
}

/// Whether the settings files are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SetupMode {
    ShowDiff,
    Write,
}

fn apply(file: &SettingsFile, mode: SetupMode) -> Result<SettingsChange, ErrorReport> {
    let suffix = format!(".before-teamd-{}", store::now());
    let backup = match mode {
        SetupMode::Write if !file.is_up_to_date() => {
            file.settings.replace(file.merged.as_bytes(), &suffix)?
        }
        _ => None,
    };
    Ok(SettingsChange {
        file: file.path().to_owned(),
        is_up_to_date: file.is_up_to_date(),
        diff: file.diff(),
        backup,
    })
}

fn result_text(profile: &str, changes: &[SettingsChange], mode: SetupMode) -> String {
    if changes.is_empty() {
        return format!("{profile} needs nothing in its settings.");
    }
    let mut lines: Vec<String> = changes.iter().map(|change| change_text(change, mode)).collect();
    if mode == SetupMode::ShowDiff && changes.iter().any(|change| !change.is_up_to_date) {
        lines.push(format!("Nothing is written yet. To write it: teamctl setup {profile} --write"));
    }
    lines.join("\n")
}

fn change_text(change: &SettingsChange, mode: SetupMode) -> String {
    let file = output::sanitize(&change.file.display().to_string());
    let diff = output::sanitize(change.diff.trim_end());
    match (mode, &change.backup) {
        _ if change.is_up_to_date => format!("{file} holds all that is needed."),
        (SetupMode::ShowDiff, _) => format!("{file} needs:\n{diff}"),
        (SetupMode::Write, None) => format!("{diff}\n{file} is written."),
        (SetupMode::Write, Some(backup)) => {
            let backup = output::sanitize(&backup.display().to_string());
            format!("{diff}\n{file} is written; what it was lies in {backup}.")
        }
    }
}
