//! Fuzzes the file of a task: a written task keeps its id, subject and status, and an edit changes
//! only the fields that it names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::task::{Task, with_fields};
use serde_json::json;

fuzz_target!(|text: &str| {
    let Ok(task) = Task::parse(text) else { return };
    let reparsed = Task::parse(&task.to_text()).expect("a written task can be parsed");
    assert_eq!((reparsed.id, &reparsed.subject, &reparsed.status), (task.id, &task.subject, &task.status));
    let edited = with_fields(text, &[("owner", Some(json!("ann"))), ("activeForm", None)])
        .expect("fields of a valid task can be set");
    let edited = Task::parse(&edited).expect("the edited task can be parsed");
    assert_eq!(edited.owner.as_ref().map(ToString::to_string).as_deref(), Some("ann"));
    let rest = |task: Task| Task { owner: None, active_form: None, ..task };
    assert_eq!(rest(edited), rest(task));
});
