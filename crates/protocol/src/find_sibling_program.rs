//! Finds the other programs of the same teamd installation.
//!
//! The PATH is not searched: a program of the same name could belong to another package or to
//! another release of teamd. The module does no I/O: the caller says which files exist.

use std::path::{Path, PathBuf};

/// Returns the path of the program `name` in the installation of the calling program. `own` is the
/// canonical path of the calling program.
///
/// The program is searched in the directory of `own` and in `../libexec/teamd`. If `own` is in a
/// directory `libexec/teamd`, `../../bin` is searched too. If none of these paths `exists`, the
/// result is the path in the directory of `own`, so that an error message can name it.
pub fn installed_program(own: &Path, name: &str, exists: impl Fn(&Path) -> bool) -> PathBuf {
    let beside = own.with_file_name(name);
    let directory = own.parent().unwrap_or(Path::new("/"));
    let libexec = directory.parent().map(|prefix| prefix.join("libexec/teamd").join(name));
    let bin = directory.ends_with("libexec/teamd").then(|| directory.ancestors().nth(2)).flatten();
    let bin = bin.map(|prefix| prefix.join("bin").join(name));
    let mut candidates = [Some(beside.clone()), libexec, bin].into_iter().flatten();
    candidates.find(|path| exists(path)).unwrap_or(beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(own: &str, name: &str, files: &[&str]) -> String {
        let exists = |path: &Path| files.iter().any(|file| Path::new(file) == path);
        installed_program(Path::new(own), name, exists).display().to_string()
    }

    #[test]
    fn program_in_bin_finds_one_in_libexec_and_the_reverse() {
        let files =
            ["/p/bin/teamctl", "/p/bin/teamd", "/p/libexec/teamd/teamd-mcp", "/p/libexec/teamd/teamd-acp"];
        assert_eq!(find(files[0], "teamd", &files), files[1]);
        assert_eq!(find(files[0], "teamd-mcp", &files), files[2]);
        assert_eq!(find(files[2], "teamd-acp", &files), files[3]);
        assert_eq!(find(files[2], "teamctl", &files), files[0]);
    }

    #[test]
    fn sibling_comes_first_and_is_the_default() {
        let files = ["/p/bin/teamctl", "/p/bin/teamd-mcp", "/p/libexec/teamd/teamd-mcp"];
        assert_eq!(find(files[0], "teamd-mcp", &files), files[1]);
        assert_eq!(find(files[0], "teamd-acp", &files), "/p/bin/teamd-acp");
        // Outside of libexec/teamd, the parent directories are not searched.
        assert_eq!(find("/p/x/y/teamd-top", "teamctl", &files), "/p/x/y/teamctl");
    }
}
