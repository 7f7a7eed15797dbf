//! `teamctl ask --list` and `teamctl ask --end ID`: the asks whose records are kept.

use super::ask_records::{
    AskRecords, LostProcesses, kill_lost_ask, lost_ask_error, running_shim, shim_exits_within,
};
use super::print_answer_or_error::{record_json, worktree_text};
use crate::command_context::CommandContext;
use crate::output;
use client::short_duration::short_duration;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::teamctl_ask_setup_and_record::{AskId, AskOutcome, AskRecord, AskState, AskWorktree};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use store::now;

/// How long a shim may take to end its program: it kills a program that ignores SIGTERM.
const END_TIMEOUT: Duration = Duration::from_secs(15);

/// The state of an ask whose shim was killed.
const LOST: &str = "lost";

/// Prints a row for each ask, and the worktrees of asks. Answers are not printed, because each may
/// be a megabyte long.
pub(super) fn list(context: &CommandContext) -> Result<ExitCode, ErrorReport> {
    let store = AskRecords::open(context)?;
    let records: Vec<AskRecord> = store.all()?.into_iter().map(|record| latest(&store, record)).collect();
    let worktrees = store.worktrees()?.all()?;
    if context.args.json {
        output::print_result(context, &list_json(&records, worktrees), "");
    } else if !context.args.quiet {
        print_list(&records, &worktrees);
    }
    Ok(ExitCode::SUCCESS)
}

fn print_list(records: &[AskRecord], worktrees: &[(AskId, AskWorktree)]) {
    if records.is_empty() {
        output::print_line("no asks");
    } else {
        let heading = ["ID", "STATE", "STARTED", "PROGRAM", "QUESTION"].map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> = std::iter::once(heading).chain(records.iter().map(row)).collect();
        output::print_table(&rows);
    }
    for (ask, worktree) in worktrees {
        output::print_line(&output::sanitize(&format!("{ask} has the {}", worktree_text(worktree))));
    }
}

fn list_json(records: &[AskRecord], worktrees: Vec<(AskId, AskWorktree)>) -> Value {
    let asks: Vec<Value> = records.iter().map(list_entry).collect();
    let worktree =
        |(ask, AskWorktree { path, branch, .. })| json!({"id": ask, "path": path, "branch": branch});
    json!({"asks": asks, "worktrees": worktrees.into_iter().map(worktree).collect::<Vec<_>>()})
}

/// Returns the latest record of an ask. `record` can be out of date: a shim stores the last record
/// before it exits. So if `record` says that the ask is running, but the shim has exited, the
/// record is read again.
fn latest(store: &AskRecords, record: AskRecord) -> AskRecord {
    let is_current = state_name(&record) != LOST;
    if is_current { record } else { store.find(&record.id.to_string()).unwrap_or(record) }
}

fn list_entry(record: &AskRecord) -> Value {
    let mut entry = record_json(record);
    entry["question"] = json!(record.prompt);
    entry["state"] = json!(state_name(record));
    if let Value::Object(fields) = &mut entry {
        ["answer", "outcome", "worktree"].into_iter().for_each(|key| drop(fields.shift_remove(key)));
    }
    entry
}

fn row(record: &AskRecord) -> Vec<String> {
    let program = record.options.profile.as_ref().or(record.options.command.first());
    let age = format!("{} ago", short_duration(now().saturating_sub(record.started_at)));
    let question = record.prompt.lines().next().unwrap_or_default();
    let program = program.map_or("-", String::as_str);
    [record.id.to_string().as_str(), state_name(record), &age, program, question]
        .map(output::sanitize)
        .to_vec()
}

/// The state of an ask in one word.
fn state_name(record: &AskRecord) -> &'static str {
    match &record.state {
        AskState::Running if running_shim(record).is_ok_and(|shim| shim.is_none()) => LOST,
        AskState::Running => "running",
        AskState::Ended { outcome, .. } => match outcome {
            AskOutcome::Answered => "answered",
            AskOutcome::Failed { .. } => "failed",
            AskOutcome::NotStarted { .. } => "not_started",
            AskOutcome::TimedOut => "timed_out",
            AskOutcome::Interrupted => "interrupted",
        },
    }
}

/// Ends an ask, and returns when all processes of the ask have ended.
///
/// # Errors
///
/// `Refused` if the ask has ended already. `Timeout` if the ask's shim does not exit. `Partial` if
/// the shim was killed earlier, and a process of the ask still runs.
pub(super) fn end(context: &CommandContext, id: &str) -> Result<ExitCode, ErrorReport> {
    let store = AskRecords::open(context)?;
    let record = store.find(id)?;
    if record.state != AskState::Running {
        let message = format!("cannot end {id}: it has ended already");
        return Err(ErrorReport::new(ErrorKind::Refused, message)
            .with_help(format!("see how it ended with: teamctl wait {id}")));
    }
    match running_shim(&record)? {
        // An error means that the shim has exited meanwhile.
        Some(shim) => drop(shim.send_signal(Signal::TERM)),
        None if kill_lost_ask(&record.id) => {
            let ask = record.options.worktree.iter();
            ask.for_each(|ask| drop(store.worktrees().and_then(|all| all.remove_unless_unsaved(ask))));
        }
        None => return Err(lost_ask_error(&record.id, LostProcesses::Remain)),
    }
    if !shim_exits_within(&record, END_TIMEOUT)? {
        let message = format!("cannot end {id}: its shim still runs after {} s", END_TIMEOUT.as_secs());
        return Err(ErrorReport::new(ErrorKind::Timeout, message).with_help("see: teamctl ask --list"));
    }
    output::print_result(context, &json!({"id": id}), &format!("ended {id}"));
    Ok(ExitCode::SUCCESS)
}
