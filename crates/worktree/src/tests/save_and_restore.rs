//! The commands in the README of a saved worktree restore the worktree completely.

use super::*;
use crate::{Error, SavedWorktree};
use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};

/// Returns the mode and the content of every file below `top`, except `.git` at the top. The
/// content of a link is its target.
fn read_files(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    fn collect_files(top: &Path, dir: &Path, found: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
        for entry in top.join(dir).read_dir().unwrap() {
            let name = dir.join(entry.unwrap().file_name());
            let path = top.join(&name);
            let kind = path.symlink_metadata().unwrap();
            if name == Path::new(".git") {
            } else if kind.is_dir() {
                collect_files(top, &name, found);
            } else {
                let bytes = if kind.is_symlink() {
                    path.read_link().unwrap().into_os_string().into_encoded_bytes()
                } else {
                    std::fs::read(&path).unwrap()
                };
                found.insert(name, (kind.permissions().mode() & 0o777, bytes));
            }
        }
    }
    let mut found = BTreeMap::new();
    collect_files(top, Path::new(""), &mut found);
    found
}

/// Saves and removes a worktree, and runs the commands of its README in a new clone. Returns the
/// saved worktree, and the directory in which the commands restored it.
fn save_and_restore(repo: &TestRepository, worktree: &WorktreeRecord) -> (SavedWorktree, PathBuf) {
    let trash = repo.home().join("trash/survey-ann-1");
    let saved = worktree.save(&trash, &repo.git_environment()).unwrap();
    assert_eq!(std::fs::metadata(&trash).unwrap().permissions().mode() & 0o777, 0o700);
    worktree.discard(&saved, &repo.git_environment()).unwrap();
    assert!(!worktree.path.exists());
    let clone = repo.home().join("clone");
    repo.git(repo.home(), &["clone", "--quiet", "repo", "clone"]);
    let commands: Vec<&str> =
        saved.restore_instructions.lines().filter(|line| is_command_line(line)).collect();
    let mut shell = Command::new("sh");
    shell.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", repo.home());
    let output = shell.current_dir(&clone).args(["-ec", &commands.join("\n")]).output().unwrap();
    assert!(output.status.success(), "{commands:#?}: {}", String::from_utf8_lossy(&output.stderr));
    let mut restored = worktree.path.clone().into_os_string();
    restored.push(".restored");
    (saved, restored.into())
}

/// Whether a line of the README is a command.
fn is_command_line(line: &str) -> bool {
    ["git ", "cd ", "tar "].iter().any(|command| line.starts_with(command))
}

#[test]
fn commits_and_changes_are_restored() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    let path = |name: &str| worktree.path.join(name);
    write_file(&path("committed"), "x\n");
    repo.commit(&worktree.path, "committed");
    write_file(&path("staged"), "s\n");
    write_file(&path("a"), "staged\n");
    repo.git(&worktree.path, &["add", "--all"]);
    write_file(&path("a"), "and changed again\n");
    std::fs::remove_file(path("sub/b")).unwrap();
    write_file(&path("new dir/ü'\n"), "untracked\n");
    write_file(&path("run"), "#!/bin/sh\n");
    std::fs::set_permissions(path("run"), PermissionsExt::from_mode(0o755)).unwrap();
    write_file(&path("x.log"), "ignored\n");
    write_file(&path("kept/deep"), "ignored too\n");
    write_file(&path("binary"), "\0\u{1}\n");
    symlink("/etc/passwd", path("link")).unwrap();
    repo.git(&worktree.path, &["init", "--quiet", "nested"]);
    write_file(&path("nested/n"), "in a repository of its own\n");
    let (before, head) = (read_files(&worktree.path), repo.git(&worktree.path, &["rev-parse", "HEAD"]));
    let staged = repo.git(&worktree.path, &["write-tree"]);
    let (saved, restored) = save_and_restore(&repo, &worktree);
    assert_eq!(read_files(&restored), before);
    assert_eq!(repo.git(&restored, &["rev-parse", "HEAD"]), head);
    assert_eq!(repo.git(&restored, &["write-tree"]), staged);
    assert!(read_file(&saved.directory.join("README")).contains(&head));
    repo.git(&repo.repository, &["rev-parse", "--verify", "teamd-trash/survey-ann-1"]);
}

#[test]
fn stashes_and_reflog_commits_are_restored() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    write_file(&worktree.path.join("a"), "stashed\n");
    repo.git(&worktree.path, &["stash", "--quiet"]);
    repo.git(&worktree.path, &["switch", "--quiet", "--detach"]);
    write_file(&worktree.path.join("a"), "abandoned\n");
    repo.commit(&worktree.path, "abandoned");
    let abandoned = repo.git(&worktree.path, &["rev-parse", "HEAD"]);
    repo.git(&worktree.path, &["switch", "--quiet", "teamd/survey/ann"]);
    let (_, restored) = save_and_restore(&repo, &worktree);
    let content = |name: &str| repo.git(&restored, &["show", &format!("refs/restored/{name}:a")]);
    assert_eq!(content("stash-0"), "stashed");
    assert_eq!(content("reflog-0"), "abandoned");
    assert_eq!(repo.git(&restored, &["rev-parse", "refs/restored/reflog-0"]), abandoned);
    assert_eq!(
        repo.git(&repo.repository, &["stash", "list"]).lines().count(),
        1,
        "the stash stays in the repository"
    );
    assert_eq!(repo.git(&repo.repository, &["for-each-ref", "refs/worktree"]), "");
}

#[test]
fn conflict_is_restored() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    write_file(&worktree.path.join("a"), "mine\n");
    repo.commit(&worktree.path, "mine");
    write_file(&repo.repository.join("a"), "theirs\n");
    repo.commit(&repo.repository, "theirs");
    assert!(!repo.run_git(&worktree.path, &["rebase", "main"]).status.success());
    let before = read_files(&worktree.path);
    let (saved, restored) = save_and_restore(&repo, &worktree);
    assert_eq!(read_files(&restored), before);
    assert!(saved.directory.join("git-dir.tar").exists());
}

#[test]
fn lock_and_missing_local_commits_do_not_prevent_saving() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    repo.git(&repo.repository, &["worktree", "lock", path_str(&worktree.path)]);
    let before = read_files(&worktree.path);
    let (saved, restored) = save_and_restore(&repo, &worktree);
    assert_eq!(read_files(&restored), before);
    assert!(!saved.directory.join("commits.bundle").exists());
}

/// Adds a submodule `part`, which has a submodule `inner`.
fn add_submodules(repo: &TestRepository) {
    for (outer, name) in [("sub", "inner"), ("repo", "part")] {
        let outer_path = repo.home().join(outer);
        if outer == "sub" {
            repo.git(repo.home(), &["clone", "--quiet", "repo", "sub"]);
            repo.git(repo.home(), &["clone", "--quiet", "--bare", "repo", "inner.git"]);
        }
        let source = repo.home().join(if name == "inner" { "inner.git" } else { "sub" });
        repo.git(&outer_path, &["submodule", "--quiet", "add", path_str(&source), name]);
        repo.commit(&outer_path, "a submodule");
    }
}

#[test]
fn submodule_is_restored_with_local_work() {
    let repo = TestRepository::new();
    add_submodules(&repo);
    let worktree = repo.create_worktree();
    repo.git(&worktree.path, &["submodule", "--quiet", "update", "--init", "--recursive"]);
    let part = worktree.path.join("part");
    for dir in [part.clone(), part.join("inner")] {
        for text in ["first\n", "second\n"] {
            write_file(&dir.join("a"), text);
            repo.git(&dir, &["stash", "--quiet"]);
        }
        write_file(&dir.join("a"), "abandoned\n");
        repo.commit(&dir, "abandoned");
        repo.git(&dir, &["reset", "--quiet", "--hard", "HEAD~1"]);
        write_file(&dir.join("a"), "more\n");
        repo.commit(&dir, "in the submodule");
        write_file(&dir.join("sub/b"), "staged\n");
        repo.git(&dir, &["add", "sub/b"]);
        write_file(&dir.join("sub/b"), "and changed\n");
        write_file(&dir.join("new"), "untracked in it\n");
    }
    write_file(&worktree.path.join("mine"), "untracked\n");
    let head = |dir: &Path| repo.git(dir, &["rev-parse", "HEAD"]);
    let status = |dir: &Path| repo.git(dir, &["status", "--porcelain"]);
    let before =
        (files_without_git(&worktree.path), head(&part), head(&part.join("inner")), status(&worktree.path));
    let (_, restored) = save_and_restore(&repo, &worktree);
    let part = restored.join("part");
    assert_eq!(
        (files_without_git(&restored), head(&part), head(&part.join("inner")), status(&restored)),
        before
    );
    for dir in [&part, &part.join("inner")] {
        assert_eq!(status(dir).lines().last(), Some("?? new"));
        let all = repo.git(dir, &["log", "--all", "--format=%H"]);
        let texts: Vec<String> = all.lines().map(|id| repo.git(dir, &["show", &format!("{id}:a")])).collect();
        for text in ["first", "second", "abandoned", "more"] {
            assert!(texts.iter().any(|found| found == text), "{text}: {texts:?}");
        }
    }
}

/// Returns the files below `top`, without those in a `.git` at any depth.
fn files_without_git(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let is_git = |path: &Path| path.iter().any(|name| name == ".git");
    read_files(top).into_iter().filter(|(path, _)| !is_git(path)).collect()
}

#[test]
fn reflog_of_a_submodule_that_is_not_checked_out_is_saved() {
    let repo = TestRepository::new();
    add_submodules(&repo);
    let worktree = repo.create_worktree();
    repo.git(&worktree.path, &["submodule", "--quiet", "update", "--init"]);
    let part = worktree.path.join("part");
    write_file(&part.join("a"), "abandoned\n");
    repo.commit(&part, "abandoned");
    let abandoned = repo.git(&part, &["rev-parse", "HEAD"]);
    repo.git(&part, &["reset", "--quiet", "--hard", "HEAD~1"]);
    repo.git(&worktree.path, &["submodule", "--quiet", "deinit", "--force", "part"]);
    assert_eq!(repo.keep_reasons(&worktree).len(), 1);
    // `git status` does not report files in the directory of a submodule that is not checked out.
    write_file(&part.join("deep/new"), "x");
    assert_eq!(repo.keep_reasons(&worktree)[0], KeepReason::Untracked(vec!["part".into()]));
    let (saved, restored) = save_and_restore(&repo, &worktree);
    assert_eq!(read_file(&restored.join("part/deep/new")), "x");
    let bundle = saved.directory.join("submodules/not-checked-out-0/commits.bundle");
    repo.git(&repo.home().join("sub"), &["fetch", path_str(&bundle), "+refs/*:refs/restored/*"]);
    repo.git(&repo.home().join("sub"), &["cat-file", "-e", &abandoned]);
}

#[test]
fn writes_after_saving_prevent_removal() {
    let repo = TestRepository::new();
    add_submodules(&repo);
    let worktree = repo.create_worktree();
    repo.git(&worktree.path, &["submodule", "--quiet", "update", "--init"]);
    let path = |name: &str| worktree.path.join(name);
    write_file(&path("new"), "1\n");
    write_file(&path("kept/deep"), "1\n");
    write_file(&path("part/new"), "1\n");
    write_file(&path("a"), "1\n");
    let writes: [(&str, &dyn Fn()); 6] = [
        ("an untracked file", &|| write_file(&path("new"), "2\n")),
        ("a file in an ignored directory", &|| write_file(&path("kept/deep"), "2\n")),
        ("a file in a submodule", &|| write_file(&path("part/new"), "2\n")),
        ("a changed file, changed again", &|| write_file(&path("a"), "2\n")),
        ("the index", &|| drop(repo.git(&worktree.path, &["add", "new"]))),
        ("the index, with other content", &|| {
            write_file(&path("new"), "3\n");
            repo.git(&worktree.path, &["add", "new"]);
            write_file(&path("new"), "2\n");
        }),
    ];
    for (n, (description, write)) in writes.into_iter().enumerate() {
        let saved = worktree.save(&repo.home().join(format!("trash/{n}")), &repo.git_environment()).unwrap();
        write();
        let error = worktree.discard(&saved, &repo.git_environment()).unwrap_err();
        assert!(
            matches!(error, Error::ChangedWhileSaving(_)) && path("new").exists(),
            "{description}: {error}"
        );
    }
    let saved = worktree.save(&repo.home().join("trash/last"), &repo.git_environment()).unwrap();
    worktree.discard(&saved, &repo.git_environment()).unwrap();
    assert!(!worktree.path.exists());
}

#[test]
fn worktree_that_cannot_be_saved_is_kept() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    write_file(&worktree.path.join("a"), "more\n");
    let trash = repo.home().join("trash/x");
    create_dir_all(&trash).unwrap();
    assert!(
        matches!(worktree.save(&trash, &repo.git_environment()), Err(Error::Io { .. })),
        "the target directory exists already"
    );
    write_file(&worktree.common_git_dir.join("worktrees/survey-ann/index"), "damaged");
    let other = repo.home().join("trash/y");
    assert!(matches!(worktree.save(&other, &repo.git_environment()), Err(Error::Git { .. })));
    assert!(read_file(&other.join("README")).starts_with("Not complete"));
    assert!(worktree.path.join("a").exists());
}
