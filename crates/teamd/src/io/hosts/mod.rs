//! The links to other hosts. Each link has a tokio task that runs its connection (`run_link`), and
//! a thread that compares the files of its mirrors (`mirror_thread`).

mod cancel_unoffered_moves;
mod connect_commands_file;
mod forget_host;
mod link_files;
pub(crate) mod link_handles;
mod mirror_queue;
mod mirror_thread;
mod open_link;
mod receive_items;
mod run_link;
mod shared_mirror;
#[cfg(test)]
pub(crate) mod simulated_link_end;
