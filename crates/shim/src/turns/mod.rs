//! Runs an agent in turns: chooses the work of the next turn, runs it, and settles its outcome.

pub(crate) mod agent_team_files;
mod exchange_turns;
mod failed_messages;
mod failure_streak;
mod file_retry;
mod finish_hook_turn;
mod inbox_action;
mod lead_updates;
pub(crate) mod output_scanner;
pub(crate) mod output_tail;
mod permission_conversion;
mod permissions;
mod plan_mode;
mod plan_mode_by_respawn;
pub(crate) mod prompt_for_hooks;
mod prompt_text;
pub(crate) mod reply_text;
mod run_turn;
mod sent_peer_messages;
pub(crate) mod turn_command_builder;
pub(crate) mod turn_executor;
pub(crate) mod turn_loop;
mod turn_outcome;
pub(crate) mod usage_counter;

#[cfg(test)]
mod tests;
