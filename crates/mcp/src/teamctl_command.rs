//! `teamctl`, which lies beside this program: what only it knows (profiles, the daemon, how to wait for files) is done
//! by running it. It is ended where the call that waits for it is given up.

use crate::server_context::ServerContext;
use protocol::error::{ErrorKind, ErrorReport};
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

/// One call of teamctl.
#[derive(Debug, Default)]
pub(crate) struct TeamctlCommand {
    args: Vec<String>,
    stdin: String,
}

impl TeamctlCommand {
    /// Of that verb.
    pub(crate) fn new(verb: &str) -> TeamctlCommand {
        TeamctlCommand { args: vec![verb.to_owned()], stdin: String::new() }
    }

    /// With a flag.
    pub(crate) fn flag(mut self, name: &str) -> TeamctlCommand {
        self.args.push(format!("--{name}"));
        self
    }

    /// With an option, if there is a value; nothing in it is read as a flag.
    pub(crate) fn option(mut self, name: &str, value: Option<&str>) -> TeamctlCommand {
        self.args.extend(value.map(|value| format!("--{name}={value}")));
        self
    }

    /// With an option whose value goes in on standard input, if there is one: it may be longer than an argument can be,
    /// and is nobody's to see in the list of processes. One for each call.
    pub(crate) fn option_from_stdin(self, name: &str, value: Option<String>) -> TeamctlCommand {
        match value {
            Some(value) => self.option(name, Some("-")).with_stdin(value),
            None => self,
        }
    }

    /// With a word that was checked before: it can't be a flag.
    pub(crate) fn arg(mut self, word: impl Into<String>) -> TeamctlCommand {
        self.args.push(word.into());
        self
    }

    /// With words that may look like anything; they come last.
    pub(crate) fn args_after_dashes(mut self, words: impl IntoIterator<Item = String>) -> TeamctlCommand {
        self.args.push("--".to_owned());
        self.args.extend(words);
        self
    }

    /// With this on its standard input.
    pub(crate) fn with_stdin(mut self, text: String) -> TeamctlCommand {
        self.stdin = text;
        self
    }

    /// Runs it for the seat's agent, on its team. What it answers is the object that `--json` prints, without `ok`.
    pub(crate) async fn run(self, seat: &ServerContext) -> Result<Value, ErrorReport> {
        let program = teamctl_path()?;
        let mut command = Command::new(&program);
        command
            .arg("--json")
            .arg("--root")
            .arg(&seat.arguments.root)
            .arg("--socket")
            .arg(&seat.arguments.socket);
        command.args(seat.team().iter().flat_map(|team| ["--team", team.as_str()])).args(&self.args);
        command.env_remove("TEAMD_TEAM").env_remove("TEAMD_AGENT");
        if !seat.member().is_lead() {
            command.env("TEAMD_AGENT", seat.member().as_str());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let unstartable = |error: std::io::Error| start_error(&program, &error);
        let child = command.spawn().map_err(unstartable)?;
        parse_output(&wait_with_stdin(child, self.stdin).await.map_err(unstartable)?)
    }
}

fn start_error(program: &Path, error: &std::io::Error) -> ErrorReport {
    let message = |why: &str| format!("cannot start {}: {why}", program.display());
    match error.kind() {
        io::ErrorKind::ArgumentListTooLong => {
            ErrorReport::new(ErrorKind::Usage, message("what was handed over is too long"))
                .with_help("only texts may be long: put shorter words into the other arguments")
        }
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
            ErrorReport::new(ErrorKind::MissingPath, message(&error.to_string()))
                .with_help("install it beside teamd-mcp: make install")
        }
        _ => ErrorReport::new(ErrorKind::Io, message(&error.to_string())),
    }
}

/// Its input may be larger than a pipe: it is written while the output is read.
async fn wait_with_stdin(mut child: Child, input: String) -> std::io::Result<Output> {
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read it to the end says so by itself.
        tokio::spawn(async move { stdin.write_all(input.as_bytes()).await.ok() });
    }
    child.wait_with_output().await
}

fn teamctl_path() -> Result<PathBuf, ErrorReport> {
    let own = std::env::current_exe().map_err(|error| {
        ErrorReport::new(ErrorKind::Internal, format!("cannot find our own program: {error}"))
    })?;
    Ok(own.with_file_name("teamctl"))
}

fn parse_output(output: &Output) -> Result<Value, ErrorReport> {
    let told = serde_json::from_slice::<Value>(&output.stdout).ok();
    let fault = told.as_ref().and_then(|told| serde_json::from_value(told.get("error")?.clone()).ok());
    match (told, fault) {
        (_, Some(fault)) => Err(fault),
        (Some(Value::Object(mut told)), None) => {
            told.shift_remove("ok");
            Ok(Value::Object(told))
        }
        _ => Err(unparsable_output(output)),
    }
}

/// It printed no object: its arguments were refused before it knew that one was wanted.
fn unparsable_output(output: &Output) -> ErrorReport {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
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
        let refused = r#"{"ok":false,"error":{"kind":"refused","message":"cannot x: y","hint":"z"}}"#;
        assert_eq!(
            parse(76, refused, "teamctl: cannot x: y"),
            Err(ErrorReport::new(ErrorKind::Refused, "cannot x: y").with_help("z"))
        );
        let usage = parse(64, "", "error: unexpected argument '--x'\n\nUsage: …").unwrap_err();
        assert_eq!(
            (usage.kind, usage.message.as_str()),
            (ErrorKind::Usage, "teamctl refused: unexpected argument '--x'")
        );
        assert_eq!(parse(101, "", "").map_err(|fault| fault.kind), Err(ErrorKind::Internal));
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
