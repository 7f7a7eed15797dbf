//! Runs `teamd --check-record FILE`: replays a record of a team with the core of this program, and
//! prints the result as JSON. No daemon starts. `teamctl replay FILE --check` calls this command.

use crate::simulator::replay::check_record::check_record;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::record_check::RecordCheck;
use std::any::Any;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Checks a record and prints a `Result<RecordCheck, ErrorReport>` as one line of JSON.
pub(crate) fn print_record_check(path: &Path) -> ExitCode {
    print_panics_as_errors(path.to_owned());
    let result = check_record(path);
    ExitCode::from(print_result(&result))
}

/// Prints a panic as the result. The simulated world panics if a record contradicts itself.
fn print_panics_as_errors(path: PathBuf) {
    std::panic::set_hook(Box::new(move |panic| {
        let cause = panic_text(panic.payload());
        let message = format!("cannot check {}: the replay failed: {cause}", path.display());
        let help = "its film may still show what happened: teamctl replay FILE";
        let error = ErrorReport::new(ErrorKind::InvalidData, message).with_help(help);
        std::process::exit(print_result(&Err(error)).into());
    }));
}

fn panic_text(payload: &dyn Any) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("unknown cause").to_owned()
}

/// Prints a result. Returns the exit code.
fn print_result(result: &Result<RecordCheck, ErrorReport>) -> u8 {
    let json = serde_json::to_string(result).expect("a result is serializable");
    writeln!(std::io::stdout(), "{json}").ok();
    result.as_ref().err().map_or(0, |error| error.kind.exit_code())
}
