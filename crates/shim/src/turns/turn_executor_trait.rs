//! The trait `TurnExecutor`: the interface between the turn loop and the rest of the shim. An
//! executor runs turns, waits for events and reports the agent's status. Tests use an executor of
//! their own.

use super::scan_output_for_session_and_usage::OutputFields;
use protocol::acp_driver_protocol::{PermissionAnswer, PermissionQuestion};
use protocol::control_socket::TurnStatus;
use protocol::token_and_cost_usage::UsageReading;
use std::process::ExitStatus;
use std::time::Instant;

/// The input with which a turn is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TurnInput {
    /// The command line of a new process.
    Command(TurnCommand),
    /// The prompt text for the driver.
    Text(String),
}

/// The command line of one turn. The executor adds the agent's directory and environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TurnCommand {
    /// The program and its arguments. The list is never empty.
    pub(crate) argv: Vec<String>,
    /// Variables to add to the agent's environment.
    pub(crate) env: Vec<(String, String)>,
    /// The text for standard input. With `None` standard input is empty.
    pub(crate) stdin: Option<String>,
    /// The values to find in the JSON lines of the output.
    pub(crate) output_fields: OutputFields,
}

/// Why a turn did not start, as a sentence for people.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StartError {
    /// No turn of this agent can start, for example because the program is missing.
    Permanent(String),
    /// Another error, such as a process limit. The next turn may start.
    Transient(String),
}

/// How a turn ended, with its last output and its usage.
#[derive(Debug)]
pub(crate) struct TurnResult {
    pub(crate) end: TurnEndKind,
    /// The last lines of output, without control characters. Empty if the turn has written nothing.
    pub(crate) last_lines: String,
    /// Tokens and cost. `None` if the program reported none.
    pub(crate) usage: Option<UsageReading>,
}

/// How a turn ended.
#[derive(Debug)]
pub(crate) enum TurnEndKind {
    /// The turn's process exited.
    Exited(ExitStatus),
    /// The driver reported success.
    Completed,
    /// The driver reported a failure, or the driver exited; the reason.
    Failed(String),
    /// A person or the lead interrupted the turn.
    Interrupted,
    /// The turn did not start; the reason.
    NotStarted(String),
}

/// An event for which the turn loop has waited.
#[derive(Debug)]
pub(crate) enum ExecutorEvent {
    /// There may be a new message or task.
    Wake,
    /// The id of the program's session has become known.
    SessionStarted(String),
    /// The agent asks for a permission. The turn waits for [`TurnExecutor::answer_permission`].
    PermissionAsked(PermissionQuestion),
    TurnEnded(TurnResult),
    /// The agent must end now, for example because the daemon ends it.
    Terminate,
    /// The deadline of the wait has passed.
    Deadline,
}

pub(crate) trait TurnExecutor {
    /// Starts a turn. Returns the pid of the process that runs it. Only one turn may run at a time.
    fn start_turn(&mut self, input: &TurnInput) -> Result<u32, StartError>;

    /// Waits for the next event. Wakes that arrive between two calls are kept for the next call.
    fn next_event(&mut self, deadline: Option<Instant>) -> ExecutorEvent;

    /// The time when this host lost contact with the team's home (the host with the team's true
    /// files), in milliseconds since the epoch. New turns must then wait. `None` if new turns may
    /// begin.
    fn no_contact_since(&mut self) -> Option<u64> {
        None
    }

    /// Answers a permission question. Nothing happens if the question is no longer open.
    fn answer_permission(&mut self, _question_id: u64, _answer: PermissionAnswer) {}

    /// Asks the program behind a driver to change its permission mode.
    ///
    /// # Errors
    ///
    /// A sentence for people that says why the mode cannot be changed.
    fn change_mode(&mut self, _mode: &str) -> Result<(), String> {
        Err("its program can't change it while it runs".to_owned())
    }

    /// Captures the output of the next turn, for [`TurnExecutor::captured_output`].
    fn start_capture(&mut self) {}

    /// The captured output of the last turn. Of a long output only the last part is kept. Empty if
    /// nothing was captured.
    fn captured_output(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Reports the agent's status to the daemon.
    fn report_status(&mut self, status: &TurnStatus);

    /// Tells the daemon that the interrupted turn has ended.
    fn confirm_interrupt(&mut self);

    /// Prints a line to the agent's pane or log.
    fn print_line(&mut self, text: &str);
}
