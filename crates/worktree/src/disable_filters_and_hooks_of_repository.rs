//! Disables the filters, merge drivers and hooks that a repository's own configuration defines,
//! such as `filter.NAME.clean`, `merge.NAME.driver` and `hook.NAME.command`. Anyone can choose the
//! word `NAME`, so this module reads the names from the configuration.
//!
//! An agent can change the configuration of its repository. So teamd runs git without the programs
//! that this configuration names, except when git creates a worktree.
//!
//! Filters of the user's own configuration, such as git-lfs, always run: without them, unchanged
//! files would look changed. [`crate::KeepReason::FilterNotRun`] tells the user about a filter that
//! did not run because only the repository defines it.

use crate::error::Error;
use crate::git_command::{Git, Overrides, READ_TIMEOUT};
use crate::git_output::{os_string, split_nul};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

/// The keys that define filters, merge drivers and hooks, as a regular expression for
/// `git config --get-regexp`.
const PATTERN: &str =
    r"^(filter\..*\.(clean|smudge|process|required)|merge\..*\.driver|hook\..*\.(command|event))$";

/// The command that replaces a merge driver of the repository: git's own merge of text. A binary
/// file that both sides have changed is then a conflict.
const TEXT_MERGE_DRIVER: &str = "git merge-file -q --marker-size=%L %A %O %B || exit 1";

/// The settings of a filter, each with the value that turns the filter off.
const FILTER_OFF: [(&str, &str); 4] = [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")];

/// The filters, merge drivers and hooks of a configuration.
#[derive(Debug, Default, PartialEq, Eq)]
struct NamedPrograms {
    /// The filters that the repository's own configuration defines, by name, with the settings of
    /// each.
    repository_filters: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
    /// The settings of filters in the user's configuration. The key is `NAME.SETTING`.
    user_filters: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The names of merge drivers that the repository's own configuration defines.
    repository_merge_drivers: BTreeSet<Vec<u8>>,
    /// The merge drivers in the user's configuration: command by name.
    user_merge_drivers: BTreeMap<Vec<u8>, Vec<u8>>,
    hooks: BTreeSet<Vec<u8>>,
}

impl NamedPrograms {
    /// Reads the configuration of the directory in which `git` runs.
    fn read(git: &Git<'_>) -> Result<NamedPrograms, Error> {
        let arguments = ["config", "--show-scope", "--null", "--get-regexp", PATTERN];
        // git fails if no key matches. So a failure is treated as an empty output.
        Ok(NamedPrograms::parse(&git.run("read the settings", &arguments, b"", READ_TIMEOUT)?.stdout))
    }

    /// Parses the output of `git config --show-scope --null --get-regexp`: for each setting its
    /// scope, such as `local`, and then an entry. An entry is a key, or a key, a newline and a
    /// value.
    fn parse(output: &[u8]) -> NamedPrograms {
        let mut programs = NamedPrograms::default();
        let mut entries = output.split(|byte| *byte == 0);
        while let (Some(scope), Some(entry)) = (entries.next(), entries.next()) {
            let mut fields = entry.splitn(2, |byte| *byte == b'\n');
            let (key, value) = (fields.next().unwrap_or_default(), fields.next().unwrap_or(b"true"));
            programs.add(scope, key, value);
        }
        programs
    }

    fn add(&mut self, scope: &[u8], key: &[u8], value: &[u8]) {
        let is_of_repository = scope == b"local" || scope == b"worktree";
        let Some(dot) = key.iter().position(|byte| *byte == b'.') else { return };
        let (section, key) = (&key[..dot], &key[dot + 1..]);
        let (name, setting) = split_key(key);
        match section {
            b"filter" if is_of_repository => {
                self.repository_filters.entry(name.to_vec()).or_default().insert(setting.to_vec());
            }
            b"filter" => drop(self.user_filters.insert(key.to_vec(), value.to_vec())),
            b"merge" if is_of_repository => drop(self.repository_merge_drivers.insert(name.to_vec())),
            b"merge" => drop(self.user_merge_drivers.insert(name.to_vec(), value.to_vec())),
            b"hook" => drop(self.hooks.insert(name.to_vec())),
            _ => {}
        }
    }

    /// Whether the filter `name` of the user's own configuration runs in place of the repository's
    /// filter of the same name.
    ///
    /// The command of a filter is its setting `process` or `clean`. If the repository sets
    /// `process`, git ignores `clean`, even the user's. In this case the user's filter can run only
    /// if it has `process` too.
    fn runs_as_users(&self, name: &[u8], repository_settings: &BTreeSet<Vec<u8>>) -> bool {
        let has_setting = |setting: &str| self.user_filters.contains_key(&join_key(name, setting));
        has_setting("process")
            || (has_setting("clean") && !repository_settings.contains(b"process".as_slice()))
    }

    /// The filters of the repository that do not run, because the user has no filter to replace
    /// them.
    fn filters_not_run(&self) -> impl Iterator<Item = &Vec<u8>> {
        let filters = self.repository_filters.iter();
        filters.filter(|(name, settings)| !self.runs_as_users(name, settings)).map(|(name, _)| name)
    }

    /// The overrides (settings that teamd passes to git) for one filter of the repository: the
    /// settings of the user's filter of the same name, or values that turn the filter off.
    fn filter_values(&self, name: &[u8], repository_settings: &BTreeSet<Vec<u8>>) -> Vec<(Vec<u8>, Vec<u8>)> {
        let runs_as_users = self.runs_as_users(name, repository_settings);
        let value = |(setting, disabled_value): (&str, &str)| {
            let key = join_key(name, setting);
            match self.user_filters.get(&key).filter(|_| runs_as_users) {
                Some(value) => Some((key, value.clone())),
                None if runs_as_users && setting == "process" => None,
                None => Some((key, disabled_value.as_bytes().to_vec())),
            }
        };
        FILTER_OFF.into_iter().filter_map(value).collect()
    }

    /// The overrides (settings that teamd passes to git) for the merge drivers of the repository.
    /// Each is replaced by the user's driver of the same name, or by git's own merge of text.
    fn merge_driver_values(&self) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
        self.repository_merge_drivers.iter().map(|name| {
            let users = self.user_merge_drivers.get(name).map(Vec::as_slice);
            (join_key(name, "driver"), users.unwrap_or(TEXT_MERGE_DRIVER.as_bytes()).to_vec())
        })
    }

    /// The settings that teamd passes to git. They disable each hook that a section `hook.NAME` of
    /// git's configuration defines, and filters and merge drivers that only the repository defines.
    fn overrides(&self) -> Overrides {
        let filters =
            self.repository_filters.iter().flat_map(|(name, settings)| self.filter_values(name, settings));
        let in_section = |section: &'static [u8]| {
            move |(key, value): (Vec<u8>, Vec<u8>)| {
                (os_string(&[section, key.as_slice()].concat()), os_string(&value))
            }
        };
        let filters = filters.map(in_section(b"filter."));
        let drivers = self.merge_driver_values().map(in_section(b"merge."));
        let hooks = self.hooks.iter().map(|name| {
            (os_string(&[b"hook.", name.as_slice(), b".enabled"].concat()), OsString::from("false"))
        });
        filters.chain(drivers).chain(hooks).collect()
    }
}

/// Splits `NAME.SETTING`. The name may contain dots.
fn split_key(key: &[u8]) -> (&[u8], &[u8]) {
    let end = key.iter().rposition(|byte| *byte == b'.').unwrap_or(key.len());
    (&key[..end], key.get(end + 1..).unwrap_or_default())
}

fn join_key(name: &[u8], setting: &str) -> Vec<u8> {
    [name, b".", setting.as_bytes()].concat()
}

impl Git<'_> {
    /// Returns a copy of this `Git` with additional overrides, which are settings that teamd passes
    /// to git. They disable all hooks of the configuration, and all filters and merge drivers that
    /// only the repository's own configuration defines.
    ///
    /// # Errors
    ///
    /// The errors of [`Git::run`].
    pub(crate) fn without_named_programs(&self) -> Result<Self, Error> {
        Ok(self.clone().with_overrides(self.named_program_overrides()?))
    }

    /// Returns the overrides, which are settings that teamd passes to git. They disable all hooks
    /// of the configuration, and all filters and merge drivers that only the repository's own
    /// configuration defines.
    ///
    /// # Errors
    ///
    /// The errors of [`Git::run`].
    pub(crate) fn named_program_overrides(&self) -> Result<Overrides, Error> {
        Ok(NamedPrograms::read(self)?.overrides())
    }
}

/// Returns the filters that `files` use and that did not run, because only the repository's own
/// configuration defines them.
///
/// # Errors
///
/// The errors of [`Git::output_of`].
pub(crate) fn filters_not_run(git: &Git<'_>, files: &[PathBuf]) -> Result<Vec<String>, Error> {
    let programs = NamedPrograms::read(git)?;
    let inactive_filters: Vec<&Vec<u8>> = programs.filters_not_run().collect();
    if inactive_filters.is_empty() || files.is_empty() {
        return Ok(Vec::new());
    }
    let input: Vec<u8> =
        files.iter().flat_map(|file| [file.as_os_str().as_encoded_bytes(), b"\0"].concat()).collect();
    let action = "check the attributes";
    let output = git.run(action, &["check-attr", "-z", "--stdin", "filter"], &input, READ_TIMEOUT)?;
    let output = output.stdout_or_error(action)?;
    // The output repeats three fields: a path, the word `filter`, and the filter's name.
    let used_filters: BTreeSet<&[u8]> = split_nul(&output).skip(2).step_by(3).collect();
    let is_used = |name: &&Vec<u8>| used_filters.contains(name.as_slice());
    Ok(inactive_filters
        .into_iter()
        .filter(is_used)
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_of_the_repository_get_the_values_of_the_user() {
        let output = b"global\0filter.lfs.clean\nuser's clean\0global\0filter.lfs.required\0\
            global\0filter.mine.clean\nm\0local\0filter.lfs.clean\nx\0worktree\0filter.a=b.c.smudge\ny\nz\0\
            local\0filter.mine.process\nx\0global\0hook.check.command\nz\0\
            global\0merge.po.driver\nuser's merge\0local\0merge.po.driver\nx\0local\0merge.a.b.driver\nx\0";
        let programs = NamedPrograms::parse(output);
        let not_run: Vec<&[u8]> = programs.filters_not_run().map(Vec::as_slice).collect();
        assert_eq!(not_run, [b"a=b.c".as_slice(), b"mine"]);
        let overrides = programs.overrides();
        let pairs: Vec<(&str, &str)> =
            overrides.iter().map(|(key, value)| (key.to_str().unwrap(), value.to_str().unwrap())).collect();
        assert_eq!(
            pairs,
            [
                ("filter.a=b.c.clean", ""),
                ("filter.a=b.c.smudge", ""),
                ("filter.a=b.c.process", ""),
                ("filter.a=b.c.required", "false"),
                ("filter.lfs.clean", "user's clean"),
                ("filter.lfs.smudge", ""),
                ("filter.lfs.required", "true"),
                ("filter.mine.clean", ""),
                ("filter.mine.smudge", ""),
                ("filter.mine.process", ""),
                ("filter.mine.required", "false"),
                ("merge.a.b.driver", TEXT_MERGE_DRIVER),
                ("merge.po.driver", "user's merge"),
                ("hook.check.enabled", "false"),
            ]
        );
        assert_eq!(NamedPrograms::parse(b""), NamedPrograms::default());
    }
}
