//! The ids that tmux gives to panes, windows and sessions, such as `%14`, `@3` and `$0`.
//!
//! A server never uses an id twice. A new server begins at zero again, so an id is valid only
//! together with a [`ServerEpoch`](crate::ServerEpoch).

use std::fmt;
use std::str::FromStr;

use crate::InvalidArgument;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $sigil:literal, $requirement:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($sigil, "{}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidArgument;

            fn from_str(text: &str) -> Result<$name, InvalidArgument> {
                let digits = text.strip_prefix($sigil).filter(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
                let number = digits.and_then(|digits| digits.parse().ok());
                number.map($name).ok_or_else(|| InvalidArgument::new(text, $requirement))
            }
        }
    };
}

id!(
    /// The id of a pane, such as `%14`.
    PaneId, "%", "a pane id is % and a number"
);
id!(
    /// The id of a window, such as `@3`.
    WindowId, "@", "a window id is @ and a number"
);
id!(
    /// The id of a session, such as `$0`.
    SessionId, "$", "a session id is $ and a number"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_roundtrips() {
        assert_eq!("%14".parse::<PaneId>().unwrap().to_string(), "%14");
        assert_eq!("@3".parse::<WindowId>().unwrap().to_string(), "@3");
        assert_eq!("$0".parse::<SessionId>().unwrap().to_string(), "$0");
    }

    #[test]
    fn invalid_ids_are_rejected() {
        for text in ["", "%", "14", "@14", "%-1", "%+1", "% 1", "%1;", "%1\n", "%99999999999", "leader"] {
            assert!(text.parse::<PaneId>().is_err(), "{text:?}");
        }
    }
}
