//! The end of a test: shuts the test environment down and fails if a process, pane, session, lock,
//! socket or temporary file is left. Also shows the state of the environment of a failed test.

use crate::TestEnv;
use crate::dir_watcher::TIMEOUT;
use crate::fault_injector::FaultTarget;
use crate::processes::TaggedProcesses;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

impl TestEnv {
    /// Returns the state that a failed test shows: the processes, the end of each file, and the
    /// contents of the panes.
    pub fn dump_state(&self) -> String {
        let mut text =
            format!("── processes\n{}\n", TaggedProcesses::with_tag(&self.process_tag()).list().join("\n"));
        // Opening a named pipe would block until another process writes to it.
        for path in files_below(&self.path("")).into_iter().filter(|path| path.is_file()) {
            let bytes = std::fs::read(&path).unwrap_or_default();
            let shown = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(4000)..]).into_owned();
            text.push_str(&format!("── {}\n{shown}\n", path.display()));
        }
        let panes = self.run_tmux(&["list-panes", "-a", "-F", "#{pane_id}"]).stdout;
        for pane in panes.lines() {
            text.push_str(&format!(
                "── pane {pane}\n{}\n",
                self.run_tmux(&["capture-pane", "-p", "-t", pane]).stdout
            ));
        }
        text
    }

    /// Ends the daemon and tmux. Then checks that no process, pane, session, lock, socket or
    /// temporary file is left.
    ///
    /// # Panics
    /// If anything is left, or if a daemon has panicked.
    pub fn shut_down(self) {
        // The other checks do not notice a panic, because the next daemon adopts the agents.
        let log = self.teamd_log();
        assert_eq!(log.lines().find(|line| line.contains("panicked at")), None);
        self.shut_down_after_panics();
    }

    /// The logs of all daemons of the test environment.
    pub fn teamd_log(&self) -> String {
        let is_log = |path: &PathBuf| path.parent().is_some_and(|parent| parent.ends_with("logs/teamd"));
        let logs = files_below(&self.path("state")).into_iter().filter(|path| is_log(path) && path.is_file());
        logs.map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned())
            .collect()
    }

    /// As [`TestEnv::shut_down`], for a test in which daemons may panic.
    ///
    /// # Panics
    /// If anything is left.
    pub fn shut_down_after_panics(self) {
        let daemon_runs = self.teamctl(["status"]).code != 69;
        if self.has_killed.load(Ordering::Relaxed) {
            self.clean_up_after_kills();
        }
        if daemon_runs {
            self.kill_all_members();
        }
        let down = self.teamctl(["down"]);
        assert_eq!(down.code, if daemon_runs { 0 } else { 69 }, "{down:#?}\n{}", self.dump_state());
        // A shim removes its exit report last.
        self.assert_no_processes();
        self.assert_no_files();
        self.run_tmux(&["kill-server"]).code.clone_from(&0);
        let remaining = TaggedProcesses::with_tag(&self.process_tag());
        let all_exited = remaining.exit_within(TIMEOUT);
        let names = remaining.list();
        remaining.kill();
        assert!(all_exited, "processes are left: {names:#?}");
    }

    /// As [`TestEnv::shut_down`], for a test that has killed writers in another way than with
    /// [`TestEnv::kill_process`]. Removes their locks and temporary files first.
    pub fn shut_down_after_kills(self) {
        self.clean_up_after_kills();
        self.shut_down();
    }

    /// Removes the locks and temporary files of killed processes with `teamctl doctor --fix`.
    pub fn clean_up_after_kills(&self) {
        // What is written now is not left by a killed process.
        self.wait_until_quiet(Duration::from_millis(60));
        self.age_locks_and_temp_files();
        let output = self.teamctl(["doctor", "--fix"]);
        // Code 1: doctor also reports what the test has damaged. `assert_no_files` checks the rest.
        assert!([0, 1].contains(&output.code), "{output:#?}");
    }

    /// Kills all members, because `teamctl down` would wait for its grace period if an agent does
    /// not respond. Waits first until no file is being written.
    fn kill_all_members(&self) {
        let is_temp_file = |path: &PathBuf| path.to_string_lossy().contains(".tmp.");
        let temp_files = || files_below(&self.root()).into_iter().filter(is_temp_file).collect::<Vec<_>>();
        self.wait_until("no temporary file exists", || {
            self.wait_until_quiet(Duration::from_millis(60));
            temp_files().is_empty().then_some(())
        });
        let status = self.json(["status"]);
        for team in status["teams"].as_array().expect("status has teams") {
            let running = team["members"]
                .as_array()
                .expect("a team has members")
                .iter()
                .filter(|member| member["pid"].is_u64());
            for name in running.filter_map(|member| member["name"].as_str()) {
                let output = self.teamctl_with(
                    &["kill", "-t", team["name"].as_str().expect("a team has a name"), name],
                    &[],
                );
                // Code 67: the member has exited by itself meanwhile.
                assert!([0, 67].contains(&output.code), "{output:#?}");
            }
        }
        // A member may have started another write before it was killed.
        temp_files().into_iter().for_each(|path| std::fs::remove_file(path).unwrap_or_default());
    }

    /// Checks that no pane has a pane tag of teamd, and that no daemon, shim or agent runs. The
    /// tmux server must still run, because its end would end these processes.
    fn assert_no_processes(&self) {
        self.wait_until("no pane of teamd is left", || {
            let panes = self.run_tmux(&["list-panes", "-a", "-F", "#{@teamd_spawn}"]).stdout;
            panes.trim().is_empty().then_some(())
        });
        let targets = [FaultTarget::Daemon, FaultTarget::Shim, FaultTarget::Agent];
        self.wait_until("no process of teamd is left", || {
            targets.iter().all(|target| self.processes_of(*target).is_empty()).then_some(())
        });
    }

    /// Checks that no lock, temporary file, socket or exit report is left, and no tmux session of
    /// teamd.
    ///
    /// # Panics
    /// If anything is left.
    pub fn assert_no_files(&self) {
        let stale: Vec<PathBuf> =
            files_below(&self.path("")).into_iter().filter(|path| is_stale_file(path)).collect();
        assert!(stale.is_empty(), "files are left: {stale:#?}");
        // If a daemon was killed, the watcher of its control client ends the hidden session a
        // moment later.
        self.wait_until("no tmux session of teamd is left", || {
            let sessions = self.run_tmux(&["list-sessions", "-F", "#{session_name}"]).stdout;
            (!sessions.contains("teamd")).then_some(())
        });
    }
}

impl Drop for TestEnv {
    /// Kills all processes of the test environment. Some still run only if the test has failed.
    fn drop(&mut self) {
        self.run_tmux(&["kill-server"]).code.clone_from(&0);
        let remaining = TaggedProcesses::with_tag(&self.process_tag());
        remaining.kill();
        remaining.exit_within(TIMEOUT);
    }
}

/// Lists all files, sockets and lock directories below `directory`.
pub fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() && !entry.path().to_string_lossy().ends_with(".lock") => {
                files_below(&entry.path())
            }
            _ => vec![entry.path()],
        })
        .collect()
}

/// Whether `path` is a lock, a temporary file, a socket or an exit report. No such file may remain
/// after a shutdown.
fn is_stale_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_lock = name.ends_with(".lock") && path.is_dir();
    is_lock || name.contains(".tmp") || name.ends_with(".sock") || name.starts_with("exit-")
}
