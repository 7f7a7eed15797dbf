//! How much a finished write survives. Killing any process never hurts a file; this is about power.

use protocol::error::{ErrorKind, ErrorReport};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// What a write waits for before it is reported done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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

impl Durability {
    /// What `$TEAMD_DURABILITY` says; the least where it says nothing.
    ///
    /// # Errors
    /// `Config` where it is not the name of one.
    pub fn from_env_value(level: Option<&str>) -> Result<Durability, ErrorReport> {
        level.map_or(Ok(Durability::default()), |level| {
            let unknown =
                |_| ErrorReport::new(ErrorKind::Config, format!("cannot use $TEAMD_DURABILITY: {level}"));
            level.parse().map_err(unknown)
        })
    }
}

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
