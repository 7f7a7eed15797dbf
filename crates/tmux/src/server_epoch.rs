//! Identifies one run of a tmux server.
//!
//! A new server numbers its panes from `%0` again, so a pane id alone could also mean a pane of an
//! earlier server. The process id and the start time of the server tell the two servers apart.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::InvalidArgument;

/// One run of a tmux server. The text form is `pid:start:path`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerEpoch {
    /// Process id of the server.
    pub pid: u32,
    /// When the server started, in seconds since 1970.
    pub start_time: u64,
    /// Path of the socket, as the server reports it.
    pub socket_path: PathBuf,
}

impl ServerEpoch {
    /// The tmux format that prints the text form of an epoch. If the socket path contains a format,
    /// tmux does not expand it, because the path is the value of a variable.
    pub(crate) const FORMAT: &str = "#{pid}:#{start_time}:#{socket_path}";

    /// Returns a tmux format that is true on this server only.
    pub(crate) fn condition(&self) -> String {
        format!("#{{&&:#{{==:#{{pid}},{}}},#{{==:#{{start_time}},{}}}}}", self.pid, self.start_time)
    }
}

impl fmt::Display for ServerEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.pid, self.start_time, self.socket_path.display())
    }
}

impl FromStr for ServerEpoch {
    type Err = InvalidArgument;

    fn from_str(text: &str) -> Result<ServerEpoch, InvalidArgument> {
        parse_parts(text).ok_or_else(|| InvalidArgument::new(text, "a server's epoch is pid:start:path"))
    }
}

/// Parses `pid:start:path`. The path is last because it may contain colons.
fn parse_parts(text: &str) -> Option<ServerEpoch> {
    let mut parts = text.splitn(3, ':');
    let pid = parts.next()?.parse().ok()?;
    let start_time = parts.next()?.parse().ok()?;
    let path = parts.next().filter(|path| !path.is_empty())?;
    Some(ServerEpoch { pid, start_time, socket_path: PathBuf::from(path) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epoch_roundtrips() {
        let text = "4711:1795228611:/run/a:b/日本";
        let epoch = text.parse::<ServerEpoch>().unwrap();
        assert_eq!((epoch.pid, epoch.start_time), (4711, 1_795_228_611));
        assert_eq!(epoch.to_string(), text);
    }

    #[test]
    fn partial_epoch_is_rejected() {
        for text in ["", "1", "1:2", "1:2:", "x:2:/s", "1::/s", ":2:/s"] {
            assert!(text.parse::<ServerEpoch>().is_err(), "{text:?}");
        }
    }
}
