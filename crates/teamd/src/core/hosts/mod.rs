//! Members of a team on other hosts. The daemon at the team's home connects to each host that runs
//! members. The daemon on such a host, an annex, keeps a mirror of the team's files.

pub(crate) mod choose_host;
pub(crate) mod compare_changed_files;
pub(crate) mod confirm_task;
pub(crate) mod connect_home;
pub(crate) mod count_usage_of_annex;
pub(crate) mod fetch_branches;
pub(crate) mod forget_host;
pub(crate) mod handle_host_events;
pub(crate) mod lease;
pub(crate) mod log_events_of_annex;
pub(crate) mod move_home;
pub(crate) mod place_member;
pub(crate) mod report_homes;
pub(crate) mod send_budgets;
pub(crate) mod send_logged_events;
pub(crate) mod take_home;
pub(crate) mod use_and_await_host;
