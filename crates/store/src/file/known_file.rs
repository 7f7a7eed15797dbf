//! A file as the last change of ours left it, with the shadow copy beside it.

use super::file_version::FileVersion;
use crate::dir_handle::DirHandle;
use crate::durability::Durability;
use crate::error::Error;
use serde::{Deserialize, Serialize};

/// A file as we left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownFile {
    #[serde(rename = "file")]
    pub(super) version: FileVersion,
    /// How much of it survives: whoever changes its end keeps that up, whatever is enough for what is added.
    pub(super) durability: Durability,
    #[serde(rename = "twin")]
    pub(super) shadow: Option<ShadowCopy>,
}

/// The file beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ShadowCopy {
    pub(super) identity: FileVersion,
    /// So many bytes from the start it has in common with the file.
    #[serde(rename = "common")]
    pub(super) shared_bytes: u64,
}

impl KnownFile {
    /// What was just put in place.
    pub(super) fn from_written(file: FileVersion, durability: Durability) -> KnownFile {
        KnownFile { version: file, durability, shadow: None }
    }

    /// What it was when it was left.
    pub(crate) fn version(&self) -> FileVersion {
        self.version
    }

    /// Whether its next state costs what is changed alone: no copy of all of it, and no wait for a disk.
    pub(crate) fn is_cheap(&self, durability: Durability) -> bool {
        self.shadow.is_some() && self.durability.max(durability) == Durability::Process
    }

    /// Whether `name` is still that, as far as a look can tell.
    pub(crate) fn is_current(&self, dir: &DirHandle, name: &str) -> Result<bool, Error> {
        Ok(FileVersion::stat_file(dir, name)? == Some(self.version))
    }

    /// As large as that.
    pub(crate) fn size(&self) -> u64 {
        self.version.size()
    }
}
