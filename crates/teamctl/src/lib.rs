//! Two programs of one make. `teamctl` drives a team from the command line; `teamd-pane` is the first process of every
//! agent (`join`) and writes down what panes show (`record`), and is small: there are two of it for each agent.
//!
//! One verb, one file under `verbs/`, named as the user types it. Never imports the daemon, tmux or an
//! async runtime: it starts in a millisecond, and can't grow into a second supervisor.

mod cli;
mod exec;
mod here;
mod hints;
mod hook;
mod join;
mod keys;
mod output;
mod process;
mod profile;
mod record;
mod teammate;
mod verbs;
mod work;

use protocol::error::{ErrorKind, ErrorReport};
use std::process::ExitCode;

/// What `teamctl` does.
pub fn teamctl() -> ExitCode {
    outlive_full_files();
    let cli = match cli::parsed() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { 64 } else { 0 };
            // Help on a closed pipe is nobody's loss.
            harmless(as_typed().unwrap_or(error)).print().ok();
            return ExitCode::from(code);
        }
    };
    let here = here::Here::new(cli.global);
    match verbs::run(cli.verb, &here) {
        Ok(_) if output::was_lost() => {
            output::complain("cannot write to standard output: what was printed is not whole");
            ExitCode::from(ErrorKind::Io.exit_code())
        }
        Ok(code) => code,
        Err(fault) => output::failed(&here, &fault),
    }
}

/// What is wrong with what was typed, without what stands in the environment: the usage that goes with it would show
/// that as if it had been typed. None where nothing is wrong without it.
fn as_typed() -> Option<clap::Error> {
    use clap::CommandFactory;
    let command = cli::Cli::command().mut_args(|arg| arg.env(clap::builder::Resettable::Reset));
    command.try_get_matches().err()
}

/// Where no file may grow further (`ulimit -f`), a write shall fail, and not end us in the middle of something. What is
/// handled, unlike what is ignored, is as usual again for the programs that we start.
fn outlive_full_files() {
    let noticed = std::sync::Arc::default();
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, noticed).ok();
}

/// What was typed, which a script may have had from an agent, is shown as any text from outside.
fn harmless(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};
    let shown = |value: &ContextValue| match value {
        ContextValue::String(text) => ContextValue::String(output::clean(text)),
        ContextValue::Strings(all) => {
            ContextValue::Strings(all.iter().map(|text| output::clean(text)).collect())
        }
        ContextValue::StyledStr(text) => ContextValue::StyledStr(output::clean(&text.to_string()).into()),
        ContextValue::StyledStrs(all) => {
            ContextValue::StyledStrs(all.iter().map(|text| output::clean(&text.to_string()).into()).collect())
        }
        other => other.clone(),
    };
    // The usage names what can be typed, and nothing that was.
    let context = error.context().filter(|(kind, _)| *kind != ContextKind::Usage);
    let harmless: Vec<_> = context.map(|(kind, value)| (kind, shown(value))).collect();
    for (kind, value) in harmless {
        error.insert(kind, value);
    }
    error
}

/// What `teamd-pane` does: it is started by teamd and tmux alone, with words that it reads without the parser of all
/// verbs.
pub fn teamd_pane() -> ExitCode {
    outlive_full_files();
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let ended = match (join::Join::of(&words), record::Record::of(&words)) {
        (Some((join, socket)), _) => join::run(&join, &socket),
        (None, Some(record)) => record::run(&record),
        (None, None) => {
            Err(ErrorReport::new(ErrorKind::Usage, "cannot tell what to do: teamd-pane is started by teamd")
                .with_help("see teamctl --help"))
        }
    };
    ended.unwrap_or_else(|fault| output::fatal(&fault))
}

/// Reads a team's file, for the fuzz target of that name.
#[cfg(fuzzing)]
pub fn fuzz_run_file(text: &str) {
    verbs::run::file::fuzz(text);
}

/// Reads a profile, for the fuzz target of that name.
#[cfg(fuzzing)]
pub fn fuzz_profile(text: &str) {
    profile::fuzz(text);
}
