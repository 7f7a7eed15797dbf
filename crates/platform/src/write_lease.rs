//! Write leases, which show whether another process has a file open.

use std::fs::File;

/// A write lease that this process holds: no other descriptor refers to the file. Dropping the lease
/// lets waiting `open` calls continue.
#[derive(Debug)]
pub struct WriteLease<'f> {
    pub(crate) file: &'f File,
    pub(crate) release: fn(&File),
}

impl Drop for WriteLease<'_> {
    fn drop(&mut self) {
        (self.release)(self.file);
    }
}
