//! A bare control client of tmux.

use harness::TestEnv;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// One control client, to which commands are said one behind the other.
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

    /// The first line of each answer.
    pub(crate) fn run_commands(&mut self, commands: &[String]) -> Vec<String> {
        self.input
            .write_all(commands.iter().map(|command| format!("{command}\n")).collect::<String>().as_bytes())
            .unwrap();
        let answer = |_| self.read_reply().unwrap_or_else(|why| panic!("tmux refuses: {why}"));
        commands.iter().map(answer).collect()
    }

    /// The first line of the answer, or of the refusal.
    pub(crate) fn run_command(&mut self, command: &str) -> Result<String, String> {
        self.input.write_all(format!("{command}\n").as_bytes()).unwrap();
        self.read_reply()
    }

    fn read_reply(&mut self) -> Result<String, String> {
        let (mut first, mut inside, until) = (None, false, Instant::now() + Duration::from_secs(60));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0 && Instant::now() < until, "tmux answers");
            match line.trim_end() {
                // What it does by itself, the attaching for one, ends with another number.
                line if line.starts_with("%begin ") => inside = line.ends_with(" 1"),
                line if inside && line.starts_with("%end ") => return Ok(first.unwrap_or_default()),
                line if inside && line.starts_with("%error ") => return Err(first.unwrap_or_default()),
                line if inside => drop(first.get_or_insert_with(|| line.to_owned())),
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
