//! The result of a run, for the command line to print.

use crate::mutable_run_state::{EndReason, RunEnd};
use crate::suggested_run_command::RunCommand;
use crate::task_results::{TaskResult, completed_count};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::TeamName;
use std::path::PathBuf;

/// The result of a run.
#[derive(Debug)]
pub struct RunReport {
    /// The exit code of `teamctl run`.
    pub exit_code: u8,
    /// One entry for each task. Empty if the team is already deleted.
    pub tasks: Vec<TaskResult>,
    /// Why the run ended although tasks were left to do. `None` if it ended because no task was
    /// left to do.
    pub early_end: Option<ErrorReport>,
    /// A text for the user that says why there was nothing to do. `None` if the run did something.
    pub nothing_to_do: Option<String>,
    /// A text that notifies a person who does not watch the run, because the run did not end well.
    pub notice: Option<String>,
    /// The path of the team's record, a file for `teamctl replay`. `None` if the team is not
    /// recorded, or if the run had nothing to do.
    pub record: Option<PathBuf>,
    /// The error of shutting down the members or deleting the team, if there was one.
    pub cleanup: Result<(), ErrorReport>,
}

/// What has become of the team at the end of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TeamFate {
    /// Its files stay, so that another run can go on with it.
    Kept,
    Deleted,
}

/// The exit code of the run: 0 if every task is completed.
pub(crate) fn exit_code(end: &RunEnd, tasks: &[TaskResult]) -> u8 {
    match end {
        RunEnd::Suspended(error) => error.kind.exit_code(),
        RunEnd::ShutDown(EndReason::TimedOut) => ErrorKind::Timeout.exit_code(),
        RunEnd::ShutDown(EndReason::Finished) if completed_count(tasks) == tasks.len() => 0,
        RunEnd::ShutDown(EndReason::Finished | EndReason::Stopped) => ErrorKind::Partial.exit_code(),
    }
}

/// The error that says why the run ended although tasks were left to do. `None` if the run ended
/// because no task was left to do. `command` is the command with which the run was started. The
/// error's help suggests a similar command, which resumes the run or begins it anew.
pub(crate) fn early_end(
    name: &TeamName,
    end: &RunEnd,
    team: TeamFate,
    command: &RunCommand,
) -> Option<ErrorReport> {
    let (kind, reason) = match end {
        RunEnd::ShutDown(EndReason::Finished) => return None,
        RunEnd::Suspended(error) => return Some(error.clone()),
        RunEnd::ShutDown(EndReason::Stopped) => (ErrorKind::Partial, "it was stopped"),
        RunEnd::ShutDown(EndReason::TimedOut) => (ErrorKind::Timeout, "its time is over"),
    };
    let help = match team {
        TeamFate::Kept => format!("the team stays; go on with it: {}", command.resume()),
        TeamFate::Deleted => format!(
            "the team is deleted; to begin anew: {}; with --keep-team, a stopped run can go on",
            command.begin()
        ),
    };
    let message = format!("cannot run team {name} to its end: {reason}");
    Some(ErrorReport::new(kind, message).with_help(help))
}

/// The text that notifies a person who does not watch the run. `None` if every task is completed,
/// or if a person has stopped the run.
pub(crate) fn notice(name: &TeamName, end: &RunEnd, tasks: &[TaskResult]) -> Option<String> {
    let counts = format!("{} of {} tasks are completed", completed_count(tasks), tasks.len());
    match end {
        RunEnd::ShutDown(EndReason::Stopped) => None,
        RunEnd::ShutDown(EndReason::Finished) if completed_count(tasks) == tasks.len() => None,
        RunEnd::ShutDown(EndReason::Finished) => {
            Some(format!("the run of {name} has ended with failures: {counts}"))
        }
        RunEnd::ShutDown(EndReason::TimedOut) => {
            Some(format!("the time of the run of {name} is over: {counts}"))
        }
        RunEnd::Suspended(_) => Some(format!("the run of {name} has stopped early: {counts}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remaining_work_of_killed_run::AfterRun;
    use crate::task_results::TaskOutcome;
    use std::path::Path;

    fn result(outcome: TaskOutcome) -> TaskResult {
        let reason = None;
        TaskResult {
            key: None,
            id: None,
            subject: "s".into(),
            owner: None,
            outcome,
            seconds: None,
            reason,
            answer: None,
        }
    }

    #[test]
    fn early_end_names_the_command_that_goes_on() {
        let name = TeamName::parse("t").unwrap();
        let help = |reason: EndReason, team: TeamFate, after_run: AfterRun| {
            let command = RunCommand::new(Path::new("my team.toml"), after_run);
            early_end(&name, &RunEnd::ShutDown(reason), team, &command).and_then(|error| error.help)
        };
        assert_eq!(help(EndReason::Finished, TeamFate::Kept, AfterRun::KeepTeam), None);
        assert_eq!(
            help(EndReason::Stopped, TeamFate::Kept, AfterRun::KeepTeam).unwrap(),
            "the team stays; go on with it: teamctl run 'my team.toml' --resume --keep-team"
        );
        let deleted = help(EndReason::TimedOut, TeamFate::Deleted, AfterRun::DeleteTeam).unwrap();
        assert!(deleted.contains("to begin anew: teamctl run 'my team.toml';"), "{deleted}");
    }

    #[test]
    fn person_is_notified_unless_all_is_done_or_a_person_has_stopped_the_run() {
        let name = TeamName::parse("t").unwrap();
        let [completed, failed] = [TaskOutcome::Completed, TaskOutcome::Failed].map(result);
        let text = |reason, tasks: &[TaskResult]| notice(&name, &RunEnd::ShutDown(reason), tasks);
        assert_eq!(text(EndReason::Finished, std::slice::from_ref(&completed)), None);
        assert_eq!(text(EndReason::Stopped, std::slice::from_ref(&failed)), None);
        assert_eq!(
            text(EndReason::Finished, &[completed, failed]).unwrap(),
            "the run of t has ended with failures: 1 of 2 tasks are completed"
        );
        assert!(text(EndReason::TimedOut, &[]).unwrap().contains("is over"));
    }
}
