//! The test harness. Each test has its own test environment ([`TestEnv`]): a root, a state
//! directory, a runtime directory, a tmux server and usually a daemon. The test ends with
//! [`TestEnv::shut_down`], which fails if a process, pane or file is left.
//!
//! A test can't reach the user's tmux server, daemon or files. The tmux socket is in the test
//! environment, and [`TestEnv::command`] starts programs without the user's environment variables.
//! `e2e architecture` checks both. Tests wait for conditions with [`TestEnv::wait_until`], which
//! checks again after each write in the test environment.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot continue must stop")]

pub mod checker;
pub mod checker_mutations;
mod command_output;
mod control_call;
mod daemon;
mod dir_watcher;
mod env_files;
mod fault_injector;
mod fifo_gate;
pub mod foreign_writer;
pub mod history;
mod home_and_ssh_host;
mod ignored_signals;
mod leak_check;
mod many_members;
mod mcp_client;
mod member_env;
mod network;
mod permissions_page;
mod platform_facility;
mod process_stats;
mod processes;
mod recovery_timer;
mod results;
mod scripted_model;
mod sleep;
mod small_disk;
mod ssh_server;
pub mod stale_lock;
mod strace;
mod test_env;
mod two_hosts;

pub use command_output::CommandOutput;
pub use daemon::{TWO_WATCHES, can_limit_watches};
pub use dir_watcher::TIMEOUT;
pub use fault_injector::{FaultInjector, FaultTarget, InterruptedCall};
pub use home_and_ssh_host::HomeAndSshHost;
pub use leak_check::files_below;
pub use many_members::count_unread;
pub use mcp_client::McpClient;
pub use member_env::MemberEnv;
pub use network::{LinkState, Network};
pub use permissions_page::{COMMANDS_WITHOUT_TEAM, REQUESTS, documented_permissions, request_name};
pub use platform_facility::{Facility, skips_without};
pub use process_stats::ProcessStats;
pub use processes::{TaggedProcesses, start_time};
pub use recovery_timer::{RecoveryTimer, quantile};
pub use results::{number_from_env, record_result, record_skip};
pub use scripted_model::ScriptedModel;
pub use sleep::{random_delay, sleep};
pub use small_disk::SmallDisk;
pub use ssh_server::SshServer;
pub use strace::can_trace;
pub use test_env::{TestEnv, run_command};
pub use two_hosts::{CUT_REASON, TwoHosts};

use std::path::PathBuf;
use std::sync::OnceLock;

/// The directory of the programs under test: the cargo profile's target directory. In a debug
/// build, the first call builds the programs, because cargo does not build the programs of other
/// packages for a test. A release build needs `make build` before.
pub fn programs() -> &'static PathBuf {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let test_program = std::env::current_exe().expect("the path of the test program is known");
        // target/debug/deps/e2e-hash, or target/release/bench
        let directory =
            test_program.ancestors().find(|path| path.ends_with("debug") || path.ends_with("release"));
        let directory = directory.expect("the test program is in target/debug or target/release").to_owned();
        if directory.ends_with("release") {
            // Only `make build` links the programs in the same way as an installation.
            assert!(directory.join("teamd-shim").exists(), "the programs are not built: run make build");
            return directory;
        }
        let mut cargo = std::process::Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--workspace", "--bins"]);
        let status = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo starts");
        assert!(status.success(), "the programs under test do not build");
        directory
    })
}
