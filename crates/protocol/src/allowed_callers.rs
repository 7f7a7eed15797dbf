//! Says which callers may perform an operation; docs/permissions.md has the list. The command line,
//! the MCP tools and the control socket check the caller before each operation begins.
//!
//! This module compares only names. Other code checks that a member acts in its own team:
//! `client::root_socket_team_and_caller` for commands, `teamctl mcp` for the MCP tools, and the
//! daemon for calls on the control socket.
//!
//! The checks prevent mistakes, not attacks: all agents run as the same user.

use crate::error_kind_and_report::{ErrorKind, ErrorReport};
use crate::team_and_member_names::MemberName;

/// The callers that may perform an operation. The check never refuses the lead or a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedCallers<'a> {
    /// Every member, the lead, and a person.
    Everyone,
    /// Only the member with this name, the lead, and a person. The name may have the form
    /// `NAME@TEAM`. TEAM is ignored, because other code checks that a member acts in its own team.
    MemberLeadOrPerson(&'a str),
    /// Only the lead and a person.
    LeadOrPerson,
}

impl AllowedCallers<'_> {
    /// Checks that `caller` may perform the operation. A person acts under the name of the lead,
    /// and so may do what the lead may do. `action` is the verb phrase for the error message
    /// "cannot ACTION as CALLER".
    ///
    /// # Errors
    ///
    /// `NotPermitted` if the caller is not allowed.
    pub fn check(self, action: &str, caller: &MemberName) -> Result<(), ErrorReport> {
        let allowed = match self {
            _ if caller.is_lead() => return Ok(()),
            AllowedCallers::Everyone => return Ok(()),
            AllowedCallers::MemberLeadOrPerson(name) if name_without_team(name) == *caller => return Ok(()),
            AllowedCallers::MemberLeadOrPerson(name) => {
                format!("{}, the lead or a person", name_without_team(name))
            }
            AllowedCallers::LeadOrPerson => "the lead or a person".to_owned(),
        };
        let message = format!("cannot {action} as {caller}: that is for {allowed}");
        Err(ErrorReport::new(ErrorKind::NotPermitted, message)
            .with_help("ask the lead: teamctl send team-lead TEXT"))
    }
}

/// The name in an address `NAME@TEAM`.
fn name_without_team(address: &str) -> MemberName {
    MemberName::new_unchecked(address.split('@').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_is_allowed_what_is_for_everyone_or_about_itself() {
        let is_allowed = |allowed: AllowedCallers, caller: &str| {
            allowed.check("x", &MemberName::new_unchecked(caller)).is_ok()
        };
        let all = [
            AllowedCallers::Everyone,
            AllowedCallers::MemberLeadOrPerson("ann"),
            AllowedCallers::MemberLeadOrPerson("Ann@survey"),
            AllowedCallers::LeadOrPerson,
        ];
        assert_eq!(all.map(|allowed| is_allowed(allowed, "team-lead")), [true; 4]);
        assert_eq!(all.map(|allowed| is_allowed(allowed, "ann")), [true, true, true, false]);
        assert_eq!(all.map(|allowed| is_allowed(allowed, "bob")), [true, false, false, false]);
        let error = AllowedCallers::MemberLeadOrPerson("ann@survey")
            .check("read it", &MemberName::new_unchecked("bob"))
            .unwrap_err();
        assert_eq!(error.message, "cannot read it as bob: that is for ann, the lead or a person");
    }
}
