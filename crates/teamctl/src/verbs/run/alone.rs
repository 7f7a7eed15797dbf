//! One run of a team at a time: two would give back each other's tasks. The kernel frees the lock with the
//! process, however that ends; the empty file stays.

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use protocol::fault::{Fault, Kind};
use protocol::name::TeamName;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use store::StateDir;

/// Held for as long as it lives.
pub(super) fn alone(state: &StateDir, team: &TeamName) -> Result<Flock<File>, Fault> {
    let path = state.path().join(format!("run-{team}.lock"));
    let cannot = |error: &dyn std::fmt::Display| Fault::io("lock", &path, error);
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(&path);
    match Flock::lock(file.map_err(|error| cannot(&error))?, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(lock),
        Err((_, Errno::EWOULDBLOCK)) => {
            let message = format!("cannot run team {team}: another teamctl run does so already");
            Err(Fault::new(Kind::Exists, message).hinted("see it with: teamctl status"))
        }
        Err((_, errno)) => Err(cannot(&errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_of_a_team_is_refused_and_one_of_another_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        let [t, u] = ["t", "u"].map(|name| TeamName::parse(name).unwrap());
        let first = alone(&state, &t).unwrap();
        assert_eq!(alone(&state, &t).unwrap_err().kind, Kind::Exists);
        assert!(alone(&state, &u).is_ok());
        drop(first);
        assert!(alone(&state, &t).is_ok());
    }
}
