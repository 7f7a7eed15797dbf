//! Decides which part of a run is still to be done if an earlier run of the same file was killed.

use crate::existing_team::ExistingTeam;
use crate::run_lock::RunNote;
use std::ops::ControlFlow;
use store::Team;

/// Whether the team's files stay after the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRun {
    /// The team's files stay (`--keep-team`).
    KeepTeam,
    /// The team's files are deleted. This is the default.
    DeleteTeam,
}

/// The part of a run that is still to be done.
pub(crate) enum ResumePoint {
    /// All work of the run. `None` if the team does not exist yet.
    Work(Option<Team>),
    /// Only the deletion of the team, whose members have ended.
    DeleteTeam(Team),
    /// Only the rest of the deletion. The earlier run was killed while it deleted the team; it had
    /// stored its exit code before. `team` is `None` if some of the team's files are already
    /// deleted.
    FinishDeletion { team: Option<Team>, exit_code: u8 },
}

impl ResumePoint {
    /// Decides from the existing team, the note of the earlier run, and the option `after_run`.
    /// `Break` is a finished team that stays: nothing is left to do.
    pub(crate) fn determine(
        existing: ExistingTeam,
        note: RunNote,
        after_run: AfterRun,
    ) -> ControlFlow<Team, ResumePoint> {
        ControlFlow::Continue(match (existing, note) {
            (ExistingTeam::Finished(team), RunNote::KeepTeam) => return ControlFlow::Break(team),
            (ExistingTeam::Finished(team), _) if after_run == AfterRun::KeepTeam => {
                return ControlFlow::Break(team);
            }
            (ExistingTeam::Finished(team), RunNote::Deleting(exit_code)) => {
                ResumePoint::FinishDeletion { team: Some(team), exit_code }
            }
            (ExistingTeam::Finished(team), RunNote::DeleteTeam) => ResumePoint::DeleteTeam(team),
            (
                ExistingTeam::Unfinished { is_incomplete: true, .. } | ExistingTeam::Missing,
                RunNote::Deleting(exit_code),
            ) => ResumePoint::FinishDeletion { team: None, exit_code },
            (ExistingTeam::Unfinished { team, .. }, _) => ResumePoint::Work(Some(team)),
            (ExistingTeam::Missing, _) => ResumePoint::Work(None),
        })
    }
}
