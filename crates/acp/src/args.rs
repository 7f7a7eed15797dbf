//! The command line of `teamd-acp`, which the shim writes. It is parsed without a library, because
//! a library would occupy memory for as long as the agent runs.

use protocol::token_and_cost_usage::UsageScope;
use std::ffi::OsString;
use std::time::Duration;

const HELP: &str = "\
Drive an agent program that speaks the Agent Client Protocol; started by the agent's shim only

Usage: teamd-acp [OPTIONS] -- PROGRAM [ARG...]

Standard input is a stream socket. It carries prompts and results, one JSON object a line.

Options:
  --mode ID         The session mode to start in, as the program names it
  --plan-mode ID    The session mode for plans: in it the driver writes no files, and the program cannot leave it
  --session ID      Load this session of an earlier spawn, if the program can
  --unrestricted-mode ID
                    The session mode in which the driver opens files outside of the working directory too; empty is
                    the program's default mode
  --usage-scope SCOPE
                    What the program reports as usage: turn, that of each turn [default], or session, a total
                    since its start
  --session-timeout SECS
                    How long the program may take to open its session or to change its mode [default: 30]
  --help, --version";

/// The result of parsing the command line.
pub(crate) enum ParsedArgs {
    Run(DriverArgs),
    /// A text for standard output: `--help` or `--version`.
    Print(String),
    /// The command line is invalid; the reason, for people.
    Invalid(String),
}

/// The program to run, and its settings.
#[derive(Debug, PartialEq)]
pub(crate) struct DriverArgs {
    /// The program and its arguments.
    ///
    /// Invariant: never empty; `invalid_command_line_is_rejected` checks it.
    pub(crate) argv: Vec<OsString>,
    /// The session mode to start in, by the program's id. `None` is the program's default.
    pub(crate) mode: Option<String>,
    /// The id of the plan mode, as the program names it. `None` if the program has no plan mode. In
    /// plan mode the driver refuses the program's requests to write files. If the program leaves
    /// the plan mode by itself, the driver sets it again.
    pub(crate) plan_mode: Option<String>,
    /// The session of an earlier spawn to load. `None` creates a session.
    pub(crate) session: Option<String>,
    /// The id of a session mode, as the program names it. In this mode the driver may open files
    /// outside the working directory. An empty id means the program's default mode. `None` if no
    /// mode allows such access.
    pub(crate) unrestricted_mode: Option<String>,
    /// What the program's token counts include: one turn, or everything since its start.
    pub(crate) usage_scope: UsageScope,
    /// How long the program may take to open its session or to change its mode.
    pub(crate) session_timeout: Duration,
}

/// Which files the driver reads and writes for the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAccess {
    /// Files below the working directory.
    WorkingDirectory,
    Anywhere,
}

impl DriverArgs {
    /// Parses the arguments that follow the program's own name.
    pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> ParsedArgs {
        match DriverArgs::try_parse(arguments) {
            Ok(parsed) => parsed,
            Err(error) => ParsedArgs::Invalid(format!("{error}; see: teamd-acp --help")),
        }
    }

    fn try_parse(mut arguments: impl Iterator<Item = OsString>) -> Result<ParsedArgs, String> {
        let mut args = DriverArgs {
            argv: Vec::new(),
            mode: None,
            plan_mode: None,
            session: None,
            unrestricted_mode: None,
            usage_scope: UsageScope::Turn,
            session_timeout: Duration::from_secs(30),
        };
        while let Some(flag) = arguments.next() {
            let mut value = || {
                let value = arguments.next().and_then(|value| value.into_string().ok());
                value.ok_or_else(|| format!("{} needs a value", flag.display()))
            };
            match flag.to_str() {
                Some("--") => break,
                Some("--help" | "-h") => return Ok(ParsedArgs::Print(HELP.to_owned())),
                Some("--version" | "-V") => {
                    return Ok(ParsedArgs::Print(
                        concat!("teamd-acp ", env!("CARGO_PKG_VERSION")).to_owned(),
                    ));
                }
                Some("--mode") => args.mode = Some(value()?),
                Some("--plan-mode") => args.plan_mode = Some(value()?),
                Some("--session") => args.session = Some(value()?),
                Some("--unrestricted-mode") => args.unrestricted_mode = Some(value()?),
                Some("--usage-scope") => args.usage_scope = parse_usage_scope(&value()?)?,
                Some("--session-timeout") => args.session_timeout = parse_seconds(&value()?)?,
                _ => return Err(format!("cannot understand {}", flag.display())),
            }
        }
        args.argv = arguments.collect();
        if args.argv.is_empty() {
            Err("there is no program to drive".to_owned())
        } else {
            Ok(ParsedArgs::Run(args))
        }
    }

    /// Which files the driver reads and writes for the program while the session is in `mode`.
    /// `None` is the program's default mode.
    pub(crate) fn file_access(&self, mode: Option<&str>) -> FileAccess {
        match self.unrestricted_mode.as_deref() == Some(mode.unwrap_or_default()) {
            true => FileAccess::Anywhere,
            false => FileAccess::WorkingDirectory,
        }
    }

    /// The file name of the program, for messages.
    pub(crate) fn program_name(&self) -> String {
        let name = self.argv.first().map(std::path::Path::new).and_then(std::path::Path::file_name);
        name.unwrap_or_default().display().to_string()
    }
}

fn parse_usage_scope(text: &str) -> Result<UsageScope, String> {
    UsageScope::parse(text).ok_or_else(|| format!("cannot count usage by {text}: it is turn or session"))
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs).ok_or_else(|| format!("cannot wait for {text} seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> ParsedArgs {
        DriverArgs::parse(arguments.iter().map(OsString::from))
    }

    #[test]
    fn arguments_after_dashes_belong_to_the_program() {
        let ParsedArgs::Run(args) = parse(&["--mode", "plan", "--session", "s 1", "--", "/bin/x", "--mode"])
        else {
            panic!("the command line is rejected")
        };
        assert_eq!((args.mode.as_deref(), args.session.as_deref()), (Some("plan"), Some("s 1")));
        assert_eq!((args.argv.len(), args.program_name().as_str()), (2, "x"));
        assert_eq!((args.unrestricted_mode.as_deref(), args.session_timeout.as_secs()), (None, 30));
    }

    #[test]
    fn file_access_depends_on_the_mode() {
        let access = |arguments: &[&str], mode: Option<&str>| {
            let ParsedArgs::Run(args) = parse(&[arguments, &["--", "x"]].concat()) else {
                panic!("the command line is rejected")
            };
            args.file_access(mode)
        };
        assert_eq!(access(&[], None), FileAccess::WorkingDirectory);
        assert_eq!(access(&["--unrestricted-mode", "yolo"], Some("yolo")), FileAccess::Anywhere);
        assert_eq!(access(&["--unrestricted-mode", "yolo"], Some("default")), FileAccess::WorkingDirectory);
        assert_eq!(access(&["--unrestricted-mode", "yolo"], None), FileAccess::WorkingDirectory);
        assert_eq!(
            (access(&["--unrestricted-mode", ""], None), access(&["--unrestricted-mode", ""], Some("plan"))),
            (FileAccess::Anywhere, FileAccess::WorkingDirectory)
        );
    }

    #[test]
    fn invalid_command_line_is_rejected() {
        for arguments in [
            &["--"][..],
            &[],
            &["x"],
            &["--mode"],
            &["--session-timeout", "0", "--", "x"],
            &["--usage-scope", "day", "--", "x"],
        ] {
            assert!(matches!(parse(arguments), ParsedArgs::Invalid(_)), "{arguments:?}");
        }
        assert!(matches!(parse(&["--help"]), ParsedArgs::Print(text) if text.contains("--session")));
    }
}
