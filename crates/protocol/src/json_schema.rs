//! JSON Schemas of the files and messages, for authors of other programs. The schemas are stored in
//! docs/schema.
//!
//! The schemas are derived from the types. Input schemas describe what teamd's programs accept, and
//! output schemas what only teamd writes. For a type whose parser is written by hand, `schemars`
//! attributes on the fields describe the accepted values. Other programs may add fields to files
//! and messages, so unknown fields are always valid.

use crate::annex_link::LinkFrame;
use crate::control_socket::{Call, Response};
use crate::event_log_line::Event;
use crate::inbox_file::Message;
use crate::inbox_message_payload::Payload;
use crate::member_task_and_request_ids::{RequestId, TaskId};
use crate::policy::Policy;
use crate::task::Task;
use crate::team_and_member_names::{MemberName, TeamName};
use crate::team_config::TeamConfig;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;
use std::borrow::Cow;

/// Returns all schemas. The name of a schema's file is its name followed by `.schema.json`.
pub fn all_schemas() -> [(&'static str, Schema); 9] {
    [
        ("call", input_schema::<Call>("A call of a client on the control socket")),
        ("config", input_schema::<TeamConfig>("teams/TEAM/config.json")),
        ("event", output_schema::<Event>("A line of events.jsonl")),
        ("inbox", input_schema::<Vec<Message>>("teams/TEAM/inboxes/AGENT.json")),
        ("link-frame", input_schema::<LinkFrame>("A frame between the home and an annex")),
        ("payload", input_schema::<Payload>("A payload in the text of a message")),
        ("policy", input_schema::<Policy>("policy-TEAM.json")),
        ("response", output_schema::<Response>("A response of teamd on the control socket")),
        ("task", input_schema::<Task>("tasks/TEAM/ID.json")),
    ]
}

/// The content of a schema's file.
pub fn to_text(schema: &Schema) -> String {
    serde_json::to_string_pretty(schema).expect("a schema has string keys") + "\n"
}

/// The schema of data that teamd's programs read. Keys with a default are optional.
fn input_schema<T: JsonSchema>(title: &str) -> Schema {
    build_schema::<T>(title, SchemaSettings::default().for_deserialize())
}

/// The schema of data that only teamd writes. Keys that are always written are required.
fn output_schema<T: JsonSchema>(title: &str) -> Schema {
    build_schema::<T>(title, SchemaSettings::default().for_serialize())
}

fn build_schema<T: JsonSchema>(title: &str, settings: SchemaSettings) -> Schema {
    let settings = settings.with_transform(RecursiveTransform(strip_doc_links));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    schema
}

/// Puts a description on one line and removes the links between Rust types.
fn strip_doc_links(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ").replace("[`", "`").replace("`]", "`");
    }
}

/// Implements `JsonSchema` for a type that is a string with a fixed format.
macro_rules! impl_string_schema {
    ($name:ident, $schema:tt) => {
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

impl_string_schema!(TaskId, {"type": "string", "pattern": "^[1-9][0-9]{0,8}$"});
impl_string_schema!(RequestId, {
    "type": "string", "minLength": 1, "maxLength": 256, "pattern": r"^[^\u0000-\u001f\u007f-\u009f]*$"
});
impl_string_schema!(TeamName, {"type": "string", "maxLength": 64, "pattern": "^-*[a-z0-9][a-z0-9-]*$"});
impl_string_schema!(MemberName, {
    "type": "string", "description": "teamd accepts new names that match [A-Za-z0-9][A-Za-z0-9_-]{0,63}. A name of another program can be any text."
});
