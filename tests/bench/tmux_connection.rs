//! A minimal control client of tmux, the baseline for teamd's control client.

use harness::TestEnv;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// A tmux control client that is attached to the session `user`.
pub(crate) struct TmuxConnection {
    client: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl TmuxConnection {
    pub(crate) fn open(env: &TestEnv) -> TmuxConnection {
        let mut tmux = env.command("tmux");
        tmux.arg("-S").arg(env.tmux_socket()).args(["-C", "attach-session", "-t", "=user"]);
        let mut client = tmux.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (client.stdin.take().unwrap(), client.stdout.take().unwrap());
        TmuxConnection { client, input, output: BufReader::new(output) }
    }

    /// Sends all commands at once. Returns the first line of each reply.
    ///
    /// # Panics
    /// If a command fails.
    pub(crate) fn run_commands(&mut self, commands: &[String]) -> Vec<String> {
        self.input
            .write_all(commands.iter().map(|command| format!("{command}\n")).collect::<String>().as_bytes())
            .unwrap();
        let read_reply =
            |_| self.read_reply().unwrap_or_else(|error| panic!("a tmux command has failed: {error}"));
        commands.iter().map(read_reply).collect()
    }

    /// Runs a command. Returns the first line of its reply or of the error.
    pub(crate) fn run_command(&mut self, command: &str) -> Result<String, String> {
        self.input.write_all(format!("{command}\n").as_bytes()).unwrap();
        self.read_reply()
    }

    fn read_reply(&mut self) -> Result<String, String> {
        let (mut first_line, mut in_reply) = (None, false);
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let mut line = String::new();
            assert!(
                self.output.read_line(&mut line).unwrap() > 0 && Instant::now() < deadline,
                "tmux has not replied"
            );
            match line.trim_end() {
                // The flag 1 marks the reply to a command of this client. tmux also prints replies
                // to other commands, such as the initial attach.
                line if line.starts_with("%begin ") => in_reply = line.ends_with(" 1"),
                line if in_reply && line.starts_with("%end ") => return Ok(first_line.unwrap_or_default()),
                line if in_reply && line.starts_with("%error ") => {
                    return Err(first_line.unwrap_or_default());
                }
                line if in_reply => drop(first_line.get_or_insert_with(|| line.to_owned())),
                _ => {}
            }
        }
    }

    pub(crate) fn close(self) {
        let TmuxConnection { mut client, input, .. } = self;
        drop(input);
        client.wait().unwrap();
    }
}
