//! A connect command that changes while a member runs on the host.

use harness::{TestEnv, TwoHosts};
use serde_json::json;

fn write_hosts_file(home: &TestEnv, program: &str) {
    let text = format!("[host.devbox]\nconnect = {}\n", json!([home.path(program)]));
    home.write_file("home/.config/teamd/hosts.toml", text);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test's own file")]
fn check_lets_the_daemon_use_the_present_connect_command() {
    let hosts = TwoHosts::new();
    let home = &hosts.home;
    hosts.check(|| {
        home.teamctl(["spawn", "ann", "--host", "devbox", "--profile", "worker"]).expect_success();
        std::fs::rename(home.path("out/line"), home.path("out/moved")).unwrap();
        hosts.kill_line();
        home.wait_until("there is no contact", || (hosts.contact()["contact"] != "connected").then_some(()));

        let moved = home.path("out/moved").display().to_string();
        let script = format!("#!/bin/sh\ntest $KEY || exit 255\nexec {moved} \"$@\"\n");
        home.write_script("out/with_key", &script);
        write_hosts_file(home, "out/with_key");
        let output = home.teamctl_with(&["hosts", "check", "devbox"], &[("KEY", "1")]);
        let text = output.stdout.clone();
        assert!(text.contains("the daemon cannot reach devbox"), "{output:?}");
        output.expect_failure(74);

        write_hosts_file(home, "out/moved");
        // An attempt with the old command may fail meanwhile.
        home.wait_until("the daemon reaches devbox", || {
            (home.teamctl(["hosts", "check", "devbox"]).code == 0).then_some(())
        });
        assert_eq!(hosts.contact()["contact"], "connected");
    });
    hosts.home.shut_down();
    hosts.annex.shut_down();
}
