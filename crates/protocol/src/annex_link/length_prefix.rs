//! How frames are written into the byte stream: the length of the frame's JSON text as 4 bytes
//! (big-endian), and then the text.

use super::link_messages::LinkFrame;
use crate::control_socket::framing::MAX_OBJECT_BYTES;
use crate::escape_control_chars::visible;

/// Maximum length of a frame's JSON text in bytes, as on the control socket.
pub const MAX_FRAME_BYTES: usize = MAX_OBJECT_BYTES;

const PREFIX_BYTES: usize = 4;

/// Why a frame was rejected. The connection is unusable afterwards.
#[derive(Debug, thiserror::Error)]
pub enum LinkFrameError {
    /// The frame is longer than [`MAX_FRAME_BYTES`].
    #[error("cannot send a frame of {0} bytes: the limit is {MAX_FRAME_BYTES}")]
    TooLong(usize),
    /// The length before a frame is greater than [`MAX_FRAME_BYTES`]. Usually another program has
    /// written text into the stream, such as the greeting of a login shell.
    #[error("cannot read a frame: the stream has the text \"{0}\"")]
    NoFrame(String),
    /// The text is no frame.
    #[error("cannot read a frame: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// Encodes a frame with its prefix.
///
/// # Errors
///
/// `TooLong`, and `Malformed` if the frame cannot be serialized.
pub fn encode_frame(frame: &LinkFrame) -> Result<Vec<u8>, LinkFrameError> {
    let mut bytes = vec![0; PREFIX_BYTES];
    serde_json::to_writer(&mut bytes, frame)?;
    let length = bytes.len() - PREFIX_BYTES;
    let prefix = u32::try_from(length).ok().filter(|_| length <= MAX_FRAME_BYTES);
    let prefix = prefix.ok_or(LinkFrameError::TooLong(length))?;
    bytes[..PREFIX_BYTES].copy_from_slice(&prefix.to_be_bytes());
    Ok(bytes)
}

/// Takes the frames out of a byte stream. Each connection has one.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    bytes: Vec<u8>,
    /// How many of the bytes were decoded already.
    decoded: usize,
}

impl FrameDecoder {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.decoded));
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next frame and the length of its text in bytes. `None` if the bytes received so
    /// far contain no complete frame.
    ///
    /// # Errors
    ///
    /// `NoFrame`, `Malformed`.
    pub fn next_frame(&mut self) -> Result<Option<(LinkFrame, usize)>, LinkFrameError> {
        let rest = &self.bytes[self.decoded..];
        let Some((prefix, rest)) = rest.split_first_chunk::<PREFIX_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes(*prefix) as usize;
        if length > MAX_FRAME_BYTES {
            return Err(LinkFrameError::NoFrame(first_line(prefix, rest)));
        }
        let Some(text) = rest.get(..length) else { return Ok(None) };
        let frame = serde_json::from_slice(text)?;
        self.decoded += PREFIX_BYTES + length;
        Ok(Some((frame, length)))
    }
}

/// The beginning of a text that is no frame, at most 80 characters, for a message to people.
fn first_line(prefix: &[u8], rest: &[u8]) -> String {
    let bytes = [prefix, &rest[..rest.len().min(400)]].concat();
    let text = String::from_utf8_lossy(&bytes);
    visible(text.lines().next().unwrap_or_default()).chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_decoded_from_pieces_of_every_length() {
        let frames = [LinkFrame::KeepAlive, LinkFrame::Ack { number: 7 }, LinkFrame::KeepAlive];
        let bytes: Vec<u8> = frames.iter().flat_map(|frame| encode_frame(frame).unwrap()).collect();
        for length in 1..=bytes.len() {
            let (mut decoder, mut decoded) = (FrameDecoder::default(), String::new());
            for piece in bytes.chunks(length) {
                decoder.push(piece);
                while let Some((frame, _)) = decoder.next_frame().unwrap() {
                    decoded += &format!("{frame:?} ");
                }
            }
            assert_eq!(decoded, "KeepAlive Ack { number: 7 } KeepAlive ");
        }
    }

    #[test]
    fn text_of_a_login_shell_is_named_in_the_error() {
        let mut decoder = FrameDecoder::default();
        decoder.push(b"Welcome to \x1b[1mdevbox\nmore");
        let error = decoder.next_frame().unwrap_err().to_string();
        assert_eq!(error, "cannot read a frame: the stream has the text \"Welcome to \\u{1b}[1mdevbox\"");
    }

    #[test]
    fn text_that_is_no_frame_is_an_error() {
        for text in ["{}", "7", "\"later_kind\"", r#"{"ack":{}}"#, "\u{fffd}"] {
            let mut decoder = FrameDecoder::default();
            decoder.push(&u32::try_from(text.len()).unwrap().to_be_bytes());
            decoder.push(text.as_bytes());
            assert!(matches!(decoder.next_frame(), Err(LinkFrameError::Malformed(_))), "{text}");
        }
    }
}
