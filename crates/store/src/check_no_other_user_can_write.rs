//! Checks that the current user owns a file or directory of a root (usually `~/.claude`), and that
//! no other user can write to it. teamd trusts the content only after this check.
//!
//! The user's private group may write to it, because no other user is in this group. On many
//! systems each user has a private group, and programs create files that the group can write to
//! (umask 002).
//!
//! An access control list may let other users write. So if a file has such a list, no group counts
//! as private. Access control lists can be checked only on Linux; on other systems no group counts
//! as private.

use crate::error::Error;
use nix::sys::stat::{FileStat, Mode, SFlag};
use nix::unistd::geteuid;
use protocol::shell_quote::shell_quote;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::OnceLock;

/// Who else than the current user can change a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForeignWriter {
    Owner,
    Group,
    Others,
}

/// Type, owner, group and permission bits of a file or directory.
#[derive(Debug, Clone, Copy)]
struct Access {
    is_directory: bool,
    owner: u32,
    group: u32,
    mode: Mode,
}

/// Checks that the current user owns the open file or directory `file`, and that no other user can
/// write to it. `stat` is the status of `file`. `path` is used only for the error message.
///
/// # Errors
/// [`Error::Untrusted`], which says what to do.
pub(crate) fn check_own_access(file: impl AsFd, stat: &FileStat, path: &Path) -> Result<(), Error> {
    let mode = Mode::from_bits_truncate(stat.st_mode);
    let is_directory = SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFDIR;
    let access = Access { is_directory, owner: stat.st_uid, group: stat.st_gid, mode };
    let is_private = |group| private_group() == Some(group) && !has_acl(file);
    let Some(writer) = foreign_writer(access, geteuid().as_raw(), is_private) else { return Ok(()) };
    let (reason, remedy) = (writer.reason(), writer.remedy(access, path));
    Err(Error::Untrusted { path: path.to_owned(), reason, remedy })
}

fn foreign_writer(
    access: Access,
    own_uid: u32,
    is_private: impl FnOnce(u32) -> bool,
) -> Option<ForeignWriter> {
    if access.owner != own_uid {
        return Some(ForeignWriter::Owner);
    }
    if access.mode.contains(Mode::S_IWOTH) {
        return Some(ForeignWriter::Others);
    }
    let is_group_writable = access.mode.contains(Mode::S_IWGRP);
    (is_group_writable && !is_private(access.group)).then_some(ForeignWriter::Group)
}

impl ForeignWriter {
    fn reason(self) -> &'static str {
        match self {
            ForeignWriter::Owner => "it belongs to another user",
            ForeignWriter::Group => "its group can write to it",
            ForeignWriter::Others => "other users can write to it",
        }
    }

    /// The advice in the error message. If the group or others can write, the advice is a `chmod`
    /// command that takes this permission away. For a directory, the command also changes all files
    /// in it, and removes the directory's setgid bit. With this bit, each new file would get the
    /// directory's group.
    fn remedy(self, access: Access, path: &Path) -> String {
        let quoted_path = shell_quote(&path.to_string_lossy());
        match self {
            ForeignWriter::Owner if access.is_directory => {
                foreign_owner_remedy(access.owner, geteuid().as_raw(), path)
            }
            ForeignWriter::Owner => format!("see who wrote it: ls -l {quoted_path}"),
            _ if access.is_directory && access.mode.contains(Mode::S_ISGID) => {
                format!("chmod -R g-s,go-w {quoted_path}")
            }
            _ if access.is_directory => format!("chmod -R go-w {quoted_path}"),
            _ => format!("chmod go-w {quoted_path}"),
        }
    }
}

/// The advice for the current user, `own_uid`, about the directory `path`, which another user,
/// `owner`, owns. If `owner` is root, the advice includes a `chown` to `own_uid`.
///
/// If `own_uid` is root, the advice is to run the program as `owner`. A `chown` to root could lock
/// out `owner`: in a container, for example, teamd may run as an ordinary user while a person types
/// commands as root.
pub(crate) fn foreign_owner_remedy(owner: u32, own_uid: u32, path: &Path) -> String {
    let quoted_path = shell_quote(&path.to_string_lossy());
    match (owner, own_uid) {
        (0, _) => format!("use a directory of your own, or as root: chown {own_uid} {quoted_path}"),
        (_, 0) => format!("run this as user {owner}, who owns it"),
        _ => format!("use a directory of your own; the owner is user {owner}, and you are user {own_uid}"),
    }
}

/// The private group of the current user, which is a group without other members. `None` if
/// `/etc/passwd` and `/etc/group` do not prove that the user has such a group. The result is
/// cached, so that the two files are read only once.
fn private_group() -> Option<u32> {
    static GROUP: OnceLock<Option<u32>> = OnceLock::new();
    *GROUP.get_or_init(|| {
        let read_text = |path| std::fs::read_to_string(path).ok();
        find_private_group(&read_text("/etc/passwd")?, &read_text("/etc/group")?, geteuid().as_raw())
    })
}

/// The primary group of the user `uid`, if the group is private. A group is private if it has the
/// user's name and no other member, and is no other user's primary group. `passwd` and `groups` are
/// the texts of `/etc/passwd` and `/etc/group`.
///
/// `None` also if these files do not list the user or the group, or if a line begins with `+` or
/// `-`. Such a line adds users of a directory service, whom the files do not list.
fn find_private_group(passwd: &str, groups: &str, uid: u32) -> Option<u32> {
    let users: Vec<Vec<&str>> = passwd.lines().map(|line| line.split(':').collect()).collect();
    let groups: Vec<Vec<&str>> = groups.lines().map(|line| line.split(':').collect()).collect();
    let has_service = |line: &Vec<&str>| line[0].starts_with(['+', '-']);
    if users.iter().chain(&groups).any(has_service) {
        return None;
    }
    let uid = uid.to_string();
    let user = users.iter().find(|user| user.get(2) == Some(&uid.as_str()))?;
    let (name, gid) = (user[0], *user.get(3)?);
    let is_primary_of_other = users.iter().any(|other| other.get(3) == Some(&gid) && other[0] != name);
    let mut groups_with_gid = groups.iter().filter(|group| group.get(2) == Some(&gid)).peekable();
    groups_with_gid.peek()?;
    let is_private = |group: &Vec<&str>| {
        let mut members = group.get(3).unwrap_or(&"").split(',').filter(|member| !member.is_empty());
        group[0] == name && members.all(|member| member == name)
    };
    if is_primary_of_other || !groups_with_gid.all(is_private) { None } else { gid.parse().ok() }
}

/// Whether the file has an access control list, which can let other users write. If the file has
/// such a list, the group bits of its mode are the mask of the list, and not the rights of the
/// group. If the system cannot tell, the result is true.
fn has_acl(file: impl AsFd) -> bool {
    platform::system().has_access_control_list(file.as_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbob:x:1001:100::/:/bin/sh";

    #[test]
    fn private_group_has_the_name_of_its_only_user() {
        let find = |groups: &str| find_private_group(PASSWD, groups, 1000);
        assert_eq!(find("root:x:0:\nann:x:1000:\n"), Some(1000));
        assert_eq!(find("ann:x:1000:ann"), Some(1000));
        for groups in
            ["", "ann:x:1000:bob", "ann:x:1000:ann,bob", "staff:x:1000:", "ann:x:1000:\nother:x:1000:bob"]
        {
            assert_eq!(find(groups), None, "{groups}");
        }
        assert_eq!(find("ann:x:1000:\n+:::"), None, "a directory service can add members");
        let shared = format!("{PASSWD}\ncat:x:1002:1000::/:/bin/sh");
        assert_eq!(find_private_group(&shared, "ann:x:1000:", 1000), None, "cat's primary group too");
        assert_eq!(find_private_group(PASSWD, "bob:x:1001:\nusers:x:100:", 1001), None);
        assert_eq!(find_private_group(PASSWD, "eve:x:1005:", 1005), None, "an unknown user");
    }

    #[test]
    fn owner_and_writers_decide() {
        let writer = |owner, mode| {
            let access =
                Access { is_directory: false, owner, group: 7, mode: Mode::from_bits_truncate(mode) };
            [true, false].map(|is_private| foreign_writer(access, 1000, |_| is_private))
        };
        assert_eq!(writer(1000, 0o644), [None, None]);
        assert_eq!(writer(1000, 0o664), [None, Some(ForeignWriter::Group)]);
        assert_eq!(writer(1000, 0o666), [Some(ForeignWriter::Others); 2]);
        assert_eq!(writer(1001, 0o600), [Some(ForeignWriter::Owner); 2]);
        assert_eq!(writer(0, 0o600), [Some(ForeignWriter::Owner); 2], "root's file too");
    }

    #[test]
    fn remedy_for_a_foreign_owner_names_the_users_and_never_locks_one_out() {
        let remedy = |owner, own_uid| foreign_owner_remedy(owner, own_uid, Path::new("/r/a b"));
        assert_eq!(remedy(0, 1000), "use a directory of your own, or as root: chown 1000 '/r/a b'");
        assert_eq!(remedy(1000, 0), "run this as user 1000, who owns it");
        assert_eq!(
            remedy(1001, 1000),
            "use a directory of your own; the owner is user 1001, and you are user 1000"
        );
    }

    #[test]
    fn remedy_removes_the_setgid_bit_of_a_directory() {
        let remedy = |mode, is_directory| {
            let mode = Mode::from_bits_truncate(mode);
            let access = Access { is_directory, owner: 1000, group: 7, mode };
            ForeignWriter::Group.remedy(access, Path::new("/r/a b"))
        };
        assert_eq!(remedy(0o2775, true), "chmod -R g-s,go-w '/r/a b'");
        assert_eq!(remedy(0o775, true), "chmod -R go-w '/r/a b'");
        assert_eq!(remedy(0o664, false), "chmod go-w '/r/a b'");
    }
}
