//! The error reports for processes and threads that could not be started. If a limit was reached,
//! the report names the limit.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use rustix::process::{Resource, getrlimit};

/// The report for `error`, which the kernel returned for the start of `subject`.
pub(crate) fn start_error(subject: &str, error: &str) -> ErrorReport {
    let message = format!("cannot start {subject}: {error}");
    match store::reached_process_limit() {
        Some(limit) => store::process_limit_error(&limit, &message),
        None => ErrorReport::new(ErrorKind::Io, message).with_help("see: teamctl doctor"),
    }
}

/// The error report if `subject` was not started because the daemon has too few free descriptors.
/// The daemon needs three for each member, and keeps some free for the calls of people, such as
/// `teamctl kill`.
pub(crate) fn descriptors_error(subject: &str) -> ErrorReport {
    let allowed = getrlimit(Resource::Nofile).current.map_or("all".to_owned(), |limit| limit.to_string());
    let message = format!("cannot start {subject}: too few of the {allowed} descriptors of teamd are free");
    ErrorReport::new(ErrorKind::Io, message).with_help(store::MORE_DESCRIPTORS_HELP)
}

/// The error with which the daemon exits at startup if one of its threads cannot be started.
pub(crate) fn thread_error(error: &std::io::Error) -> ErrorReport {
    start_error("a thread", &error.to_string())
}
