//! Files that git ignores are copied into a new worktree if `.worktreeinclude` names them.

use super::*;
use crate::Error;
use crate::copy_included_files::temporary_copy;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

/// The patterns that the repository of each test ignores.
const IGNORED: &str = "*.log\n.env*\n/secrets/\n/link\n/socket\n/linked/*\n";

impl TestRepository {
    /// Creates a repository that ignores [`IGNORED`], with these patterns in `.worktreeinclude`.
    fn with_includes(patterns: &str) -> TestRepository {
        let repo = TestRepository::new();
        write_file(&repo.repository.join(".gitignore"), IGNORED);
        repo.commit(&repo.repository, "ignore");
        write_file(&repo.repository.join(".worktreeinclude"), patterns);
        repo
    }

    fn copy_included_files(&self, worktree: &WorktreeRecord) -> Result<(), Error> {
        worktree.copy_included_files(&self.git_environment())
    }
}

#[test]
fn ignored_files_that_match_are_copied() {
    let repo = TestRepository::with_includes("# comment\n.env*\n!.env.old\n/secrets/\na\nuntracked\n");
    let main = &repo.repository;
    for file in [".env", "sub/.env", ".env.old", "x.log", "untracked", "secrets/deep/key", "secrets/run.sh"] {
        write_file(&main.join(file), file);
    }
    write_file(&main.join("a"), "changed, but tracked\n");
    set_permissions(main.join("secrets/run.sh"), Permissions::from_mode(0o751)).unwrap();
    set_permissions(main.join("secrets"), Permissions::from_mode(0o700)).unwrap();
    let worktree = repo.create_worktree();
    write_file(&worktree.path.join(".env"), "of the worktree");
    repo.copy_included_files(&worktree).unwrap();
    for file in ["sub/.env", "secrets/deep/key", "secrets/run.sh"] {
        assert_eq!(read_file(&worktree.path.join(file)), file);
    }
    assert_eq!(read_file(&worktree.path.join(".env")), "of the worktree");
    assert_eq!(read_file(&worktree.path.join("a")), "one\n");
    for file in [".env.old", "x.log", "untracked"] {
        assert!(!worktree.path.join(file).exists(), "{file}");
    }
    let mode = |file: &str| worktree.path.join(file).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("secrets/run.sh"), mode("secrets")), (0o751, 0o700));
    repo.copy_included_files(&worktree).unwrap();
}

/// A commit that does not ignore the file would take the copy into the next commit.
#[test]
fn files_that_the_worktree_does_not_ignore_are_not_copied() {
    let repo = TestRepository::with_includes("/secrets/\n");
    repo.git(&repo.repository, &["branch", "old", "main~1"]);
    write_file(&repo.repository.join("secrets/key"), "k");
    let options = WorktreeOptions { branch: Some("old".to_owned()), ..repo.options(&repo.repository) };
    let proposal = repo.propose(&options);
    proposal.add(&repo.git_environment()).unwrap();
    repo.copy_included_files(&proposal.record).unwrap();
    assert!(!proposal.record.path.join("secrets").exists());
}

#[test]
fn links_out_of_the_repository_are_not_followed() {
    let repo = TestRepository::with_includes("/secrets/\n/link\n/socket\n/linked/*\n");
    let (main, outside) = (&repo.repository, repo.home().join("outside"));
    write_file(&outside.join("key"), "of another place");
    create_dir(main.join("secrets")).unwrap();
    symlink(&outside, main.join("secrets/out")).unwrap();
    symlink(outside.join("key"), main.join("link")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(main.join("socket")).unwrap();
    write_file(&main.join("linked/file"), "x");
    let worktree = repo.create_worktree();
    symlink(&outside, worktree.path.join("linked")).unwrap();
    repo.copy_included_files(&worktree).unwrap();
    for link in ["secrets/out", "link"] {
        assert!(worktree.path.join(link).symlink_metadata().unwrap().is_symlink(), "{link}");
    }
    assert!(!worktree.path.join("socket").exists());
    assert_eq!(outside.read_dir().unwrap().count(), 1, "nothing is written through a link");
    // A link in the place of the file is not read.
    let other = TestRepository::with_includes("");
    repo.git(main, &["clean", "-fdX", "--quiet"]);
    #[allow(clippy::disallowed_methods, reason = "the file belongs to the test")]
    std::fs::rename(main.join(".worktreeinclude"), other.home().join("patterns")).unwrap();
    symlink(other.home().join("patterns"), main.join(".worktreeinclude")).unwrap();
    write_file(&main.join("secrets/key"), "k");
    let new = repo.propose(&WorktreeOptions { name: "new".to_owned(), ..repo.options(main) });
    new.add(&repo.git_environment()).unwrap();
    repo.copy_included_files(&new.record).unwrap();
    assert!(!new.record.path.join("secrets").exists());
}

/// A branch can have a link with the name that a copy has while it is written.
#[test]
fn link_in_place_of_the_temporary_copy_is_not_followed() {
    let repo = TestRepository::with_includes(".env\n");
    write_file(&repo.repository.join(".env"), "KEY=1");
    let worktree = repo.create_worktree();
    let outside = repo.home().join("outside");
    write_file(&outside, "untouched");
    symlink(&outside, temporary_copy(&worktree.path.join(".env"))).unwrap();
    assert!(repo.copy_included_files(&worktree).is_err());
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "untouched");
    assert!(!worktree.path.join(".env").exists());
}

#[test]
fn unchanged_created_files_are_not_unsaved_work() {
    let repo = TestRepository::with_includes(".env\n/secrets/\n");
    write_file(&repo.repository.join(".env"), "1");
    write_file(&repo.repository.join("secrets/key"), "k");
    let environment = repo.git_environment();
    let ready = || {
        let worktree = repo.create_worktree();
        assert!(!worktree.is_ready_for_agent().unwrap());
        repo.copy_included_files(&worktree).unwrap();
        let ignored = [".env", "secrets/"].map(PathBuf::from).to_vec();
        assert_eq!(repo.keep_reasons(&worktree), [KeepReason::Ignored(ignored)]);
        worktree.note_created_files(&environment).unwrap();
        assert!(worktree.is_ready_for_agent().unwrap());
        assert_eq!(repo.keep_reasons(&worktree), []);
        worktree
    };
    let changes: [fn(&Path); 3] = [
        |path| write_file(&path.join(".env"), "2"),
        |path| write_file(&path.join("secrets/new"), "n"),
        |path| write_file(&path.join("x.log"), "x"),
    ];
    for change in changes {
        let worktree = ready();
        change(&worktree.path);
        let reasons = repo.keep_reasons(&worktree);
        assert!(matches!(&reasons[..], [KeepReason::Ignored(files)] if files.len() == 1), "{reasons:?}");
        worktree.remove_before_agent_starts(&environment).unwrap();
        assert!(!worktree.path.exists());
        assert_eq!(repo.teamd_branches(), "");
    }
    assert_eq!(repo.remove(&ready()), RemoveOutcome::Removed);
}

/// Root can read a directory without permissions, so the directory is too deep for a path.
#[test]
fn created_files_that_cannot_be_read_are_unsaved_work() {
    let repo = TestRepository::with_includes("");
    let worktree = repo.create_worktree();
    write_file(&worktree.path.join("x.log"), "x");
    let top = worktree.path.join("secrets");
    std::fs::create_dir(&top).unwrap();
    make_deep_directory(&top);
    worktree.note_created_files(&repo.git_environment()).unwrap();
    assert!(worktree.is_ready_for_agent().unwrap());
    assert!(worktree.keep_reasons(&repo.git_environment()).is_err());
}

/// Creates directories in `top` whose paths are longer than the system accepts.
fn make_deep_directory(top: &Path) {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
    let (name, flags) = ("d".repeat(200), OFlags::DIRECTORY);
    let mut directory = open(top, flags, Mode::empty()).unwrap();
    for _ in 0..25 {
        mkdirat(&directory, &name, Mode::RWXU).unwrap();
        directory = openat(&directory, &name, flags, Mode::empty()).unwrap();
    }
}
