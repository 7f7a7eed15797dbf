//! Measures members of a host that a real ssh connection on loopback reaches.

use crate::{cpu_ticks, median, print_row};
use harness::{HomeAndSshHost, McpClient, history, sleep};
use serde_json::json;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long the idle link is measured.
const WINDOW: Duration = Duration::from_secs(60);
const MESSAGES: usize = 5_000;

/// The host `far` with the member ann, who reports each message that she reads.
struct FarReader {
    hosts: HomeAndSshHost,
    reports: UnixDatagram,
}

pub(crate) fn measure_hosts() {
    let Some(reader) = FarReader::start() else { return };
    reader.measure_latency();
    reader.measure_idle_link();
    reader.measure_throughput();
    reader.hosts.shut_down();
}

impl FarReader {
    fn start() -> Option<FarReader> {
        let hosts = HomeAndSshHost::start()?;
        let env = &hosts.env;
        let socket = env.path("out/heard");
        let reports = UnixDatagram::bind(&socket).unwrap();
        reports.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let agent =
            format!("exec '{}' reader {} <&$TEAMD_WAKE_FD", env.scripted_agent_path(), socket.display());
        env.teamctl(["spawn", "ann", "--host", "far", "--", "sh", "-c", &agent]).expect_success();
        Some(FarReader { hosts, reports })
    }

    /// Receives the time at which ann read a message, in ns on the monotonic clock, and its text.
    fn next_read(&self) -> (u64, String) {
        let mut bytes = [0; 256];
        let length = self.reports.recv(&mut bytes).unwrap();
        let text = std::str::from_utf8(&bytes[..length]).unwrap();
        let (at, text) = text.split_once(' ').unwrap();
        (at.parse().unwrap(), text.to_owned())
    }

    fn measure_latency(&self) {
        let (mut sends, mut copies) = (Vec::new(), Vec::new());
        for n in 0..100 {
            let (text, start) = (format!("message {n}"), history::monotonic_ns());
            self.hosts.env.teamctl(["send", "ann", &text]).expect_success();
            let (at, _) =
                std::iter::repeat_with(|| self.next_read()).find(|(_, read)| *read == text).unwrap();
            sends.push(Duration::from_nanos(at - start));
            copies.push(self.time_copy(&text));
        }
        let (send, copy) = (median(sends), median(copies));
        print_row(
            "a message to an idle member of another host, from the start of `send` until read; `ssh HOST 'cat > file'` on an open connection; medians of 100",
            &format!("{send:.1?}; {copy:.1?}: {:.2} ×", send.as_secs_f64() / copy.as_secs_f64()),
            "2 ×",
        );
    }

    /// The time of `ssh HOST cat`, whose connection stays open between calls.
    fn time_copy(&self, text: &str) -> Duration {
        let env = &self.hosts.env;
        let (program, arguments) = self.hosts.server.command().split_first().unwrap();
        let socket = format!("ControlPath={}", env.path("far/run/control").display());
        let options = ["-o", "ControlMaster=auto", "-o", "ControlPersist=yes", "-o", &socket];
        let mut ssh = Command::new(program);
        ssh.args(options).args(arguments).arg(format!("cat > {}", env.path("out/copy").display()));
        let start = history::monotonic_ns();
        // The process that keeps the connection open keeps its standard error.
        let mut child = ssh.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
        Duration::from_nanos(history::monotonic_ns() - start)
    }

    fn measure_idle_link(&self) {
        let env = &self.hosts.env;
        let there = env.teamctl(["--host", "far", "--json", "status"]).expect_success();
        let there: serde_json::Value = serde_json::from_str(&there).unwrap();
        let there = u32::try_from(there["daemon"]["pid"].as_u64().unwrap()).unwrap();
        let (daemons, ssh) = ([env.daemon_pid(), there], self.link_process());
        let usage = || (daemons.map(cpu_ticks).iter().sum::<u64>(), bytes_moved(ssh));
        let before = usage();
        // An event must not end this wait, because the benchmark measures idle processes.
        sleep(WINDOW);
        let after = usage();
        let share = (after.0 - before.0) as f64 / WINDOW.as_secs_f64();
        print_row(
            "an idle link, 60 s: CPU of both daemons; bytes that ssh reads and writes",
            &format!("{share:.2} %; {}", after.1 - before.1),
            "only a keep-alive",
        );
    }

    /// The ssh process that carries the link: a child of the home's daemon.
    fn link_process(&self) -> u32 {
        let daemon = self.hosts.env.daemon_pid();
        let children = std::fs::read_to_string(format!("/proc/{daemon}/task/{daemon}/children")).unwrap();
        let is_ssh = |pid: &u32| {
            std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "ssh")
        };
        let mut pids = children.split_whitespace().map(|pid| pid.parse().unwrap());
        pids.find(is_ssh).expect("the daemon has started ssh")
    }

    fn measure_throughput(&self) {
        let mut server = McpClient::connect(&self.hosts.env, &["--team", "survey"]);
        let start = history::monotonic_ns();
        let (sent_at, read_at) = std::thread::scope(|scope| {
            let reads = scope.spawn(|| (0..MESSAGES).map(|_| self.next_read().0).last().unwrap());
            for n in 0..MESSAGES {
                let message = json!({"recipient": "ann", "content": format!("{n}"), "summary": "s"});
                server.call("SendMessage", &message).unwrap();
            }
            (history::monotonic_ns(), reads.join().unwrap())
        });
        let rate = |end: u64| MESSAGES as f64 / Duration::from_nanos(end - start).as_secs_f64();
        print_row(
            "5,000 messages to one member of another host, as fast as one sender can: sent; read there",
            &format!("{:.0}; {:.0} a second", rate(sent_at), rate(read_at)),
            "1,000 a second",
        );
    }
}

/// The bytes that a process has read and written.
fn bytes_moved(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    let field = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
    field("rchar:").unwrap() + field("wchar:").unwrap()
}
