//! The environment variables with which git is started.

use protocol::env_filter::is_passed_to_git;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// The variables that name the author and committer of new commits.
const IDENTITY_VARIABLES: [&str; 4] =
    ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];

/// The environment variables with which git is started. `Debug` shows only their number, because
/// they may contain secrets.
#[derive(Clone)]
pub struct GitEnvironment(Vec<(OsString, OsString)>);

impl std::fmt::Debug for GitEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} variables", self.0.len())
    }
}

impl GitEnvironment {
    /// Makes an environment from `variables`. Of the variables that begin with `GIT_`, it keeps
    /// only those that hold settings of git, such as `GIT_CONFIG_GLOBAL`. Others, such as
    /// `GIT_DIR`, could make git use another repository.
    pub fn from_vars<K: Into<OsString>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> GitEnvironment {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        GitEnvironment(variables.filter(|(name, _)| is_passed_to_git(&name.to_string_lossy())).collect())
    }

    /// The names and values of the variables.
    pub fn variables(&self) -> &[(OsString, OsString)] {
        &self.0
    }

    /// How many git settings this environment already passes to git in variables
    /// `GIT_CONFIG_KEY_N`: the value of `GIT_CONFIG_COUNT`, or 0. N counts from 0, so this is also
    /// the N of the next setting.
    pub(crate) fn setting_count(&self) -> usize {
        let count = self.0.iter().rev().find(|(name, _)| name == "GIT_CONFIG_COUNT");
        count.and_then(|(_, value)| value.to_str()?.parse().ok()).unwrap_or(0)
    }

    /// Takes the variables of this process, as [`GitEnvironment::from_vars`] does.
    pub fn from_process() -> GitEnvironment {
        GitEnvironment::from_vars(std::env::vars_os())
    }

    /// Like [`GitEnvironment::from_process`], but also passes the variables that name the author
    /// and committer of new commits.
    pub fn from_process_with_identity() -> GitEnvironment {
        let mut environment = GitEnvironment::from_process();
        let identity = IDENTITY_VARIABLES.iter().map(|name| (OsString::from(name), std::env::var_os(name)));
        environment.0.extend(identity.filter_map(|(name, value)| Some((name, value?))));
        environment
    }

    /// Returns this environment with one more variable.
    pub(crate) fn with_variable(&self, name: &str, value: &OsStr) -> GitEnvironment {
        let variable = (OsString::from(name), value.to_owned());
        GitEnvironment(self.0.iter().cloned().chain([variable]).collect())
    }

    /// Returns this environment with the `variables` of a caller, such as a client of the daemon,
    /// so that git runs as in the caller's own shell. First removes all variables that begin with
    /// `GIT_` from this environment. Then adds the caller's variables, which replace variables of
    /// the same names. If no variable of the caller may be passed to git, this environment stays
    /// unchanged.
    #[must_use]
    pub fn with_caller(self, variables: &BTreeMap<String, String>) -> GitEnvironment {
        let is_replaced = |name: &OsStr| {
            let name = name.to_string_lossy();
            name.starts_with("GIT_") || variables.contains_key(&*name)
        };
        let caller = GitEnvironment::from_vars(variables.clone()).0;
        let variables = self.0.into_iter().filter(|(name, _)| caller.is_empty() || !is_replaced(name));
        GitEnvironment(variables.chain(caller.iter().cloned()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_settings_replace_all_of_the_daemons() {
        let daemon = || GitEnvironment::from_vars([("PATH", "/d"), ("LANG", "C"), ("GIT_CONFIG_COUNT", "1")]);
        let pairs = |environment: GitEnvironment| {
            let text = |text: OsString| text.into_string().unwrap();
            environment.0.into_iter().map(|(name, value)| format!("{}={}", text(name), text(value))).collect()
        };
        let caller = [("PATH", "/c"), ("GIT_CONFIG_GLOBAL", "g"), ("GIT_DIR", "x")];
        let caller = caller.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let replaced: Vec<String> = pairs(daemon().with_caller(&caller));
        assert_eq!(replaced, ["LANG=C", "GIT_CONFIG_GLOBAL=g", "PATH=/c"]);
        let unchanged: Vec<String> = pairs(daemon().with_caller(&BTreeMap::new()));
        assert_eq!(unchanged, ["PATH=/d", "LANG=C", "GIT_CONFIG_COUNT=1"]);
    }
}
