//! Determines the directory, environment and first message of a new agent. All three are checked
//! before the daemon is called, so that errors are found early.

use crate::build_launch::Launch;
use protocol::env_filter::is_inherited;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::{MESSAGE_LIMIT, env_var, env_vars};

/// The absolute path of an existing directory. `None` stands for the current directory.
pub fn resolve_directory(requested: Option<&Path>) -> Result<PathBuf, ErrorReport> {
    let path = requested.unwrap_or(Path::new("."));
    let absolute = path.canonicalize().ok().filter(|path| path.is_dir());
    absolute.ok_or_else(|| {
        ErrorReport::new(
            ErrorKind::MissingPath,
            format!("cannot start in {}: no such directory", path.display()),
        )
        .with_help("name an existing one: teamctl spawn NAME --cwd DIR")
    })
}

/// Parses `NAME=VALUE` pairs. A name alone stands for the caller's value.
pub fn parse_env_options(options: &[String]) -> Result<BTreeMap<String, String>, ErrorReport> {
    let usage_error = |message: String| Err(ErrorReport::new(ErrorKind::Usage, message));
    let pair = |pair: &String| match pair.split_once('=') {
        None if pair.is_empty() => usage_error("cannot read --env: write it as NAME=VALUE".to_owned()),
        Some(("", _)) => usage_error(format!("cannot read --env {pair}: write it as NAME=VALUE")),
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => match std::env::var(pair) {
            Ok(value) => Ok((pair.clone(), value)),
            Err(_) => usage_error(format!("cannot use --env {pair}: there is no variable of that name here")),
        },
    };
    options.iter().map(pair).collect()
}

/// The environment of a new agent: the caller's variables, except those that concern only the
/// caller, such as those of its own session. The profile's variables override the caller's, and the
/// variables of the spawn request override both.
///
/// The environment of the tmux server is not used, because an unrelated program may have started
/// the server.
pub fn spawn_environment(launch: &Launch, requested: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_kept = |name: &String| is_inherited(name) || launch.keep_env.contains(name);
    let mut env: BTreeMap<String, String> = env_vars().filter(|(name, _)| is_kept(name)).collect();
    env.retain(|name, _| !launch.remove_env.contains(name));
    env.extend(launch.env.clone());
    env.extend(requested);
    env.extend(env_var("TEAMD_DURABILITY").map(|value| ("TEAMD_DURABILITY".to_owned(), value)));
    env
}

/// The variable that tells Claude Code where its files are, if they are not in `~/.claude`.
pub const CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";

/// Sets `CLAUDE_CONFIG_DIR` to `root`, so that a program that reads the team files itself reads the
/// same files as teamd.
///
/// If `root` is Claude Code's default directory, the variable is removed instead. Claude Code looks
/// for some settings in another place when the variable is set, even if it names the default
/// directory.
pub fn set_claude_config_dir(root: &Path, env: &mut BTreeMap<String, String>) {
    let default = env.get("HOME").and_then(|home| Path::new(home).join(".claude").canonicalize().ok());
    if default.is_some_and(|default| default == root) {
        env.remove(CONFIG_DIR);
    } else {
        env.insert(CONFIG_DIR.to_owned(), root.to_string_lossy().into_owned());
    }
}

/// The first message of the agent: `given`, or else the text of `file`. Empty if neither exists.
pub fn read_prompt(given: Option<String>, file: Option<&Path>) -> Result<String, ErrorReport> {
    let prompt = match (given, file) {
        (Some(prompt), _) => prompt,
        (_, Some(file)) => std::fs::read_to_string(file).map_err(|error| {
            ErrorReport::new(ErrorKind::MissingPath, format!("cannot read {}: {error}", file.display()))
                .with_help("name an existing one, or give the text: teamctl spawn NAME --prompt TEXT")
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
