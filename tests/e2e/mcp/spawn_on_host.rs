//! A lead's MCP server that spawns a member on another host.

use super::RawMcpClient;
use harness::TwoHosts;
use serde_json::json;

#[test]
fn member_on_another_host_gets_its_prompt() {
    let hosts = TwoHosts::new();
    let text = hosts.annex.path("out/text").display().to_string();
    hosts
        .annex
        .write_profile("save", &format!("delivery = \"turn\"\nprogram = \"tee\"\nargs = [\"{text}\"]\n"));
    let mut lead = RawMcpClient::start(&hosts.home, &["--team", "survey"], &[]);
    let input = json!({"name": "ann", "prompt": "say yes", "profile": "save", "host": "devbox"});
    assert_eq!(lead.call("SpawnTeammate", &input).unwrap()["host"], "devbox");
    hosts.annex.wait_until("the program gets the prompt", || {
        hosts.annex.read("out/text").contains("say yes").then_some(())
    });
    let input = json!({"name": "bob", "prompt": "", "host": "devbx"});
    let error = lead.call("SpawnTeammate", &input).unwrap_err();
    assert!(error.contains("did you mean devbox?"), "{error}");
    assert_eq!(lead.close(), 0);
    hosts.home.shut_down();
    hosts.annex.shut_down();
}
