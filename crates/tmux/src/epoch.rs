//! Which life of which server: what gives a pane id its meaning.
//!
//! A server that is started anew counts its panes from `%0` again. Its process id and the second of its start tell it
//! from the one before.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::Error;

/// One running tmux server. Written as `pid:start:path`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Epoch {
    /// The server's process id.
    pub pid: u32,
    /// When it started, in seconds since 1970.
    pub start_time: u64,
    /// Where it listens, in its own words.
    pub socket_path: PathBuf,
}

impl Epoch {
    /// The format that prints one. A path is a value there, so nothing in it is expanded.
    pub(crate) const FORMAT: &str = "#{pid}:#{start_time}:#{socket_path}";

    /// A condition, as tmux formats have them, that holds on this server only.
    pub(crate) fn condition(&self) -> String {
        format!("#{{&&:#{{==:#{{pid}},{}}},#{{==:#{{start_time}},{}}}}}", self.pid, self.start_time)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.pid, self.start_time, self.socket_path.display())
    }
}

impl FromStr for Epoch {
    type Err = Error;

    fn from_str(text: &str) -> Result<Epoch, Error> {
        parts_of(text).ok_or_else(|| Error::invalid(text, "a server's epoch is pid:start:path"))
    }
}

/// The path comes last because it may hold colons.
fn parts_of(text: &str) -> Option<Epoch> {
    let mut parts = text.splitn(3, ':');
    let pid = parts.next()?.parse().ok()?;
    let start_time = parts.next()?.parse().ok()?;
    let path = parts.next().filter(|path| !path.is_empty())?;
    Some(Epoch { pid, start_time, socket_path: PathBuf::from(path) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_reads_back_as_it_was_written() {
        let text = "4711:1795228611:/run/a:b/日本";
        let epoch = text.parse::<Epoch>().unwrap();
        assert_eq!((epoch.pid, epoch.start_time), (4711, 1_795_228_611));
        assert_eq!(epoch.to_string(), text);
    }

    #[test]
    fn half_an_epoch_is_none() {
        for text in ["", "1", "1:2", "1:2:", "x:2:/s", "1::/s", ":2:/s"] {
            assert!(text.parse::<Epoch>().is_err(), "{text:?}");
        }
    }
}
