//! The state of the daemon, and lookups in it.

pub(crate) mod agent;
pub(crate) mod call_errors;
pub(crate) mod check_and_forget_recorded_worktrees;
pub(crate) mod core_state;
pub(crate) mod daemon_settings;
pub(crate) mod exhausted_budget;
pub(crate) mod find_team_or_member;
pub(crate) mod lead_session;
pub(crate) mod logged_tasks_messages_and_requests;
pub(crate) mod long_poll;
pub(crate) mod name_reservation_for_worktree;
pub(crate) mod names_reserved_for_worktrees;
pub(crate) mod pane_neighbors_and_layout;
pub(crate) mod queued_next_task_queries;
pub(crate) mod queued_registration;
pub(crate) mod repeated_calls;
pub(crate) mod scan_running_or_needed_again;
pub(crate) mod taken_and_free_member_names;
pub(crate) mod task_board;
pub(crate) mod team;
pub(crate) mod team_deletion_stage;
pub(crate) mod time_of_last_machine_sleep;
pub(crate) mod tracked_member_request;
pub(crate) mod waiting_clients;
pub(crate) mod watcher_health_and_rescan_interval;
pub(crate) mod worktree_command_of_policy;
