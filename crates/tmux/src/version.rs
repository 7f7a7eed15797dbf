//! Which tmux it is.
//!
//! tmux calls itself `3.3a`, `next-3.8` (on the way to 3.8) or `master`; OpenBSD's own calls itself after the system.
//! Letters are repairs and change nothing that we use, so they are dropped.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// A version of tmux; what cannot be ordered (`master`) counts as the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// 3 of 3.3a.
    pub major: u32,
    /// 3 of 3.3a.
    pub minor: u32,
}

impl Version {
    /// The first one that has client flags at attach, list filters and pane-wise synchronisation.
    pub(crate) const OLDEST: Version = Version { major: 3, minor: 2 };
    const NEWEST: Version = Version { major: u32::MAX, minor: 0 };

    /// The version in `text`, if it is not too old.
    ///
    /// # Errors
    /// `TooOld`, or `Invalid` where it is no version at all.
    pub(crate) fn supported(text: &str) -> Result<Version, Error> {
        let version = text.parse::<Version>()?;
        if version < Version::OLDEST {
            return Err(Error::TooOld { found: format!("tmux {}", text.trim()) });
        }
        Ok(version)
    }
}

impl FromStr for Version {
    type Err = Error;

    /// Takes what `#{version}` holds, with or without the `tmux ` that `tmux -V` puts before it.
    fn from_str(text: &str) -> Result<Version, Error> {
        let word = text.trim();
        let word = word.strip_prefix("tmux ").unwrap_or(word);
        if word == "master" || word.starts_with("openbsd") {
            return Ok(Version::NEWEST);
        }
        let numbers = word.strip_prefix("next-").unwrap_or(word);
        numbers_of(numbers).ok_or_else(|| Error::invalid(text, "it is no version of tmux"))
    }
}

fn numbers_of(text: &str) -> Option<Version> {
    let (major, rest) = text.split_once('.')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some(Version { major: major.parse().ok()?, minor: rest[..end].parse().ok()? })
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Version::NEWEST => f.write_str("master"),
            Version { major, minor } => write!(f, "{major}.{minor}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_that_tmux_names_itself_is_read() {
        for (text, want) in [
            ("tmux 3.3a\n", "3.3"),
            ("3.2", "3.2"),
            ("tmux next-3.8", "3.8"),
            ("tmux 3.10-rc2", "3.10"),
            ("tmux master", "master"),
            ("tmux openbsd-7.5", "master"),
        ] {
            assert_eq!(Version::supported(text).unwrap().to_string(), want, "{text}");
        }
    }

    #[test]
    fn an_older_one_and_nonsense_are_refused() {
        for text in ["tmux 3.1c", "tmux 2.9a", "1.8"] {
            assert!(matches!(Version::supported(text), Err(Error::TooOld { .. })), "{text}");
        }
        for text in ["", "tmux", "screen", "tmux 3", "tmux x.y"] {
            assert!(matches!(Version::supported(text), Err(Error::Invalid { .. })), "{text}");
        }
    }
}
