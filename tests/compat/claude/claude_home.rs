//! A home in which Claude Code asks its person nothing at its first start, and reaches nobody but the scripted model.

use harness::TestEnv;
use serde_json::json;
use std::path::Path;

/// Nobody's.
const KEY: &str = "sk-ant-dummy-0123456789abcdefghij";

/// What a first start asks a person, answered for that working directory.
pub(crate) fn install_claude_home(env: &TestEnv, version: &str, work: &Path) {
    let work = work.canonicalize().unwrap();
    let trusted = json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true});
    let client = json!({
        "hasCompletedOnboarding": true,
        "theme": "dark",
        "lastOnboardingVersion": version,
        "lastReleaseNotesSeen": version,
        "bypassPermissionsModeAccepted": true,
        "effortCalloutDismissed": true,
        "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
        "projects": {work.display().to_string(): trusted},
    });
    put(&env.root().join(".claude.json"), &client.to_string());
    put(&env.root().join("settings.json"), r#"{"skipDangerousModePermissionPrompt": true}"#);
}

/// What its user has set, for this address of the model.
pub(crate) fn variables(model: &str) -> Vec<(String, String)> {
    let variables = [
        ("ANTHROPIC_BASE_URL", model),
        ("ANTHROPIC_API_KEY", KEY),
        ("DISABLE_TELEMETRY", "1"),
        ("DISABLE_ERROR_REPORTING", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        // Root may not go without permissions otherwise, and in a user namespace everybody is root.
        ("IS_SANDBOX", "1"),
        ("SHELL", "/bin/bash"),
    ];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// In place, as a foreign writer would.
#[allow(clippy::disallowed_methods, reason = "the test's own files, and the foreign writer")]
pub(crate) fn put(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}
