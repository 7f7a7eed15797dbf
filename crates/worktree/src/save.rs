//! Into the trash: everything of a worktree that no commit of a branch has, before it is removed by force. Commits as
//! a bundle, what is staged and what is not as patches, and every file that differs as it was; with the words for
//! having it back. Complete and looked at once more, or an error, and then nothing may be removed.

use crate::commits;
use crate::error::{Error, io};
use crate::git::{Git, Surroundings};
use crate::mark::{Mark, Marks};
use crate::pack::{new, pack};
use crate::restore::Part;
use crate::stash;
use crate::submodule;
use crate::tree::Tree;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, create_dir_all};
use std::io::Write;
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
    /// What it was like: it is removed as long as that is so.
    pub(crate) marks: Marks,
}

impl Tree {
    /// Saves all of it in `directory`, which must not be there and is made, 0700. What an error leaves there says that
    /// it is not complete.
    ///
    /// # Errors
    /// Where anything could not be saved; [`Error::Changed`] where it was written to meanwhile.
    pub fn save(&self, directory: &Path, surroundings: &Surroundings) -> Result<Saved, Error> {
        let private = self.private()?;
        make(directory)?;
        self.saved(&private, directory, surroundings).inspect_err(|error| {
            let words = format!("Not complete, and nothing was removed for it: {error}.\n");
            write(&directory.join("README"), words.as_bytes()).ok();
        })
    }

    fn saved(&self, private: &Path, directory: &Path, surroundings: &Surroundings) -> Result<Saved, Error> {
        let marks = Marks::of(&self.path, surroundings)?;
        let mut parts = Vec::new();
        // The empty path is the first of them.
        for (at, mark) in &marks.0 {
            parts.push(match at.as_os_str().is_empty() {
                true => self.itself(mark, private, directory, surroundings)?,
                false => {
                    let into = directory.join("submodules").join((parts.len() - 1).to_string());
                    self.submodule(at, mark, private, into, surroundings)?
                }
            });
        }
        repositories(&self.path, private, surroundings, &directory.join("submodules"))?;
        let heads = &marks.0[Path::new("")].heads;
        let restore = self.words(heads, &parts);
        if Marks::of(&self.path, surroundings)? != marks {
            return Err(Error::Changed(self.path.clone()));
        }
        write(&directory.join("README"), restore.as_bytes())?;
        synced(directory)?;
        Ok(Saved { directory: directory.to_owned(), restore, marks })
    }

    fn itself(
        &self,
        mark: &Mark,
        private: &Path,
        directory: &Path,
        surroundings: &Surroundings,
    ) -> Result<Part, Error> {
        let (git, heads) = (self.git(surroundings), &mark.heads);
        let mut names = vec![("head".to_owned(), heads.head.clone())];
        let own = heads.own(self);
        names.extend(own.iter().enumerate().map(|(n, own)| (format!("branch-{n}"), tip(&git, own))));
        names.extend(numbered("stash", stash::made_in(self, &git, heads)?));
        names.extend(numbered("abandoned", commits::abandoned(self, &git, heads)?));
        name(&git, names)?;
        let mut has = Vec::new();
        has.extend(bundle(&git, directory, Some(&self.base))?);
        has.extend(changes(&self.path, &git, mark, private, directory)?);
        let modules = |name: &Path| name == Path::new("modules");
        pack(private, &[PathBuf::new()], &directory.join("git.tar"), &modules)?;
        Ok(Part { at: PathBuf::new(), directory: directory.to_owned(), head: heads.head.clone(), has })
    }

    /// As a whole: its remote may not have it.
    fn submodule(
        &self,
        at: &Path,
        mark: &Mark,
        private: &Path,
        directory: PathBuf,
        surroundings: &Surroundings,
    ) -> Result<Part, Error> {
        let place = self.path.join(at);
        let (git, head) = (Git::within(&place, surroundings), mark.heads.head.clone());
        make(&directory)?;
        name_all(&git, head.clone())?;
        let mut has = Vec::new();
        has.extend(bundle(&git, &directory, None)?);
        has.extend(changes(&place, &git, mark, private, &directory)?);
        Ok(Part { at: at.to_owned(), directory, head, has })
    }
}

/// Those that are not checked out now, with all that they remember.
fn repositories(tree: &Path, private: &Path, surroundings: &Surroundings, into: &Path) -> Result<(), Error> {
    for (n, at) in submodule::not_checked_out(tree, private, surroundings)?.iter().enumerate() {
        let (git, directory) = (Git::of_repository(at, surroundings), into.join(format!("repository-{n}")));
        make(&directory)?;
        name_all(&git, None)?;
        bundle(&git, &directory, None)?;
        let words = format!("The repository {}: in a clone of it\n", at.display());
        let fetch = "git fetch commits.bundle '+refs/*:refs/restored/*'\n";
        write(&directory.join("README"), (words + fetch).as_bytes())?;
    }
    Ok(())
}

/// Its HEAD, and what only its logs hold: stashes are in one of them.
fn name_all(git: &Git<'_>, head: Option<String>) -> Result<(), Error> {
    let mut names = vec![("head".to_owned(), head)];
    names.extend(numbered("log", commits::only_in_logs(git)?));
    name(git, names)
}

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
fn bundle(git: &Git<'_>, into: &Path, base: Option<&str>) -> Result<Option<&'static str>, Error> {
    let (part, file) = ("commits.bundle", into.join("commits.bundle"));
    let what = if base.is_some() { vec![format!("--glob={OURS}*")] } else { vec!["--all".to_owned()] };
    let not = base.map(|base| ["--not".to_owned(), base.to_owned()]);
    let what: Vec<String> = what.into_iter().chain(not.into_iter().flatten()).collect();
    let verb = "save the commits";
    let count = ["rev-list".to_owned(), "--count".to_owned()].into_iter().chain(what.clone());
    if git.count(verb, &count.collect::<Vec<_>>(), b"")? == 0 {
        return Ok(None);
    }
    let mut arguments: Vec<OsString> = ["bundle", "create", "--quiet"].map(OsString::from).into();
    arguments.push(file.clone().into());
    arguments.extend(what.into_iter().map(OsString::from));
    git.run(verb, &arguments, b"", crate::git::WRITE)?.yes(verb)?;
    let verify = [OsStr::new("bundle"), OsStr::new("verify"), OsStr::new("--quiet"), file.as_os_str()];
    git.read("verify the saved commits", &verify)?;
    Ok(Some(part))
}

/// What is staged, what is not, and all files that differ, as they are. Where a submodule is at is its own part's.
fn changes(
    tree: &Path,
    git: &Git<'_>,
    mark: &Mark,
    private: &Path,
    into: &Path,
) -> Result<Vec<&'static str>, Error> {
    let patches = [
        ("staged.patch", ["--cached", "--ignore-submodules=dirty"].as_slice()),
        ("unstaged.patch", ["--ignore-submodules=all"].as_slice()),
    ];
    let mut has = Vec::new();
    for (part, which) in patches {
        has.extend(patch(git, which, mark, &into.join(part))?.then_some(part));
    }
    // What leads into the worktree's own repositories leads nowhere without them; they are saved apart.
    let leads_there =
        |name: &Path| name.ends_with(".git") && submodule::leads_below(&tree.join(name), private);
    has.extend(pack(tree, &mark.files, &into.join("files.tar"), &leads_there)?.then_some("files.tar"));
    Ok(has)
}

/// As any git applies it, whatever is configured here. A conflict has no patch: its file is saved whole.
fn patch(git: &Git<'_>, which: &[&str], mark: &Mark, file: &Path) -> Result<bool, Error> {
    let fixed = ["diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv"];
    let spelled = ["--no-renames", "--src-prefix=a/", "--dst-prefix=b/", "--unified=3"];
    let submodules = ["--submodule=short"];
    let words = fixed.iter().chain(&spelled).chain(&submodules).chain(which).chain(&["--", ":/"]);
    let mut arguments: Vec<OsString> = words.map(OsString::from).collect();
    arguments.extend(mark.status.unmerged.iter().map(|file| {
        let mut but = OsString::from(":(top,exclude,literal)");
        but.push(file);
        but
    }));
    let made = new(file)?;
    git.write("save the changes", &arguments, &made)?;
    if made.metadata().map_err(io("look at", file))?.len() == 0 {
        std::fs::remove_file(file).map_err(io("remove", file))?;
        return Ok(false);
    }
    let readable = [OsStr::new("apply"), OsStr::new("--numstat"), OsStr::new("--"), file.as_os_str()];
    git.read("verify the saved changes", &readable)?;
    Ok(true)
}

fn make(directory: &Path) -> Result<(), Error> {
    if let Some(parent) = directory.parent().filter(|parent| !parent.exists()) {
        create_dir_all(parent).map_err(io("make", parent))?;
    }
    DirBuilder::new().mode(0o700).create(directory).map_err(io("make", directory))
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
