//! All I/O of the daemon. The modules here run the effects that the core returns. They send file
//! changes, process exits, socket calls and finished jobs to the core as events.

pub(crate) mod bind_control_socket;
pub(crate) mod cancel_worktree_setups;
pub(crate) mod check_shim_program_and_descriptors;
pub(crate) mod container_init_process;
mod control_connection_reader;
pub(crate) mod control_connections;
pub(crate) mod daemon_log;
pub(crate) mod effect_runner;
pub(crate) mod files;
pub(crate) mod headless_shim_processes;
pub(crate) mod hosts;
pub(crate) mod keep_control_socket_at_path;
pub(crate) mod mark_spawn_in_output_log;
pub(crate) mod panes;
pub(crate) mod print_events_on_daemon_terminal;
pub(crate) mod process_start_error;
pub(crate) mod process_watcher;
pub(crate) mod resource_limits_of_daemon_and_children;
mod run_setup_or_teardown;
pub(crate) mod run_teamctl;
pub(crate) mod run_worktree_jobs;
pub(crate) mod single_instance_locks;
mod unfinished_request_memory_limit;
pub(crate) mod wake_sockets;
pub(crate) mod watcher;
