//! Files that can't be parsed.

use store::Error;

/// Skips a file that can't be parsed, so that it does not stop the others. It is compared when somebody
/// has repaired it.
pub(crate) fn unless_damaged<T: Default>(result: Result<T, Error>) -> Result<T, Error> {
    match result {
        Err(error @ (Error::Malformed { .. } | Error::TooLarge { .. })) => {
            tracing::warn!("did not compare a file: {error}");
            Ok(T::default())
        }
        result => result,
    }
}
