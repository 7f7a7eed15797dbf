//! Durability levels: which finished writes survive a power loss. At every level, a killed process
//! leaves no damaged file.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// What a write waits for before it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// No wait. The write survives the kill of any process.
    #[default]
    Process,
    /// The order of writes is kept: after a power loss the file has its old or its new content.
    Ordered,
    /// The new content is on the disk when the write returns.
    Power,
}

/// The text is not the name of a [`Durability`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot use {0:?} as a durability: it is one of process, ordered, power")]
pub struct UnknownDurability(String);

impl Durability {
    /// Parses `value`, the value of `$TEAMD_DURABILITY`. `None` means that the variable is not set,
    /// which is the same as [`Durability::Process`].
    ///
    /// # Errors
    /// `Config` if `value` is not the name of a durability.
    pub fn from_env_value(value: Option<&str>) -> Result<Durability, ErrorReport> {
        value.map_or(Ok(Durability::default()), |value| {
            let unknown =
                |_| ErrorReport::new(ErrorKind::Config, format!("cannot use $TEAMD_DURABILITY: {value}"));
            value.parse().map_err(unknown)
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
