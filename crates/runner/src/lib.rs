//! Runs the team that a run file describes until the team's tasks are done. The run creates the
//! team, spawns its members, creates its tasks, follows their progress, and shuts the team down.
//!
//! After each change of the team's files, the run reads the task list again and asks the daemon for
//! the members' states. The run can read all of its state from the files and the daemon, so another
//! run can resume a run that was killed. The run's only own file is `run-TEAM.lock` in the state
//! directory (`run_lock_and_note`). The crate prints nothing: it reports progress to a
//! [`RunObserver`] and returns a [`RunReport`].

mod create_or_resume_team;
mod daemon_keeper;
mod decide_task_retries;
mod end_hosted_members;
mod end_run;
mod event_lines_and_task_times;
mod events_of_hosted_members;
mod existing_team;
mod make_task_pending_again;
mod mutable_run_state;
mod parts_that_all_run_steps_use;
mod recording;
mod remaining_work_of_killed_run;
mod run_file;
mod run_lock_and_note;
mod run_loop;
mod run_observer;
mod run_progress;
mod run_report;
mod run_team;
mod run_teamctl_for_hosted_members;
mod stall_detector;
mod start_and_end_once_members;
mod stop_signals;
mod suggested_run_command;
mod task_results;
mod team_snapshot;
mod was_daemon_taken_down;
mod work_times;

pub use decide_task_retries::{TaskFate, run_file_key};
pub use existing_team::IfTeamExists;
pub use recording::Recording;
pub use remaining_work_of_killed_run::AfterRun;
pub use run_file::{
    HostTables, RunFile, ValidationError, read_hosts_file, read_hosts_of_run_file, read_policy_file,
    read_run_file,
};
pub use run_lock_and_note::{InterruptedRun, interrupted_run, run_file_of_team};
pub use run_observer::RunObserver;
pub use run_progress::{MemberProgress, RunProgress, TaskProgress};
pub use run_report::RunReport;
pub use run_team::{RunRequest, run_team};
pub use task_results::{TaskOutcome, TaskResult, completed_count, short_duration};
pub use work_times::WorkTimes;

#[cfg(fuzzing)]
pub use run_file::fuzz_run_file;
