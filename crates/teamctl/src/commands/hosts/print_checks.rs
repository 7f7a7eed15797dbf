//! Prints the results of `teamctl hosts check`, one line per fact.

use super::check_host::HostCheck;
use super::transport_command::OWN_VERSION;
use crate::command_context::CommandContext;
use crate::output;
use client::short_duration::short_duration;
use protocol::error_kind_and_report::ErrorReport;
use protocol::host_report::{HostReport, InstalledProgram, LoginState};
use serde_json::json;
use std::process::ExitCode;

/// Prints the results, and returns the exit code: the highest of all errors.
pub(super) fn print_checks(context: &CommandContext, checks: &[HostCheck]) -> ExitCode {
    let error = common_error(checks);
    if context.args.json {
        let mut object = json!({"ok": error.is_none(), "hosts": checks});
        if let Some(error) = &error {
            object["error"] = json!(error);
        }
        output::print_json(&object.to_string());
    } else {
        checks.iter().filter(|check| !context.args.quiet || !check.errors.is_empty()).for_each(print_check);
    }
    if let Some(error) = &error {
        output::print_warning(&format!("{}: see above", error.message));
    }
    error.map_or(ExitCode::SUCCESS, |error| ExitCode::from(error.kind.exit_code()))
}

/// The errors of all hosts together. `None` if there are none.
fn common_error(checks: &[HostCheck]) -> Option<ErrorReport> {
    let errors = checks.iter().flat_map(|check| &check.errors);
    let kind = errors.map(|error| error.kind).max_by_key(|kind| kind.exit_code())?;
    let failed = checks.iter().filter(|check| !check.errors.is_empty());
    let names: Vec<&str> = failed.map(|check| check.host.as_str()).collect();
    Some(ErrorReport::new(kind, format!("cannot use {} as it is", names.join(", "))))
}

fn print_check(check: &HostCheck) {
    output::print_line(check.host.as_str());
    for (fact, text) in facts(check) {
        output::print_line(&output::sanitize(&format!("  {fact:<10}  {text}")));
    }
    for error in &check.errors {
        output::print_line(&output::sanitize(&format!("  {:<10}  {}", "error", error.message)));
        if let Some(help) = &error.help {
            output::print_line(&output::sanitize(&format!("  {:<10}  {help}", "")));
        }
    }
}

fn facts(check: &HostCheck) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut add = |fact: &str, text: String| facts.push((fact.to_owned(), text));
    if let Some(duration) = check.connected_after_ms {
        add("connection", format!("it answered after {duration} ms"));
    }
    if let Some(line) = &check.printed_before {
        let line: String = line.chars().take(60).collect();
        add(
            "output",
            format!(
                "a start file there prints {line:?}, which is also printed before the output of commands"
            ),
        );
    }
    match check.version.as_deref() {
        Some(OWN_VERSION) => add("teamctl", format!("{OWN_VERSION}, the same as here")),
        Some(version) => add("teamctl", format!("{version}; here it is {OWN_VERSION}")),
        None => {}
    }
    if let Some(latency) = check.latency_ms {
        add("latency", format!("{latency:.1} ms"));
    }
    if let Some(clock) = check.clock_ahead_ms {
        add("clock", clock_text(clock));
    }
    if let Some(report) = &check.report {
        facts.extend(report_facts(check, report));
    }
    facts
}

fn clock_text(ahead_ms: i64) -> String {
    let direction = if ahead_ms < 0 { "behind" } else { "ahead" };
    match ahead_ms.unsigned_abs() {
        0 => "the same as here".to_owned(),
        difference @ 1..1000 => format!("{difference} ms {direction}"),
        difference => format!("{} {direction}", short_duration(difference)),
    }
}

fn report_facts(check: &HostCheck, report: &HostReport) -> Vec<(String, String)> {
    let daemon = report.daemon.as_ref().map_or_else(
        || format!("does not run; to start it: teamctl --host {} up", check.host),
        |daemon| format!("{} runs, process {}", daemon.version, daemon.pid),
    );
    let mut facts = vec![
        ("root".to_owned(), report.root.display().to_string()),
        ("tmux".to_owned(), report.tmux.clone().unwrap_or_else(|| "missing".to_owned())),
        ("teamd".to_owned(), daemon),
    ];
    facts.extend(report.programs.iter().map(program_fact));
    facts
}

fn program_fact(program: &InstalledProgram) -> (String, String) {
    let login = match program.login {
        LoginState::LoggedIn => ", logged in",
        LoginState::LoggedOut => ", not logged in",
        LoginState::Unknown => "",
    };
    let version = program.version.as_deref().unwrap_or("version unknown");
    (program.program.clone(), format!("{} ({version}){login}", program.path.display()))
}
