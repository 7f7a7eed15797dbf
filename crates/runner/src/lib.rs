//! Runs the team that a run file describes until the team's tasks are done. The run creates the
//! team, spawns its members, creates its tasks, follows their progress, and shuts the team down.
//!
//! After each change of the team's files, the run reads the task list again and asks the daemon for
//! the members' states. The run can read all of its state from the files and the daemon, so another
//! run can resume a run that was killed. The crate prints nothing: it reports progress to a
//! [`RunObserver`] and returns a [`RunReport`].

mod daemon_keeper;
mod existing_team;
mod metadata_keys;
mod observer;
mod progress;
mod run;
mod run_command;
mod run_context;
mod run_decision;
mod run_file;
mod run_lock;
mod run_loop;
mod run_report;
mod run_resume_point;
mod run_state;
mod stall_detector;
mod stop_signals;
mod task_results;
mod task_times;
mod team_setup;
mod team_shutdown;
mod team_snapshot;

pub use existing_team::IfTeamExists;
pub use observer::RunObserver;
pub use progress::{MemberProgress, RunProgress, TaskProgress};
pub use run::{RunRequest, run_team};
pub use run_decision::TaskFate;
pub use run_file::{RunFile, ValidationError, read_policy_file, read_run_file};
pub use run_lock::{InterruptedRun, interrupted_run};
pub use run_report::RunReport;
pub use run_resume_point::AfterRun;
pub use task_results::{TaskOutcome, TaskResult, completed_count, short_duration};

#[cfg(fuzzing)]
pub use run_file::fuzz_run_file;
