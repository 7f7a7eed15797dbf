//! What the turn loop needs of its surroundings: it runs turns, wakes the loop and reports its status. The shim is the one
//! executor; tests have another.

use super::output_scanner::OutputFields;
use protocol::control::TurnStatus;
use protocol::driver_protocol::{PermissionAnswer, PermissionQuestion};
use protocol::usage::UsageReading;
use std::process::ExitStatus;
use std::time::Instant;

/// What a turn is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TurnInput {
    /// A process of its own.
    Command(TurnCommand),
    /// A text for the process that stands.
    Text(String),
}

/// One turn's process, without what every process of the host gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TurnCommand {
    /// Program and arguments; never empty.
    pub(crate) argv: Vec<String>,
    /// Beside the agent's environment.
    pub(crate) env: Vec<(String, String)>,
    /// What comes on its standard input; none: nothing does.
    pub(crate) input: Option<String>,
    /// What its output tells, in lines of JSON.
    pub(crate) output_fields: OutputFields,
}

/// Why a turn has no process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StartError {
    /// The program is missing: no turn of this agent will ever start.
    Permanent(String),
    /// This one could not be started.
    Transient(String),
}

/// How a turn ended.
#[derive(Debug)]
pub(crate) struct TurnResult {
    pub(crate) end: TurnEndKind,
    /// The last lines of its output, safe to show; empty where the host does not see it.
    pub(crate) last: String,
    /// What it has used up; none where its program did not say.
    pub(crate) used: Option<UsageReading>,
}

/// By whom.
#[derive(Debug)]
pub(crate) enum TurnEndKind {
    /// By itself.
    Exited(ExitStatus),
    /// Well, as the process that stands says.
    Completed,
    /// Badly, as that says, or by its death; how.
    Failed(String),
    /// By somebody who interrupted it.
    Interrupted,
    /// It never ran; why.
    NotStarted(String),
}

/// What ends a wait.
#[derive(Debug)]
pub(crate) enum ExecutorEvent {
    /// Something may have changed: look.
    Wake,
    /// The turn's output told the session.
    SessionStarted(String),
    /// The agent wants leave for something; its turn waits.
    PermissionAsked(PermissionQuestion),
    /// The turn has ended.
    TurnEnded(TurnResult),
    /// The life is to end, now.
    Terminate,
    /// Nothing did.
    Deadline,
}

pub(crate) trait TurnExecutor {
    /// Starts the turn and gives the pid of the process that runs it. One at a time.
    fn start_turn(&mut self, work: &TurnInput) -> Result<u32, StartError>;

    /// Sleeps until something happens. Wakes that come while nobody waits are kept.
    fn next_event(&mut self, until: Option<Instant>) -> ExecutorEvent;

    /// Answers a question of the agent's; one that is none any more is passed over.
    fn answer_permission(&mut self, _ask: u64, _answer: PermissionAnswer) {}

    /// Has the agent that stands go on in another permission mode; else why not.
    fn change_mode(&mut self, _mode: &str) -> Result<(), String> {
        Err("its program can't change it while it runs".to_owned())
    }

    /// What the next turn prints is kept, for `TurnExecutor::said`.
    fn start_capture(&mut self) {}

    /// What the turn has printed, the end of it where that is long; nothing where nobody listened.
    fn captured_output(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Tells whoever wants to know what the agent does.
    fn report_status(&mut self, now: &TurnStatus);

    /// Tells whoever interrupted the turn that it has ended.
    fn confirm_interrupt(&mut self);

    /// Shows lines where the agent's output is seen.
    fn print_line(&mut self, text: &str);
}
