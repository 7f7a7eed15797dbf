//! `teamd-shim ask`: asks a program one question, without a team and without the daemon.
//!
//! `teamctl ask` writes the setup as one line to standard input. The shim starts the program, waits for
//! its answer, ends every process that the program has started, and writes the record. A record with a
//! worktree counts as that of a running ask until the shim has exited, because the shim removes the
//! worktree after it has stored the answer.
//!
//! The shim also prints the record as a line, at the start and at the end, or an error. So the caller
//! learns that the ask has started, and gets the answer even if the disk is full.

mod answer_collector;
mod caller_and_starter;
mod decide_outcome;
mod notify_lead;
mod running_program_and_its_pipes;
pub(crate) mod show_output_in_pane;

use crate::catch_signals::ShimSignals;
use crate::supervisor::adopt_orphans;
use crate::turns::prompt_text::TurnSubject;
use crate::turns::turn_command_builder::TurnBuilder;
use crate::turns::turn_executor_trait::TurnInput;
use caller_and_starter::AskCaller;
use client::worktrees_of_asks::AskWorktrees;
use decide_outcome::{FinishedProgram, decide_outcome};
use notify_lead::notify_lead;
use platform::ProcessEntry;
use protocol::control_socket::Process;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::state_file_names::ASKS_DIR;
use protocol::teamctl_ask_setup_and_record::{
    ASK_VARIABLE, AskAttachment, AskOutcome, AskRecord, AskSetup, AskState,
};
use protocol::worker_or_program_that_runs_turns::TurnProgram;
use running_program_and_its_pipes::{AskedProgram, ReportedFacts};
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use store::{StateDir, now};

/// Asks the question of the setup on standard input. An error is also printed as a JSON line, because the
/// caller may have closed standard error.
///
/// # Errors
///
/// The setup cannot be read, or the record cannot be written.
pub(crate) fn run(state_dir: &Path) -> Result<ExitCode, ErrorReport> {
    let result = run_ask(state_dir);
    if let Err(error) = &result {
        print_line(&serde_json::json!({ "error": error }).to_string()).ok();
    }
    result
}

fn run_ask(state_dir: &Path) -> Result<ExitCode, ErrorReport> {
    platform::close_inherited_descriptors::close_inherited_descriptors();
    let signals = ShimSignals::install()?;
    let mut setup = read_setup()?;
    if setup.attachment == AskAttachment::Background {
        // The shim leaves the terminal of the caller, whose Ctrl-C would end it. `setsid` fails only if
        // the shim leads a session already.
        nix::unistd::setsid().ok();
    }
    adopt_orphans(format!("{ASK_VARIABLE}={}", setup.record.id))?;
    let records = StateDir::open(state_dir)?.open_subdir(ASKS_DIR)?;
    setup.record.shim = this_shim();
    write_record(&records, &setup.record)?;
    // An error means that the caller is gone, which is noticed later.
    print_record(&setup.record).ok();
    let lead_inbox = setup.lead_inbox.take();
    let mut record = ask(&signals, &records, setup);
    if record.options.worktree.is_some() {
        // The answer is stored before git works, during which the shim may be killed. A failed write
        // is found below.
        write_record(&records, &record).ok();
        failpoint::hit("ask.answer_recorded");
        remove_worktree(records.path(), &mut record);
    }
    let printed = print_record(&record);
    // If the caller has got the record, a failed write is ignored.
    write_record(&records, &record).or_else(|error| printed.map_err(|_| error))?;
    // The message names the record, so the record is written first.
    lead_inbox.map_or(Ok(()), |inbox| notify_lead(state_dir, &inbox, &record))?;
    Ok(ExitCode::SUCCESS)
}

fn read_setup() -> Result<AskSetup, ErrorReport> {
    let mut line = String::new();
    let invalid = |error: &dyn std::fmt::Display| {
        ErrorReport::new(ErrorKind::InvalidData, format!("cannot read what to ask: {error}"))
    };
    std::io::stdin().lock().read_line(&mut line).map_err(|error| invalid(&error))?;
    serde_json::from_str(&line).map_err(|error| invalid(&error))
}

fn this_shim() -> Option<Process> {
    let pid = std::process::id();
    let start_time = ProcessEntry::start_time(pid).ok()??;
    Some(Process { pid, start_time })
}

/// Runs the program, and returns the record with its answer.
fn ask(signals: &ShimSignals, records: &StateDir, setup: AskSetup) -> AskRecord {
    let deadline = setup.timeout_ms.map(|timeout| Instant::now() + Duration::from_millis(timeout));
    let owner = setup.record.id.to_string();
    let program = TurnProgram::PerTurn(setup.program.clone());
    let mut builder = TurnBuilder::new(program, setup.session_id.clone(), records.path().to_owned(), &owner);
    let finished = match start(&setup, &mut builder) {
        Ok(mut program) => {
            let end = program.wait(signals, deadline, &AskCaller::from_setup(&setup));
            Ok(program.finish(signals, end))
        }
        Err(reason) => Err(reason),
    };
    builder.remove_prompt_file();
    finished_record(setup, finished, builder)
}

fn start(setup: &AskSetup, builder: &mut TurnBuilder) -> Result<AskedProgram, String> {
    setup.record.options.mode.map_or(Ok(()), |mode| builder.set_mode(mode))?;
    let subject = TurnSubject::Prompt(setup.record.prompt.clone());
    match builder.turn_input(&subject, None)? {
        TurnInput::Command(command) => AskedProgram::start(setup, command),
        TurnInput::Text(_) => Err("cannot ask a program that needs a driver".to_owned()),
    }
}

fn finished_record(
    setup: AskSetup,
    finished: Result<(FinishedProgram, ReportedFacts), String>,
    mut builder: TurnBuilder,
) -> AskRecord {
    let mut record = setup.record;
    let (outcome, answer, facts) = match finished {
        Ok((program, facts)) => {
            let (outcome, answer) = decide_outcome(program);
            (outcome, answer, facts)
        }
        Err(reason) => (AskOutcome::NotStarted { reason }, String::new(), ReportedFacts::default()),
    };
    let is_named = facts.session_id.is_some();
    facts.session_id.into_iter().for_each(|session| builder.set_session_id(session));
    let may_be_stored =
        is_named || !matches!(outcome, AskOutcome::Failed { .. } | AskOutcome::NotStarted { .. });
    // A program that has failed may not have stored the session whose id teamd had generated.
    record.session_id = if may_be_stored { builder.session_id() } else { setup.session_id };
    record.state = AskState::Ended { outcome, answer, usage: facts.usage, ended_at: now() };
    record
}

/// Removes the worktree of an ask that has ended. A worktree with unsaved work stays in the record.
fn remove_worktree(asks_dir: &Path, record: &mut AskRecord) {
    let Some(ask) = &record.options.worktree else { return };
    let worktrees = StateDir::open(asks_dir).map(AskWorktrees::new).map_err(ErrorReport::from);
    match worktrees.and_then(|worktrees| worktrees.remove_unless_unsaved(ask)) {
        Ok(kept) => record.worktree = kept,
        Err(error) => {
            record.worktree.iter_mut().for_each(|worktree| worktree.unsaved = vec![error.message.clone()]);
        }
    }
}

fn write_record(records: &StateDir, record: &AskRecord) -> Result<(), ErrorReport> {
    let json = serde_json::to_vec(record).expect("a record is valid JSON");
    Ok(records.replace(&record.id.file_name(), &json)?)
}

fn print_record(record: &AskRecord) -> std::io::Result<()> {
    print_line(&serde_json::to_string(record).expect("a record is valid JSON"))
}

fn print_line(line: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush())
}
