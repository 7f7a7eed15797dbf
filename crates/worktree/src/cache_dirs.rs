//! Ignored files that are no work: those below a directory that says itself that it is a cache, with a CACHEDIR.TAG
//! as bford.info/cachedir describes it. Cargo's `target` does; what does not say so counts as kept.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

const SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// Answers for one tree, remembered by directory.
#[derive(Debug)]
pub(crate) struct CacheDirs {
    tree: PathBuf,
    known: BTreeMap<PathBuf, bool>,
}

impl CacheDirs {
    pub(crate) fn new(tree: &Path) -> CacheDirs {
        CacheDirs { tree: tree.to_owned(), known: BTreeMap::new() }
    }

    /// Whether this, or a directory around it below the tree's top, is a cache.
    pub(crate) fn contains(&mut self, file: &Path) -> bool {
        let below = |path: &&Path| !path.as_os_str().is_empty();
        file.ancestors().take_while(below).any(|directory| self.is_cache(directory))
    }

    fn is_cache(&mut self, directory: &Path) -> bool {
        let tree = &self.tree;
        *self.known.entry(directory.to_owned()).or_insert_with(|| has_cachedir_tag(&tree.join(directory)))
    }
}

/// A link to a tag is none, and neither is a tag behind a link.
fn has_cachedir_tag(directory: &Path) -> bool {
    let tag = directory.join("CACHEDIR.TAG");
    let plain = directory.symlink_metadata().is_ok_and(|found| found.is_dir())
        && tag.symlink_metadata().is_ok_and(|found| found.is_file());
    let mut head = [0; SIGNATURE.len()];
    plain && File::open(tag).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == SIGNATURE
}
