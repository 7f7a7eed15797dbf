//! The version of a tmux program or server.
//!
//! tmux reports a version such as `3.3a`, `next-3.8` (the development version before 3.8) or
//! `master`. OpenBSD's tmux reports the version of the operating system. A letter after the number
//! means a bug fix release. Such releases make no difference to this crate, so the parser drops the
//! letter.

use std::fmt;
use std::str::FromStr;

use crate::{Error, InvalidArgument};

/// A version of tmux. A version without a number (`master`) counts as the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TmuxVersion {
    /// The first number of the version, such as 3 in `3.4a`.
    pub major: u32,
    /// The second number of the version, such as 4 in `3.4a`.
    pub minor: u32,
}

impl TmuxVersion {
    /// The oldest tmux version that has all features that this crate needs. These features are
    /// client flags in `new-session`, filters in `list-panes`, and `synchronize-panes` as a pane
    /// option.
    pub(crate) const MINIMUM: TmuxVersion = TmuxVersion { major: 3, minor: 2 };
    /// Stands for `master` and for OpenBSD's tmux.
    const UNVERSIONED: TmuxVersion = TmuxVersion { major: u32::MAX, minor: 0 };

    /// Parses the tmux version in `text` and checks that it is not older than
    /// [`TmuxVersion::MINIMUM`].
    ///
    /// # Errors
    ///
    /// `TooOld`; `InvalidArgument` if `text` is not a version.
    pub(crate) fn parse_supported(text: &str) -> Result<TmuxVersion, Error> {
        let version = text.parse::<TmuxVersion>()?;
        if version < TmuxVersion::MINIMUM {
            return Err(Error::TooOld { found: format!("tmux {}", text.trim()) });
        }
        Ok(version)
    }
}

impl FromStr for TmuxVersion {
    type Err = InvalidArgument;

    /// Parses the value of `#{version}`, or the output of `tmux -V`, which begins with `tmux `.
    fn from_str(text: &str) -> Result<TmuxVersion, InvalidArgument> {
        let name = text.trim();
        let name = name.strip_prefix("tmux ").unwrap_or(name);
        if name == "master" || name.starts_with("openbsd") {
            return Ok(TmuxVersion::UNVERSIONED);
        }
        let numbers = name.strip_prefix("next-").unwrap_or(name);
        parse_numbers(numbers).ok_or_else(|| InvalidArgument::new(text, "it is not a version of tmux"))
    }
}

/// Parses `MAJOR.MINOR` and ignores what follows.
fn parse_numbers(text: &str) -> Option<TmuxVersion> {
    let (major, rest) = text.split_once('.')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some(TmuxVersion { major: major.parse().ok()?, minor: rest[..end].parse().ok()? })
}

impl fmt::Display for TmuxVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TmuxVersion::UNVERSIONED => f.write_str("master"),
            TmuxVersion { major, minor } => write!(f, "{major}.{minor}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_names_are_parsed() {
        for (text, expected) in [
            ("tmux 3.3a\n", "3.3"),
            ("3.2", "3.2"),
            ("tmux next-3.8", "3.8"),
            ("tmux 3.10-rc2", "3.10"),
            ("tmux master", "master"),
            ("tmux openbsd-7.5", "master"),
        ] {
            assert_eq!(TmuxVersion::parse_supported(text).unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn old_and_invalid_versions_are_rejected() {
        for text in ["tmux 3.1c", "tmux 2.9a", "1.8"] {
            assert!(matches!(TmuxVersion::parse_supported(text), Err(Error::TooOld { .. })), "{text}");
        }
        for text in ["", "tmux", "screen", "tmux 3", "tmux x.y"] {
            assert!(
                matches!(TmuxVersion::parse_supported(text), Err(Error::InvalidArgument { .. })),
                "{text}"
            );
        }
    }
}
