//! Which tmux it is.
//!
//! tmux calls itself `3.3a`, `next-3.8` (on the way to 3.8) or `master`; OpenBSD's own calls itself after the system.
//! Letters are repairs and change nothing that we use, so they are dropped.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// A version of tmux; what cannot be ordered (`master`) counts as the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TmuxVersion {
    /// 3 of 3.3a.
    pub major: u32,
    /// 3 of 3.3a.
    pub minor: u32,
}

impl TmuxVersion {
    /// The first one that has client flags at attach, list filters and pane-wise synchronisation.
    pub(crate) const MINIMUM: TmuxVersion = TmuxVersion { major: 3, minor: 2 };
    const UNVERSIONED: TmuxVersion = TmuxVersion { major: u32::MAX, minor: 0 };

    /// The version in `text`, if it is not too old.
    ///
    /// # Errors
    /// `TooOld`, or `Invalid` where it is no version at all.
    pub(crate) fn parse_supported(text: &str) -> Result<TmuxVersion, Error> {
        let version = text.parse::<TmuxVersion>()?;
        if version < TmuxVersion::MINIMUM {
            return Err(Error::TooOld { found: format!("tmux {}", text.trim()) });
        }
        Ok(version)
    }
}

impl FromStr for TmuxVersion {
    type Err = Error;

    /// Takes what `#{version}` holds, with or without the `tmux ` that `tmux -V` puts before it.
    fn from_str(text: &str) -> Result<TmuxVersion, Error> {
        let word = text.trim();
        let word = word.strip_prefix("tmux ").unwrap_or(word);
        if word == "master" || word.starts_with("openbsd") {
            return Ok(TmuxVersion::UNVERSIONED);
        }
        let numbers = word.strip_prefix("next-").unwrap_or(word);
        parse_numbers(numbers).ok_or_else(|| Error::invalid_argument(text, "it is no version of tmux"))
    }
}

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
        for (text, want) in [
            ("tmux 3.3a\n", "3.3"),
            ("3.2", "3.2"),
            ("tmux next-3.8", "3.8"),
            ("tmux 3.10-rc2", "3.10"),
            ("tmux master", "master"),
            ("tmux openbsd-7.5", "master"),
        ] {
            assert_eq!(TmuxVersion::parse_supported(text).unwrap().to_string(), want, "{text}");
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
