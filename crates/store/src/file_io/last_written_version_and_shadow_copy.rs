//! The version of a long file after teamd's last change, and the shadow copy beside it.

use super::file_version::FileVersion;
use crate::directory_handle::DirHandle;
use crate::durability::Durability;
use crate::error::Error;
use serde::{Deserialize, Serialize};

/// Suffix of the names of shadow copies.
pub(crate) const SHADOW_SUFFIX: &str = ".shadow";

/// The version of a file after teamd's last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownFile {
    pub(super) version: FileVersion,
    /// The durability of the last write. The next change of the tail uses this or a higher one.
    pub(super) durability: Durability,
    pub(super) shadow: Option<ShadowCopy>,
}

/// The shadow copy of a long file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ShadowCopy {
    /// The version of the copy.
    pub(super) identity: FileVersion,
    /// Number of bytes from the start that the copy and the file have in common.
    pub(super) shared_bytes: u64,
}

/// The name of the shadow copy of `name`.
pub(super) fn shadow_name(name: &str) -> String {
    format!(".{name}{SHADOW_SUFFIX}")
}

impl KnownFile {
    /// A file that was just written whole and has no shadow copy.
    pub(super) fn from_written(file: FileVersion, durability: Durability) -> KnownFile {
        KnownFile { version: file, durability, shadow: None }
    }

    /// The version of the file.
    pub(crate) fn version(&self) -> FileVersion {
        self.version
    }

    /// Whether the next change of this file takes little time, because it neither copies the whole
    /// file nor waits for a flush to the disk.
    pub(crate) fn is_cheap(&self, durability: Durability) -> bool {
        self.shadow.is_some() && self.durability.max(durability) == Durability::Process
    }

    /// Whether the file `name` still has this version.
    pub(crate) fn is_current(&self, dir: &DirHandle, name: &str) -> Result<bool, Error> {
        Ok(FileVersion::stat_file(dir, name)? == Some(self.version))
    }

    /// The file's size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.version.size()
    }
}
