//! Parses the arguments that `teamctl` passes to `teamd-top` and `teamd-mcp`: flags and their
//! values.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::TeamName;
use std::ffi::OsString;

/// Whether a flag has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagKind {
    /// The next argument is the value of the flag.
    Value,
    /// The flag has no value.
    Switch,
}

/// The parsed arguments of a program that `teamctl` starts.
#[derive(Debug)]
pub struct StartedProgramArgs {
    /// Each flag with its value, in the order of the arguments. The value of a switch is empty.
    flags: Vec<(String, OsString)>,
    /// The command that starts the program, for the help of errors.
    command: &'static str,
}

impl StartedProgramArgs {
    /// Parses `arguments`. The function `kind` says whether a flag has a value. It returns `None`
    /// for a flag that the program does not know.
    ///
    /// # Errors
    ///
    /// `Usage` if a flag is not known or lacks its value.
    pub fn parse(
        arguments: impl IntoIterator<Item = OsString>,
        command: &'static str,
        kind: impl Fn(&str) -> Option<FlagKind>,
    ) -> Result<StartedProgramArgs, ErrorReport> {
        let mut args = StartedProgramArgs { flags: Vec::new(), command };
        let mut arguments = arguments.into_iter();
        while let Some(flag) = arguments.next() {
            let flag = flag.to_string_lossy().into_owned();
            let value = match kind(&flag) {
                Some(FlagKind::Value) => arguments.next(),
                Some(FlagKind::Switch) => Some(OsString::new()),
                None => None,
            };
            let value = value.ok_or_else(|| args.invalid(&flag))?;
            args.flags.push((flag, value));
        }
        Ok(args)
    }

    /// Whether the flag was passed.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|(name, _)| name == flag)
    }

    /// Returns the value of a flag. If the flag was passed several times, the last value counts.
    ///
    /// # Errors
    ///
    /// `Usage` if the flag was not passed.
    pub fn require(&self, flag: &str) -> Result<OsString, ErrorReport> {
        let flag_and_value = self.flags.iter().rfind(|(name, _)| name == flag);
        flag_and_value.map(|(_, value)| value.clone()).ok_or_else(|| self.invalid(flag))
    }

    /// Returns the teams that the flag `--team` names, in the order of the arguments.
    ///
    /// # Errors
    ///
    /// `Usage` if a name is not valid.
    pub fn teams(&self) -> Result<Vec<TeamName>, ErrorReport> {
        let team_flags = self.flags.iter().filter(|(name, _)| name == "--team");
        let parse = |(_, value): &(String, OsString)| TeamName::parse(&value.to_string_lossy());
        let teams: Result<Vec<TeamName>, _> = team_flags.map(parse).collect();
        teams.map_err(|error| ErrorReport::new(ErrorKind::Usage, error.to_string()))
    }

    /// Returns the error for a flag that is not known, is missing or has no value.
    pub fn invalid(&self, flag: &str) -> ErrorReport {
        let message = format!("cannot read the arguments: {flag} is missing, not known, or has no value");
        ErrorReport::new(ErrorKind::Usage, message)
            .with_help(format!("this program is started by: {}", self.command))
    }
}
