//! Builds the two requests that spawn a member in a git worktree. The first one asks the daemon to
//! create the worktree. The second one is the spawn request, with a directory in the new worktree
//! as the agent's working directory.

use crate::build_spawn_request::{SpawnOptions, build_spawn_request};
use protocol::control_socket::{self, WorktreeReply, WorktreeRequest};
use protocol::env_filter::is_callers_for_git;
use protocol::error_kind_and_report::ErrorReport;
use std::collections::BTreeMap;
use std::path::Path;
use store::Root;

/// The request that asks the daemon to create the worktree of a new member.
pub fn worktree_request(request: &control_socket::SpawnRequest, options: &SpawnOptions) -> WorktreeRequest {
    WorktreeRequest {
        team: request.team.clone(),
        name: request.name.clone(),
        unique: request.unique,
        cwd: request.cwd.clone(),
        branch: options.worktree.clone().flatten(),
        env: request.env.clone(),
    }
}

/// Builds a member's spawn request again after the daemon has created the worktree. The new request
/// has the directory in the worktree, and the name that the daemon has chosen for the member.
/// `request` is the earlier spawn request.
pub fn rebuild_for_worktree(
    root: &Root,
    request: control_socket::SpawnRequest,
    options: SpawnOptions,
    worktree: WorktreeReply,
) -> Result<control_socket::SpawnRequest, ErrorReport> {
    let options = SpawnOptions {
        name: worktree.name.to_string(),
        unique: false,
        cwd: Some(worktree.cwd),
        prompt: Some(request.prompt.clone()),
        prompt_file: None,
        model: request.model.clone(),
        ..options
    };
    let config = root.team(&request.team).and_then(|team| team.config()).ok();
    let again = build_spawn_request(root.path(), request.team.clone(), config.as_ref(), options)?;
    Ok(control_socket::SpawnRequest { worktree: Some(worktree.path), ..again })
}

/// The environment variables of this process that the daemon passes to git: `PATH`, `HOME` and
/// `XDG_CONFIG_HOME`, and git's own settings in variables such as `GIT_CONFIG_GLOBAL`. A variable
/// that is not UTF-8 is left out.
pub fn git_variables() -> BTreeMap<String, String> {
    let all = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    all.filter(|(name, _)| is_callers_for_git(name)).collect()
}

/// The warning that a new worktree will lack the submodules of its repository, because git does not
/// check them out. The repository is the one that contains `cwd`. `None` if it has no submodules.
pub fn submodule_warning(cwd: &Path) -> Option<String> {
    let repository = cwd.ancestors().find(|directory| directory.join(".git").exists())?;
    repository.join(".gitmodules").is_file().then(|| {
        format!(
            "warning: {} has submodules: their directories are empty in a new worktree; the agent, or a post-checkout hook, fills them with: git submodule update --init",
            repository.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_with_submodules_gets_a_warning() {
        let repository = tempfile::tempdir().unwrap();
        let cwd = repository.path().join("src");
        std::fs::create_dir(&cwd).unwrap();
        std::fs::create_dir(repository.path().join(".git")).unwrap();
        assert_eq!(submodule_warning(&cwd), None);
        std::fs::File::create(repository.path().join(".gitmodules")).unwrap();
        assert!(submodule_warning(&cwd).unwrap().contains("git submodule update --init"));
    }
}
