//! An environment of its own for each test: root, state, runtime directory, tmux server, daemon; and at its end the
//! leak audit.
//!
//! Nothing in it can reach the user's own: the tmux server has a socket below the environment, and every program is
//! started with an environment of the environment alone (`e2e architecture` sees to it).
//! Tests wait for conditions with `TestEnv::until`, which wakes when something in the environment is written.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on must stop")]

pub mod checker;
pub mod checker_mutations;
mod command_output;
mod daemon;
mod dir_watcher;
mod env_files;
mod fault_injector;
mod fifo_gate;
pub mod foreign_writer;
pub mod history;
mod leak_check;
mod mcp_client;
mod process_stats;
mod processes;
mod recovery_timer;
mod results;
mod scripted_model;
mod sleep;
mod small_disk;
pub mod stale_lock;
mod strace;
mod test_env;

pub use command_output::CommandOutput;
pub use daemon::{TWO_WATCHES, can_limit_watches};
pub use fault_injector::{FaultInjector, FaultTarget, InterruptedCall};
pub use mcp_client::McpClient;
pub use process_stats::ProcessStats;
pub use processes::{TaggedProcesses, start_time};
pub use recovery_timer::{RecoveryTimer, quantile};
pub use results::{iterations, record_result, record_skip};
pub use scripted_model::ScriptedModel;
pub use sleep::{random_delay, sleep};
pub use small_disk::SmallDisk;
pub use strace::can_trace;
pub use test_env::TestEnv;

use std::path::PathBuf;
use std::sync::OnceLock;

/// Where the programs under test lie; built once, since cargo does not build other packages' programs for a test.
pub fn programs() -> &'static PathBuf {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let own = std::env::current_exe().expect("a running test has a program");
        // target/debug/deps/e2e-hash, or target/release/bench
        let directory = own.ancestors().find(|path| path.ends_with("debug") || path.ends_with("release"));
        let directory = directory.expect("programs lie in target/debug or target/release").to_owned();
        if directory.ends_with("release") {
            // Linked as they are installed.
            assert!(directory.join("teamd-shim").exists(), "the programs are not there: make build");
            return directory;
        }
        let mut cargo = std::process::Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--workspace", "--bins"]);
        let built = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo runs");
        assert!(built.success(), "the programs under test do not build");
        directory
    })
}
