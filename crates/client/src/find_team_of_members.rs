//! Finds the team that a command is about, from the members that the command names. If the options
//! name no team, the name of a member is enough, provided that only one team has such a member.

use crate::root_socket_team_and_caller::{TeamContext, only_team};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::{MemberName, TeamName, strip_team};
use store::Root;

impl TeamContext {
    /// Selects the team that a command is about. `addresses` are the members that the command
    /// names: `NAME` or `NAME@TEAM`.
    ///
    /// If the options or an address name a team, that team is selected; the options take
    /// precedence. Otherwise one of the candidates is selected ([`Self::candidate_teams`]):
    ///
    /// - A single candidate is always selected.
    /// - If there are several candidates, the only one that has all the members is selected.
    /// - If no candidate has all of them as current members, past members count too.
    ///
    /// # Errors
    ///
    /// `Usage` if these rules select no team.
    pub fn team_of_members(&self, root: &Root, addresses: &[String]) -> Result<TeamName, ErrorReport> {
        let named_team = addresses.iter().filter_map(|address| address.rsplit_once('@'));
        let named_team = named_team.filter_map(|(_, team)| TeamName::parse(team).ok()).next();
        if let (None, Some(team)) = (&self.options().team, named_team) {
            return Ok(team);
        }
        let candidates = self.candidate_teams(root)?;
        if let ([_], _) | (_, []) = (candidates.as_slice(), addresses) {
            return only_team(&candidates);
        }
        for has_member in [has_current_member, has_past_member] {
            let has_all = |team: &&TeamName| addresses.iter().all(|name| has_member(root, team, name));
            match candidates.iter().filter(has_all).collect::<Vec<_>>().as_slice() {
                [] => {}
                [only] => return Ok((*only).clone()),
                several => return Err(ambiguous_members(addresses, several)),
            }
        }
        only_team(&candidates)
    }
}

fn has_current_member(root: &Root, team: &TeamName, address: &str) -> bool {
    let config = root.team(team).and_then(|team| team.config());
    config.is_ok_and(|config| config.member(&MemberName::new_unchecked(strip_team(address, team))).is_some())
}

/// Whether a member of this name has an inbox or an output log. Past members usually still have
/// both.
fn has_past_member(root: &Root, team: &TeamName, address: &str) -> bool {
    let name = MemberName::new_unchecked(strip_team(address, team));
    root.team(team).is_ok_and(|team| team.inbox(&name).path().exists() || team.agent_log_path(&name).exists())
}

fn ambiguous_members(addresses: &[String], teams: &[&TeamName]) -> ErrorReport {
    let teams: Vec<&str> = teams.iter().map(|team| team.as_str()).collect();
    let (names, verb) = (addresses.join(", "), if addresses.len() == 1 { "is" } else { "are" });
    let message = format!("cannot tell which team is meant: {names} {verb} in {}", teams.join(", "));
    ErrorReport::new(ErrorKind::Usage, message).with_help("name one with -t TEAM")
}
