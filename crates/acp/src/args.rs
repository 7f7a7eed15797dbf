//! The command line. join writes it, so it is short, and read without a library that would stay in memory for as
//! long as the agent lives.

use std::ffi::OsString;
use std::time::Duration;

const HELP: &str = "\
Drive an agent program that speaks the Agent Client Protocol; started by teamctl join alone

Usage: teamd-acp [OPTIONS] -- PROGRAM [ARG...]

Standard input is a stream socket, over which turns come and their ends go, a JSON object a line.

Options:
  --mode ID         The session mode to begin in, as the program calls it
  --reads ID        The mode in which it only reads: then it writes no file through us, and does not leave it by itself
  --session ID      Go on with this session of an earlier life, if the program can
  --anywhere ID     The mode in which we read and write files outside of the working directory too, where the program
                    asks us to; an empty one is that which it begins in by itself
  --counts-on       What it tells to have used up, in each turn, is all since its start
  --patience SECS   How long the program may take until its session is open [default: 30]
  --help, --version";

/// What was asked for.
pub(crate) enum ParsedArgs {
    Run(DriverArgs),
    /// To be printed, no more.
    Print(String),
    /// Why it is nothing.
    Invalid(String),
}

/// What to run, and how.
#[derive(Debug, PartialEq)]
pub(crate) struct DriverArgs {
    /// Program and arguments; never empty.
    pub(crate) argv: Vec<OsString>,
    pub(crate) mode: Option<String>,
    /// The mode in which it only reads.
    pub(crate) plan_mode: Option<String>,
    pub(crate) session: Option<String>,
    /// The mode in which it reaches files anywhere; empty for its own choice.
    pub(crate) unrestricted_mode: Option<String>,
    /// What it tells to have used up is all since its start, in each turn.
    pub(crate) counts_on: bool,
    pub(crate) session_timeout: Duration,
}

/// Which files we read and write for the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAccess {
    /// Below the working directory.
    WorkingDirectory,
    Anywhere,
}

impl DriverArgs {
    pub(crate) fn parse(words: impl Iterator<Item = OsString>) -> ParsedArgs {
        match DriverArgs::try_parse(words) {
            Ok(asked) => asked,
            Err(why) => ParsedArgs::Invalid(format!("{why}; see: teamd-acp --help")),
        }
    }

    fn try_parse(mut words: impl Iterator<Item = OsString>) -> Result<ParsedArgs, String> {
        let patience = Duration::from_secs(30);
        let mut args = DriverArgs {
            argv: Vec::new(),
            mode: None,
            plan_mode: None,
            session: None,
            unrestricted_mode: None,
            counts_on: false,
            session_timeout: patience,
        };
        while let Some(word) = words.next() {
            let mut value = || {
                let value = words.next().and_then(|value| value.into_string().ok());
                value.ok_or_else(|| format!("{} needs a value", word.display()))
            };
            match word.to_str() {
                Some("--") => break,
                Some("--help" | "-h") => return Ok(ParsedArgs::Print(HELP.to_owned())),
                Some("--version" | "-V") => {
                    return Ok(ParsedArgs::Print(
                        concat!("teamd-acp ", env!("CARGO_PKG_VERSION")).to_owned(),
                    ));
                }
                Some("--mode") => args.mode = Some(value()?),
                Some("--reads") => args.plan_mode = Some(value()?),
                Some("--session") => args.session = Some(value()?),
                Some("--anywhere") => args.unrestricted_mode = Some(value()?),
                Some("--counts-on") => args.counts_on = true,
                Some("--patience") => args.session_timeout = parse_seconds(&value()?)?,
                _ => return Err(format!("cannot understand {}", word.display())),
            }
        }
        args.argv = words.collect();
        if args.argv.is_empty() {
            Err("there is no program to drive".to_owned())
        } else {
            Ok(ParsedArgs::Run(args))
        }
    }

    /// Which files we open for it while it is in `mode`; none: its own choice.
    pub(crate) fn file_access(&self, mode: Option<&str>) -> FileAccess {
        match self.unrestricted_mode.as_deref() == Some(mode.unwrap_or_default()) {
            true => FileAccess::Anywhere,
            false => FileAccess::WorkingDirectory,
        }
    }

    /// The program's name, for sentences.
    pub(crate) fn program_name(&self) -> String {
        let name = self.argv.first().map(std::path::Path::new).and_then(std::path::Path::file_name);
        name.unwrap_or_default().display().to_string()
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs).ok_or_else(|| format!("cannot wait for {text} seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> ParsedArgs {
        DriverArgs::parse(words.iter().map(OsString::from))
    }

    #[test]
    fn arguments_after_dashes_belong_to_the_program() {
        let ParsedArgs::Run(args) = parse(&["--mode", "plan", "--session", "s 1", "--", "/bin/x", "--mode"])
        else {
            panic!("it is a command line")
        };
        assert_eq!((args.mode.as_deref(), args.session.as_deref()), (Some("plan"), Some("s 1")));
        assert_eq!((args.argv.len(), args.program_name().as_str()), (2, "x"));
        assert_eq!((args.unrestricted_mode.as_deref(), args.session_timeout.as_secs()), (None, 30));
    }

    #[test]
    fn file_access_depends_on_the_mode() {
        let reach = |words: &[&str], mode: Option<&str>| {
            let ParsedArgs::Run(args) = parse(&[words, &["--", "x"]].concat()) else {
                panic!("it is a command line")
            };
            args.file_access(mode)
        };
        assert_eq!(reach(&[], None), FileAccess::WorkingDirectory);
        assert_eq!(reach(&["--anywhere", "yolo"], Some("yolo")), FileAccess::Anywhere);
        assert_eq!(reach(&["--anywhere", "yolo"], Some("default")), FileAccess::WorkingDirectory);
        assert_eq!(reach(&["--anywhere", "yolo"], None), FileAccess::WorkingDirectory);
        assert_eq!(
            (reach(&["--anywhere", ""], None), reach(&["--anywhere", ""], Some("plan"))),
            (FileAccess::Anywhere, FileAccess::WorkingDirectory)
        );
    }

    #[test]
    fn invalid_command_line_is_rejected() {
        for words in [&["--"][..], &[], &["x"], &["--mode"], &["--patience", "0", "--", "x"]] {
            assert!(matches!(parse(words), ParsedArgs::Invalid(_)), "{words:?}");
        }
        assert!(matches!(parse(&["--help"]), ParsedArgs::Print(text) if text.contains("--session")));
    }
}
