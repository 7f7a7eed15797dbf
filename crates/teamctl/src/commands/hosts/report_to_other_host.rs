//! The other side of `teamctl hosts check`: prints the release, and answers requests until the caller
//! closes the connection.

use super::super::profiles::installed_programs::installed_programs;
use super::exec_for_other_host::expand_home;
use super::transport_command::OWN_VERSION;
use crate::command_context::{CommandContext, GlobalArgs};
use client::run_program_for_output::program_output;
use profile::find_program_in_path::find_program;
use protocol::error_kind_and_report::ErrorReport;
use protocol::host_report::{HostAnswer, HostReport, HostRequest, RunningDaemon, hello_line};
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use store::{env_var, env_vars};

pub(super) fn run(context: &CommandContext) -> Result<ExitCode, ErrorReport> {
    let mut stdout = std::io::stdout().lock();
    // The caller has gone if a line cannot be written or read.
    let mut print = |line: &str| writeln!(stdout, "{line}").and_then(|()| stdout.flush()).is_ok();
    if !print(&hello_line(OWN_VERSION)) {
        return Ok(ExitCode::SUCCESS);
    }
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let answer = match serde_json::from_str(&line) {
            Ok(HostRequest::Ping) => HostAnswer::Pong { now: store::now() },
            Ok(HostRequest::Report { root }) => report(context, root.as_deref())
                .map_or_else(|error| HostAnswer::Failed { message: error.message }, HostAnswer::Report),
            Err(error) => HostAnswer::Failed { message: format!("cannot understand the request: {error}") },
        };
        if !print(&serde_json::to_string(&answer).expect("an answer is valid JSON")) {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn report(context: &CommandContext, root: Option<&str>) -> Result<Box<HostReport>, ErrorReport> {
    let root = root.map(expand_home).or_else(|| context.args.root.clone());
    let context = CommandContext::new(GlobalArgs { root, ..context.args.clone() });
    let root = context.root_path()?;
    let daemon = context.daemon_status().ok().map(|status| status.daemon);
    Ok(Box::new(HostReport {
        tmux: tmux_version(),
        daemon: daemon.map(|daemon| RunningDaemon { pid: daemon.pid, version: daemon.version }),
        programs: installed_programs(&root),
        root,
    }))
}

fn tmux_version() -> Option<String> {
    let tmux = find_program("tmux", Path::new("."), &env_var("PATH").unwrap_or_default())?;
    let text = program_output(&tmux, &["-V".to_owned()], &env_vars().collect()).ok()?;
    text.lines().next().map(str::to_owned)
}
