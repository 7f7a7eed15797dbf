//! The pure core of the daemon: how an event changes the state, and which effects follow. The core
//! does no I/O and reads no clock.

pub(crate) mod agent_process;
pub(crate) mod apply_activities_and_modes_of_config;
pub(crate) mod apply_policy_to_member_requests;
pub(crate) mod client_calls;
pub(crate) mod clients_waiting_for_exits;
pub(crate) mod connection_spawn_and_watch_ids;
pub(crate) mod core_event;
pub(crate) mod create_worktree;
pub(crate) mod deadlines;
pub(crate) mod dispatch_core_events;
pub(crate) mod effect;
pub(crate) mod event_time;
pub(crate) mod exit_record;
pub(crate) mod hold_and_release_long_polls;
pub(crate) mod hook_reports_and_long_polls;
pub(crate) mod hosts;
pub(crate) mod ignore_hooks_of_nested_sessions;
pub(crate) mod inbox_changes;
pub(crate) mod jobs;
pub(crate) mod lead_session;
pub(crate) mod members;
pub(crate) mod notifications_to_people;
pub(crate) mod pane_labels;
pub(crate) mod panes;
pub(crate) mod plan_approvals_and_answers_in_inboxes;
pub(crate) mod recovery;
pub(crate) mod reply_status_and_screen_contents;
pub(crate) mod reply_to_client;
pub(crate) mod rescan_files;
pub(crate) mod roster;
pub(crate) mod schedule_scans;
pub(crate) mod shim_connections_and_reports;
pub(crate) mod spawn_lifecycle;
pub(crate) mod state;
pub(crate) mod state_time_and_effects_of_one_event;
pub(crate) mod stop_and_exit_of_spawn;
pub(crate) mod tasks;
pub(crate) mod team_records;
pub(crate) mod teams;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod turns;
pub(crate) mod watch_team_directories;
pub(crate) mod watcher_failures_and_lost_events;
