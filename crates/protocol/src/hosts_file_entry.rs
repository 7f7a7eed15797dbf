//! Another machine on which teamd can run a command, as `hosts.toml` and run files describe it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The only program to which [`Host::attach_command`] can add an option that gives it a terminal.
const SSH: &str = "ssh";

/// The word for the home of the team, in places where a host's name is expected. In a mirror's
/// config, it is the host of the members that run at the home. In a hosts file, the table with this
/// name describes the machine on which the file is.
pub const HOME_HOST: &str = "home";

/// In place of a host's name: the daemon chooses the host.
pub const ANY_HOST: &str = "any";

/// Name of a host: a letter or digit, then up to 63 of `[A-Za-z0-9_-]`. Two names are not allowed,
/// because they have a meaning of their own: `home` is the home of a team, and `any` lets the
/// daemon choose a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String")]
pub struct HostName(String);

impl HostName {
    /// Parses a name. `None` if the text is not a valid name.
    pub fn parse(text: &str) -> Option<HostName> {
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        let has_valid_start = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        let is_valid = has_valid_start && text.len() <= 64 && text.bytes().all(is_allowed);
        (is_valid && ![HOME_HOST, ANY_HOST].contains(&text)).then(|| HostName(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for HostName {
    type Error = String;

    fn try_from(text: String) -> Result<HostName, String> {
        HostName::parse(&text).ok_or_else(|| format!("{text:?} is no name of a host"))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How another machine is reached, and what is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Program and arguments that connect to the host. If a command line is appended, that command
    /// line runs on the host, with its standard input and output connected to this machine.
    pub connect: Vec<String>,
    /// As `connect`, but with a terminal. `None`: derived from `connect` if possible.
    pub attach: Option<Vec<String>>,
    /// The root on the host: an absolute path, or one that begins with `~/`. `None`: the default.
    pub root: Option<String>,
    /// The program `teamctl` on the host. On some hosts a shell parses this text, on others none
    /// does. So the text is one word of characters that no shell changes, except for a leading `~`.
    pub teamctl: String,
    /// What the host has, in the user's own words.
    pub labels: Vec<String>,
    /// Maximum number of members that the daemon places on this host when the daemon chooses the
    /// host. `None`: any number.
    pub slots: Option<u32>,
}

impl Host {
    /// The command that connects to the host with a terminal. This is `attach`, if it is set.
    /// Otherwise, if `connect` runs `ssh`, it is `connect` with `-t` instead of `-T`. `None` in all
    /// other cases.
    pub fn attach_command(&self) -> Option<Vec<String>> {
        if self.attach.is_some() {
            return self.attach.clone();
        }
        let (program, arguments) = self.connect.split_first()?;
        if program.rsplit('/').next() != Some(SSH) {
            return None;
        }
        let kept = arguments.iter().filter(|argument| !["-T", "-t", "-tt"].contains(&argument.as_str()));
        Some([program.clone(), "-t".to_owned()].into_iter().chain(kept.cloned()).collect())
    }
}

/// Whether `word` reaches the program on a host unchanged, no matter whether a remote shell parses
/// it. A leading `~/` is allowed although a shell changes it, because the user wants that change.
pub fn is_plain_word(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./+@%:,".contains(c);
    let path = word.strip_prefix("~/").unwrap_or(word);
    !path.is_empty() && !path.starts_with('-') && path.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attach_command(connect: &str, attach: Option<&str>) -> Option<String> {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let host = Host {
            connect: words(connect),
            attach: attach.map(words),
            root: None,
            teamctl: "teamctl".to_owned(),
            labels: Vec::new(),
            slots: None,
        };
        host.attach_command().map(|command| command.join(" "))
    }

    #[test]
    fn attach_command_is_derived_from_ssh_alone() {
        assert_eq!(attach_command("ssh -T devbox", None).as_deref(), Some("ssh -t devbox"));
        assert_eq!(
            attach_command("/usr/bin/ssh -F f a@b", None).as_deref(),
            Some("/usr/bin/ssh -t -F f a@b")
        );
        assert_eq!(attach_command("docker exec -i box", None), None);
        assert_eq!(attach_command("ssh x", Some("mosh x --")).as_deref(), Some("mosh x --"));
    }

    #[test]
    fn host_name_and_plain_word_have_no_special_characters() {
        assert!(HostName::parse("gpu-1_a").is_some());
        for name in ["", "home", "any", "-a", "a b", "a/b", "a.b", &"a".repeat(65)] {
            assert_eq!(HostName::parse(name), None, "{name}");
        }
        for word in ["teamctl", "~/.local/bin/teamctl", "/opt/teamd-0.1/bin/teamctl"] {
            assert!(is_plain_word(word), "{word}");
        }
        for word in ["", "-x", "a b", "$HOME/x", "a;b", "~", "'x'", "x\ny", "~a/teamctl"] {
            assert!(!is_plain_word(word), "{word}");
        }
    }
}
