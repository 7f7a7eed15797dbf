//! Refuses an agent's calls that are about another team or another root than its own, or that come
//! from an ended spawn.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::{MemberName, TeamName};
use std::path::Path;
use store::env_var;

/// Refuses a team that is not the caller's own, if the caller is an agent. Another team may have a
/// member of the same name, and the caller would act as that member.
///
/// # Errors
///
/// `NotPermitted`.
pub(crate) fn check_own_team(team: &TeamName) -> Result<(), ErrorReport> {
    match (env_var("TEAMD_MEMBER"), env_var("TEAMD_TEAM")) {
        (Some(member), Some(own_team)) if own_team != team.as_str() => {
            let message = format!("cannot act in the team {team}: the caller is {member} of {own_team}");
            Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help("leave out -t"))
        }
        _ => Ok(()),
    }
}

/// Refuses a caller that belongs to a spawn (one start of a member's agent) that has ended, if a
/// newer spawn of the same member runs. Otherwise the caller could change team files as if it were
/// the newer spawn. Calls on the control socket need no such check, because the daemon refuses the
/// token of the ended spawn.
///
/// # Errors
///
/// `NotPermitted`.
pub fn check_own_spawn(state_dir: &Path) -> Result<(), ErrorReport> {
    let [Some(member), Some(team), Some(token)] = ["TEAMD_MEMBER", "TEAMD_TEAM", "TEAMD_TOKEN"].map(env_var)
    else {
        return Ok(());
    };
    let (Ok(team), name) = (TeamName::parse(&team), MemberName::new_unchecked(&member)) else {
        return Ok(());
    };
    let roster = store::read_roster_file(state_dir).unwrap_or_default();
    if !roster.is_superseded(&team, &name, &token) {
        return Ok(());
    }
    let message = format!("cannot act as {member}: this environment is of an earlier spawn, which has ended");
    Err(ErrorReport::new(ErrorKind::NotPermitted, message)
        .with_help("unset the TEAMD_ variables to act as a person; who runs: teamctl status"))
}

/// Refuses a root that is not the caller's own, if the caller is an agent. `root` is absolute.
pub(crate) fn check_own_root(root: &Path) -> Result<(), ErrorReport> {
    let (Some(member), Some(own_root)) = (env_var("TEAMD_MEMBER"), env_var("TEAMD_ROOT")) else {
        return Ok(());
    };
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let own_root = Path::new(&own_root);
    match own_root == root || canonical(own_root) == canonical(root) {
        true => Ok(()),
        false => {
            let (root, own_root) = (root.display(), own_root.display());
            let message =
                format!("cannot act in the root {root}: the caller is {member}, an agent of {own_root}");
            Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help("leave out --root"))
        }
    }
}
