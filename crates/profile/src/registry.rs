//! Finds profiles by name: first in the user's directory, then among the built-in ones.

use crate::parse_profile::parse_profile;
use crate::profile::{Profile, ProfileKind};
use crate::toml_table_reader::{did_you_mean, read_if_present};
use protocol::did_you_mean::nearest_names;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::MemberName;
use std::path::PathBuf;
use store::env_var;

const WORKER: &str = "worker";
/// The description of the built-in worker, as one line.
const ABOUT_WORKER: &str = "the built-in worker: runs the commands of tasks";

/// The built-in profiles, each with the text of its TOML file. The built-in worker is not among
/// them: it has no program, so it needs no file.
const BUILT_IN: [(&str, &str); 14] = [
    ("aider", include_str!("../profiles/aider.toml")),
    ("claude", include_str!("../profiles/claude.toml")),
    ("claude-hook", include_str!("../profiles/claude-hook.toml")),
    ("claude-turn", include_str!("../profiles/claude-turn.toml")),
    ("codex", include_str!("../profiles/codex.toml")),
    ("codex-turn", include_str!("../profiles/codex-turn.toml")),
    ("copilot", include_str!("../profiles/copilot.toml")),
    ("copilot-acp", include_str!("../profiles/copilot-acp.toml")),
    ("gemini", include_str!("../profiles/gemini.toml")),
    ("gemini-acp", include_str!("../profiles/gemini-acp.toml")),
    ("gemini-turn", include_str!("../profiles/gemini-turn.toml")),
    ("opencode", include_str!("../profiles/opencode.toml")),
    ("qwen", include_str!("../profiles/qwen.toml")),
    ("shell", include_str!("../profiles/shell.toml")),
];

/// Where the text of a profile comes from.
#[derive(Debug, PartialEq, Eq)]
pub enum ProfileSource {
    /// The profile is part of teamd.
    BuiltIn,
    /// The profile is in this file of the user.
    File(PathBuf),
}

/// All profiles that one user can select.
#[derive(Debug)]
pub struct ProfileRegistry {
    /// The user's configuration directory, such as `~/.config/teamd`. `None` if the user has no
    /// home directory.
    config_dir: Option<PathBuf>,
}

impl ProfileRegistry {
    /// The profiles that the user of this process can select. The user's configuration directory is
    /// `$XDG_CONFIG_HOME/teamd`, or else `~/.config/teamd`.
    pub fn for_user() -> ProfileRegistry {
        let absolute = |path: String| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
        let config = env_var("XDG_CONFIG_HOME").and_then(absolute);
        let home = || Some(PathBuf::from(env_var("HOME")?).join(".config"));
        ProfileRegistry { config_dir: config.or_else(home).map(|config| config.join("teamd")) }
    }

    /// The built-in profiles alone.
    #[cfg(test)]
    pub fn built_in_only() -> ProfileRegistry {
        ProfileRegistry { config_dir: None }
    }

    /// The profile with this name. If both the user and teamd have a profile of this name, the
    /// user's profile is returned.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`] if no profile has this name, [`ErrorKind::Config`] if the profile's
    /// file is not valid.
    pub fn profile(&self, name: &str) -> Result<Profile, ErrorReport> {
        match self.user_profile(name)? {
            Some((path, text)) => parse_profile(name, &format!("the profile {}", path.display()), &text),
            None => built_in_profile(name).unwrap_or_else(|| Err(self.unknown_profile(name))),
        }
    }

    /// The text of the profile `name`, and where it comes from: teamd itself or the user's file.
    /// The text is empty for the built-in worker.
    pub fn source_text(&self, name: &str) -> Result<(ProfileSource, String), ErrorReport> {
        if let Some((path, text)) = self.user_profile(name)? {
            return Ok((ProfileSource::File(path), text));
        }
        let built_in = BUILT_IN.iter().find(|(built_in, _)| *built_in == name).map(|(_, text)| *text);
        match built_in.or((name == WORKER).then_some("")) {
            Some(text) => Ok((ProfileSource::BuiltIn, text.to_owned())),
            None => Err(self.unknown_profile(name)),
        }
    }

    fn user_profile(&self, name: &str) -> Result<Option<(PathBuf, String)>, ErrorReport> {
        // A profile's name follows the rules of a member's name. `MemberName::parse` rejects a
        // slash, so the path of the file stays in the directory `profiles`.
        let path =
            MemberName::parse(name).ok().and_then(|name| self.config_path(&format!("profiles/{name}.toml")));
        let Some(path) = path else { return Ok(None) };
        Ok(read_if_present(&path)?.map(|text| (path, text)))
    }

    /// The profile of a member whose spawn request names no profile: the profile that the user's
    /// configuration names. If the configuration names none, this is `claude`, provided that
    /// `program_exists` finds the program `claude`.
    pub fn default_profile(&self, program_exists: impl Fn(&str) -> bool) -> Result<Profile, ErrorReport> {
        if let Some(name) = self.configured_default()? {
            return self.profile(&name);
        }
        if program_exists("claude") {
            return self.profile("claude");
        }
        let names = self.all_names().into_iter();
        let installed = names.filter(|name| {
            let profile = self.profile(name).ok();
            profile.is_some_and(|profile| profile.program().is_none_or(&program_exists))
        });
        Err(ErrorReport::new(
            ErrorKind::Usage,
            "cannot choose a profile: no default_profile is configured, and the default, claude, is not installed",
        )
        .with_help(format!(
            "install claude, or name an installed one with --profile: {}; all: teamctl profiles check",
            installed.collect::<Vec<_>>().join(", ")
        )))
    }

    /// Whether [`ProfileRegistry::default_profile`] can choose a profile. Also `true` if the user's
    /// configuration cannot be read: the caller then calls `default_profile` and gets the error
    /// from it.
    pub fn has_default_profile(&self, program_exists: impl Fn(&str) -> bool) -> bool {
        !matches!(self.configured_default(), Ok(None)) || program_exists("claude")
    }

    /// The path of a file in the user's configuration directory.
    pub fn config_path(&self, name: &str) -> Option<PathBuf> {
        self.config_dir.as_ref().map(|directory| directory.join(name))
    }

    fn unknown_profile(&self, name: &str) -> ErrorReport {
        let message = format!("cannot find the profile {name}: there is none of that name");
        let near = did_you_mean(nearest_names(name, self.all_names()).first());
        ErrorReport::new(ErrorKind::Usage, message).with_help(format!(
            "{near}{}; any other program goes behind --, as in: teamctl spawn NAME -- PROGRAM",
            self.profile_list()
        ))
    }

    fn profile_list(&self) -> String {
        format!("there is: {}", self.all_names().join(", "))
    }

    /// The names of all profiles, sorted.
    pub fn all_names(&self) -> Vec<String> {
        let entries = self.config_path("profiles").and_then(|directory| std::fs::read_dir(directory).ok());
        let files =
            entries.into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let own = files.filter_map(|name| Some(name.strip_suffix(".toml")?.to_owned()));
        let built_in = built_in_names().map(str::to_owned);
        let mut names: Vec<String> =
            built_in.chain(own.filter(|name| MemberName::parse(name).is_ok())).collect();
        names.sort();
        names.dedup();
        names
    }
}

/// Name and description of each built-in profile, for help texts. The profiles are not parsed as
/// TOML, because every call of `teamctl` builds the help texts and must be fast.
pub fn built_in_summaries() -> impl Iterator<Item = (&'static str, &'static str)> {
    let description = |text: &'static str| {
        text.strip_prefix("description = \"")?.split_once("\"\n").map(|(about, _)| about)
    };
    let all = BUILT_IN.iter().map(move |(name, text)| (*name, description(text).unwrap_or_default()));
    all.chain([(WORKER, ABOUT_WORKER)])
}

/// The names of the built-in profiles.
pub(crate) fn built_in_names() -> impl Iterator<Item = &'static str> {
    [WORKER].into_iter().chain(BUILT_IN.iter().map(|(name, _)| *name))
}

/// The built-in profile `name`. `None` if there is none.
pub(crate) fn built_in_profile(name: &str) -> Option<Result<Profile, ErrorReport>> {
    if name == WORKER {
        return Some(Ok(Profile {
            name: WORKER.to_owned(),
            description: ABOUT_WORKER.to_owned(),
            is_verified: true,
            kind: ProfileKind::Worker,
        }));
    }
    let (_, text) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name)?;
    Some(parse_profile(name, &format!("the built-in profile {name}"), text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A registry with a configuration directory that contains `files`.
    fn registry(files: &[(&str, &str)]) -> (tempfile::TempDir, ProfileRegistry) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("profiles")).unwrap();
        for (name, text) in files {
            std::fs::File::create(dir.path().join(name)).unwrap().write_all(text.as_bytes()).unwrap();
        }
        let registry = ProfileRegistry { config_dir: Some(dir.path().to_owned()) };
        (dir, registry)
    }

    const USER_PROFILE: &str = "description = \"mine\"\ndelivery = \"pull\"\nprogram = \"p\"";

    #[test]
    fn user_profile_overrides_the_built_in_one_and_built_in_profiles_need_no_file() {
        let (_dir, registry) =
            registry(&[("profiles/claude.toml", USER_PROFILE), ("profiles/mine.toml", USER_PROFILE)]);
        assert_eq!(registry.profile("claude").unwrap().description, "mine");
        assert_eq!(registry.profile("mine").unwrap().name, "mine");
        assert!(registry.profile("codex").unwrap().description.starts_with("Codex"));
        assert_eq!(ProfileRegistry { config_dir: None }.profile("worker").unwrap().kind, ProfileKind::Worker);
    }

    #[test]
    fn every_profile_with_hooks_passes_its_name_to_each_hook() {
        let (_dir, registry) = registry(&[]);
        let hook_profiles = built_in_names().filter(|name| {
            let profile = registry.profile(name).unwrap();
            profile.hook_delivery().is_some()
        });
        for name in hook_profiles {
            let text = BUILT_IN.iter().find(|(built_in, _)| *built_in == name).unwrap().1;
            for event in ["turn-end", "prompt", "session-start", "tool"] {
                assert!(
                    text.contains(&format!("{{shim_sh}} hook {event} --profile {name}\"")),
                    "{name}: {event}"
                );
            }
        }
    }

    #[test]
    fn error_for_an_unknown_profile_lists_all_and_names_cannot_be_paths() {
        let (_dir, registry) = registry(&[
            ("config.toml", USER_PROFILE),
            ("profiles/mine.toml", USER_PROFILE),
            ("profiles/no name.toml", USER_PROFILE),
        ]);
        for name in ["mina", "../config", "", "/etc/passwd", "no name"] {
            let error = registry.profile(name).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage, "{name}");
            assert!(error.help.unwrap().contains("opencode, qwen, shell, worker"), "{name}");
        }
    }

    #[test]
    fn invalid_user_profile_is_an_error_that_names_the_file() {
        let (dir, registry) = registry(&[("profiles/claude.toml", "delivery = 1")]);
        let error = registry.profile("claude").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Config);
        assert!(
            error.message.contains(&dir.path().join("profiles/claude.toml").display().to_string()),
            "{error}"
        );
        std::fs::create_dir(dir.path().join("profiles/codex.toml")).unwrap();
        assert!(registry.profile("codex").unwrap_err().message.contains("cannot read"));
    }

    #[test]
    fn default_profile_is_the_configured_one_or_else_claude() {
        let (_a, with_config) = registry(&[("config.toml", "default_profile = \"worker\"")]);
        assert_eq!(with_config.default_profile(|_| true).unwrap().name, "worker");
        let (_b, without) = registry(&[]);
        assert_eq!(without.default_profile(|program| program == "claude").unwrap().name, "claude");
        assert!(
            with_config.has_default_profile(|_| false)
                && without.has_default_profile(|program| program == "claude")
        );
        assert!(!without.has_default_profile(|_| false));
        let error = without.default_profile(|_| false).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.help.unwrap().contains("teamctl profiles check"));
    }

    #[test]
    fn notify_command_is_a_program_with_arguments() {
        let notify_command =
            |config: &str| registry(&[("config.toml", config)]).1.notify_command("ann; asks").unwrap();
        let argv =
            |argv: &[&str]| Some(argv.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>());
        assert_eq!(notify_command("default_profile = 'worker'"), None);
        assert_eq!(notify_command("notify_command = 'beep'"), argv(&["beep"]));
        assert_eq!(
            notify_command("notify_command = ['tell', '-m={text}', '{text_sh}']"),
            argv(&["tell", "-m=ann; asks", "'ann; asks'"])
        );
        for invalid in [
            "notify_command = 1",
            "notify_command = ''",
            "notify_command = []",
            "notify_command = ['x', 1]",
            "notify_command = ['x', '{txt}']",
        ] {
            let error = registry(&[("config.toml", invalid)]).1.notify_command("x").unwrap_err();
            assert!(error.kind == ErrorKind::Config && error.message.contains("`notify_command`"), "{error}");
        }
    }

    #[test]
    fn error_in_the_configuration_is_reported() {
        for (text, expected) in [
            ("default_profile = 1", "`default_profile` must be"),
            ("default_profiles = \"x\"", "did you mean default_profile?"),
            ("default_profile", "line 1"),
        ] {
            let (_dir, registry) = registry(&[("config.toml", text)]);
            let error = registry.default_profile(|_| true).unwrap_err();
            let message = format!("{} {}", error.message, error.help.unwrap_or_default());
            assert!(error.kind == ErrorKind::Config && message.contains(expected), "{message}");
        }
        let (_dir, registry) = registry(&[("config.toml", "default_profile = \"nobody\"")]);
        assert_eq!(registry.default_profile(|_| true).unwrap_err().kind, ErrorKind::Usage);
    }
}
