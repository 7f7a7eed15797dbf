//! The text of a message as the user gives it: an argument, or `-` for standard input, byte for byte.

use protocol::error::{ErrorKind, ErrorReport};
use std::io::Read;

/// The longest text of a message, in bytes: what the store takes.
const MESSAGE_LIMIT: usize = 256 << 10;

/// The text that `given` stands for.
pub(super) fn read_text(given: &str) -> Result<String, ErrorReport> {
    if given == "-" { standard_input() } else { Ok(given.to_owned()) }
}

/// All of standard input, up to the longest text of a message.
pub(super) fn standard_input() -> Result<String, ErrorReport> {
    read(std::io::stdin().lock())
}

/// One byte more than the limit shows that it is too long; the rest may never end.
fn read(input: impl Read) -> Result<String, ErrorReport> {
    let mut bytes = Vec::new();
    let read = input.take(MESSAGE_LIMIT as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| ErrorReport::new(ErrorKind::Io, format!("cannot read standard input: {error}")))?;
    if bytes.len() > MESSAGE_LIMIT {
        return Err(too_long(&format!("more than {MESSAGE_LIMIT}")));
    }
    let wrong = |error| {
        ErrorReport::new(ErrorKind::InvalidData, format!("cannot send what is on standard input: {error}"))
    };
    String::from_utf8(bytes).map_err(wrong)
}

fn too_long(size: &str) -> ErrorReport {
    let message = format!("cannot send a text of {size} bytes: {MESSAGE_LIMIT} is the limit");
    ErrorReport::new(ErrorKind::Usage, message).with_help("put it into a file and send the file's path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_input_is_taken_byte_for_byte_up_to_the_limit() {
        assert_eq!(read("a\nb\n".as_bytes()), Ok("a\nb\n".to_owned()));
        assert_eq!(read(&b"\xff"[..]).map_err(|fault| fault.kind), Err(ErrorKind::InvalidData));
        assert_eq!(read("x".repeat(MESSAGE_LIMIT).as_bytes()).map(|text| text.len()), Ok(MESSAGE_LIMIT));
        let endless = read(std::io::repeat(b'x'));
        assert_eq!(endless.map_err(|fault| fault.kind), Err(ErrorKind::Usage));
    }
}
