//! Reads the exit reports of shims, and kills the orphans of an agent whose shim left no report.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::io::files::files_thread::FilesThread;
use protocol::control_socket::ExitReport;
use protocol::state_file_names;

impl FilesThread {
    /// Reads the exit report that a shim has written for its agent. If there is no report, the shim
    /// was killed. Then this function kills the processes that the agent left behind, and returns
    /// `None`.
    ///
    /// If the report is damaged or cannot be read, returns `None` and kills no process. A damaged
    /// report comes from a shim that was killed while it wrote the report, after all processes of
    /// its agent had exited.
    pub(super) fn read_exit_report(&self, spawn: &SpawnId, token: &str) -> Option<ExitReport> {
        match self.state.read(&state_file_names::exit_report(spawn.as_str())) {
            Ok(Some(bytes)) => serde_json::from_slice(&bytes).ok(),
            Ok(None) => {
                if !platform::kill_by_environment(&format!("TEAMD_TOKEN={token}")) {
                    tracing::warn!("cannot kill all orphans of a killed shim");
                }
                None
            }
            Err(error) => {
                tracing::warn!("cannot read the exit report of a shim: {error}");
                None
            }
        }
    }
}
