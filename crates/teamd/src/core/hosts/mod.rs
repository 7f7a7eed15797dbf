//! Members of a team on other hosts. At the team's home, the daemon connects to each host that runs
//! members. There, an annex, it keeps a mirror of the team's files.

pub(crate) mod compare_changed_files;
pub(crate) mod confirm_task;
pub(crate) mod connect_home;
pub(crate) mod handle_host_events;
pub(crate) mod use_and_await_host;
