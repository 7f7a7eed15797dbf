//! What each program is told before it starts, as its user would: whom to ask for a model, and to keep still.

use crate::codex_config;
use serde_json::{Value, json};

/// A program under test.
#[derive(Clone, Copy)]
pub(crate) struct AgentProgram {
    /// Its profile's name.
    pub(crate) profile: &'static str,
    /// Its own settings: a path below the home, and what stands in it, for this address of the model and this
    /// working directory.
    pub(crate) settings: fn(model: &str, cwd: &str) -> Vec<(&'static str, String)>,
    /// Variables that its user has set; `MODEL` becomes the address of the model.
    pub(crate) variables: &'static [(&'static str, &'static str)],
    /// What it asks its user once before it runs hooks, and the keys that answer it.
    pub(crate) asks: Option<(&'static str, &'static [&'static str])>,
    /// Further words for `spawn`.
    pub(crate) spawn: &'static [&'static str],
    /// Whether it can run commands, and so tell the lead by itself that it has read something.
    pub(crate) acts: bool,
}

/// Other profiles of these that tell what was used up.
pub(crate) fn programs_with_usage() -> [AgentProgram; 3] {
    let of = |profile: &str, other| {
        let program = PROGRAMS.into_iter().find(|program| program.profile == profile);
        AgentProgram { profile: other, asks: None, ..program.expect("it is one of them") }
    };
    [of("codex", "codex-turn"), of("gemini", "gemini-acp"), of("copilot", "copilot-acp")]
}

/// All of them, the simple ones first.
pub(crate) const PROGRAMS: [AgentProgram; 6] = [
    AgentProgram {
        profile: "aider",
        settings: |_, _| Vec::new(),
        variables: &[
            ("OPENAI_API_BASE", "MODEL/v1"),
            ("OPENAI_API_KEY", "dummy"),
            ("AIDER_GIT", "false"),
            ("AIDER_SHOW_MODEL_WARNINGS", "false"),
            ("AIDER_SHOW_RELEASE_NOTES", "false"),
            ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
        ],
        asks: None,
        spawn: &["--model", "openai/mock"],
        acts: false,
    },
    AgentProgram {
        profile: "opencode",
        settings: |model, _| vec![(".config/opencode/opencode.json", opencode(model).to_string())],
        variables: &[("OPENCODE_DISABLE_AUTOUPDATE", "1"), ("OPENCODE_DISABLE_MODELS_FETCH", "1")],
        asks: None,
        spawn: &[],
        acts: true,
    },
    AgentProgram {
        profile: "codex",
        settings: |model, cwd| vec![(".codex/config.toml", codex_config::config_toml(model, cwd))],
        variables: &[("OPENAI_API_KEY", "dummy")],
        asks: Some(("Hooks need review", &["2", "Enter"])),
        spawn: &["--mode", "bypassPermissions"],
        acts: true,
    },
    AgentProgram {
        profile: "gemini",
        settings: |_, _| vec![(".gemini/settings.json", gemini().to_string())],
        variables: &[("GEMINI_API_KEY", "dummy"), ("GOOGLE_GEMINI_BASE_URL", "MODEL")],
        asks: None,
        spawn: &["--mode", "bypassPermissions", "--model", "gemini-2.5-pro"],
        acts: true,
    },
    AgentProgram {
        profile: "qwen",
        settings: |_, _| vec![(".qwen/settings.json", qwen().to_string())],
        variables: &[("OPENAI_API_KEY", "dummy"), ("OPENAI_BASE_URL", "MODEL/v1"), ("OPENAI_MODEL", "mock")],
        asks: None,
        spawn: &["--mode", "bypassPermissions"],
        acts: true,
    },
    AgentProgram {
        profile: "copilot",
        settings: |_, cwd| vec![(".copilot/config.json", json!({"trustedFolders": [cwd]}).to_string())],
        variables: &[
            ("COPILOT_PROVIDER_BASE_URL", "MODEL/v1"),
            ("COPILOT_MODEL", "mock"),
            ("COPILOT_OFFLINE", "true"),
        ],
        asks: None,
        spawn: &["--mode", "bypassPermissions"],
        acts: true,
    },
];

fn opencode(model: &str) -> Value {
    let options = json!({"baseURL": format!("{model}/v1"), "apiKey": "dummy"});
    let models = json!({"mock": {"name": "mock"}});
    json!({
        "autoupdate": false, "share": "disabled", "model": "mock/mock", "small_model": "mock/mock",
        "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "mock", "options": options, "models": models}},
        "permission": {"bash": "allow", "edit": "allow"}
    })
}

fn gemini() -> Value {
    json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"disableAutoUpdate": true, "disableUpdateNag": true},
        "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}
    })
}

fn qwen() -> Value {
    json!({
        "security": {"auth": {"selectedType": "openai"}},
        "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
        "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}
    })
}
