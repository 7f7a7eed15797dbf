//! What all reads and writes of one root share.

use super::corrupt_backup::CorruptBackups;
use crate::durability::Durability;

/// What all reads and writes of one root share.
#[derive(Debug)]
pub(crate) struct IoContext {
    /// What a write waits for.
    pub(crate) durability: Durability,
    /// Where copies of damaged files go.
    pub(crate) backups: CorruptBackups,
}
