//! A repository whose configuration names programs, while teamd only inspects its worktrees. A
//! member can write this configuration, and a program that git runs for teamd would run outside of
//! the member's processes, also after the member has ended.

use crate::attack_log::AttackLog;
use harness::TestEnv;
use std::path::Path;

/// A setting of git that names a program, and the shell script in the repository that sets it and
/// makes git use it. PROGRAM stands for the path of the program.
const SETTINGS: [(&str, &str); 12] = [
    ("a filter's clean", "git config filter.x.clean PROGRAM; echo '* filter=x' >.git/info/attributes"),
    ("a filter's process", "git config filter.x.process PROGRAM; echo '* filter=x' >.git/info/attributes"),
    (
        "a required filter's smudge",
        "git config filter.x.smudge PROGRAM; git config filter.x.required true;
        echo '* filter=x' >.git/info/attributes",
    ),
    (
        "gpg.program and signed commits",
        "git config gpg.program PROGRAM; git config log.showSignature true;
        signature='gpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----'
        commit=$(git cat-file commit HEAD | sed \"/^committer/a $signature\" | git hash-object -t commit \
            -w --stdin)
        for branch in $(git for-each-ref --format='%(refname)' refs/heads); do git update-ref $branch $commit; done",
    ),
    ("core.fsmonitor", "git config core.fsmonitor PROGRAM"),
    (
        "core.sshCommand and a missing object of a partial clone",
        "git config core.sshCommand PROGRAM; git config remote.origin.url ssh://nowhere.invalid/x
        git config remote.origin.promisor true; git config remote.origin.partialclonefilter blob:none
        git config extensions.partialClone origin; blob=$(git rev-parse HEAD:a)
        rm .git/objects/$(echo $blob | cut -c 1-2)/$(echo $blob | cut -c 3-)",
    ),
    ("diff.x.textconv", "git config diff.x.textconv PROGRAM; echo '* diff=x' >.git/info/attributes"),
    (
        "diff.external and a diff driver",
        "git config diff.external PROGRAM; git config diff.x.command PROGRAM;
        echo '* diff=x' >.git/info/attributes",
    ),
    (
        "core.hooksPath",
        "mkdir hooks; git config core.hooksPath \"$PWD/hooks\"
        for hook in reference-transaction post-index-change post-checkout pre-commit; do
            ln -s PROGRAM hooks/$hook
        done",
    ),
    (
        "hooks",
        "for hook in reference-transaction post-index-change post-checkout pre-commit; do
            ln -sf PROGRAM .git/hooks/$hook
        done",
    ),
    (
        "core.pager and an alias",
        "git config core.pager PROGRAM; git config pager.status PROGRAM; git config alias.status \
            '!PROGRAM'",
    ),
    (
        "an included file",
        "printf '[core]\\n fsmonitor = PROGRAM\\n[filter \"x\"]\\n clean = PROGRAM\\n' >.git/evil;
        git config include.path evil; echo '* filter=x' >.git/info/attributes",
    ),
];

/// An environment with a team, a member in a worktree of the repository `repo`, and changes in the
/// worktree that git has to compare.
fn env_with_worktree() -> TestEnv {
    let mut env = TestEnv::new();
    let variables = [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_AUTHOR_NAME", "t"),
        ("GIT_AUTHOR_EMAIL", "t@example.org"),
        ("GIT_COMMITTER_NAME", "t"),
        ("GIT_COMMITTER_EMAIL", "t@example.org"),
    ];
    env.variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    run_shell(
        &env,
        ".",
        "git init --quiet repo; cd repo; echo one >a; git add a; git commit --quiet -m \
        first",
    );
    let ran = env.path("out/ran").display().to_string();
    env.write_script("marker", &format!("#!/bin/sh\necho \"$0 $*\" >>'{ran}'\nexec cat\n"));
    spawn(&env, "ann");
    env
}

fn spawn(env: &TestEnv, name: &str) {
    let repository = env.path("repo").display().to_string();
    env.teamctl(["spawn", name, "--cwd", &repository, "--worktree", "--", "sleep", "3600"]).expect_success();
}

fn run_shell(env: &TestEnv, directory: &str, script: &str) {
    let mut shell = env.command("sh");
    shell.current_dir(env.path(directory)).args(["-c", &format!("set -e; {script}")]);
    assert!(shell.status().unwrap().success(), "{script}");
}

/// Changes a file of the worktree and adds one. Then runs each command with which teamd inspects or
/// changes the worktree.
fn run_worktree_commands(env: &TestEnv, worktree: &Path) {
    let name = worktree.strip_prefix(env.path("")).unwrap().to_str().unwrap();
    for file in ["a", "new"] {
        env.write_file(&format!("{name}/{file}"), "changed\n");
    }
    for args in [&["status"][..], &["status", "ann"], &["status", "--json"], &["why", "ann"], &["doctor"]] {
        drop(env.teamctl_with(args, &[]));
    }
    env.teamctl(["kill", "ann"]).expect_success();
    // The team keeps its worktree, because there is unsaved work in it.
    assert_ne!(env.teamctl(["delete", "survey"]).code, 0);
    // The worktree exists already, so nothing is checked out.
    spawn(env, "ann");
    env.teamctl(["kill", "ann"]).expect_success();
    let path = worktree.display().to_string();
    // This fails if an object is missing.
    drop(env.teamctl(["delete", "survey", "--discard", &path]));
}

fn try_setting(setting: &str) -> Result<String, String> {
    let env = env_with_worktree();
    let status = env.json(["status"]);
    let worktree =
        status["teams"][0]["worktrees"][0]["path"].as_str().expect("ann has a worktree").to_owned();
    let program = env.path("marker").display().to_string();
    run_shell(&env, "repo", &setting.replace("PROGRAM", &program));
    std::fs::remove_file(env.path("out/ran")).ok();
    run_worktree_commands(&env, Path::new(&worktree));
    let ran = env.read("out/ran");
    env.shut_down();
    if ran.is_empty() { Ok("no program ran".to_owned()) } else { Err(ran) }
}

pub(crate) fn attack(log: &mut AttackLog) {
    for (what, setting) in SETTINGS {
        log.record(
            format!("{what}: status, why, kill, delete, spawn --worktree again"),
            try_setting(setting),
        );
    }
    log.out_of_scope(
        "hooks and filters while a worktree is created",
        "git runs them as it does for the user (docs/worktrees.md)",
    );
}
