//! Writes the JSON Schemas in docs/schema, which are derived from the types of this crate. Command:
//! `cargo run -p teamd-protocol --features schema --example write_schemas`.
#![allow(clippy::disallowed_methods, reason = "a file of the repository, which nobody else writes")]

use protocol::json_schema::{all_schemas, to_text};
use std::path::Path;

fn main() -> std::io::Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    std::fs::create_dir_all(&directory)?;
    for (name, schema) in all_schemas() {
        std::fs::write(directory.join(format!("{name}.schema.json")), to_text(&schema))?;
    }
    Ok(())
}
