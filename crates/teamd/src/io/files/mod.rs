//! The files threads read and write the files of teams and the daemon's own state files.

pub(crate) mod agent_environment_files;
pub(crate) mod changes_since_last_rescan;
pub(crate) mod event_log;
pub(crate) mod exit_reports;
pub(crate) mod file_job_queues;
pub(crate) mod members;
pub(crate) mod notify_lead_of_exits;
pub(crate) mod register_and_deregister_in_batches;
pub(crate) mod reopen_root;
pub(crate) mod scan_and_repair_team_config;
pub(crate) mod scan_inboxes_and_restore_messages;
pub(crate) mod shutdown_requests;
pub(crate) mod state_shared_by_files_threads;
pub(crate) mod teams;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod thread;
pub(crate) mod write_roster_and_leads;
