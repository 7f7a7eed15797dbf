//! The `teamctl run` commands that a run suggests to the user.

use crate::remaining_work_of_killed_run::AfterRun;
use client::suggested_commands::SuggestedCommands;
use std::path::{Path, PathBuf};

/// The command with which a run was started.
#[derive(Debug, Clone)]
pub(crate) struct RunCommand {
    /// The run file's path as the user typed it.
    path: PathBuf,
    after_run: AfterRun,
}

impl RunCommand {
    pub(crate) fn new(path: &Path, after_run: AfterRun) -> RunCommand {
        RunCommand { path: path.to_owned(), after_run }
    }

    /// The absolute path of the run file.
    pub(crate) fn absolute_path(&self) -> PathBuf {
        std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone())
    }

    /// The command that starts the run anew.
    pub(crate) fn begin(&self) -> String {
        self.with_options(&[])
    }

    /// The command that goes on with the run.
    pub(crate) fn resume(&self) -> String {
        self.with_options(&["--resume"])
    }

    fn with_options(&self, options: &[&str]) -> String {
        let keep_team: &[&str] = if self.after_run == AfterRun::KeepTeam { &["--keep-team"] } else { &[] };
        let path = self.path.display().to_string();
        SuggestedCommands::default().command_for_name("run", &path, &[options, keep_team].concat())
    }
}
