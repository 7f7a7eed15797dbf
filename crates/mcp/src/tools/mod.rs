//! The tools, one file for each kind. A tool's input is one flat struct, whose schema is made from it; what it can't
//! do comes back as a result that says so, never as an error of the protocol, which programs show to nobody.

mod inbox;
mod requests;
mod schema;
mod send_message;
mod spawn;
mod task;
mod team;
mod wait;

use crate::seat::Seat;
use protocol::error::{ErrorKind, ErrorReport};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::pin::Pin;
use std::sync::Arc;

/// What a tool does to the world, in the words of the protocol. None of ours reaches beyond the team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// It looks.
    Reads,
    /// It adds.
    Adds,
    /// It changes, and twice is as once.
    Sets,
    /// It removes.
    Removes,
}

/// One tool.
trait Described {
    /// As it is called.
    const NAME: &'static str;
    /// For people.
    const TITLE: &'static str;
    /// For models.
    const TEXT: &'static str;
    /// For whoever decides whether to ask.
    const EFFECT: Effect;
    /// Its arguments.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// The properties of its result: name, type, and whether it is always there.
    const OUTPUT: &'static [schema::Property];

    /// Does it.
    fn call(seat: &Arc<Seat>, input: Self::Input) -> impl Future<Output = Result<Value, ErrorReport>> + Send;
}

type Called<'a> = Pin<Box<dyn Future<Output = Result<Value, ErrorReport>> + Send + 'a>>;

/// A tool in the table of all.
pub(crate) struct Entry {
    /// As it is listed.
    pub(crate) tool: Tool,
    /// Calls it with the arguments as they came.
    pub(crate) call: for<'a> fn(&'a Arc<Seat>, JsonObject) -> Called<'a>,
}

/// All tools, in the order in which they are listed.
pub(crate) fn all() -> Vec<Entry> {
    vec![
        entry::<send_message::SendMessage>(),
        entry::<team::TeamCreate>(),
        entry::<team::TeamDelete>(),
        entry::<spawn::SpawnTeammate>(),
        entry::<task::TaskCreate>(),
        entry::<task::TaskGet>(),
        entry::<task::TaskList>(),
        entry::<task::TaskUpdate>(),
        entry::<inbox::ReadInbox>(),
        entry::<inbox::MarkRead>(),
        entry::<wait::Wait>(),
        entry::<requests::Requests>(),
        entry::<requests::Approve>(),
        entry::<requests::Deny>(),
    ]
}

fn entry<T: Described + 'static>() -> Entry {
    let mut tool = Tool::new(T::NAME, T::TEXT, Arc::new(schema::input::<T::Input>()));
    tool.title = Some(T::TITLE.to_owned());
    tool.output_schema = Some(Arc::new(schema::output(T::OUTPUT)));
    tool.annotations = Some(annotations(T::TITLE, T::EFFECT));
    Entry { tool, call: |seat, arguments| Box::pin(called::<T>(seat, arguments)) }
}

async fn called<T: Described>(seat: &Arc<Seat>, arguments: JsonObject) -> Result<Value, ErrorReport> {
    T::call(seat, schema::read(T::NAME, arguments)?).await
}

fn annotations(title: &str, effect: Effect) -> ToolAnnotations {
    let reads = effect == Effect::Reads;
    let again = matches!(effect, Effect::Reads | Effect::Sets);
    ToolAnnotations::from_raw(
        Some(title.to_owned()),
        Some(reads),
        Some(effect == Effect::Removes),
        Some(again),
        Some(false),
    )
}

/// Does what blocks, at the files, beside the loop.
async fn at_files<T: Send + 'static>(
    seat: &Arc<Seat>,
    act: impl FnOnce(&Seat) -> Result<T, ErrorReport> + Send + 'static,
) -> Result<T, ErrorReport> {
    let seat = Arc::clone(seat);
    let done = tokio::task::spawn_blocking(move || act(&seat)).await;
    done.unwrap_or_else(|_| {
        Err(ErrorReport::new(ErrorKind::Internal, "cannot finish the call: it failed within"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_tool_is_listed_with_an_object_for_its_input_and_its_output() {
        for Entry { tool, .. } in all() {
            assert_eq!(tool.input_schema["type"], json!("object"), "{}", tool.name);
            assert!(tool.input_schema["properties"].is_object(), "{}", tool.name);
            let output = tool.output_schema.expect("it has one");
            assert_eq!(output["type"], json!("object"), "{}", tool.name);
            assert!(tool.description.is_some_and(|text| text.len() > 20), "{}", tool.name);
        }
    }

    #[test]
    fn no_tool_takes_a_sender_and_no_schema_needs_more_than_plain_words() {
        for Entry { tool, .. } in all() {
            let schema = json!(tool.input_schema).to_string();
            for word in
                ["\"from\"", "\"sender\"", "\"agent_id\"", "$ref", "$defs", "oneOf", "anyOf", "\"null\""]
            {
                assert!(!schema.contains(word), "{}: {word} in {schema}", tool.name);
            }
        }
    }

    #[test]
    fn what_a_tool_does_not_know_it_says_so() {
        for Entry { tool, .. } in all() {
            assert_eq!(tool.input_schema["additionalProperties"], json!(false), "{}", tool.name);
        }
        let object = |value: Value| value.as_object().cloned().expect("it is one");
        let given = object(json!({"taskId": "1", "add_blocked_by": ["2"]}));
        let refused = schema::read::<<task::TaskUpdate as Described>::Input>("TaskUpdate", given);
        let refused = refused.expect_err("it is refused");
        assert!(refused.message.contains("unknown field `add_blocked_by`"), "{refused:?}");
        assert!(refused.message.contains("`addBlockedBy`"), "{refused:?}");
    }

    #[test]
    fn what_a_tool_does_to_the_world_is_said() {
        let of = |name: &str| {
            let entry = all().into_iter().find(|entry| entry.tool.name == name).expect("it is there");
            let hints = entry.tool.annotations.expect("it has them");
            assert_eq!(hints.open_world_hint, Some(false), "{name}");
            (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint)
        };
        for name in ["TaskGet", "TaskList", "ReadInbox", "Requests", "Wait"] {
            assert_eq!(of(name), (Some(true), Some(false), Some(true)), "{name}");
        }
        assert_eq!(of("SendMessage"), (Some(false), Some(false), Some(false)));
        assert_eq!(of("TaskUpdate"), (Some(false), Some(false), Some(true)));
        assert_eq!(of("TeamDelete"), (Some(false), Some(true), Some(false)));
    }
}
