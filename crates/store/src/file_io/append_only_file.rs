//! A file of lines to which one process appends, and which it replaces whole from time to time.

use super::append_or_overwrite_beginning::open_to_append;
use super::write_via_temp_file::{sync_dir, write_file};
use crate::durability::Durability;
use crate::error::Error;
use crate::state_directory_handle::StateDir;
use std::fs::File;
use std::io::{Read, Write};

/// A file of lines. Only the process that opened it may change it.
///
/// A crash can leave an incomplete last line, which the next [`AppendOnlyFile::open`] removes. So a
/// line is either whole or missing, and lines are lost only from the end.
#[derive(Debug)]
pub struct AppendOnlyFile {
    dir: StateDir,
    name: String,
    /// `None` after the file was replaced, until the next access opens the new one.
    file: Option<File>,
    /// Length of the complete lines in bytes. After a failed append the file can be longer.
    length: u64,
    durability: Durability,
}

impl AppendOnlyFile {
    /// Opens the file, or creates an empty one. Returns the file and its complete lines.
    ///
    /// # Errors
    /// `Io`, `Untrusted`, `UnexpectedFileType`.
    pub fn open(
        dir: StateDir,
        name: &str,
        durability: Durability,
    ) -> Result<(AppendOnlyFile, Vec<u8>), Error> {
        let (mut file, _) = open_to_append(dir.handle(), name)?;
        sync_dir(dir.handle(), durability)?;
        let mut lines = Vec::new();
        let read = file.read_to_end(&mut lines);
        read.map_err(|cause| Error::io("read", &dir.path().join(name), cause))?;
        lines.truncate(lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
        let length = lines.len() as u64;
        let mut file = AppendOnlyFile { dir, name: name.to_owned(), file: Some(file), length, durability };
        file.remove_incomplete_line()?;
        Ok((file, lines))
    }

    /// Appends lines, each with its line feed. With a durability of `Ordered` or `Power`, the lines
    /// are on the disk when the call returns. The caller may then tell other hosts about the lines:
    /// a power loss no longer removes them.
    ///
    /// # Errors
    ///
    /// `Io`, for example if the disk is full. After an error none of the lines is in the file, and
    /// a later call may succeed.
    pub fn append(&mut self, lines: &[u8]) -> Result<(), Error> {
        let durability = self.durability;
        let mut file = self.remove_incomplete_line()?;
        let result = failpoint::hit_before_call("store.append-lines").and_then(|()| {
            file.write_all(lines)?;
            if durability >= Durability::Ordered { file.sync_data() } else { Ok(()) }
        });
        if let Err(cause) = result {
            // If this fails too, the next append or open removes the part.
            self.remove_incomplete_line().ok();
            return Err(Error::io("write", &self.dir.path().join(&self.name), cause));
        }
        self.length += lines.len() as u64;
        failpoint::hit("store.lines-appended");
        Ok(())
    }

    /// Replaces all lines in one step.
    ///
    /// # Errors
    ///
    /// `Io`. After an error the file has its old or its new lines.
    pub fn replace(&mut self, lines: &[u8]) -> Result<(), Error> {
        self.remove_incomplete_line()?;
        self.file = None;
        write_file(self.dir.handle(), &self.name, lines, self.durability)
    }

    /// Cuts the file after its complete lines and returns it.
    fn remove_incomplete_line(&mut self) -> Result<&File, Error> {
        if self.file.is_none() {
            let (file, size) = open_to_append(self.dir.handle(), &self.name)?;
            (self.file, self.length) = (Some(file), size);
        }
        let file = self.file.as_ref().expect("it was just opened");
        let size = file.metadata().map(|metadata| metadata.len());
        let cut = size.and_then(|size| if size > self.length { file.set_len(self.length) } else { Ok(()) });
        cut.map_err(|cause| Error::io("truncate", &self.dir.path().join(&self.name), cause))?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(dir: &tempfile::TempDir) -> (AppendOnlyFile, Vec<u8>) {
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        AppendOnlyFile::open(state, "lines", Durability::Power).unwrap()
    }

    fn text(dir: &tempfile::TempDir) -> String {
        std::fs::read_to_string(dir.path().join("state/lines")).unwrap()
    }

    #[test]
    fn incomplete_last_line_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (mut file, lines) = open(&dir);
        assert_eq!(lines, b"");
        file.append(b"one\ntwo\n").unwrap();
        file.file.as_ref().unwrap().write_all(b"thr").unwrap();
        assert_eq!(open(&dir).1, b"one\ntwo\n");
        file.file.as_ref().unwrap().write_all(b"thr").unwrap();
        file.append(b"four\n").unwrap();
        assert_eq!(text(&dir), "one\ntwo\nfour\n");
    }

    #[test]
    fn replaced_lines_are_appended_to() {
        let dir = tempfile::tempdir().unwrap();
        let (mut file, _) = open(&dir);
        file.append(b"one\n").unwrap();
        file.replace(b"two\n").unwrap();
        file.append(b"three\n").unwrap();
        assert_eq!(text(&dir), "two\nthree\n");
    }

    /// The shell's limit of the file size makes a write stop in the middle, as a full disk does.
    #[test]
    fn full_disk_leaves_no_part_of_a_line() {
        const VARIABLE: &str = "APPEND_ONLY_FILE_TEST_DIR";
        if let Some(path) = std::env::var_os(VARIABLE) {
            let state = StateDir::open(std::path::Path::new(&path)).unwrap();
            let (mut file, _) = AppendOnlyFile::open(state, "lines", Durability::Process).unwrap();
            let line = [&[b'x'; 299][..], b"\n"].concat();
            let written = (0..100).take_while(|_| file.append(&line).is_ok()).count();
            assert!((1..99).contains(&written), "{written}");
            assert_eq!(file.file.unwrap().metadata().unwrap().len(), written as u64 * 300);
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let test = "file_io::append_only_file::tests::full_disk_leaves_no_part_of_a_line";
        let limited = format!("trap '' XFSZ; ulimit -f 4; exec \"$0\" --exact {test}");
        let mut command = std::process::Command::new("sh");
        command.arg("-c").arg(limited).arg(std::env::current_exe().unwrap());
        let output = command.env(VARIABLE, dir.path().join("state")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(text(&dir).len() >= 300 && text(&dir).ends_with("x\n"));
    }
}
