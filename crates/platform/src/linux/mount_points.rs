//! The table of mounted file systems that this process sees.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

pub(super) fn mount_points() -> io::Result<Vec<PathBuf>> {
    let table = std::fs::read("/proc/self/mountinfo")?;
    Ok(table.split(|byte| *byte == b'\n').filter_map(parse_mount_point).collect())
}

/// The mount point in a line of /proc/self/mountinfo, which is the fifth field. The kernel writes
/// special characters as octal escapes: for example, a blank is `\040`.
fn parse_mount_point(line: &[u8]) -> Option<PathBuf> {
    let field = line.split(|byte| *byte == b' ').nth(4)?;
    let mut path = Vec::new();
    let mut input = field;
    while let Some((byte, remaining_bytes)) = input.split_first() {
        let escaped_byte = (*byte == b'\\').then(|| remaining_bytes.get(..3).and_then(octal)).flatten();
        path.push(escaped_byte.unwrap_or(*byte));
        input = if escaped_byte.is_some() { &remaining_bytes[3..] } else { remaining_bytes };
    }
    Some(PathBuf::from(OsString::from_vec(path)))
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_point_with_blanks_is_parsed() {
        let line = b"36 35 98:0 /mnt1 /a\\040b\\134c rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(parse_mount_point(line), Some(PathBuf::from("/a b\\c")));
        assert_eq!(parse_mount_point(b"36 35 98:0 /"), None);
        assert_eq!(parse_mount_point(b"36 35 98:0 / /x\\04"), Some(PathBuf::from("/x\\04")));
    }
}
