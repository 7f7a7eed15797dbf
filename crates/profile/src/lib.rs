//! Profiles: a profile says how an agent program is started and how messages reach the program.
//! Each profile is a TOML file; docs/agents.md describes the format.
//!
//! Some profiles are built in. A user's profiles in `$XDG_CONFIG_HOME/teamd/profiles` override
//! built-in profiles of the same name. The whole profile is parsed and checked before any part of
//! it is used. Its command lines are argument vectors, which no shell interprets.

pub mod build_ask_launch;
mod build_launch;
pub mod build_spawn_request;
pub mod build_worktree_and_spawn_requests;
mod delivery_and_arguments_of_profile;
#[cfg(test)]
mod dialogs_on_recorded_screens_tests;
pub mod directory_environment_and_prompt;
mod find_iterm2;
pub mod find_program_in_path;
pub mod parse_agent_type_file;
mod parse_profile;
mod profile;
mod registry;
pub mod required_program_settings;
mod template_variables;
mod toml_table_reader;
mod user_config;

pub use build_launch::{Launch, LaunchFacts, read_only_unsupported};
pub use profile::{HookDelivery, Profile, ReplySource, UsageFile};
pub use registry::{ProfileRegistry, ProfileSource, built_in_summaries};

/// Parses a profile. The fuzz target `profile` calls it.
#[cfg(fuzzing)]
pub fn fuzz_profile(text: &str) {
    parse_profile::parse_profile("fuzz", "fuzz.toml", text).ok();
}
