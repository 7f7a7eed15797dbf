//! Profiles: how an agent program is started and how messages reach it, one TOML file each.
//!
//! Some are built in; the user's own are in `$XDG_CONFIG_HOME/teamd/agents` and win over those. A profile is parsed and
//! checked whole before anything is made of it. It yields an argument vector, never a line for a shell. The format is
//! described in docs/agents.md.

pub mod agent_type;
mod describe;
#[cfg(test)]
mod dialog_tests;
mod launch;
mod model;
mod parse;
pub mod program_lookup;
mod registry;
pub mod settings_patch;
pub mod spawn_environment;
pub mod spawn_request;
mod template;
mod toml_table;
mod user_config;
pub mod worktree_spawn;

pub use launch::{Launch, LaunchFacts, read_only_unsupported};
pub use model::{HookDelivery, Profile, ReplySource, UsageFile};
pub use registry::{ProfileRegistry, ProfileSource, built_in_summaries};

/// Parses a profile, for the fuzz target of that name.
#[cfg(fuzzing)]
pub fn fuzz_profile(text: &str) {
    parse::parse_profile("fuzz", "fuzz.toml", text).ok();
}
