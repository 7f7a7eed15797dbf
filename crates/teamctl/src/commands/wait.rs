//! `wait`: block until something is so. The state decides, never an event: what is so already returns at
//! once, and what was so for a moment between two looks may be missed.

mod condition;

use crate::context::CommandContext;
use crate::output;
use client::directory_watcher::{DirectoryWatcher, WatchEvent};
use condition::WaitCondition;
use protocol::duration;
use protocol::error::{ErrorKind, ErrorReport};
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Wait for a message, for members to be idle or gone, or for all tasks to be done
///
/// Exit code 0: it is so, maybe already. 1: tasks have failed, and nothing else can be done. 75: it was not so
/// within the time-out. Nothing is marked read.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl wait --timeout 10m\n  teamctl wait --for message ann\n  teamctl wait --for idle ann bob\n  teamctl wait --for exit\n  teamctl wait --for tasks-done --timeout 2h"
)]
pub(crate) struct WaitArgs {
    /// For what
    #[arg(long = "for", value_enum, default_value_t = WaitFor::Message, value_name = "WHAT")]
    what: WaitFor,
    /// Of whom [default: for a message anybody, else every teammate]
    names: Vec<String>,
    /// How long at most, as in 500ms, 5s, 10m or 2h [default: for ever]
    #[arg(long, value_name = "D", value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// End when nobody reads our output any more: whoever asked is gone
    #[arg(long, hide = true)]
    exit_with_reader: bool,
}

/// See `--for`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum WaitFor {
    /// An unread message in your own inbox
    Message,
    /// They have ended their turns
    Idle,
    /// They are members no more
    Exit,
    /// Every task is completed
    TasksDone,
}

impl WaitFor {
    fn name(self) -> &'static str {
        match self {
            WaitFor::Message => "message",
            WaitFor::Idle => "idle",
            WaitFor::Exit => "exit",
            WaitFor::TasksDone => "tasks-done",
        }
    }
}

pub(crate) fn run(here: &CommandContext, args: &WaitArgs) -> Result<ExitCode, ErrorReport> {
    let deadline = args.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let condition = WaitCondition::from_args(here, args)?;
    let directories = condition.directories();
    let mut follow = if args.exit_with_reader {
        DirectoryWatcher::new_for_stream(&directories)?
    } else {
        DirectoryWatcher::new(&directories)?
    };
    loop {
        let missing = condition.unmet_conditions()?;
        if missing.is_empty() {
            let result = json!({"for": args.what.name(), "names": args.names});
            output::print_result(here, &result, &output::sanitize(&condition.result_text()));
            return Ok(ExitCode::SUCCESS);
        }
        match follow.wait(deadline)? {
            WatchEvent::Changed => {}
            WatchEvent::TimedOut => {
                let message = format!("cannot wait any longer: still no {}", missing.join(", no "));
                return Err(ErrorReport::new(ErrorKind::Timeout, message)
                    .with_help("wait again, or see: teamctl status"));
            }
            WatchEvent::OutputClosed => return Ok(ExitCode::FAILURE),
        }
    }
}
