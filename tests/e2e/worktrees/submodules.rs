//! A new worktree of a repository with submodules.

use super::{env_with_repository, git, path_text, write_file};

#[test]
fn empty_submodules_of_a_new_worktree_are_told() {
    let env = env_with_repository();
    let repository = env.path("repo");
    let cwd = path_text(&repository);
    let spawn = |name: &str| {
        env.teamctl(["spawn", name, "--cwd", cwd, "--worktree", "--", &env.scripted_agent_path(), "stay"])
    };
    let without = spawn("ann");
    assert!(without.code == 0 && without.stderr.is_empty(), "{without:?}");
    write_file(&repository.join(".gitmodules"), "[submodule \"lib\"]\n\tpath = lib\n\turl = ../lib\n");
    git(&env, &repository, &["add", "--all"]);
    git(&env, &repository, &["commit", "--quiet", "--message", "second"]);
    let with = spawn("bob");
    assert!(with.code == 0 && with.stderr.contains("git submodule update --init"), "{with:?}");
    env.write_file(
        "team.toml",
        format!("name = \"second\"\ncwd = \"{cwd}\"\n[[member]]\nname = \"cat\"\nprofile = \"worker\"\nworktree = true\n[[task]]\nkey = \"x\"\nsubject = \"x\"\ncommand = \"true\"\n"),
    );
    let run = env.teamctl(["run", path_text(&env.path("team.toml"))]);
    assert!(run.stderr.contains("git submodule update --init"), "{run:?}");
    env.shut_down();
}
