//! Runs the `teamctl` of this installation for operations that only `teamctl` has: starting members
//! by profile, calls to the daemon, and waiting for changes of the team's files. If the tool call
//! is cancelled, the `teamctl` process is killed.

use crate::server_context::ServerContext;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::find_sibling_program::installed_program;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

/// A command line of `teamctl` and its standard input.
#[derive(Debug, Default)]
pub(crate) struct TeamctlCommand {
    args: Vec<String>,
    stdin: String,
}

impl TeamctlCommand {
    /// A command line that begins with `verb`.
    pub(crate) fn new(verb: &str) -> TeamctlCommand {
        TeamctlCommand { args: vec![verb.to_owned()], stdin: String::new() }
    }

    /// Adds a flag.
    pub(crate) fn flag(mut self, name: &str) -> TeamctlCommand {
        self.args.push(format!("--{name}"));
        self
    }

    /// Adds an option as `--name=VALUE`, so that `teamctl` cannot take VALUE for a flag.
    pub(crate) fn option(mut self, name: &str, value: Option<&str>) -> TeamctlCommand {
        self.args.extend(value.map(|value| format!("--{name}={value}")));
        self
    }

    /// Adds the option `name`, whose value `teamctl` reads from standard input. Adds nothing if
    /// `value` is `None`. Unlike an argument, standard input has no length limit, and its text does
    /// not appear in the list of processes. At most one option of a command can use standard input.
    pub(crate) fn option_from_stdin(self, name: &str, value: Option<String>) -> TeamctlCommand {
        match value {
            Some(value) => self.option(name, Some("-")).with_stdin(value),
            None => self,
        }
    }

    /// Adds a positional argument. The caller has checked that it cannot be taken for a flag.
    pub(crate) fn arg(mut self, argument: impl Into<String>) -> TeamctlCommand {
        self.args.push(argument.into());
        self
    }

    /// Adds `--` and arguments that may look like flags. They come last.
    pub(crate) fn args_after_dashes(mut self, arguments: impl IntoIterator<Item = String>) -> TeamctlCommand {
        self.args.push("--".to_owned());
        self.args.extend(arguments);
        self
    }

    /// Sets the text on standard input.
    pub(crate) fn with_stdin(mut self, text: String) -> TeamctlCommand {
        self.stdin = text;
        self
    }

    /// Runs the `teamctl` command for the agent of `context`, on that agent's team. Returns the
    /// JSON object that `teamctl --json` prints, without the key `ok`.
    ///
    /// # Errors
    ///
    /// The error that `teamctl` prints, or the reason why `teamctl` could not be run.
    pub(crate) async fn run(self, context: &ServerContext) -> Result<Value, ErrorReport> {
        let program = teamctl_path()?;
        let mut command = Command::new(&program);
        command
            .arg("--json")
            .arg("--root")
            .arg(&context.arguments.root)
            // Given the socket as an option, `teamctl` would not look for a daemon elsewhere.
            .env("TEAMD_SOCKET", &context.arguments.socket);
        command.args(context.team().iter().flat_map(|team| ["--team", team.as_str()])).args(&self.args);
        command.env_remove("TEAMD_TEAM").env_remove("TEAMD_MEMBER").env_remove("TEAMD_ROOT");
        if !context.member().is_lead() {
            command.env("TEAMD_MEMBER", context.member().as_str());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let to_report = |error: std::io::Error| start_error(&program, &error);
        let child = command.spawn().map_err(to_report)?;
        parse_output(&wait_with_stdin(child, self.stdin).await.map_err(to_report)?)
    }
}

fn start_error(program: &Path, error: &std::io::Error) -> ErrorReport {
    let message = |reason: &str| format!("cannot start {}: {reason}", program.display());
    match error.kind() {
        io::ErrorKind::ArgumentListTooLong => {
            ErrorReport::new(ErrorKind::Usage, message("what was handed over is too long"))
                .with_help("only texts may be long: put shorter words into the other arguments")
        }
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
            ErrorReport::new(ErrorKind::MissingPath, message(&error.to_string()))
                .with_help("install all programs: make install")
        }
        _ => ErrorReport::new(ErrorKind::Io, message(&error.to_string())),
    }
}

/// Writes the input while the output is read, because the input may be larger than the pipe.
async fn wait_with_stdin(mut child: Child, input: String) -> std::io::Result<Output> {
    if let Some(mut stdin) = child.stdin.take() {
        // If the program does not read all of its input, its own error says why.
        tokio::spawn(async move { stdin.write_all(input.as_bytes()).await.ok() });
    }
    child.wait_with_output().await
}

fn teamctl_path() -> Result<PathBuf, ErrorReport> {
    let program = std::env::current_exe().map_err(|error| {
        ErrorReport::new(ErrorKind::Internal, format!("cannot find the path of teamd-mcp: {error}"))
    })?;
    Ok(installed_program(&program, "teamctl", Path::is_file))
}

fn parse_output(output: &Output) -> Result<Value, ErrorReport> {
    let printed = serde_json::from_slice::<Value>(&output.stdout).ok();
    let error = printed.as_ref().and_then(|value| serde_json::from_value(value.get("error")?.clone()).ok());
    match (printed, error) {
        (_, Some(error)) => Err(error),
        (Some(Value::Object(mut object)), None) => {
            object.shift_remove("ok");
            Ok(Value::Object(object))
        }
        _ => Err(unparsable_output(output)),
    }
}

/// The error if the output of `teamctl` is not a JSON object, for example because `teamctl` has
/// crashed. The message has the first line of the standard error of `teamctl`.
fn unparsable_output(output: &Output) -> ErrorReport {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
    let text = text.trim_start_matches("error: ").trim_start_matches("teamctl: ");
    let kind = if output.status.code() == Some(64) { ErrorKind::Usage } else { ErrorKind::Internal };
    ErrorReport::new(kind, format!("teamctl refused: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::process::ExitStatusExt;

    fn parse(code: i32, stdout: &str, stderr: &str) -> Result<Value, ErrorReport> {
        let status = std::process::ExitStatus::from_raw(code << 8);
        parse_output(&Output { status, stdout: stdout.into(), stderr: stderr.into() })
    }

    #[test]
    fn output_and_errors_of_teamctl_are_returned() {
        assert_eq!(parse(0, r#"{"ok":true,"a":1}"#, ""), Ok(json!({"a": 1})));
        let refusal = r#"{"ok":false,"error":{"kind":"refused","message":"cannot x: y","help":"z"}}"#;
        assert_eq!(
            parse(76, refusal, "teamctl: cannot x: y"),
            Err(ErrorReport::new(ErrorKind::Refused, "cannot x: y").with_help("z"))
        );
        let usage = parse(64, "", "error: unexpected argument '--x'\n\nUsage: …").unwrap_err();
        assert_eq!(
            (usage.kind, usage.message.as_str()),
            (ErrorKind::Usage, "teamctl refused: unexpected argument '--x'")
        );
        assert_eq!(parse(101, "", "").map_err(|error| error.kind), Err(ErrorKind::Internal));
    }

    #[test]
    fn values_cannot_be_flags() {
        let call = TeamctlCommand::new("shutdown")
            .option("reason", Some("--force"))
            .option("grace", None)
            .args_after_dashes(["--all".into()]);
        assert_eq!(call.args, ["shutdown", "--reason=--force", "--", "--all"]);
    }
}
