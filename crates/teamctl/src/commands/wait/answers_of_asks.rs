//! `teamctl wait` for questions that `teamctl ask` asked in the background.

use crate::command_context::CommandContext;
use crate::commands::ask::ask_records::shim_exits_within;
use crate::commands::ask::ask_records::{AskRecords, kill_lost_ask_and_explain};
use crate::commands::ask::print_answer_or_error::print_answer;
use crate::output;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::teamctl_ask_setup_and_record::{AskId, AskRecord, AskState};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A hundred years stand for no deadline.
const NO_DEADLINE: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Waits for the answer to each background question of `teamctl ask`, and prints the answers in the
/// order of `ids`, the ids of the questions.
///
/// # Errors
///
/// If `ids` has one id, an error says why its question has no answer. If `ids` has several, this
/// function prints why questions have no answer, and returns exit code 1 instead of an error.
pub(super) fn wait_for_answers(
    context: &CommandContext,
    ids: &[String],
    deadline: Option<Instant>,
) -> Result<ExitCode, ErrorReport> {
    let records = AskRecords::open(context)?;
    let print = |id: &String| print_answer(context, &wait_for_end(&records, id, deadline)?);
    if let [id] = ids {
        return print(id);
    }
    let errors: Vec<ErrorReport> = ids.iter().filter_map(|id| print(id).err()).collect();
    errors.iter().for_each(|error| output::print_partial_error(context, error));
    Ok(if errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the user waits for asks and not for members.
pub(super) fn contains_ask_id(names: &[String]) -> bool {
    names.iter().any(|name| AskId::parse(name).is_some())
}

fn wait_for_end(records: &AskRecords, id: &str, deadline: Option<Instant>) -> Result<AskRecord, ErrorReport> {
    let record = records.find(id)?;
    if record.state != AskState::Running {
        return Ok(record);
    }
    let timeout = deadline.map_or(NO_DEADLINE, |deadline| deadline.saturating_duration_since(Instant::now()));
    if !shim_exits_within(&record, timeout)? {
        let message = format!("cannot wait any longer: {id} has no answer yet");
        return Err(
            ErrorReport::new(ErrorKind::Timeout, message).with_help(format!("wait again: teamctl wait {id}"))
        );
    }
    // The shim writes the record before it exits.
    let record = records.find(id)?;
    if record.state == AskState::Running { Err(kill_lost_ask_and_explain(&record.id)) } else { Ok(record) }
}
