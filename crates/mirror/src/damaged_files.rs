//! Files that can't be parsed or are too large.

use store::Error;

/// Skips a file that can't be parsed or is too large, so that the other files are compared. The
/// next comparison tries the file again.
pub(crate) fn unless_damaged<T: Default>(result: Result<T, Error>) -> Result<T, Error> {
    match result {
        Err(
            error @ (Error::Malformed { .. }
            | Error::Corrupt { .. }
            | Error::TooLarge { .. }
            | Error::UnexpectedFileType { .. }),
        ) => {
            tracing::warn!("did not compare a file: {error}");
            Ok(T::default())
        }
        result => result,
    }
}
