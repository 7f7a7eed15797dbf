//! `teamctl`: drives a team from the command line, and is the first process in every pane (`join`).
//!
//! One verb, one file under `verbs/`, named as the user types it. Never imports the daemon, tmux or an
//! async runtime: it starts in a millisecond, and can't grow into a second supervisor.

mod cli;
mod exec;
mod here;
mod join;
mod output;
mod profile;
mod record;
mod teammate;
mod verbs;
mod work;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some((join, socket)) = join::Join::as_teamd_writes_it() {
        return join::run(&join, &socket).unwrap_or_else(|fault| output::fatal(&fault));
    }
    if let Some(record) = record::Record::as_tmux_starts_it() {
        return record::run(&record).unwrap_or_else(|fault| output::fatal(&fault));
    }
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help on a closed pipe is nobody's loss.
            error.print().ok();
            return ExitCode::from(if error.use_stderr() { 64 } else { 0 });
        }
    };
    let here = here::Here::new(cli.global);
    match verbs::run(cli.verb, &here) {
        Ok(_) if output::was_lost() => {
            output::complain("cannot write to standard output: what was printed is not whole");
            ExitCode::from(protocol::fault::Kind::Io.exit_code())
        }
        Ok(code) => code,
        Err(fault) => output::failed(&here, &fault),
    }
}
