//! The JSON Schemas of the files and messages, for who writes a program of their own: docs/schema has their texts.
//!
//! They say what a reader takes, and are derived from the types. What is parsed from text by hand says here what it
//! takes. Unknown fields are allowed everywhere: other programs add some.

use crate::config::TeamConfig;
use crate::id::{RequestId, TaskId};
use crate::message::Message;
use crate::payload::Payload;
use crate::task::Task;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// Every schema, by the name of its file before `.schema.json`.
pub fn all() -> [(&'static str, Schema); 4] {
    [
        ("config", of::<TeamConfig>("teams/TEAM/config.json")),
        ("inbox", of::<Vec<Message>>("teams/TEAM/inboxes/AGENT.json")),
        ("payload", of::<Payload>("A message's text, where it is more than text")),
        ("task", of::<Task>("tasks/TEAM/ID.json")),
    ]
}

/// The text of a schema's file.
pub fn text(schema: &Schema) -> String {
    serde_json::to_string_pretty(schema).expect("a schema has string keys") + "\n"
}

fn of<T: JsonSchema>(title: &str) -> Schema {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    schema
}

/// A string of ours that has a form.
macro_rules! string_of {
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

string_of!(TaskId, {"type": "string", "pattern": "^[1-9][0-9]{0,8}$"});
string_of!(RequestId, {
    "type": "string", "minLength": 1, "maxLength": 256, "pattern": r"^[^\u0000-\u001f\u007f-\u009f]*$"
});
