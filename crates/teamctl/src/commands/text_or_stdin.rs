//! Reads a text that the user passes as an argument, or on standard input if the argument is `-`.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::io::Read;
use store::MESSAGE_LIMIT;

/// The text of an argument. For `-` it is standard input, unchanged.
pub(super) fn read_text(argument: &str) -> Result<String, ErrorReport> {
    if argument == "-" { standard_input() } else { Ok(argument.to_owned()) }
}

/// Reads standard input to its end.
///
/// # Errors
///
/// `Usage` if the text is longer than a message may be, `InvalidData` if it is not UTF-8.
pub(super) fn standard_input() -> Result<String, ErrorReport> {
    read(std::io::stdin().lock())
}

fn read(input: impl Read) -> Result<String, ErrorReport> {
    let mut bytes = Vec::new();
    // One byte more than the limit shows that the text is too long. The input may be endless.
    let result = input.take(MESSAGE_LIMIT as u64 + 1).read_to_end(&mut bytes);
    result
        .map_err(|error| ErrorReport::new(ErrorKind::Io, format!("cannot read standard input: {error}")))?;
    if bytes.len() > MESSAGE_LIMIT {
        let message =
            format!("cannot take a text of more than {MESSAGE_LIMIT} bytes: {MESSAGE_LIMIT} is the limit");
        return Err(ErrorReport::new(ErrorKind::Usage, message)
            .with_help("put it into a file and send the file's path"));
    }
    let invalid = |error| {
        ErrorReport::new(ErrorKind::InvalidData, format!("cannot take what is on standard input: {error}"))
    };
    String::from_utf8(bytes).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_input_is_read_unchanged_up_to_the_limit() {
        assert_eq!(read("a\nb\n".as_bytes()), Ok("a\nb\n".to_owned()));
        assert_eq!(read(&b"\xff"[..]).map_err(|error| error.kind), Err(ErrorKind::InvalidData));
        assert_eq!(read("x".repeat(MESSAGE_LIMIT).as_bytes()).map(|text| text.len()), Ok(MESSAGE_LIMIT));
        let result = read(std::io::repeat(b'x'));
        assert_eq!(result.map_err(|error| error.kind), Err(ErrorKind::Usage));
    }
}
