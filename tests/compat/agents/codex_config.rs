//! What Codex is told before it starts, as its user would: whom to ask for a model, and that it may work in a directory.

/// Its `config.toml`, for this address of the model.
pub(crate) fn config_toml(model: &str, cwd: &str) -> String {
    format!(
        "model = \"mock\"\nmodel_provider = \"mock\"\ncheck_for_update_on_startup = false\n\
         [model_providers.mock]\nname = \"mock\"\nbase_url = \"{model}/v1\"\nwire_api = \"responses\"\n\
         env_key = \"OPENAI_API_KEY\"\n[projects.\"{cwd}\"]\ntrust_level = \"trusted\"\n"
    )
}
