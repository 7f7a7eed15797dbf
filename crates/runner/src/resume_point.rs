//! Where a run begins: at its start, or at the point where an earlier run of the same file was killed.

use crate::existing_team::ExistingTeam;
use crate::run_lock::RunNote;
use store::Team;

/// Whether the team's files stay after the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRun {
    /// `--keep-team`.
    KeepTeam,
    /// The default.
    DeleteTeam,
}

/// What is left to do of a run.
pub(crate) enum ResumePoint {
    /// The work, from its start or from where the earlier run was killed.
    Work(Option<Team>),
    /// The members have ended; the team is to be deleted.
    DeleteTeam(Team),
    /// The earlier run was killed while it deleted the team. Its exit code is known.
    FinishDeletion { team: Option<Team>, exit_code: u8 },
    /// The team was kept, and none of its tasks can be done.
    Nothing(Team),
}

impl ResumePoint {
    /// Decides from the team that exists and from the note of the earlier run.
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
