//! Decides which part of a run is left to do if an earlier run of the same file was killed.

use crate::existing_team::ExistingTeam;
use crate::run_lock::RunNote;
use store::Team;

/// Whether the team's files stay after the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRun {
    /// They stay (`--keep-team`).
    KeepTeam,
    /// They are deleted, which is the default.
    DeleteTeam,
}

/// What is left to do of a run.
pub(crate) enum ResumePoint {
    /// The work. `None`: there is no team yet.
    Work(Option<Team>),
    /// Only the team's deletion. The members have ended.
    DeleteTeam(Team),
    /// The earlier run was killed while it deleted the team, and noted its exit code. `team` is
    /// `None` if a part of its files is already deleted.
    FinishDeletion { team: Option<Team>, exit_code: u8 },
    /// Nothing. The team was kept, and all of its tasks are final.
    Nothing(Team),
}

impl ResumePoint {
    /// Decides from the existing team and from the note of the earlier run.
    pub(crate) fn determine(existing: ExistingTeam, note: RunNote, after_run: AfterRun) -> ResumePoint {
        match (existing, note) {
            (ExistingTeam::Finished(team), RunNote::KeepTeam) => ResumePoint::Nothing(team),
            (ExistingTeam::Finished(team), _) if after_run == AfterRun::KeepTeam => {
                ResumePoint::Nothing(team)
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
        }
    }
}
