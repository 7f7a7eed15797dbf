//! The configuration of Codex: the address of its model, and the directory that it trusts.

/// The text of `config.toml`. `model` is the URL of the model, `cwd` the directory that Codex
/// trusts.
pub(crate) fn config_toml(model: &str, cwd: &str) -> String {
    format!(
        "model = \"mock\"\nmodel_provider = \"mock\"\ncheck_for_update_on_startup = false\n\
         [model_providers.mock]\nname = \"mock\"\nbase_url = \"{model}/v1\"\nwire_api = \"responses\"\n\
         env_key = \"OPENAI_API_KEY\"\n[projects.\"{cwd}\"]\ntrust_level = \"trusted\"\n"
    )
}
