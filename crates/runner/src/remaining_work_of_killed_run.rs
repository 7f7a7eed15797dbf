//! Decides which part of a run is still to be done if an earlier run of the same file was killed.

use crate::existing_team::ExistingTeam;
use crate::run_lock_and_note::RunNote;
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
    /// The run only completes a deletion of the team. An earlier run stored its exit code, began to
    /// delete the team, and was then killed. `team` is `None` if some of the team's files are
    /// already deleted.
    FinishDeletion { team: Option<Team>, exit_code: u8 },
}

impl ResumePoint {
    /// Determines what a run has to do, from the existing team, the note of an earlier run in the
    /// lock file, and whether this run keeps the team at its end. Returns `Break` if the team is
    /// finished and is kept: nothing is left to do.
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

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::team_config::TeamConfig;
    use store::{Durability, Root};

    /// Determines the resume point, and describes it in a text.
    fn determine(existing: ExistingTeam, note: RunNote, after_run: AfterRun) -> String {
        let team_text = |team: &Option<Team>| if team.is_some() { "a team" } else { "no team" };
        match ResumePoint::determine(existing, note, after_run) {
            ControlFlow::Break(_) => "nothing".to_owned(),
            ControlFlow::Continue(ResumePoint::Work(team)) => format!("work with {}", team_text(&team)),
            ControlFlow::Continue(ResumePoint::DeleteTeam(_)) => "delete".to_owned(),
            ControlFlow::Continue(ResumePoint::FinishDeletion { team, exit_code }) => {
                format!("finish the deletion of {}, exit code {exit_code}", team_text(&team))
            }
        }
    }

    #[test]
    fn resume_point_follows_from_the_team_the_note_and_the_option() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(&dir.path().join("r"), dir.path(), Durability::Process).unwrap();
        let team = root.create_team(&TeamConfig::parse(r#"{"name":"t","members":[]}"#).unwrap()).unwrap();
        let finished = || ExistingTeam::Finished(team.clone());
        let unfinished = || ExistingTeam::Unfinished { team: team.clone(), is_incomplete: false };
        let incomplete = || ExistingTeam::Unfinished { team: team.clone(), is_incomplete: true };
        let missing = || ExistingTeam::Missing;
        let (keep, delete, deleting) = (RunNote::KeepTeam, RunNote::DeleteTeam, RunNote::Deleting(3));
        let finish_with_team = "finish the deletion of a team, exit code 3";
        let finish_without_team = "finish the deletion of no team, exit code 3";
        // The last two columns: the results with `--keep-team` and without this option.
        let table: [(&dyn Fn() -> ExistingTeam, RunNote, &str, &str); 12] = [
            (&finished, keep, "nothing", "nothing"),
            (&finished, delete, "nothing", "delete"),
            (&finished, deleting, "nothing", finish_with_team),
            (&unfinished, keep, "work with a team", "work with a team"),
            (&unfinished, delete, "work with a team", "work with a team"),
            (&unfinished, deleting, "work with a team", "work with a team"),
            (&incomplete, keep, "work with a team", "work with a team"),
            (&incomplete, delete, "work with a team", "work with a team"),
            (&incomplete, deleting, finish_without_team, finish_without_team),
            (&missing, keep, "work with no team", "work with no team"),
            (&missing, delete, "work with no team", "work with no team"),
            (&missing, deleting, finish_without_team, finish_without_team),
        ];
        for (row, (existing, note, with_keep_team, by_default)) in table.into_iter().enumerate() {
            let results = [AfterRun::KeepTeam, AfterRun::DeleteTeam]
                .map(|after_run| determine(existing(), note, after_run));
            assert_eq!(results, [with_keep_team, by_default], "row {row}, {note:?}");
        }
    }
}
