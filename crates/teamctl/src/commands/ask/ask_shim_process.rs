//! The shim of one ask: its start, and the records that it prints.

use super::ask_records::{AskRecords, kill_lost_ask_and_explain};
use super::end_shims_on_signal::ShimInputs;
use super::print_answer_or_error::interrupted_error;
use crate::command_context::CommandContext;
use protocol::control_socket::shim_subcommands;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::find_sibling_program::installed_program;
use protocol::teamctl_ask_setup_and_record::{AskAttachment, AskId, AskRecord, AskSetup, AskState};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use store::own_program;

/// The file name of the shim.
const SHIM_PROGRAM: &str = "teamd-shim";

/// Where the user sees what a program reports while it works on its answer.
#[derive(Debug)]
pub(super) enum ProgressOutput {
    Stderr,
    Hidden,
    /// In a pane, by this connection.
    Pane(OwnedFd),
}

impl ProgressOutput {
    fn into_stdio(self) -> Stdio {
        match self {
            ProgressOutput::Stderr => Stdio::inherit(),
            ProgressOutput::Hidden => Stdio::null(),
            ProgressOutput::Pane(connection) => connection.into(),
        }
    }
}

/// The path of the shim of this installation.
pub(super) fn shim_program() -> Result<PathBuf, ErrorReport> {
    Ok(installed_program(&own_program()?, SHIM_PROGRAM, Path::is_file))
}

/// A running shim.
#[derive(Debug)]
pub(super) struct AskShim {
    id: AskId,
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl AskShim {
    /// Starts a shim and sends it `setup`, which says what to ask. `inputs` keeps the pipe to the
    /// shim's standard input open, because a shim in the foreground ends its program when this pipe
    /// closes.
    pub(super) fn start(
        context: &CommandContext,
        setup: &AskSetup,
        progress: ProgressOutput,
        inputs: &ShimInputs,
    ) -> Result<AskShim, ErrorReport> {
        AskRecords::open(context)?.prune_if_many()?;
        let program = shim_program()?;
        let mut command = Command::new(&program);
        command.arg(shim_subcommands::ASK).arg("--state-dir").arg(context.state_dir_path()?);
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(progress.into_stdio());
        let mut child = command.spawn().map_err(|error| {
            ErrorReport::new(ErrorKind::MissingPath, format!("cannot start {}: {error}", program.display()))
        })?;
        // The command holds the connection of the pane, which must close with the shim.
        drop(command);
        let mut stdin = child.stdin.take().expect("standard input is a pipe");
        let stdout = BufReader::new(child.stdout.take().expect("standard output is a pipe"));
        let json = serde_json::to_string(setup).expect("a setup is valid JSON");
        // If the shim cannot read the setup, it exits and prints no record.
        writeln!(stdin, "{json}").ok();
        let id = setup.record.id.clone();
        if setup.attachment == AskAttachment::Foreground {
            inputs.keep_open(id.clone(), stdin);
        }
        Ok(AskShim { id, child, stdout })
    }

    /// Waits until the shim prints the ask's first record. The shim has then stored this record, so
    /// other commands find the ask.
    ///
    /// # Errors
    ///
    /// If the shim was killed, or has failed.
    pub(super) fn detach_once_started(mut self) -> Result<(), ErrorReport> {
        match self.read_line() {
            ShimLine::Record(_) => Ok(()),
            ShimLine::Error(error) => Err(error),
            ShimLine::End => Err(kill_lost_ask_and_explain(&self.id)),
        }
    }

    /// Waits until the ask has ended.
    ///
    /// # Errors
    ///
    /// If the shim has failed, or was killed before it had stored the answer.
    pub(super) fn wait_for_end(
        mut self,
        context: &CommandContext,
        inputs: &ShimInputs,
    ) -> Result<AskRecord, ErrorReport> {
        let result = self.read_last_record(context, inputs);
        self.child.wait().ok();
        inputs.close(&self.id);
        result
    }

    fn read_last_record(
        &mut self,
        context: &CommandContext,
        inputs: &ShimInputs,
    ) -> Result<AskRecord, ErrorReport> {
        loop {
            match self.read_line() {
                ShimLine::Record(record) if record.state == AskState::Running => {}
                ShimLine::Record(record) => return Ok(*record),
                ShimLine::Error(error) => return Err(error),
                // The signal has ended the shim before it could catch signals.
                ShimLine::End if inputs.is_interrupted() => {
                    kill_lost_ask_and_explain(&self.id);
                    return Err(interrupted_error(&self.id, None));
                }
                ShimLine::End => {
                    self.child.wait().ok();
                    let error = kill_lost_ask_and_explain(&self.id);
                    return self.stored_answer(context).ok_or(error);
                }
            }
        }
    }

    /// The record, if the shim has stored the answer.
    fn stored_answer(&self, context: &CommandContext) -> Option<AskRecord> {
        let record = AskRecords::open(context).and_then(|records| records.find(&self.id.to_string())).ok();
        record.filter(|record| record.state != AskState::Running)
    }

    fn read_line(&mut self) -> ShimLine {
        let mut line = String::new();
        self.stdout.read_line(&mut line).ok();
        if let Ok(record) = serde_json::from_str(&line) {
            return ShimLine::Record(Box::new(record));
        }
        match serde_json::from_str(&line) {
            Ok(PrintedError { error }) => ShimLine::Error(error),
            Err(_) => ShimLine::End,
        }
    }
}

/// A line that a shim prints.
enum ShimLine {
    Record(Box<AskRecord>),
    Error(ErrorReport),
    /// The end of the output.
    End,
}

#[derive(serde::Deserialize)]
struct PrintedError {
    error: ErrorReport,
}
