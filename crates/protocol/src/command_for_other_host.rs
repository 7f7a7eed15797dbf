//! A `teamctl` command that runs on another machine (`teamctl --host`), and how the command and its
//! standard input reach that machine.
//!
//! The command does not appear as text in the remote command line, because a remote shell would
//! parse its arguments. Instead, `teamctl` sends frames through the connection, and the first frame
//! contains the command. A frame is a type byte, the length of the content as 4 bytes (big-endian),
//! and the content.
//!
//! A command that takes over the terminal, such as `teamctl attach`, cannot use frames. Such a
//! command is part of the remote command line, as one word of hexadecimal digits.

use crate::hosts_file_entry::HostName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An environment variable for a `teamctl` command that a user of another machine runs here with
/// `--host`. Its value is the name that this machine has in the user's `hosts.toml`. The command
/// adds `--host` and this name to the commands that it suggests to the user.
pub const HOST_OF_CALLER_VARIABLE: &str = "TEAMD_HOST_OF_CALLER";

/// An environment variable from which `teamctl` reads variables for a new agent: a JSON object of
/// names and values. They are added to the variables of the option `--env`. Secrets belong here,
/// because other users can read the arguments of a command.
pub const ENV_OPTIONS_VARIABLE: &str = "TEAMD_ENV_OPTIONS";

/// The largest content of a frame, in bytes.
pub const MAX_FRAME_BYTES: usize = 1 << 20;

/// The bytes before the content of a frame.
pub const FRAME_HEADER_BYTES: usize = 5;

/// The command line of a `teamctl` command that runs on another machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCommand {
    /// The host's name for the caller, which belongs into commands that are suggested to the user.
    pub host: HostName,
    /// The root there, as in the hosts file. `None`: the default there.
    pub root: Option<String>,
    /// The caller's `TEAMD_TEAM`, which is the team if the arguments name none.
    pub team: Option<String>,
    /// The arguments without the program's name.
    pub arguments: Vec<String>,
    /// The variables for the agent, from the options `--env`, which are not in `arguments`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

impl HostCommand {
    /// The command as hexadecimal digits.
    pub fn to_hex(&self) -> String {
        self.to_json().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The command from hexadecimal digits. `None` if they are not the text of a command.
    pub fn from_hex(text: &str) -> Option<HostCommand> {
        let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(16)).collect();
        let byte = |pair: &[u32]| u8::try_from(pair.first()? * 16 + pair.get(1)?).ok();
        let bytes: Option<Vec<u8>> = digits?.chunks(2).map(byte).collect();
        serde_json::from_slice(&bytes?).ok()
    }

    fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts can be written as JSON")
    }
}

/// What the caller sends to the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostInput {
    /// The command. Always the first frame.
    Command(HostCommand),
    /// Bytes for the command's standard input.
    Data(Vec<u8>),
    /// The end of the command's standard input.
    End,
    /// A signal for the command.
    Signal(HostSignal),
}

/// The signals that reach a command on another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostSignal {
    /// A person has typed Ctrl-C.
    Interrupt,
    /// Another process ends the command.
    Terminate,
    /// The terminal was closed.
    Hangup,
}

/// The type byte of a frame, with the signal for signals, and the length of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    kind: u8,
    /// The length of the content, in bytes: at most [`MAX_FRAME_BYTES`].
    pub length: usize,
}

const COMMAND: u8 = b'C';
const DATA: u8 = b'D';
const END: u8 = b'E';
const SIGNALS: [(u8, HostSignal); 3] =
    [(b'I', HostSignal::Interrupt), (b'T', HostSignal::Terminate), (b'H', HostSignal::Hangup)];

impl FrameHeader {
    /// Parses the bytes before the content. `None` if they are no header.
    pub fn parse(bytes: [u8; FRAME_HEADER_BYTES]) -> Option<FrameHeader> {
        let [kind, length @ ..] = bytes;
        let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
        let is_known = [COMMAND, DATA, END].contains(&kind) || SIGNALS.iter().any(|(byte, _)| *byte == kind);
        (is_known && length <= MAX_FRAME_BYTES).then_some(FrameHeader { kind, length })
    }

    /// The frame with this content. `None` if the content is invalid.
    pub fn with_content(self, content: Vec<u8>) -> Option<HostInput> {
        match self.kind {
            COMMAND => serde_json::from_slice(&content).ok().map(HostInput::Command),
            DATA => Some(HostInput::Data(content)),
            END => Some(HostInput::End),
            kind => {
                SIGNALS.iter().find(|(byte, _)| *byte == kind).map(|(_, signal)| HostInput::Signal(*signal))
            }
        }
    }
}

impl HostInput {
    /// The frame with its header. `None` if its content is longer than [`MAX_FRAME_BYTES`].
    pub fn to_frame(&self) -> Option<Vec<u8>> {
        let (kind, content) = match self {
            HostInput::Command(command) => (COMMAND, command.to_json()),
            HostInput::Data(bytes) => (DATA, bytes.clone()),
            HostInput::End => (END, Vec::new()),
            HostInput::Signal(signal) => {
                let (kind, _) = SIGNALS.iter().find(|(_, known)| known == signal)?;
                (*kind, Vec::new())
            }
        };
        let length = u32::try_from(content.len()).ok().filter(|_| content.len() <= MAX_FRAME_BYTES)?;
        Some([&[kind], &length.to_be_bytes()[..], &content].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> HostCommand {
        let arguments = ["send", "ann", "-x 'a' \"b\" $HOME `c`\n\u{1f600}", ""].map(str::to_owned).to_vec();
        let host = HostName::parse("devbox").unwrap();
        let env = BTreeMap::from([("TOKEN".to_owned(), "a=b\n".to_owned())]);
        HostCommand { host, root: Some("~/r".to_owned()), team: Some("survey".to_owned()), arguments, env }
    }

    #[test]
    fn command_survives_as_digits_and_digits_alone() {
        let digits = command().to_hex();
        assert!(digits.chars().all(|c| c.is_ascii_hexdigit()));
        assert_eq!(HostCommand::from_hex(&digits), Some(command()));
        for text in ["", "0", "zz", "7b7d", &digits[1..]] {
            assert_eq!(HostCommand::from_hex(text), None, "{text}");
        }
    }

    #[test]
    fn frames_survive_a_round_trip() {
        let signals = SIGNALS.map(|(_, signal)| HostInput::Signal(signal));
        let frames = [HostInput::Command(command()), HostInput::Data(vec![0, 255]), HostInput::End];
        for frame in frames.into_iter().chain(signals) {
            let bytes = frame.to_frame().unwrap();
            let (header, content) = bytes.split_at(FRAME_HEADER_BYTES);
            let header = FrameHeader::parse(header.try_into().unwrap()).unwrap();
            assert_eq!(header.length, content.len());
            assert_eq!(header.with_content(content.to_vec()), Some(frame));
        }
    }

    #[test]
    fn unknown_and_too_long_frames_are_refused() {
        assert_eq!(FrameHeader::parse(*b"X\0\0\0\0"), None);
        assert_eq!(FrameHeader::parse([DATA, 1, 0, 0, 0]), None);
        assert_eq!(HostInput::Data(vec![0; MAX_FRAME_BYTES + 1]).to_frame(), None);
        assert_eq!(FrameHeader::parse(*b"C\0\0\0\x02").unwrap().with_content(b"{}".to_vec()), None);
    }
}
