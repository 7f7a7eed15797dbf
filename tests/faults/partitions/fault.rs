//! The faults of a line between two hosts.

use super::messages::Senders;
use harness::{TestEnv, TwoHosts, random_delay, sleep};

/// Maximum number of bytes before a connection breaks. The hello and the first items of a
/// connection are shorter.
const MAX_BYTES: u64 = 20_000;

/// What breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    KilledLine,
    /// The line stays cut while messages are sent and tasks are done.
    Cut,
    KilledAnnexDaemon,
    /// The line is killed, and the next connection breaks after a random number of bytes.
    BrokenFrame,
    KilledHomeDaemon,
    KilledFarEnd,
}

impl Fault {
    pub(super) fn of_round(round: u64) -> Fault {
        match round % 6 {
            0 => Fault::KilledLine,
            1 => Fault::Cut,
            2 => Fault::KilledAnnexDaemon,
            3 => Fault::BrokenFrame,
            4 => Fault::KilledHomeDaemon,
            _ => Fault::KilledFarEnd,
        }
    }

    /// Injects the fault at a random moment, and waits for contact. In about half of the cases,
    /// also waits until the hosts have exchanged everything. In the others, the next fault may come
    /// before that.
    pub(super) fn inject(self, hosts: &TwoHosts, rng: &mut fastrand::Rng, senders: &Senders<'_>) {
        sleep(random_delay(rng));
        log(&format!("{self:?}"));
        match self {
            Fault::KilledLine => hosts.kill_line(),
            Fault::Cut => cut_for_a_while(hosts, senders),
            Fault::KilledAnnexDaemon => kill_daemon(&hosts.annex),
            Fault::BrokenFrame => {
                hosts.break_next_line_after(rng.u64(1..MAX_BYTES), rng.u64(1..MAX_BYTES));
            }
            Fault::KilledHomeDaemon => kill_daemon(&hosts.home),
            Fault::KilledFarEnd => hosts.kill_far_end(),
        }
        senders.send_some();
        if rng.bool() { hosts.wait_for_exchange() } else { hosts.wait_for_contact() }
    }
}

/// Cuts the line until the home has no available task. Meanwhile, the senders at both ends send
/// their messages.
fn cut_for_a_while(hosts: &TwoHosts, senders: &Senders<'_>) {
    hosts.cut();
    hosts.home.wait_until("the loss is noticed", || {
        hosts.contact()["contact"]["no_contact"].is_object().then_some(())
    });
    senders.send_some();
    senders.wait_until_sent(&hosts.home);
    hosts.home.wait_until("no task at the home is available", || {
        let is_available = |task: &serde_json::Value| task["status"] == "pending" && task["owner"].is_null();
        (!hosts.home.tasks("survey").iter().any(is_available)).then_some(())
    });
    hosts.heal();
}

fn kill_daemon(env: &TestEnv) {
    let Some(pid) = env.daemon_process() else { panic!("no daemon runs: {}", env.dump_state()) };
    env.kill_process(pid);
    env.start_daemon();
}

/// The test runner shows the line if the test fails.
#[allow(clippy::print_stderr, reason = "a test's own output")]
pub(super) fn log(text: &str) {
    eprintln!("{text}");
}
