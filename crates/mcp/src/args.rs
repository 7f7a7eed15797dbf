//! Arguments of `teamd-mcp`, as `teamctl mcp` writes them.

use client::parse_args_of_top_and_mcp::{FlagKind, StartedProgramArgs};
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::ffi::OsString;
use std::path::PathBuf;

/// The agent that the server acts for, and the paths of the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerArgs {
    /// The directory with `teams/` and `tasks/`.
    pub(crate) root: PathBuf,
    /// The state directory of this root.
    pub(crate) state_dir: PathBuf,
    /// The control socket of the daemon.
    pub(crate) socket: PathBuf,
    /// The agent that the server acts for.
    pub(crate) member: MemberName,
    /// `None` for a lead that has no team yet.
    pub(crate) team: Option<TeamName>,
}

impl ServerArgs {
    /// Parses the arguments. Each flag has a value.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<ServerArgs, ErrorReport> {
        let known = ["--root", "--state-dir", "--socket", "--member", "--team"];
        let kind = |flag: &str| known.contains(&flag).then_some(FlagKind::Value);
        let flags = StartedProgramArgs::parse(arguments, "teamctl mcp", kind)?;
        Ok(ServerArgs {
            root: flags.require("--root")?.into(),
            state_dir: flags.require("--state-dir")?.into(),
            socket: flags.require("--socket")?.into(),
            member: MemberName::new_unchecked(&flags.require("--member")?.to_string_lossy()),
            team: flags.teams()?.pop(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::error_kind_and_report::ErrorKind;

    fn parse(line: &str) -> Result<ServerArgs, ErrorKind> {
        ServerArgs::parse(line.split(' ').map(OsString::from)).map_err(|error| error.kind)
    }

    #[test]
    fn all_arguments_are_required_and_no_others() {
        let complete = "--root /r --state-dir /s --socket /c --member ann --team survey";
        let arguments = parse(complete).unwrap();
        assert_eq!((arguments.member.as_str(), arguments.root), ("ann", PathBuf::from("/r")));
        for invalid in [
            "--root /r --state-dir /s --socket /c",
            "--root /r --state-dir /s --socket /c --member",
            "--root /r --state-dir /s --socket /c --member ann --from bob",
            "--root /r --state-dir /s --socket /c --member ann --team ../x",
        ] {
            assert_eq!(parse(invalid), Err(ErrorKind::Usage), "{invalid}");
        }
    }
}
