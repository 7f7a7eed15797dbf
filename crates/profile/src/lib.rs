//! Profiles: how an agent program is started and how messages reach it. Each profile is a TOML
//! file; docs/agents.md describes the format.
//!
//! Some profiles are built in. Profiles of the user in `$XDG_CONFIG_HOME/teamd/agents` override
//! them. A profile is parsed and checked as a whole before it is used. It yields an argument
//! vector; no shell interprets it.

pub mod agent_type;
mod describe;
#[cfg(test)]
mod dialog_tests;
mod launch;
mod parse;
mod profile;
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
pub use profile::{HookDelivery, Profile, ReplySource, UsageFile};
pub use registry::{ProfileRegistry, ProfileSource, built_in_summaries};

/// Parses a profile. The fuzz target `profile` calls it.
#[cfg(fuzzing)]
pub fn fuzz_profile(text: &str) {
    parse::parse_profile("fuzz", "fuzz.toml", text).ok();
}
