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
pub(crate) enum Asked {
    Run(Args),
    /// To be printed, no more.
    Text(String),
    /// Why it is nothing.
    Wrong(String),
}

/// What to run, and how.
#[derive(Debug, PartialEq)]
pub(crate) struct Args {
    /// Program and arguments; never empty.
    pub(crate) argv: Vec<OsString>,
    pub(crate) mode: Option<String>,
    /// The mode in which it only reads.
    pub(crate) reads: Option<String>,
    pub(crate) session: Option<String>,
    /// The mode in which it reaches files anywhere; empty for its own choice.
    pub(crate) anywhere: Option<String>,
    /// What it tells to have used up is all since its start, in each turn.
    pub(crate) counts_on: bool,
    pub(crate) patience: Duration,
}

/// Which files we read and write for the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Below the working directory.
    Below,
    Anywhere,
}

impl Args {
    pub(crate) fn parse(words: impl Iterator<Item = OsString>) -> Asked {
        match Args::of(words) {
            Ok(asked) => asked,
            Err(why) => Asked::Wrong(format!("{why}; see: teamd-acp --help")),
        }
    }

    fn of(mut words: impl Iterator<Item = OsString>) -> Result<Asked, String> {
        let patience = Duration::from_secs(30);
        let mut args = Args {
            argv: Vec::new(),
            mode: None,
            reads: None,
            session: None,
            anywhere: None,
            counts_on: false,
            patience,
        };
        while let Some(word) = words.next() {
            let mut value = || {
                let value = words.next().and_then(|value| value.into_string().ok());
                value.ok_or_else(|| format!("{} needs a value", word.display()))
            };
            match word.to_str() {
                Some("--") => break,
                Some("--help" | "-h") => return Ok(Asked::Text(HELP.to_owned())),
                Some("--version" | "-V") => {
                    return Ok(Asked::Text(concat!("teamd-acp ", env!("CARGO_PKG_VERSION")).to_owned()));
                }
                Some("--mode") => args.mode = Some(value()?),
                Some("--reads") => args.reads = Some(value()?),
                Some("--session") => args.session = Some(value()?),
                Some("--anywhere") => args.anywhere = Some(value()?),
                Some("--counts-on") => args.counts_on = true,
                Some("--patience") => args.patience = seconds(&value()?)?,
                _ => return Err(format!("cannot understand {}", word.display())),
            }
        }
        args.argv = words.collect();
        if args.argv.is_empty() {
            Err("there is no program to drive".to_owned())
        } else {
            Ok(Asked::Run(args))
        }
    }

    /// Which files we open for it while it is in `mode`; none: its own choice.
    pub(crate) fn reach(&self, mode: Option<&str>) -> Reach {
        match self.anywhere.as_deref() == Some(mode.unwrap_or_default()) {
            true => Reach::Anywhere,
            false => Reach::Below,
        }
    }

    /// The program's name, for sentences.
    pub(crate) fn program(&self) -> String {
        let name = self.argv.first().map(std::path::Path::new).and_then(std::path::Path::file_name);
        name.unwrap_or_default().display().to_string()
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs).ok_or_else(|| format!("cannot wait for {text} seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Asked {
        Args::parse(words.iter().map(OsString::from))
    }

    #[test]
    fn what_stands_behind_the_dashes_is_the_programs() {
        let Asked::Run(args) = parse(&["--mode", "plan", "--session", "s 1", "--", "/bin/x", "--mode"])
        else {
            panic!("it is a command line")
        };
        assert_eq!((args.mode.as_deref(), args.session.as_deref()), (Some("plan"), Some("s 1")));
        assert_eq!((args.argv.len(), args.program().as_str()), (2, "x"));
        assert_eq!((args.anywhere.as_deref(), args.patience.as_secs()), (None, 30));
    }

    #[test]
    fn how_far_it_reaches_is_said_by_its_mode() {
        let reach = |words: &[&str], mode: Option<&str>| {
            let Asked::Run(args) = parse(&[words, &["--", "x"]].concat()) else {
                panic!("it is a command line")
            };
            args.reach(mode)
        };
        assert_eq!(reach(&[], None), Reach::Below);
        assert_eq!(reach(&["--anywhere", "yolo"], Some("yolo")), Reach::Anywhere);
        assert_eq!(reach(&["--anywhere", "yolo"], Some("default")), Reach::Below);
        assert_eq!(reach(&["--anywhere", "yolo"], None), Reach::Below);
        assert_eq!(
            (reach(&["--anywhere", ""], None), reach(&["--anywhere", ""], Some("plan"))),
            (Reach::Anywhere, Reach::Below)
        );
    }

    #[test]
    fn what_is_no_command_line_is_told() {
        for words in [&["--"][..], &[], &["x"], &["--mode"], &["--patience", "0", "--", "x"]] {
            assert!(matches!(parse(words), Asked::Wrong(_)), "{words:?}");
        }
        assert!(matches!(parse(&["--help"]), Asked::Text(text) if text.contains("--session")));
    }
}
