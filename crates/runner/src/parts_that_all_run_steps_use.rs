//! The values that are set once per run, such as the run file, the daemon, and the sources of
//! events that the run waits for.

use crate::daemon_keeper::DaemonKeeper;
use crate::decide_task_retries::RetryRules;
use crate::recording::Recording;
use crate::run_file::RunFile;
use crate::run_observer::RunObserver;
use crate::stop_signals::StopRequests;
use crate::suggested_run_command::RunCommand;
use client::directory_watcher::DirectoryWatcher;
use client::open_team_beside_caller_pane::CallerPane;
use client::root_socket_team_and_caller::TeamContext;
use protocol::control_socket::MemberStatus;
use protocol::error_kind_and_report::ErrorReport;
use std::time::Instant;

/// The values that every step of a run uses.
pub(crate) struct RunContext<'a> {
    pub(crate) team_context: &'a TeamContext,
    pub(crate) observer: &'a dyn RunObserver,
    pub(crate) command: RunCommand,
    pub(crate) file: RunFile,
    pub(crate) rules: RetryRules,
    pub(crate) daemon: DaemonKeeper<'a>,
    pub(crate) watcher: DirectoryWatcher,
    pub(crate) stop_requests: StopRequests,
    /// When the work ends at the latest. `None` if there is no limit.
    pub(crate) deadline: Option<Instant>,
    /// The pane beside which the members' panes are opened.
    pub(crate) caller_pane: Option<CallerPane>,
    pub(crate) recording: Recording,
}

impl RunContext<'_> {
    /// Adds help to an error that ends the run. The help says which members may still run, and how
    /// to resume the run.
    pub(crate) fn with_resume_help(&self, running: &[MemberStatus], error: ErrorReport) -> ErrorReport {
        let resume = self.command.resume();
        if self.daemon.is_stopped_by_person() {
            return error.with_help(format!(
                "its agents end with it, and the team's files are left as they are; go on with the run: {resume}"
            ));
        }
        let names: Vec<&str> = running.iter().map(|member| member.name.as_str()).collect();
        let running = if names.is_empty() { "no member".to_owned() } else { names.join(", ") };
        let next_step =
            format!("the team is left as it is ({running} may still run); go on with it: {resume}");
        let help =
            error.help.as_ref().map_or_else(|| next_step.clone(), |help| format!("{help}; {next_step}"));
        error.with_help(help)
    }
}
