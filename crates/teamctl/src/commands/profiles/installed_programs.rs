//! Lists the agent programs that are installed on this machine, with version and login.

use super::answers_of_program::{login_state, shorten, version_line};
use super::find_installed_program::installed_path;
use client::run_program_for_output::program_output;
use profile::{Launch, Profile, ProfileRegistry, directory_environment_and_prompt};
use protocol::host_report::{InstalledProgram, LoginState};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Returns the installed programs of all profiles, ordered by path. A program that several profiles
/// use is returned once. Each program is asked for its version and login, all at the same time.
/// Claude Code keeps its login in the root, so it is asked with the directory `root`.
pub(in crate::commands) fn installed_programs(root: &Path) -> Vec<InstalledProgram> {
    let mut env = directory_environment_and_prompt::spawn_environment(&Launch::default(), BTreeMap::new());
    directory_environment_and_prompt::set_claude_config_dir(root, &mut env);
    let profiles = profiles_by_path();
    std::thread::scope(|scope| {
        let queries: Vec<_> = profiles
            .iter()
            .map(|(path, profile)| scope.spawn(|| query_program(profile, path, &env)))
            .collect();
        queries.into_iter().filter_map(|query| query.join().ok()).collect()
    })
}

/// Returns one profile for each installed program. If several profiles start the same program, the
/// first one that can check the program's login is returned. If none can, the first profile is
/// returned.
fn profiles_by_path() -> BTreeMap<PathBuf, Profile> {
    let registry = ProfileRegistry::for_user();
    let mut profiles: BTreeMap<PathBuf, Profile> = BTreeMap::new();
    for profile in registry.all_names().iter().filter_map(|name| registry.profile(name).ok()) {
        let Some(path) = installed_path(&profile) else { continue };
        let is_better = |known: &Profile| known.login_args().is_empty() && !profile.login_args().is_empty();
        if profiles.get(&path).is_none_or(is_better) {
            profiles.insert(path, profile);
        }
    }
    profiles
}

fn query_program(profile: &Profile, path: &Path, env: &BTreeMap<String, String>) -> InstalledProgram {
    let (version, help) = profile.version_and_help();
    let output = |arguments: &[String]| match arguments.is_empty() {
        true => None,
        false => program_output(path, arguments, env).ok(),
    };
    let login = output(help).map_or(LoginState::Unknown, |help| login_state(profile, path, env, &help));
    InstalledProgram {
        program: profile.program().unwrap_or_default().to_owned(),
        path: path.to_owned(),
        version: output(version).and_then(|text| version_line(&text).map(shorten)),
        login,
    }
}
