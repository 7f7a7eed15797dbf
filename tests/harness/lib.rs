//! A house of its own for each test: root, state, runtime directory, tmux server, daemon; and at its end the
//! leak audit.
//!
//! Nothing in it can reach the user's own: the tmux server has a socket below the house, and every program is
//! started with an environment of the house alone (`e2e architecture` sees to it).
//! Tests wait for conditions with [`House::until`], which wakes when something in the house is written.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod audit;
pub mod checker;
mod daemons;
mod disk;
pub mod faults;
mod figures;
mod files;
pub mod foreign;
mod gate;
pub mod history;
mod house;
mod mcp;
mod model;
mod nemesis;
mod pause;
mod ran;
mod recovery;
mod strace;
mod vitals;
mod watch;

pub use audit::{Processes, start_time};
pub use daemons::{FEW_WATCHES, can_limit_watches};
pub use disk::Disk;
pub use figures::{figure, rounds, skipped};
pub use house::House;
pub use mcp::Mcp;
pub use model::Model;
pub use nemesis::{Call, Nemesis, Whom};
pub use pause::{moment, pause};
pub use ran::Ran;
pub use recovery::{Recovery, quantile};
pub use strace::can_trace;
pub use vitals::Vitals;

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
            assert!(directory.join("teamd-pane").exists(), "the programs are not there: make build");
            return directory;
        }
        let mut cargo = std::process::Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--workspace", "--bins"]);
        let built = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo runs");
        assert!(built.success(), "the programs under test do not build");
        directory
    })
}
