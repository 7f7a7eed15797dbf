//! A task's file. A parsed task is written unchanged, and an edit changes only the fields that it names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::task::{Task, with_fields};
use serde_json::json;

fuzz_target!(|text: &str| {
    let Ok(task) = Task::parse(text) else { return };
    let again = Task::parse(&task.to_text()).expect("a written task can be parsed");
    assert_eq!((again.id, &again.subject, &again.status), (task.id, &task.subject, &task.status));
    let new = with_fields(text, &[("owner", Some(json!("ann"))), ("activeForm", None)])
        .expect("fields of a valid task can be set");
    let new = Task::parse(&new).expect("the edited task can be parsed");
    assert_eq!(new.owner.as_ref().map(ToString::to_string).as_deref(), Some("ann"));
    let rest = |task: Task| Task { owner: None, active_form: None, ..task };
    assert_eq!(rest(new), rest(task));
});
