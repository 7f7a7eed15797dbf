//! How much a finished write survives. Killing any process never hurts a file; this is about power.

use std::str::FromStr;

/// What a write waits for before it is reported done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Durability {
    /// Nothing: it survives the kill of any process.
    #[default]
    Process,
    /// After a power loss the file is the old one or the new one, never broken.
    Ordered,
    /// And what was reported done is on the disk.
    Power,
}

/// Not the name of a durability.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot use {0:?} as a durability: it is one of process, ordered, power")]
pub struct UnknownDurability(String);

impl FromStr for Durability {
    type Err = UnknownDurability;

    fn from_str(name: &str) -> Result<Durability, UnknownDurability> {
        match name {
            "process" => Ok(Durability::Process),
            "ordered" => Ok(Durability::Ordered),
            "power" => Ok(Durability::Power),
            other => Err(UnknownDurability(other.to_owned())),
        }
    }
}
