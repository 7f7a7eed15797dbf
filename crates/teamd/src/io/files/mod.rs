//! The files threads read and write the files of teams and the daemon's own state files.

pub(crate) mod agent_environment_files;
pub(crate) mod append_to_team_record;
pub(crate) mod changes_since_last_rescan;
pub(crate) mod create_and_delete_teams;
pub(crate) mod event_log;
pub(crate) mod file_job_queues;
pub(crate) mod files_thread;
pub(crate) mod new_output_for_record;
pub(crate) mod notify_lead_of_exits;
pub(crate) mod prepare_and_finish_registration;
pub(crate) mod read_exit_report_or_kill_orphans;
pub(crate) mod record_writer;
pub(crate) mod register_and_deregister_in_batches;
pub(crate) mod reopen_root;
pub(crate) mod repeated_record_lines;
pub(crate) mod root_and_saves_shared_by_threads;
mod run_file_jobs;
pub(crate) mod scan_and_repair_team_config;
pub(crate) mod scan_inboxes_and_restore_messages;
pub(crate) mod send_shutdown_requests_and_read_answers;
pub(crate) mod set_permission_mode;
#[cfg(test)]
pub(crate) mod simulated_files_thread;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod unlogged_events;
pub(crate) mod write_policies_and_hidden_panes;
pub(crate) mod write_roster_and_leads;
