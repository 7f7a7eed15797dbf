//! What was saved brings all of it back.

use super::*;
use crate::{Error, Saved};
use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};

/// Every file below, but for `.git` at the top: its kind, mode and bytes.
fn files(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    fn below(top: &Path, at: &Path, found: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
        for entry in top.join(at).read_dir().unwrap() {
            let name = at.join(entry.unwrap().file_name());
            let path = top.join(&name);
            let kind = path.symlink_metadata().unwrap();
            if name == Path::new(".git") {
            } else if kind.is_dir() {
                below(top, &name, found);
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
    below(top, Path::new(""), &mut found);
    found
}

/// Saves and removes it, then follows its own words in a fresh clone; gives where it was restored.
fn restored(ground: &Ground, tree: &Tree) -> (Saved, PathBuf) {
    let trash = ground.home().join("trash/survey-ann-1");
    let saved = tree.save(&trash, &ground.surroundings()).unwrap();
    assert_eq!(std::fs::metadata(&trash).unwrap().permissions().mode() & 0o777, 0o700);
    tree.discard(&saved, &ground.surroundings()).unwrap();
    assert!(!tree.path.exists());
    let clone = ground.home().join("clone");
    ground.git(ground.home(), &["clone", "--quiet", "repo", "clone"]);
    let words: Vec<&str> = saved.restore.lines().filter(|line| is_order(line)).collect();
    let mut shell = Command::new("sh");
    shell.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", ground.home());
    let ran = shell.current_dir(&clone).args(["-ec", &words.join("\n")]).output().unwrap();
    assert!(ran.status.success(), "{words:#?}: {}", String::from_utf8_lossy(&ran.stderr));
    let mut to = tree.path.clone().into_os_string();
    to.push(".restored");
    (saved, to.into())
}

fn is_order(line: &str) -> bool {
    ["git ", "cd ", "tar "].iter().any(|word| line.starts_with(word))
}

#[test]
fn commits_staged_unstaged_untracked_and_ignored_come_back() {
    let ground = Ground::new();
    let tree = ground.tree();
    let at = |name: &str| tree.path.join(name);
    put(&at("committed"), "x\n");
    ground.commit(&tree.path, "committed");
    put(&at("staged"), "s\n");
    put(&at("a"), "staged\n");
    ground.git(&tree.path, &["add", "--all"]);
    put(&at("a"), "and changed again\n");
    std::fs::remove_file(at("sub/b")).unwrap();
    put(&at("new dir/ü'\n"), "untracked\n");
    put(&at("run"), "#!/bin/sh\n");
    std::fs::set_permissions(at("run"), PermissionsExt::from_mode(0o755)).unwrap();
    put(&at("x.log"), "ignored\n");
    put(&at("kept/deep"), "ignored too\n");
    put(&at("binary"), "\0\u{1}\n");
    symlink("/etc/passwd", at("link")).unwrap();
    ground.git(&tree.path, &["init", "--quiet", "nested"]);
    put(&at("nested/n"), "in a repository of its own\n");
    let (before, head) = (files(&tree.path), ground.git(&tree.path, &["rev-parse", "HEAD"]));
    let staged = ground.git(&tree.path, &["write-tree"]);
    let (saved, restored) = restored(&ground, &tree);
    assert_eq!(files(&restored), before);
    assert_eq!(ground.git(&restored, &["rev-parse", "HEAD"]), head);
    assert_eq!(ground.git(&restored, &["write-tree"]), staged);
    assert!(read(&saved.directory.join("README")).contains(&head));
    ground.git(&ground.repository, &["rev-parse", "--verify", "teamd/survey/ann"]);
}

#[test]
fn stashes_and_abandoned_commits_come_back() {
    let ground = Ground::new();
    let tree = ground.tree();
    put(&tree.path.join("a"), "stashed\n");
    ground.git(&tree.path, &["stash", "--quiet"]);
    ground.git(&tree.path, &["switch", "--quiet", "--detach"]);
    put(&tree.path.join("a"), "abandoned\n");
    ground.commit(&tree.path, "abandoned");
    let abandoned = ground.git(&tree.path, &["rev-parse", "HEAD"]);
    ground.git(&tree.path, &["switch", "--quiet", "teamd/survey/ann"]);
    let (_, restored) = restored(&ground, &tree);
    let has = |name: &str| ground.git(&restored, &["show", &format!("refs/restored/{name}:a")]);
    assert_eq!(has("stash-0"), "stashed");
    assert_eq!(has("abandoned-0"), "abandoned");
    assert_eq!(ground.git(&restored, &["rev-parse", "refs/restored/abandoned-0"]), abandoned);
    assert_eq!(ground.git(&ground.repository, &["stash", "list"]).lines().count(), 1, "it stays there too");
    assert_eq!(ground.git(&ground.repository, &["for-each-ref", "refs/worktree"]), "");
}

#[test]
fn a_conflict_comes_back_as_it_lay_there() {
    let ground = Ground::new();
    let tree = ground.tree();
    put(&tree.path.join("a"), "mine\n");
    ground.commit(&tree.path, "mine");
    put(&ground.repository.join("a"), "theirs\n");
    ground.commit(&ground.repository, "theirs");
    assert!(!ground.ran(&tree.path, &["rebase", "main"]).status.success());
    let before = files(&tree.path);
    let (saved, restored) = restored(&ground, &tree);
    assert_eq!(files(&restored), before);
    assert!(saved.directory.join("git.tar").exists());
}

#[test]
fn nothing_but_a_lock_or_an_empty_bundle_is_no_obstacle() {
    let ground = Ground::new();
    let tree = ground.tree();
    ground.git(&ground.repository, &["worktree", "lock", text(&tree.path)]);
    let before = files(&tree.path);
    let (saved, restored) = restored(&ground, &tree);
    assert_eq!(files(&restored), before);
    assert!(!saved.directory.join("commits.bundle").exists());
}

/// A repository with a submodule `part`, which has one of its own, `inner`.
fn with_submodules(ground: &Ground) {
    for (around, name) in [("sub", "inner"), ("repo", "part")] {
        let at = ground.home().join(around);
        if around == "sub" {
            ground.git(ground.home(), &["clone", "--quiet", "repo", "sub"]);
            ground.git(ground.home(), &["clone", "--quiet", "--bare", "repo", "inner.git"]);
        }
        let from = ground.home().join(if name == "inner" { "inner.git" } else { "sub" });
        ground.git(&at, &["submodule", "--quiet", "add", text(&from), name]);
        ground.commit(&at, "a submodule");
    }
}

#[test]
fn a_submodule_comes_back_with_all_that_its_remote_has_not() {
    let ground = Ground::new();
    with_submodules(&ground);
    let tree = ground.tree();
    ground.git(&tree.path, &["submodule", "--quiet", "update", "--init", "--recursive"]);
    let part = tree.path.join("part");
    for at in [part.clone(), part.join("inner")] {
        for text in ["first\n", "second\n"] {
            put(&at.join("a"), text);
            ground.git(&at, &["stash", "--quiet"]);
        }
        put(&at.join("a"), "abandoned\n");
        ground.commit(&at, "abandoned");
        ground.git(&at, &["reset", "--quiet", "--hard", "HEAD~1"]);
        put(&at.join("a"), "more\n");
        ground.commit(&at, "in the submodule");
        put(&at.join("sub/b"), "staged\n");
        ground.git(&at, &["add", "sub/b"]);
        put(&at.join("sub/b"), "and changed\n");
        put(&at.join("new"), "untracked in it\n");
    }
    put(&tree.path.join("mine"), "untracked\n");
    let head = |at: &Path| ground.git(at, &["rev-parse", "HEAD"]);
    let status = |at: &Path| ground.git(at, &["status", "--porcelain"]);
    let before = (files_but_git(&tree.path), head(&part), head(&part.join("inner")), status(&tree.path));
    let (_, restored) = restored(&ground, &tree);
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
fn a_submodule_that_is_not_checked_out_is_saved_with_what_only_its_logs_hold() {
    let ground = Ground::new();
    with_submodules(&ground);
    let tree = ground.tree();
    ground.git(&tree.path, &["submodule", "--quiet", "update", "--init"]);
    let part = tree.path.join("part");
    put(&part.join("a"), "abandoned\n");
    ground.commit(&part, "abandoned");
    let abandoned = ground.git(&part, &["rev-parse", "HEAD"]);
    ground.git(&part, &["reset", "--quiet", "--hard", "HEAD~1"]);
    ground.git(&tree.path, &["submodule", "--quiet", "deinit", "--force", "part"]);
    assert_eq!(ground.unsaved(&tree).len(), 1);
    // Where it was status does not look.
    put(&part.join("deep/new"), "x");
    assert_eq!(ground.unsaved(&tree)[0], Reason::Untracked(vec!["part".into()]));
    let (saved, restored) = restored(&ground, &tree);
    assert_eq!(read(&restored.join("part/deep/new")), "x");
    let bundle = saved.directory.join("submodules/repository-0/commits.bundle");
    ground.git(&ground.home().join("sub"), &["fetch", text(&bundle), "+refs/*:refs/restored/*"]);
    ground.git(&ground.home().join("sub"), &["cat-file", "-e", &abandoned]);
}

#[test]
fn what_is_written_to_after_it_was_saved_stays() {
    let ground = Ground::new();
    with_submodules(&ground);
    let tree = ground.tree();
    ground.git(&tree.path, &["submodule", "--quiet", "update", "--init"]);
    let at = |name: &str| tree.path.join(name);
    put(&at("new"), "1\n");
    put(&at("kept/deep"), "1\n");
    put(&at("part/new"), "1\n");
    put(&at("a"), "1\n");
    let writes: [(&str, &dyn Fn()); 6] = [
        ("a file that was untracked before", &|| put(&at("new"), "2\n")),
        ("one below an ignored directory", &|| put(&at("kept/deep"), "2\n")),
        ("one of a submodule", &|| put(&at("part/new"), "2\n")),
        ("a changed one, changed again", &|| put(&at("a"), "2\n")),
        ("the index", &|| drop(ground.git(&tree.path, &["add", "new"]))),
        ("the index, with another content", &|| {
            put(&at("new"), "3\n");
            ground.git(&tree.path, &["add", "new"]);
            put(&at("new"), "2\n");
        }),
    ];
    for (n, (what, write)) in writes.into_iter().enumerate() {
        let saved = tree.save(&ground.home().join(format!("trash/{n}")), &ground.surroundings()).unwrap();
        write();
        let error = tree.discard(&saved, &ground.surroundings()).unwrap_err();
        assert!(matches!(error, Error::Changed(_)) && at("new").exists(), "{what}: {error}");
    }
    let saved = tree.save(&ground.home().join("trash/last"), &ground.surroundings()).unwrap();
    tree.discard(&saved, &ground.surroundings()).unwrap();
    assert!(!tree.path.exists());
}

#[test]
fn what_can_not_be_saved_is_an_error_and_stays() {
    let ground = Ground::new();
    let tree = ground.tree();
    put(&tree.path.join("a"), "more\n");
    let trash = ground.home().join("trash/x");
    create_dir_all(&trash).unwrap();
    assert!(matches!(tree.save(&trash, &ground.surroundings()), Err(Error::Io { .. })), "it is taken");
    put(&tree.repository.join("worktrees/survey-ann/index"), "damaged");
    let other = ground.home().join("trash/y");
    assert!(matches!(tree.save(&other, &ground.surroundings()), Err(Error::Git { .. })));
    assert!(read(&other.join("README")).starts_with("Not complete"));
    assert!(tree.path.join("a").exists());
}
