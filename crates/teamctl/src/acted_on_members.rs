//! Which running members a command acts on. Such a command runs on the hosts of these members.

/// The running members on which a command acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActedOnMembers<'a> {
    /// None: the command runs here, for example because it only uses files.
    None,
    /// The members with these addresses: `NAME` or `NAME@TEAM`.
    Named(&'a [String]),
    /// All members of the team.
    All,
}
