//! Into the trash: everything of a worktree that no commit of a branch has, before it is removed by force. Commits as
//! a bundle, what is staged and what is not as patches, and every file that differs as it was; with the words for
//! having it back. Complete and looked at once more, or an error, and then nothing may be removed.

use crate::commits::{self, Heads};
use crate::error::{Error, io};
use crate::git::{Git, Surroundings};
use crate::quote::quoted;
use crate::stash;
use crate::status::Status;
use crate::submodule;
use crate::tree::Tree;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, create_dir_all};
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Names for what is to be saved, in a part of the references that belongs to the worktree alone and goes with it.
pub(crate) const OURS: &str = "refs/worktree/teamd/";

/// What was saved, and where.
#[derive(Debug, Clone)]
pub struct Saved {
    /// The directory.
    pub directory: PathBuf,
    /// How it is had back, for people.
    pub restore: String,
}

/// What must not change while it is saved.
#[derive(PartialEq, Eq)]
struct Mark {
    status: Status,
    heads: Heads,
}

impl Mark {
    fn of(tree: &Path, git: &Git<'_>) -> Result<Mark, Error> {
        Ok(Mark { status: Status::of(tree, git)?, heads: Heads::of(git)? })
    }
}

impl Tree {
    /// Saves all of it in `directory`, which must not be there and is made, 0700.
    ///
    /// # Errors
    /// Where anything could not be saved; [`Error::Changed`] where it was written to meanwhile.
    pub fn save(&self, directory: &Path, surroundings: &Surroundings) -> Result<Saved, Error> {
        let private = self.private()?;
        let git = self.git(surroundings);
        make(directory)?;
        let before = Mark::of(&self.path, &git)?;
        let mut names = vec![("head".to_owned(), before.heads.head.clone())];
        let own = before.heads.own(self);
        names.extend(own.iter().enumerate().map(|(n, own)| (format!("branch-{n}"), tip(&git, own))));
        names.extend(numbered("stash", stash::made_in(self, &git, &before.heads)?));
        names.extend(numbered("abandoned", commits::abandoned(self, &git, &before.heads)?));
        name(&git, names)?;
        let mut parts = vec![bundle(&git, &directory.join("commits.bundle"), Some(&self.base))?];
        parts.extend(changes(&self.path, &git, &before.status, directory)?);
        parts.push(pack(&private, &[PathBuf::new()], &directory.join("git.tar"), Some("modules"))?);
        submodules(&self.path, &private, surroundings, &directory.join("submodules"))?;
        let restore = self.words(directory, &before.heads, &parts.concat());
        write(&directory.join("README"), restore.as_bytes())?;
        synced(directory)?;
        if Mark::of(&self.path, &git)? != before {
            return Err(Error::Changed(self.path.clone()));
        }
        Ok(Saved { directory: directory.to_owned(), restore })
    }

    fn words(&self, directory: &Path, heads: &Heads, parts: &[&str]) -> String {
        let (path, has) = (self.path.display(), |part: &str| parts.contains(&part));
        let at = |name: &str| quoted(&directory.join(name));
        let mut to = self.path.clone().into_os_string();
        to.push(".restored");
        let head = heads.head.clone().unwrap_or_default();
        let mut lines = vec![
            format!("Saved from the worktree {path} before it was removed."),
            format!("Its branch was {}, its last commit {head}; it began from {}.", self.branch, self.base),
            format!("To have it back, in {} or a clone that has {}:", self.repository.display(), self.base),
            String::new(),
        ];
        if has("commits.bundle") {
            lines.push(format!("git fetch {} '{OURS}*:refs/restored/*'", at("commits.bundle")));
        }
        lines.push(format!("git worktree add --detach {} {head}", quoted(Path::new(&to))));
        lines.push(format!("cd {}", quoted(Path::new(&to))));
        lines.extend(has("staged.patch").then(|| format!("git apply --index {}", at("staged.patch"))));
        lines.extend(has("unstaged.patch").then(|| format!("git apply {}", at("unstaged.patch"))));
        lines.extend(has("files.tar").then(|| format!("tar -xf {}", at("files.tar"))));
        lines.push(String::new());
        lines.push(
            "Beside it: git.tar, git's own notes on the worktree (HEAD, index, logs, a rebase".to_owned(),
        );
        lines.push(
            "under way), and submodules/, each with a bundle of its own where there were any.".to_owned(),
        );
        lines.join("\n") + "\n"
    }
}

/// Each part is there where there was something for it.
type Parts = Vec<&'static str>;

fn tip(git: &Git<'_>, branch: &str) -> Option<String> {
    git.word("look at a branch", &["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")]).ok()
}

fn numbered(what: &str, commits: Vec<String>) -> Vec<(String, Option<String>)> {
    commits.into_iter().enumerate().map(|(n, commit)| (format!("{what}-{n}"), Some(commit))).collect()
}

fn name(git: &Git<'_>, names: Vec<(String, Option<String>)>) -> Result<(), Error> {
    let present = names.into_iter().filter_map(|(name, commit)| Some((name, commit?)));
    let orders: String = present.map(|(name, commit)| format!("update {OURS}{name} {commit}\n")).collect();
    let verb = "name what is to be saved";
    git.run(verb, &["update-ref", "--stdin"], orders.as_bytes(), crate::git::LOOK)?.yes(verb).map(drop)
}

/// All named commits beyond `base`, or all that there are; none where there are none.
fn bundle(git: &Git<'_>, file: &Path, base: Option<&str>) -> Result<Parts, Error> {
    let what = if base.is_some() { vec![format!("--glob={OURS}*")] } else { vec!["--all".to_owned()] };
    let not = base.map(|base| ["--not".to_owned(), base.to_owned()]);
    let what: Vec<String> = what.into_iter().chain(not.into_iter().flatten()).collect();
    let verb = "save the commits";
    let count = ["rev-list".to_owned(), "--count".to_owned()].into_iter().chain(what.clone());
    if git.count(verb, &count.collect::<Vec<_>>(), b"")? == 0 {
        return Ok(Parts::new());
    }
    let mut arguments: Vec<OsString> = ["bundle", "create", "--quiet"].map(OsString::from).into();
    arguments.push(file.into());
    arguments.extend(what.into_iter().map(OsString::from));
    git.run(verb, &arguments, b"", crate::git::WRITE)?.yes(verb)?;
    let verify = [OsStr::new("bundle"), OsStr::new("verify"), OsStr::new("--quiet"), file.as_os_str()];
    git.read("verify the saved commits", &verify)?;
    Ok(vec!["commits.bundle"])
}

/// What is staged, what is not, and all files that differ, as they are.
fn changes(tree: &Path, git: &Git<'_>, status: &Status, into: &Path) -> Result<Vec<Parts>, Error> {
    let staged = patch(git, &["--cached"], status, &into.join("staged.patch"))?;
    let unstaged = patch(git, &[], status, &into.join("unstaged.patch"))?;
    let mut files: Vec<PathBuf> = status.files().cloned().collect();
    files.sort();
    files.dedup();
    Ok(vec![staged, unstaged, pack(tree, &files, &into.join("files.tar"), None)?])
}

/// As any git applies it, whatever is configured here. A conflict has no patch: its file is saved whole.
fn patch(git: &Git<'_>, which: &[&str], status: &Status, file: &Path) -> Result<Parts, Error> {
    let fixed = ["diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv"];
    let spelled = ["--no-renames", "--src-prefix=a/", "--dst-prefix=b/", "--unified=3"];
    let submodules = ["--ignore-submodules=dirty", "--submodule=short"];
    let words = fixed.iter().chain(&spelled).chain(&submodules).chain(which).chain(&["--", ":/"]);
    let mut arguments: Vec<OsString> = words.map(OsString::from).collect();
    arguments.extend(status.unmerged.iter().map(|file| {
        let mut but = OsString::from(":(top,exclude,literal)");
        but.push(file);
        but
    }));
    let made = new(file)?;
    git.write("save the changes", &arguments, &made)?;
    if made.metadata().map_err(io("look at", file))?.len() == 0 {
        std::fs::remove_file(file).map_err(io("remove", file))?;
        return Ok(Parts::new());
    }
    let readable = [OsStr::new("apply"), OsStr::new("--numstat"), OsStr::new("--"), file.as_os_str()];
    git.read("verify the saved changes", &readable)?;
    Ok(vec![part(file)])
}

/// Files and whole directories below `top`, but for what is called `but` in it. Sockets and pipes hold nothing.
fn pack(top: &Path, files: &[PathBuf], archive: &Path, but: Option<&str>) -> Result<Parts, Error> {
    let mut packed = tar::Builder::new(new(archive)?);
    packed.follow_symlinks(false);
    let (mut left, mut count) = (files.to_vec(), 0);
    while let Some(name) = left.pop() {
        let path = top.join(&name);
        let kind = match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            found => found.map_err(io("look at", &path))?.file_type(),
        };
        if kind.is_dir() {
            for entry in path.read_dir().map_err(io("look into", &path))? {
                let entry = entry.map_err(io("look into", &path))?.file_name();
                left.extend((Some(entry.as_os_str()) != but.map(OsStr::new)).then(|| name.join(&entry)));
            }
        }
        let is_top = name.as_os_str().is_empty();
        if !is_top && (kind.is_dir() || kind.is_file() || kind.is_symlink()) {
            packed.append_path_with_name(&path, &name).map_err(io("save", &path))?;
            count += 1;
        }
    }
    packed.into_inner().and_then(|mut file| file.flush()).map_err(io("write", archive))?;
    verified(archive, count)?;
    Ok(if count == 0 { Parts::new() } else { vec![part(archive)] })
}

fn part(file: &Path) -> &'static str {
    const ALL: [&str; 4] = ["staged.patch", "unstaged.patch", "files.tar", "git.tar"];
    ALL.into_iter().find(|part| file.ends_with(part)).unwrap_or_default()
}

/// Every entry can be read again, and all are there.
fn verified(archive: &Path, count: usize) -> Result<(), Error> {
    let mut file = tar::Archive::new(File::open(archive).map_err(io("read", archive))?);
    let mut found = 0;
    for entry in file.entries().map_err(io("read", archive))? {
        let mut entry = entry.map_err(io("read", archive))?;
        std::io::copy(&mut entry.by_ref(), &mut std::io::sink()).map_err(io("read", archive))?;
        found += 1;
    }
    if found == count {
        return Ok(());
    }
    let short = std::io::Error::new(std::io::ErrorKind::InvalidData, "entries are missing");
    Err(io("read", archive)(short))
}

/// Each submodule as a whole: its remote may not have it.
fn submodules(tree: &Path, private: &Path, surroundings: &Surroundings, into: &Path) -> Result<(), Error> {
    for (n, at) in submodule::checked_out(tree, surroundings)?.iter().enumerate() {
        let (place, directory) = (tree.join(at), into.join(n.to_string()));
        let git = Git::within(&place, surroundings);
        make(&directory)?;
        let heads = Heads::of(&git)?;
        let mut names = vec![("head".to_owned(), heads.head.clone())];
        names.extend(numbered("log", heads.log.clone()));
        name(&git, names)?;
        bundle(&git, &directory.join("commits.bundle"), None)?;
        changes(&place, &git, &Status::of(&place, &git)?, &directory)?;
        write(&directory.join("README"), format!("The submodule {}.\n", at.display()).as_bytes())?;
    }
    for (n, at) in submodule::repositories(&private.join("modules"))?.iter().enumerate() {
        let directory = into.join(format!("repository-{n}"));
        make(&directory)?;
        bundle(&Git::of_repository(at, surroundings), &directory.join("commits.bundle"), None)?;
    }
    Ok(())
}

fn make(directory: &Path) -> Result<(), Error> {
    if let Some(parent) = directory.parent().filter(|parent| !parent.exists()) {
        create_dir_all(parent).map_err(io("make", parent))?;
    }
    DirBuilder::new().mode(0o700).create(directory).map_err(io("make", directory))
}

fn new(path: &Path) -> Result<File, Error> {
    File::options().create_new(true).read(true).write(true).open(path).map_err(io("make", path))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    new(path)?.write_all(bytes).map_err(io("write", path))
}

/// On the disk, since what it was made from goes now.
fn synced(directory: &Path) -> Result<(), Error> {
    for entry in directory.read_dir().map_err(io("look into", directory))? {
        let path = entry.map_err(io("look into", directory))?.path();
        if path.is_dir() {
            synced(&path)?;
        } else {
            File::open(&path).and_then(|file| file.sync_all()).map_err(io("write", &path))?;
        }
    }
    File::open(directory).and_then(|file| file.sync_all()).map_err(io("write", directory))
}
