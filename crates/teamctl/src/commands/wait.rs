//! `wait`: blocks until a condition holds. The command checks the current state and not events. So
//! it returns at once if the condition holds already, and it may miss a state that lasts only a
//! moment.

mod answers_of_asks;
mod condition;

use crate::command_context::CommandContext;
use crate::output;
use client::directory_watcher::{DirectoryWatcher, WatchEvent};
use client::report_idle_while_waiting::IdleReport;
use condition::{WaitCondition, WaitFor};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::parse_duration;
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Wait for messages, members, tasks or answers
///
/// Example: teamctl wait --for tasks-done --timeout 2h
///
/// Exit code 0: the condition holds. 1: no task can run any more, because tasks have failed or wait
/// for each other; or a task file has an invalid name. 75: the timeout has expired.
///
/// No message is marked as read. An agent with the delivery `pull` counts as idle while it waits
/// for a message.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl wait --for message ann\n  teamctl wait --for idle ann bob\n  teamctl wait ask-7f3a90c2"
)]
pub(crate) struct WaitArgs {
    /// What to wait for: an unread message in your inbox, idle members, exited members, or the
    /// completion of every task
    #[arg(long = "for", value_enum, default_value_t = WaitFor::Message, value_name = "WHAT")]
    what: WaitFor,
    /// Members to wait for [default: every teammate]. With `--for message`: members from which a
    /// message must come [default: any sender]. Instead of members: ids of background questions of
    /// `teamctl ask`; their answers are printed
    names: Vec<String>,
    /// Longest wait, such as 500ms, 5s, 10m or 2h [default: forever]
    #[arg(long, value_name = "D", value_parser = parse_duration::parse)]
    timeout: Option<Duration>,
    /// Exit when the reader of the output is gone
    #[arg(long, hide = true)]
    exit_with_reader: bool,
}

pub(crate) fn run(context: &CommandContext, args: &WaitArgs) -> Result<ExitCode, ErrorReport> {
    let deadline = args.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    if answers_of_asks::contains_ask_id(&args.names) {
        return answers_of_asks::wait_for_answers(context, &args.names, deadline);
    }
    let condition = WaitCondition::new(context, args.what, &args.names)?;
    let directories = condition.directories();
    let mut watcher = if args.exit_with_reader {
        DirectoryWatcher::new_for_stream(&directories)?
    } else {
        DirectoryWatcher::new(&directories)?
    };
    condition.warnings()?.iter().for_each(|warning| output::print_warning(warning));
    let mut idle_report = IdleReport::new(context);
    loop {
        let unmet = condition.unmet_conditions()?;
        if unmet.is_empty() {
            idle_report.end();
            let result = json!({"for": args.what.name(), "names": args.names});
            output::print_result(context, &result, &output::sanitize(&condition.result_text()));
            return Ok(ExitCode::SUCCESS);
        }
        if args.what == WaitFor::Message {
            idle_report.begin();
        }
        match watcher.wait(deadline)? {
            WatchEvent::Changed => {}
            WatchEvent::TimedOut => {
                let message = format!("cannot wait any longer: still no {}", unmet.join(", no "));
                return Err(ErrorReport::new(ErrorKind::Timeout, message)
                    .with_help("wait again, or see: teamctl status"));
            }
            WatchEvent::OutputClosed => return Ok(ExitCode::FAILURE),
        }
    }
}
