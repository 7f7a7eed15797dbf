//! All I/O of the daemon. The modules here run the effects that the core returns. They send file
//! changes, process exits, socket calls and finished jobs to the core as events.

pub(crate) mod children;
mod connection_reader;
pub(crate) mod container_init;
pub(crate) mod control_connections;
pub(crate) mod control_socket_path;
pub(crate) mod daemon_log;
pub(crate) mod daemon_terminal;
pub(crate) mod effect_runner;
pub(crate) mod files;
pub(crate) mod kill_orphans;
pub(crate) mod mark_spawn_in_log;
pub(crate) mod notifier;
pub(crate) mod panes;
pub(crate) mod process_start_error;
pub(crate) mod process_watcher;
pub(crate) mod resource_limits;
pub(crate) mod shim_program;
pub(crate) mod single_instance;
mod unfinished_requests;
pub(crate) mod wake_sockets;
pub(crate) mod watcher;
pub(crate) mod worktrees;
