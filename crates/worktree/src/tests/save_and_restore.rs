//! What was saved brings all of it back.

use super::*;
use crate::{Error, SavedWorktree};
use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};

/// Every file below, but for `.git` at the top: its kind, mode and bytes.
fn files(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    fn collect_files(top: &Path, at: &Path, found: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
        for entry in top.join(at).read_dir().unwrap() {
            let name = at.join(entry.unwrap().file_name());
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

/// Saves and removes it, then follows its own words in a fresh clone; gives where it was restored.
fn save_and_restore(ground: &TestRepository, tree: &WorktreeRecord) -> (SavedWorktree, PathBuf) {
    let trash = ground.home().join("trash/survey-ann-1");
    let saved = tree.save(&trash, &ground.git_environment()).unwrap();
    assert_eq!(std::fs::metadata(&trash).unwrap().permissions().mode() & 0o777, 0o700);
    tree.discard(&saved, &ground.git_environment()).unwrap();
    assert!(!tree.path.exists());
    let clone = ground.home().join("clone");
    ground.git(ground.home(), &["clone", "--quiet", "repo", "clone"]);
    let words: Vec<&str> = saved.restore_instructions.lines().filter(|line| is_command_line(line)).collect();
    let mut shell = Command::new("sh");
    shell.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", ground.home());
    let ran = shell.current_dir(&clone).args(["-ec", &words.join("\n")]).output().unwrap();
    assert!(ran.status.success(), "{words:#?}: {}", String::from_utf8_lossy(&ran.stderr));
    let mut to = tree.path.clone().into_os_string();
    to.push(".restored");
    (saved, to.into())
}

fn is_command_line(line: &str) -> bool {
    ["git ", "cd ", "tar "].iter().any(|word| line.starts_with(word))
}

#[test]
fn commits_and_changes_are_restored() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    let at = |name: &str| tree.path.join(name);
    write_file(&at("committed"), "x\n");
    ground.commit(&tree.path, "committed");
    write_file(&at("staged"), "s\n");
    write_file(&at("a"), "staged\n");
    ground.git(&tree.path, &["add", "--all"]);
    write_file(&at("a"), "and changed again\n");
    std::fs::remove_file(at("sub/b")).unwrap();
    write_file(&at("new dir/ü'\n"), "untracked\n");
    write_file(&at("run"), "#!/bin/sh\n");
    std::fs::set_permissions(at("run"), PermissionsExt::from_mode(0o755)).unwrap();
    write_file(&at("x.log"), "ignored\n");
    write_file(&at("kept/deep"), "ignored too\n");
    write_file(&at("binary"), "\0\u{1}\n");
    symlink("/etc/passwd", at("link")).unwrap();
    ground.git(&tree.path, &["init", "--quiet", "nested"]);
    write_file(&at("nested/n"), "in a repository of its own\n");
    let (before, head) = (files(&tree.path), ground.git(&tree.path, &["rev-parse", "HEAD"]));
    let staged = ground.git(&tree.path, &["write-tree"]);
    let (saved, restored) = save_and_restore(&ground, &tree);
    assert_eq!(files(&restored), before);
    assert_eq!(ground.git(&restored, &["rev-parse", "HEAD"]), head);
    assert_eq!(ground.git(&restored, &["write-tree"]), staged);
    assert!(read_file(&saved.directory.join("README")).contains(&head));
    ground.git(&ground.repository, &["rev-parse", "--verify", "teamd/survey/ann"]);
}

#[test]
fn stashes_and_reflog_commits_are_restored() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    write_file(&tree.path.join("a"), "stashed\n");
    ground.git(&tree.path, &["stash", "--quiet"]);
    ground.git(&tree.path, &["switch", "--quiet", "--detach"]);
    write_file(&tree.path.join("a"), "abandoned\n");
    ground.commit(&tree.path, "abandoned");
    let abandoned = ground.git(&tree.path, &["rev-parse", "HEAD"]);
    ground.git(&tree.path, &["switch", "--quiet", "teamd/survey/ann"]);
    let (_, restored) = save_and_restore(&ground, &tree);
    let has = |name: &str| ground.git(&restored, &["show", &format!("refs/restored/{name}:a")]);
    assert_eq!(has("stash-0"), "stashed");
    assert_eq!(has("abandoned-0"), "abandoned");
    assert_eq!(ground.git(&restored, &["rev-parse", "refs/restored/abandoned-0"]), abandoned);
    assert_eq!(ground.git(&ground.repository, &["stash", "list"]).lines().count(), 1, "it stays there too");
    assert_eq!(ground.git(&ground.repository, &["for-each-ref", "refs/worktree"]), "");
}

#[test]
fn conflict_is_restored() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    write_file(&tree.path.join("a"), "mine\n");
    ground.commit(&tree.path, "mine");
    write_file(&ground.repository.join("a"), "theirs\n");
    ground.commit(&ground.repository, "theirs");
    assert!(!ground.run_git(&tree.path, &["rebase", "main"]).status.success());
    let before = files(&tree.path);
    let (saved, restored) = save_and_restore(&ground, &tree);
    assert_eq!(files(&restored), before);
    assert!(saved.directory.join("git.tar").exists());
}

#[test]
fn lock_and_empty_bundle_do_not_prevent_saving() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    ground.git(&ground.repository, &["worktree", "lock", path_str(&tree.path)]);
    let before = files(&tree.path);
    let (saved, restored) = save_and_restore(&ground, &tree);
    assert_eq!(files(&restored), before);
    assert!(!saved.directory.join("commits.bundle").exists());
}

/// A repository with a submodule `part`, which has one of its own, `inner`.
fn with_submodules(ground: &TestRepository) {
    for (around, name) in [("sub", "inner"), ("repo", "part")] {
        let at = ground.home().join(around);
        if around == "sub" {
            ground.git(ground.home(), &["clone", "--quiet", "repo", "sub"]);
            ground.git(ground.home(), &["clone", "--quiet", "--bare", "repo", "inner.git"]);
        }
        let from = ground.home().join(if name == "inner" { "inner.git" } else { "sub" });
        ground.git(&at, &["submodule", "--quiet", "add", path_str(&from), name]);
        ground.commit(&at, "a submodule");
    }
}

#[test]
fn submodule_is_restored_with_local_work() {
    let ground = TestRepository::new();
    with_submodules(&ground);
    let tree = ground.create_worktree();
    ground.git(&tree.path, &["submodule", "--quiet", "update", "--init", "--recursive"]);
    let part = tree.path.join("part");
    for at in [part.clone(), part.join("inner")] {
        for text in ["first\n", "second\n"] {
            write_file(&at.join("a"), text);
            ground.git(&at, &["stash", "--quiet"]);
        }
        write_file(&at.join("a"), "abandoned\n");
        ground.commit(&at, "abandoned");
        ground.git(&at, &["reset", "--quiet", "--hard", "HEAD~1"]);
        write_file(&at.join("a"), "more\n");
        ground.commit(&at, "in the submodule");
        write_file(&at.join("sub/b"), "staged\n");
        ground.git(&at, &["add", "sub/b"]);
        write_file(&at.join("sub/b"), "and changed\n");
        write_file(&at.join("new"), "untracked in it\n");
    }
    write_file(&tree.path.join("mine"), "untracked\n");
    let head = |at: &Path| ground.git(at, &["rev-parse", "HEAD"]);
    let status = |at: &Path| ground.git(at, &["status", "--porcelain"]);
    let before = (files_but_git(&tree.path), head(&part), head(&part.join("inner")), status(&tree.path));
    let (_, restored) = save_and_restore(&ground, &tree);
    let part = restored.join("part");
    assert_eq!((files_but_git(&restored), head(&part), head(&part.join("inner")), status(&restored)), before);
    for at in [&part, &part.join("inner")] {
        assert_eq!(status(at).lines().last(), Some("?? new"));
        let all = ground.git(at, &["log", "--all", "--format=%H"]);
        let texts: Vec<String> =
            all.lines().map(|id| ground.git(at, &["show", &format!("{id}:a")])).collect();
        for text in ["first", "second", "abandoned", "more"] {
            assert!(texts.iter().any(|found| found == text), "{text}: {texts:?}");
        }
    }
}

fn files_but_git(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let is_git = |path: &Path| path.iter().any(|name| name == ".git");
    files(top).into_iter().filter(|(path, _)| !is_git(path)).collect()
}

#[test]
fn unchecked_out_submodule_saves_its_reflog() {
    let ground = TestRepository::new();
    with_submodules(&ground);
    let tree = ground.create_worktree();
    ground.git(&tree.path, &["submodule", "--quiet", "update", "--init"]);
    let part = tree.path.join("part");
    write_file(&part.join("a"), "abandoned\n");
    ground.commit(&part, "abandoned");
    let abandoned = ground.git(&part, &["rev-parse", "HEAD"]);
    ground.git(&part, &["reset", "--quiet", "--hard", "HEAD~1"]);
    ground.git(&tree.path, &["submodule", "--quiet", "deinit", "--force", "part"]);
    assert_eq!(ground.keep_reasons(&tree).len(), 1);
    // Where it was status does not look.
    write_file(&part.join("deep/new"), "x");
    assert_eq!(ground.keep_reasons(&tree)[0], KeepReason::Untracked(vec!["part".into()]));
    let (saved, restored) = save_and_restore(&ground, &tree);
    assert_eq!(read_file(&restored.join("part/deep/new")), "x");
    let bundle = saved.directory.join("submodules/repository-0/commits.bundle");
    ground.git(&ground.home().join("sub"), &["fetch", path_str(&bundle), "+refs/*:refs/restored/*"]);
    ground.git(&ground.home().join("sub"), &["cat-file", "-e", &abandoned]);
}

#[test]
fn writes_after_saving_prevent_removal() {
    let ground = TestRepository::new();
    with_submodules(&ground);
    let tree = ground.create_worktree();
    ground.git(&tree.path, &["submodule", "--quiet", "update", "--init"]);
    let at = |name: &str| tree.path.join(name);
    write_file(&at("new"), "1\n");
    write_file(&at("kept/deep"), "1\n");
    write_file(&at("part/new"), "1\n");
    write_file(&at("a"), "1\n");
    let writes: [(&str, &dyn Fn()); 6] = [
        ("a file that was untracked before", &|| write_file(&at("new"), "2\n")),
        ("one below an ignored directory", &|| write_file(&at("kept/deep"), "2\n")),
        ("one of a submodule", &|| write_file(&at("part/new"), "2\n")),
        ("a changed one, changed again", &|| write_file(&at("a"), "2\n")),
        ("the index", &|| drop(ground.git(&tree.path, &["add", "new"]))),
        ("the index, with another content", &|| {
            write_file(&at("new"), "3\n");
            ground.git(&tree.path, &["add", "new"]);
            write_file(&at("new"), "2\n");
        }),
    ];
    for (n, (what, write)) in writes.into_iter().enumerate() {
        let saved = tree.save(&ground.home().join(format!("trash/{n}")), &ground.git_environment()).unwrap();
        write();
        let error = tree.discard(&saved, &ground.git_environment()).unwrap_err();
        assert!(matches!(error, Error::ChangedWhileSaving(_)) && at("new").exists(), "{what}: {error}");
    }
    let saved = tree.save(&ground.home().join("trash/last"), &ground.git_environment()).unwrap();
    tree.discard(&saved, &ground.git_environment()).unwrap();
    assert!(!tree.path.exists());
}

#[test]
fn unsavable_worktree_is_kept() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    write_file(&tree.path.join("a"), "more\n");
    let trash = ground.home().join("trash/x");
    create_dir_all(&trash).unwrap();
    assert!(matches!(tree.save(&trash, &ground.git_environment()), Err(Error::Io { .. })), "it is taken");
    write_file(&tree.common_git_dir.join("worktrees/survey-ann/index"), "damaged");
    let other = ground.home().join("trash/y");
    assert!(matches!(tree.save(&other, &ground.git_environment()), Err(Error::Git { .. })));
    assert!(read_file(&other.join("README")).starts_with("Not complete"));
    assert!(tree.path.join("a").exists());
}
