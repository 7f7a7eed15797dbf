//! What a worktree and the submodules in it were like when they were looked at: any write between two looks makes a
//! difference, also one that leaves every name and length as it was.

use crate::commits::Heads;
use crate::error::{Error, io};
use crate::git::{Git, Surroundings};
use crate::pack::below;
use crate::status::Status;
use crate::submodule;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The tree itself under the empty path, and each submodule that is checked out in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marks(pub(crate) BTreeMap<PathBuf, Mark>);

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) status: Status,
    pub(crate) heads: Heads,
    /// What is in no commit, file by file, without the submodules.
    pub(crate) files: Vec<PathBuf>,
    stamps: BTreeMap<PathBuf, Stamp>,
    index: Option<Stamp>,
}

/// The time of a file's last change goes on with every write, and nobody can set it back.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    mode: u32,
    size: u64,
    changed: (i64, i64),
}

impl Marks {
    pub(crate) fn of(tree: &Path, surroundings: &Surroundings) -> Result<Marks, Error> {
        let mut places = vec![PathBuf::new()];
        places.extend(submodule::checked_out(tree, surroundings)?);
        let mark = |at: PathBuf| Ok((at.clone(), Mark::of(&tree.join(&at), surroundings)?));
        places.into_iter().map(mark).collect::<Result<_, _>>().map(Marks)
    }
}

impl Mark {
    fn of(place: &Path, surroundings: &Surroundings) -> Result<Mark, Error> {
        let git = Git::within(place, surroundings);
        let (status, heads) = (Status::of(place, &git)?, Heads::of(&git)?);
        let inner = submodule::here(place, &git)?;
        let mut files: Vec<PathBuf> = status.files().filter(|file| !inner.contains(file)).cloned().collect();
        files.sort();
        files.dedup();
        let mut stamps = BTreeMap::new();
        for (name, found) in below(place, &files, &|_| false)? {
            stamps.insert(name, Stamp::of(&found));
        }
        let private = git.line("find the index", &["rev-parse", "--absolute-git-dir"])?;
        let index = Stamp::at(&Path::new(&private).join("index"))?;
        Ok(Mark { status, heads, files, stamps, index })
    }
}

impl Stamp {
    fn of(found: &Metadata) -> Stamp {
        let changed = (found.ctime(), found.ctime_nsec());
        Stamp { inode: found.ino(), mode: found.mode(), size: found.size(), changed }
    }

    fn at(path: &Path) -> Result<Option<Stamp>, Error> {
        match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            found => found.map_err(io("look at", path)).map(|found| Some(Stamp::of(&found))),
        }
    }
}
