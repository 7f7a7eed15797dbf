//! Runs an agent in turns: chooses the work of the next turn, runs it, and settles its outcome.

pub(crate) mod agent_team_files;
mod approve_shutdown_requests;
mod choose_inbox_action;
pub(crate) mod choose_work_of_next_turn;
mod combine_updates_for_lead;
mod count_exchange_turns;
mod decide_turn_and_task_outcome;
pub(crate) mod extract_reply_text;
mod failed_messages;
mod find_messages_sent_to_peers;
mod finish_hook_turn_and_notify_lead;
pub(crate) mod messages_of_agent_to_lead;
pub(crate) mod output_tail;
mod pause_after_failed_turns;
mod permission_question_to_message;
mod permission_requests_during_turn;
mod plan_mode;
mod plan_mode_by_respawn;
pub(crate) mod prompt_for_hooks;
pub(crate) mod prompt_text;
mod retry_team_file_operations;
mod run_turn;
pub(crate) mod scan_output_for_session_and_usage;
mod settle_task_and_messages_of_turn;
pub(crate) mod tasks_of_agent;
pub(crate) mod turn_command_builder;
pub(crate) mod turn_executor_trait;
pub(crate) mod turn_loop;
pub(crate) mod usage_counter;

#[cfg(test)]
mod tests;
