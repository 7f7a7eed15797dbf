//! The options that all reads and writes of one root share.

use super::corrupt_backup::CorruptBackups;
use crate::durability::Durability;

#[derive(Debug)]
pub(crate) struct IoOptions {
    /// What a write waits for before it returns.
    pub(crate) durability: Durability,
    /// Where copies of damaged files are stored.
    pub(crate) backups: CorruptBackups,
}
