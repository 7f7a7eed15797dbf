//! One file of settings: what it holds, and what it should.

use super::{merge_json, merge_toml};
use profile::settings_patch::{OwnPrograms, SettingsFormat, SettingsPatch};
use protocol::error::{ErrorKind, ErrorReport};
use similar::TextDiff;
use std::path::{Path, PathBuf};
use store::ForeignSettings;
use store::{env_var, own_program};

/// See above.
pub(in crate::commands) struct SettingsFile {
    pub(super) settings: ForeignSettings,
    current: String,
    pub(super) wanted: String,
}

impl SettingsFile {
    /// Reads what is there; what does not parse is a fault, and is left alone.
    pub(in crate::commands) fn read(
        piece: &SettingsPatch,
        project: &Path,
    ) -> Result<SettingsFile, ErrorReport> {
        let settings = ForeignSettings::read(&settings_path(piece, project)?)?;
        let teamctl = own_program()?;
        let shim = teamctl.with_file_name("teamd-shim");
        let own = OwnPrograms {
            teamctl: teamctl.to_string_lossy().into_owned(),
            shim: shim.to_string_lossy().into_owned(),
        };
        let broken = |why: String| {
            let message = format!("cannot use the settings {}: {why}", settings.path().display());
            ErrorReport::new(ErrorKind::InvalidData, message)
                .with_help("nothing was changed: mend the file, or add what is needed by hand")
        };
        let held = std::str::from_utf8(settings.bytes().unwrap_or_default());
        let held = held.map_err(|error| broken(error.to_string()))?.to_owned();
        let wanted = match piece.format {
            SettingsFormat::Json => merge_json::merge_json(&held, &piece.merge, &own),
            SettingsFormat::Toml => merge_toml::merge_toml(&held, &piece.merge, &own),
        };
        let wanted = wanted.map_err(broken)?;
        Ok(SettingsFile { settings, current: held, wanted })
    }

    /// It holds all that is needed.
    pub(in crate::commands) fn is_up_to_date(&self) -> bool {
        self.current == self.wanted
    }

    /// Where it is.
    pub(in crate::commands) fn path(&self) -> &Path {
        self.settings.path()
    }

    /// From what it holds to what it should.
    pub(super) fn diff(&self) -> String {
        let diff = TextDiff::from_lines(self.current.as_str(), self.wanted.as_str());
        diff.unified_diff().context_radius(2).missing_newline_hint(false).to_string()
    }
}

fn settings_path(piece: &SettingsPatch, project: &Path) -> Result<PathBuf, ErrorReport> {
    let file = piece.file.as_str();
    let moved = piece.relocated_by.iter().find_map(|(name, place)| {
        let there = PathBuf::from(env_var(name)?);
        Some(there.join(file.strip_prefix(place)?.trim_start_matches('/')))
    });
    if let Some(path) = moved.filter(|path| path.is_absolute()) {
        return Ok(path);
    }
    match file.strip_prefix("~/") {
        Some(rest) => {
            let home = env_var("HOME").filter(|home| home.starts_with('/'));
            let unset =
                || ErrorReport::new(ErrorKind::Config, format!("cannot find {file}: $HOME is not set"));
            Ok(PathBuf::from(home.ok_or_else(unset)?).join(rest))
        }
        None => {
            let missing = |_| {
                ErrorReport::new(
                    ErrorKind::MissingPath,
                    format!("cannot look into {}: no such directory", project.display()),
                )
                .with_help("name one that is there: --project DIR")
            };
            Ok(project.canonicalize().map_err(missing)?.join(file))
        }
    }
}
