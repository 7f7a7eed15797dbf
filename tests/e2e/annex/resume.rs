//! `up --resume` at the home also resumes the members on other hosts.

use harness::TwoHosts;

#[test]
fn members_on_another_host_are_resumed_if_there_is_contact() {
    let hosts = TwoHosts::new();
    let (home, annex) = (&hosts.home, &hosts.annex);
    hosts.check(|| {
        home.teamctl(["spawn", "ann", "--host", "devbox", "--profile", "worker"]).expect_success();
        hosts.cut();
        annex.teamctl(["down", "--suspend"]).expect_success();
        home.wait_until("there is no contact", || (hosts.contact()["contact"] != "connected").then_some(()));
        let output = home.teamctl(["up", "--resume"]);
        assert_eq!(output.code, 1, "{output:?}");
        let line = "cannot resume the members of survey on devbox: no contact: ";
        assert!(output.stdout.contains(line), "{output:?}");
        annex.start_daemon();
        hosts.heal();
        home.teamctl(["hosts", "check", "devbox"]).expect_success();
        hosts.wait_for_contact();
        let output = home.teamctl(["up", "--resume"]).expect_success();
        assert!(output.contains("ann of survey runs again on devbox, pid "), "{output}");
        assert!(annex.member("ann").is_some());
        let output = home.teamctl(["up", "--resume"]).expect_success();
        assert!(output.contains("no suspended members"), "{output}");
    });
    hosts.home.shut_down();
    hosts.annex.shut_down();
}
