//! `teamd-shim ask`: asks an agent program one question, outside any team and without the daemon.
//!
//! `teamctl ask` writes the setup as one line to standard input. The shim starts the program, waits for
//! its answer, ends every process that the program has started, and writes the record.
//!
//! The shim also prints the record as a line, when it starts and at the end. So the caller knows that the
//! ask has started, and a full disk loses no answer.

mod asked_program;
mod compose_record;

use crate::catch_signals::ShimSignals;
use crate::supervisor::adopt_orphans;
use crate::turns::prompt_text::TurnSubject;
use crate::turns::turn_command_builder::TurnBuilder;
use crate::turns::turn_executor_trait::TurnInput;
use asked_program::AskedProgram;
use compose_record::{FinishedProgram, ended_state};
use platform::ProcessEntry;
use protocol::ask_setup_and_record::{
    ASK_VARIABLE, ASKS_DIR, AskAttachment, AskOutcome, AskRecord, AskSetup, AskState,
};
use protocol::control_socket::Process;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::turn_program::TurnProgram;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use store::{StateDir, now};

/// Asks the question of the setup on standard input.
///
/// # Errors
///
/// The setup cannot be read, or the record cannot be written.
pub(crate) fn run(state_dir: &Path) -> Result<ExitCode, ErrorReport> {
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
    setup.record.shim = own_process();
    write_record(&records, &setup.record)?;
    // A caller that has gone meanwhile needs no line.
    print_record(&setup.record).ok();
    let record = ask(&signals, &records, setup);
    let printed = print_record(&record);
    // A record that was printed has arrived, so a full disk is then no error.
    write_record(&records, &record).or_else(|error| printed.map_err(|_| error))?;
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

fn own_process() -> Option<Process> {
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
            let end = program.wait(signals, deadline, setup.attachment);
            Ok(program.finish(signals, end))
        }
        Err(reason) => Err(reason),
    };
    builder.remove_prompt_file();
    finished_record(setup.record, finished, builder)
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
    mut record: AskRecord,
    finished: Result<FinishedProgram, String>,
    mut builder: TurnBuilder,
) -> AskRecord {
    record.state = match finished {
        Ok(mut program) => {
            program.session_id.take().into_iter().for_each(|session| builder.set_session_id(session));
            ended_state(&program, builder.reply_key(), now())
        }
        Err(reason) => AskState::Ended {
            outcome: AskOutcome::NotStarted { reason },
            answer: String::new(),
            usage: None,
            ended_at: now(),
        },
    };
    record.session_id = builder.session_id();
    record
}

fn write_record(records: &StateDir, record: &AskRecord) -> Result<(), ErrorReport> {
    let json = serde_json::to_vec(record).expect("a record is valid JSON");
    Ok(records.replace(&record.id.file_name(), &json)?)
}

fn print_record(record: &AskRecord) -> std::io::Result<()> {
    let json = serde_json::to_string(record).expect("a record is valid JSON");
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{json}").and_then(|()| stdout.flush())
}
