//! Reads a program's settings file and computes what it should contain.

use super::{merge_json, merge_toml};
use profile::required_program_settings::{OwnPrograms, SettingsEntry, SettingsFormat};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::find_sibling_program::installed_program;
use similar::TextDiff;
use std::path::{Path, PathBuf};
use store::{ForeignSettings, env_var, own_program};

/// A settings file with its current text and the text to write.
pub(in crate::commands) struct SettingsFile {
    pub(super) settings: ForeignSettings,
    current: String,
    pub(super) merged: String,
}

impl SettingsFile {
    /// Reads the settings file that `patch` is for. `project` is the project's directory, used if
    /// the program has settings per project.
    ///
    /// # Errors
    ///
    /// `InvalidData` if the file can't be parsed, or if an entry of another program has a name that
    /// teamd needs.
    pub(in crate::commands) fn read(
        patch: &SettingsEntry,
        project: &Path,
    ) -> Result<SettingsFile, ErrorReport> {
        let settings = ForeignSettings::read(&settings_path(patch, project)?)?;
        let teamctl = own_program()?;
        let shim = installed_program(&teamctl, "teamd-shim", Path::is_file);
        let own = OwnPrograms {
            teamctl: teamctl.to_string_lossy().into_owned(),
            shim: shim.to_string_lossy().into_owned(),
        };
        let invalid = |reason: String| {
            let message = format!("cannot use the settings {}: {reason}", settings.path().display());
            ErrorReport::new(ErrorKind::InvalidData, message)
                .with_help("nothing was changed: repair the file, or add what is needed by hand")
        };
        let current = std::str::from_utf8(settings.bytes().unwrap_or_default());
        let current = current.map_err(|error| invalid(error.to_string()))?.to_owned();
        let merged = match patch.format {
            SettingsFormat::Json => merge_json::merge_json(&current, &patch.merge, &own),
            SettingsFormat::Toml => merge_toml::merge_toml(&current, &patch.merge, &own),
        };
        let merged = merged.map_err(invalid)?;
        Ok(SettingsFile { settings, current, merged })
    }

    /// Whether the file has everything that is needed.
    pub(in crate::commands) fn is_up_to_date(&self) -> bool {
        self.current == self.merged
    }

    /// The file's path.
    pub(in crate::commands) fn path(&self) -> &Path {
        self.settings.path()
    }

    /// The difference between the current text and the text to write.
    pub(super) fn diff(&self) -> String {
        let diff = TextDiff::from_lines(self.current.as_str(), self.merged.as_str());
        diff.unified_diff().context_radius(2).missing_newline_hint(false).to_string()
    }
}

/// The path of the patch's file. An environment variable of the program can relocate its directory.
fn settings_path(patch: &SettingsEntry, project: &Path) -> Result<PathBuf, ErrorReport> {
    let file = patch.file.as_str();
    let relocated_path = patch.relocated_by.iter().find_map(|(variable, default_directory)| {
        let directory = PathBuf::from(env_var(variable)?);
        Some(directory.join(file.strip_prefix(default_directory)?.trim_start_matches('/')))
    });
    if let Some(path) = relocated_path.filter(|path| path.is_absolute()) {
        return Ok(path);
    }
    match file.strip_prefix("~/") {
        Some(relative_path) => {
            let home = env_var("HOME").filter(|home| home.starts_with('/'));
            let unset =
                || ErrorReport::new(ErrorKind::Config, format!("cannot find {file}: $HOME is not set"));
            Ok(PathBuf::from(home.ok_or_else(unset)?).join(relative_path))
        }
        None => {
            let missing_directory = |_| {
                ErrorReport::new(
                    ErrorKind::MissingPath,
                    format!("cannot look into {}: no such directory", project.display()),
                )
                .with_help("name an existing one: --project DIR")
            };
            Ok(project.canonicalize().map_err(missing_directory)?.join(file))
        }
    }
}
