//! The events of the members on the other host.

use harness::{TestEnv, TwoHosts};
use serde_json::Value;

/// Waits until the home has the events of the other host, and checks that it has each event once and
/// in order. Run this after the work, so that few events are added meanwhile.
pub(super) fn check(hosts: &TwoHosts) {
    let sent = numbers(&hosts.annex, &Value::Null);
    assert!(sent.len() > 4, "the members had turns: {sent:?}");
    let on_devbox = Value::from("devbox");
    hosts.home.wait_until("the home has the events", || {
        (numbers(&hosts.home, &on_devbox).len() >= sent.len()).then_some(())
    });
    let received = numbers(&hosts.home, &on_devbox);
    assert_eq!(received[..sent.len()], sent);
    assert!(numbers(&hosts.annex, &Value::Null).starts_with(&received), "each event is there once");
}

/// The numbers of the numbered events that happened on a host.
fn numbers(env: &TestEnv, on_host: &Value) -> Vec<u64> {
    let events = env.events().into_iter().filter(|event| event["on_host"] == *on_host);
    events.filter_map(|event| event["number"].as_u64()).collect()
}
