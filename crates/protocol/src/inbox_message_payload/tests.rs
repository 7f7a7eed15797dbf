use super::*;

#[test]
fn unknown_text_is_plain_text() {
    for text in
        ["", "hello", "[1]", "{}", r#"{"type":"other"}"#, r#"{"type":"idle_notification"}"#, "{\"type\""]
    {
        assert_eq!(Payload::parse(text), None, "{text}");
    }
    let deep = format!("{{\"type\":{}", "[".repeat(100_000));
    assert_eq!(Payload::parse(&deep), None);
}

#[test]
fn numbers_are_unchanged_by_a_round_trip() {
    let text = include_str!("../../../../fuzz/corpus/payload/sample-16");
    let payload = Payload::parse(text).unwrap();
    assert_eq!(Payload::parse(&payload.to_text()), Some(payload));
}

#[test]
fn type_is_detected_beside_any_other_fields() {
    for kind in PAYLOAD_TYPES {
        let deep = format!(" {{\"x\":{}{},\"type\":\"{kind}\"}}", "[".repeat(200), "]".repeat(200));
        for text in [format!("\n{{\"type\": \"{kind}\"}} "), deep] {
            assert_eq!(Payload::detect_type(&text), Some(kind), "{text}");
        }
    }
    for text in ["", "idle_notification", "{}", r#"{"type":"other"}"#, r#"{"type":7}"#, r#"["type"]"#] {
        assert_eq!(Payload::detect_type(text), None, "{text}");
    }
}

#[test]
fn both_spellings_of_the_request_id_are_read() {
    for key in ["requestId", "request_id"] {
        let text = format!(r#" {{"type":"shutdown_request","{key}":"x-1","from":"team-lead","new":[]}}"#);
        let Some(Payload::ShutdownRequest(request)) = Payload::parse(&text) else { panic!("{text}") };
        assert_eq!(request.request_id.as_str(), "x-1");
    }
}

#[test]
fn lone_surrogates_and_duplicate_keys_do_not_hide_a_payload() {
    let text = r#"{"type":"mode_set_request","mode":"plan","mode":"default","from":"\ud83e"}"#;
    let request = ModeSetRequest { mode: "default".into(), from: "\u{fffd}".into() };
    assert_eq!(Payload::parse(text), Some(Payload::ModeSetRequest(request)));
}

#[test]
fn payloads_without_a_sample_file_keep_the_order_of_fields() {
    for text in [
        r#"{"type":"mode_set_request","mode":"plan","from":"team-lead"}"#,
        r#"{"type":"team_permission_update","permissionUpdate":{"type":"setMode","mode":"plan","destination":"session"},"directoryPath":"/x","toolName":"Edit"}"#,
        r#"{"type":"team_permission_update","permissionUpdate":{"type":"new","x":1},"directoryPath":"/x","toolName":"Edit"}"#,
        r#"{"type":"teammate_terminated","message":"ann has ended"}"#,
        r#"{"type":"task_notification","task_id":"ask-0000007f","output_file":"/x","status":"failed","message":"x"}"#,
    ] {
        assert_eq!(Payload::parse(text).unwrap().to_text(), text);
    }
}
