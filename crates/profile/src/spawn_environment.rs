//! What a new agent finds around it: its directory, its environment, its program, its first message. All of
//! it is checked before the daemon is asked for anything.

use crate::launch::Launch;
use protocol::env_filter::is_inherited;
use protocol::error::{ErrorKind, ErrorReport};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::{MESSAGE_LIMIT, env_var, env_vars};

/// Absolute, and there.
pub fn resolve_directory(requested: Option<&Path>) -> Result<PathBuf, ErrorReport> {
    let path = requested.unwrap_or(Path::new("."));
    let absolute = path.canonicalize().ok().filter(|path| path.is_dir());
    absolute.ok_or_else(|| {
        ErrorReport::new(
            ErrorKind::MissingPath,
            format!("cannot start in {}: no such directory", path.display()),
        )
        .with_help("name one that is there: teamctl spawn NAME --cwd DIR")
    })
}

/// `NAME=VALUE`, each.
pub fn parse_env_options(options: &[String]) -> Result<BTreeMap<String, String>, ErrorReport> {
    let pair = |pair: &String| {
        let (name, value) = pair.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            ErrorReport::new(ErrorKind::Usage, format!("cannot read --env {pair}: write it as NAME=VALUE"))
        })?;
        Ok((name.to_owned(), value.to_owned()))
    };
    options.iter().map(pair).collect()
}

/// The caller's environment without what belongs to the caller alone, then what the profile says, then what was asked
/// for. Not that of the tmux server, which somebody started some time.
pub fn spawn_environment(launch: &Launch, requested: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_kept = |name: &String| is_inherited(name) || launch.keep_env.contains(name);
    let mut env: BTreeMap<String, String> = env_vars().filter(|(name, _)| is_kept(name)).collect();
    env.retain(|name, _| !launch.remove_env.contains(name));
    env.extend(launch.env.clone());
    env.extend(requested);
    env.extend(env_var("TEAMD_DURABILITY").map(|value| ("TEAMD_DURABILITY".to_owned(), value)));
    env
}

/// What tells Claude Code where its files are, if that is not `~/.claude`.
pub const CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";

/// A client that reads the files of the team itself must look for them where we do. Where that is its usual place
/// nothing is said: with the variable set it would look for its settings elsewhere.
pub fn set_claude_config_dir(root: &Path, env: &mut BTreeMap<String, String>) {
    let default = env.get("HOME").and_then(|home| Path::new(home).join(".claude").canonicalize().ok());
    if default.is_some_and(|default| default == root) {
        env.remove(CONFIG_DIR);
    } else {
        env.insert(CONFIG_DIR.to_owned(), root.to_string_lossy().into_owned());
    }
}

/// The first message, wherever it comes from; empty for none.
pub fn read_prompt(given: Option<String>, file: Option<&Path>) -> Result<String, ErrorReport> {
    let prompt = match (given, file) {
        (Some(prompt), _) => prompt,
        (_, Some(file)) => std::fs::read_to_string(file).map_err(|error| {
            ErrorReport::new(ErrorKind::MissingPath, format!("cannot read {}: {error}", file.display()))
                .with_help("name one that is there, or say it: teamctl spawn NAME --prompt TEXT")
        })?,
        _ => String::new(),
    };
    if prompt.len() > MESSAGE_LIMIT {
        let message = format!("cannot send a prompt of {} bytes: {MESSAGE_LIMIT} at most", prompt.len());
        return Err(ErrorReport::new(ErrorKind::Usage, message)
            .with_help("put it into a file, and name the file in the prompt"));
    }
    Ok(prompt)
}
