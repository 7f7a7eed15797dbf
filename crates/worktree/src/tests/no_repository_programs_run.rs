//! Except to create a worktree, no git command of this crate runs a program that the repository's
//! configuration names.

use super::*;
use crate::git_settings_that_run_programs::PROGRAM_SETTINGS;
use crate::{
    MergeBranch, MergeMethod, MergeOutcome, MergeStart, MergeWorktree, commit_of_branch, list_worktrees,
    propose_merge_worktree,
};
use std::fs::set_permissions;
use std::os::unix::fs::PermissionsExt;

/// A program (`marker`) that appends each call to the file `ran` in the home directory, and another
/// (`signer`) that makes a signature which git accepts.
struct MarkerProgram {
    marker: PathBuf,
    signer: PathBuf,
    ran: PathBuf,
}

impl MarkerProgram {
    fn new(repo: &TestRepository) -> MarkerProgram {
        let home = repo.home().canonicalize().unwrap();
        let ran = home.join("ran");
        let script = |name: &str, text: &str| {
            let path = home.join(name);
            write_file(&path, &format!("#!/bin/sh\n{text}\n"));
            set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            path
        };
        let marker = script("marker", &format!("echo \"$0 $*\" >>'{}'\nexec cat", ran.display()));
        let signer = script(
            "signer",
            "cat >/dev/null\nprintf -- '-----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----\n'\nprintf '\\n[GNUPG:] SIG_CREATED \\n' >&2",
        );
        MarkerProgram { marker, signer, ran }
    }

    /// Returns the calls of the program since the last call of this method.
    fn take_calls(&self) -> String {
        let calls = std::fs::read_to_string(&self.ran).unwrap_or_default();
        std::fs::remove_file(&self.ran).ok();
        calls
    }

    /// The value with which the setting `key` runs the program.
    fn value_of(&self, key: &str) -> String {
        match key {
            "log.showSignature" => "true".to_owned(),
            "core.hooksPath" => path_str(self.marker.parent().unwrap()).to_owned() + "/hooks",
            "submodule.<name>.update" | "alias.*" => format!("!{}", path_str(&self.marker)),
            _ => path_str(&self.marker).to_owned(),
        }
    }

    /// Sets every setting that runs a program, and attributes that use them.
    fn configure(&self, repo: &TestRepository) {
        for (key, _) in PROGRAM_SETTINGS {
            let name = key.replace("<format>", "openpgp").replace("<cmd>", "status").replace('*', "st");
            let name = ["<driver>", "<tool>", "<name>", "<keyAlias>"]
                .iter()
                .fold(name, |name, placeholder| name.replace(placeholder, "x"));
            repo.git(&repo.repository, &["config", &name, &self.value_of(key)]);
        }
        let hooks = Path::new(&self.value_of("core.hooksPath")).to_owned();
        create_dir_all(&hooks).unwrap();
        for hook in ["reference-transaction", "post-index-change", "post-checkout", "fsmonitor-watchman"] {
            std::os::unix::fs::symlink(&self.marker, hooks.join(hook)).unwrap();
            // git 2.54 and later also runs `hook.x.command`.
            repo.git(&repo.repository, &["config", "--add", "hook.x.event", hook]);
        }
        write_file(&repo.repository.join(".git/info/attributes"), "* filter=x diff=x merge=x\n");
    }
}

/// Writes a file again, so that git compares its content and not only its size and time.
fn touch(file: &Path) {
    let text = read_file(file);
    std::fs::remove_file(file).unwrap();
    write_file(file, &text);
}

#[test]
fn no_look_runs_a_program_of_the_repository() {
    let repo = TestRepository::new();
    let program = MarkerProgram::new(&repo);
    let (clean, dirty) = (repo.create_worktree(), repo.create_worktree());
    write_file(&dirty.path.join("a"), "signed\n");
    let signer = format!("gpg.program={}", path_str(&program.signer));
    repo.git(&dirty.path, &["-c", &signer, "commit", "-S", "--quiet", "--all", "--message", "signed"]);
    write_file(&dirty.path.join("a"), "changed\n");
    program.configure(&repo);
    touch(&clean.path.join("a"));
    // Each of these commands runs the program if a user calls it.
    for command in [&["status"][..], &["log", "-1"], &["diff"], &["update-ref", "refs/other/x", "HEAD"]] {
        repo.git(&dirty.path, command);
        assert!(!program.take_calls().is_empty(), "{command:?}");
    }
    let environment = repo.git_environment();
    let filter = KeepReason::FilterNotRun("x".into());
    assert_eq!(
        repo.keep_reasons(&dirty),
        [KeepReason::Unstaged(vec!["a".into()]), filter, KeepReason::Unpushed(1)]
    );
    assert_eq!(repo.keep_reasons(&clean), []);
    list_worktrees(&clean.common_git_dir, &environment).unwrap();
    let saved = dirty.save(&repo.home().join("trash/x"), &environment).unwrap();
    dirty.discard(&saved, &environment).unwrap();
    assert_eq!(repo.remove(&clean), RemoveOutcome::Removed);
    crate::propose_worktree(&repo.options(&repo.repository), &environment).unwrap();
    assert_eq!(program.take_calls(), "");
}

#[test]
fn look_at_a_partial_clone_does_not_fetch() {
    let repo = TestRepository::new();
    let program = MarkerProgram::new(&repo);
    let worktree = repo.create_worktree();
    let blob = repo.git(&worktree.path, &["rev-parse", "HEAD:a"]);
    for (name, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", "ssh://example.invalid/repo"),
        // The program gets no input, so that it does not wait for the other side of the connection.
        ("core.sshCommand", &format!("exec </dev/null; {}", path_str(&program.marker))),
    ] {
        repo.git(&repo.repository, &["config", name, value]);
    }
    std::fs::remove_file(repo.repository.join(".git/objects").join(&blob[..2]).join(&blob[2..])).unwrap();
    write_file(&worktree.path.join("a"), "changed\n");
    repo.run_git(&worktree.path, &["diff"]);
    assert!(program.take_calls().contains("example.invalid"), "the user's git fetches");
    assert_eq!(repo.keep_reasons(&worktree), [KeepReason::Unstaged(vec!["a".into()])]);
    worktree.save(&repo.home().join("trash/x"), &repo.git_environment()).unwrap_err();
    assert_eq!(program.take_calls(), "");
}

#[test]
fn filter_of_the_user_runs() {
    let repo = TestRepository::new();
    repo.git(repo.home(), &["config", "--global", "filter.rot.clean", "tr a-z n-za-m"]);
    repo.git(repo.home(), &["config", "--global", "filter.rot.smudge", "tr a-z n-za-m"]);
    write_file(&repo.repository.join(".gitattributes"), "a filter=rot\n");
    write_file(&repo.repository.join("a"), "secret\n");
    repo.commit(&repo.repository, "a filter");
    let worktree = repo.create_worktree();
    assert_eq!(read_file(&worktree.path.join("a")), "secret\n");
    touch(&worktree.path.join("a"));
    // The repository's filter of the same name does not replace the user's.
    repo.git(&repo.repository, &["config", "filter.rot.clean", "false"]);
    repo.git(&repo.repository, &["config", "filter.rot.required", "true"]);
    assert_eq!(repo.keep_reasons(&worktree), []);
    assert_eq!(repo.remove(&worktree), RemoveOutcome::Removed);
}

#[test]
fn merge_runs_no_program_of_the_repository() {
    let repo = TestRepository::new();
    let program = MarkerProgram::new(&repo);
    for (branch, text) in [("ann", "ann\none\n"), ("bob", "one\nbob\n"), ("cy", "cy\n")] {
        repo.git(&repo.repository, &["switch", "--quiet", "--create", branch, "main"]);
        write_file(&repo.repository.join("a"), text);
        repo.commit(&repo.repository, branch);
    }
    repo.git(&repo.repository, &["switch", "--quiet", "main"]);
    program.configure(&repo);
    for (name, value) in [("commit.gpgSign", "true"), ("merge.verifySignatures", "true"), ("gc.auto", "1")] {
        repo.git(&repo.repository, &["config", name, value]);
    }
    for hook in
        ["post-merge", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "pre-rebase", "post-rewrite"]
    {
        std::os::unix::fs::symlink(&program.marker, repo.home().join("hooks").join(hook)).unwrap();
    }
    let merge = ["merge", "--no-ff", "--no-gpg-sign", "--no-verify-signatures", "ann"];
    let output = repo.run_git(&repo.repository, &merge);
    let calls = program.take_calls();
    assert!(calls.contains("hooks/prepare-commit-msg"), "the user's merge: {output:?} {calls}");
    repo.git(&repo.repository, &["update-ref", "refs/heads/main", "main^"]);
    program.take_calls();
    let environment = repo.git_environment();
    let (git_dir, directory) = (repo.repository.join(".git"), repo.home().canonicalize().unwrap());
    let mut branch = MergeBranch::open(&git_dir, "merged", MergeStart::MainWorktree, &environment).unwrap();
    let record = propose_merge_worktree(&directory.join("merges"), "m", &branch).unwrap();
    let worktree = MergeWorktree::add(record.clone(), &branch.next_base, &environment).unwrap();
    for (method, name) in [(MergeMethod::Merge, "ann"), (MergeMethod::Rebase, "bob")] {
        let commit_of = |name: &str| commit_of_branch(&git_dir, name, &environment).unwrap().unwrap();
        let merge = |branch: &MergeBranch, name: &str| {
            worktree.merge(branch, &commit_of(name), method, "merged").unwrap()
        };
        let outcome = merge(&branch, name);
        let MergeOutcome::Merged { commit, .. } = outcome else { panic!("{method:?}: {outcome:?}") };
        branch.advance(&commit, method, &commit_of(name), &environment).unwrap();
        assert!(matches!(merge(&branch, "cy"), MergeOutcome::Conflict(_)));
    }
    record.remove(&environment).unwrap();
    assert_eq!(program.take_calls(), "");
    assert_eq!(repo.git(&repo.repository, &["cat-file", "-p", "merged:a"]), "ann\none\nbob");
}

/// Parts of the names of settings that run a program or use the network.
const PROGRAM_WORDS: [&str; 25] = [
    "alternaterefs",
    "askpass",
    "browser",
    "bundleuri",
    "clean",
    "cmd",
    "command",
    "driver",
    "editor",
    "external",
    "fsmonitor",
    "helper",
    "hook",
    "httpd",
    "pager",
    "process",
    "program",
    "proxy",
    "showsignature",
    "smudge",
    "textconv",
    "tool",
    "tunnel",
    "viewer",
    "vcs",
];

/// Settings whose name contains such a part, but which run nothing.
const HARMLESS: [&str; 18] = [
    "core.alternateRefsPrefixes",
    "advice.ignoredHook",
    "advice.waitingForEditor",
    "color.pager",
    "column.clean",
    "commit.cleanup",
    "completion.commands",
    "core.fsmonitorHookVersion",
    "diff.<driver>.cachetextconv",
    "gitcvs.dbDriver",
    "http.proxyAuthMethod",
    "http.proxySSLCAInfo",
    "http.proxySSLCert",
    "http.proxySSLCertPasswordProtected",
    "http.proxySSLKey",
    "notes.rewrite.<command>",
    "rebase.abbreviateCommands",
    "remote.<name>.proxyAuthMethod",
];

#[test]
fn documented_settings_are_classified() {
    let repo = TestRepository::new();
    let documented = repo.git(&repo.repository, &["help", "--config"]);
    let runs_program = |key: &str| {
        let last = key.rsplit('.').next().unwrap_or_default().to_lowercase();
        PROGRAM_WORDS.iter().any(|word| last.contains(word))
    };
    // The documentation of git 2.36 to 2.55 spells some keys and placeholders in different ways.
    let spelling = |key: &str| key.to_lowercase().replace('-', "").replace("<friendlyname>", "<name>");
    let known: Vec<String> =
        PROGRAM_SETTINGS.iter().map(|(key, _)| *key).chain(HARMLESS).map(spelling).collect();
    let is_known = |key: &str| known.contains(&spelling(key));
    let unknown: Vec<&str> =
        documented.lines().filter(|key| !key.contains(' ') && runs_program(key) && !is_known(key)).collect();
    assert!(documented.lines().count() > 100 && unknown.is_empty(), "add to PROGRAM_SETTINGS: {unknown:?}");
}
