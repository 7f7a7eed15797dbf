//! The end of a test: shuts its environment down and fails if a process, pane, session, lock,
//! socket or temporary file is left.

use crate::TestEnv;
use crate::fault_injector::FaultTarget;
use crate::processes::TaggedProcesses;
use std::path::{Path, PathBuf};
use std::time::Duration;

impl TestEnv {
    /// What a failed test wants to see: the tree, the inboxes, the logs, the panes.
    pub fn dump_state(&self) -> String {
        let mut text =
            format!("── processes\n{}\n", TaggedProcesses::with_tag(&self.process_tag()).list().join("\n"));
        // A pipe would be waited for until somebody writes.
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

    /// Ends daemon and tmux, then counts what is left: processes, sockets, locks, temporary files.
    ///
    /// # Panics
    /// Where anything is left, or a daemon has panicked.
    pub fn shut_down(self) {
        // The next one takes up what stands: nothing else would tell.
        let log = self.teamd_log();
        assert_eq!(log.lines().find(|line| line.contains("panicked at")), None);
        self.shut_down_after_panics();
    }

    /// What all daemons of the environment have logged.
    pub fn teamd_log(&self) -> String {
        let is_log = |path: &PathBuf| path.parent().is_some_and(|parent| parent.ends_with("logs/teamd"));
        let logs = files_below(&self.path("state")).into_iter().filter(|path| is_log(path) && path.is_file());
        logs.map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned())
            .collect()
    }

    /// The same of an environment whose daemons were to panic.
    ///
    /// # Panics
    /// Where anything is left.
    pub fn shut_down_after_panics(self) {
        let lives = self.teamctl(["status"]).code != 69;
        if lives {
            self.kill_all_members();
        }
        let down = self.teamctl(["down"]);
        assert_eq!(down.code, if lives { 0 } else { 69 }, "{down:#?}\n{}", self.dump_state());
        self.assert_no_files();
        self.assert_no_processes();
        self.run_tmux(&["kill-server"]).code.clone_from(&0);
        let left = TaggedProcesses::with_tag(&self.process_tag());
        let ended = left.exit_within(Duration::from_secs(5));
        let names = left.list();
        left.kill();
        assert!(ended, "processes are left behind: {names:#?}");
    }

    /// The end of an environment in which writers were killed: what they left is old by now, and `doctor`
    /// knows of it.
    pub fn shut_down_after_kills(self) {
        self.clean_up_after_kills();
        self.shut_down();
    }

    /// What the dead have left goes.
    pub fn clean_up_after_kills(&self) {
        self.age_locks_and_temp_files();
        self.teamctl(["doctor", "--fix"]).expect_success();
    }

    /// Agents that answer nobody would make `down` wait for its grace. Whoever is in the middle of
    /// a write may end it.
    fn kill_all_members(&self) {
        let half = |path: &PathBuf| path.to_string_lossy().contains(".tmp.");
        let halves = || files_below(&self.root()).into_iter().filter(half).collect::<Vec<_>>();
        self.wait_until("nobody is in a write", || {
            self.wait_until_quiet(Duration::from_millis(60));
            halves().is_empty().then_some(())
        });
        let status = self.json(["status"]);
        for team in status["teams"].as_array().expect("teams") {
            let living =
                team["members"].as_array().expect("members").iter().filter(|member| member["pid"].is_u64());
            for name in living.filter_map(|member| member["name"].as_str()) {
                let ran =
                    self.teamctl_with(&["kill", "-t", team["name"].as_str().expect("a name"), name], &[]);
                // It may have ended by itself meanwhile.
                assert!([0, 67].contains(&ran.code), "{ran:#?}");
            }
        }
        // Somebody has begun one since, and was ended in it.
        halves().into_iter().for_each(|half| std::fs::remove_file(half).unwrap_or_default());
    }

    /// No pane has our mark, and none of our programs runs, nor an agent, while the user's tmux
    /// server still does: it is not its end that ends them.
    fn assert_no_processes(&self) {
        self.wait_until("no pane of ours is left", || {
            let panes = self.run_tmux(&["list-panes", "-a", "-F", "#{@teamd_spawn}"]).stdout;
            panes.trim().is_empty().then_some(())
        });
        let ours = [FaultTarget::Daemon, FaultTarget::Shim, FaultTarget::Agent];
        self.wait_until("no process of ours is left", || {
            ours.iter().all(|whom| self.processes_of(*whom).is_empty()).then_some(())
        });
    }

    /// The audit without the user's own tmux session.
    pub fn assert_no_files(&self) {
        let stray: Vec<PathBuf> =
            files_below(&self.path("")).into_iter().filter(|path| is_stale_file(path)).collect();
        assert!(stray.is_empty(), "left behind: {stray:#?}");
        // The session of a daemon that was killed is ended by the watcher beside it, a moment
        // later.
        self.wait_until("no session of ours is left", || {
            let sessions = self.run_tmux(&["list-sessions", "-F", "#{session_name}"]).stdout;
            (!sessions.contains("teamd")).then_some(())
        });
    }
}

impl Drop for TestEnv {
    /// Reached with something alive only where a test has failed.
    fn drop(&mut self) {
        self.run_tmux(&["kill-server"]).code.clone_from(&0);
        let left = TaggedProcesses::with_tag(&self.process_tag());
        left.kill();
        left.exit_within(Duration::from_secs(5));
    }
}

/// Every file, socket and directory that is a lock, below.
fn files_below(directory: &Path) -> Vec<PathBuf> {
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

/// A lock, a temporary file, a socket of the daemon's: nothing that outlives a shutdown.
fn is_stale_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let lock = name.ends_with(".lock") && path.is_dir();
    lock || name.contains(".tmp") || name.ends_with(".sock") || name.starts_with("exit-")
}
