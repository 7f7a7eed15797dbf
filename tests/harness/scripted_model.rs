//! Scripted models: Node programs that stand in for the language model of real agent programs. They
//! listen only on 127.0.0.1.

use crate::TestEnv;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

/// A running scripted model. Dropping it ends the program.
pub struct ScriptedModel {
    child: Child,
    address: String,
}

impl ScriptedModel {
    /// Starts `script`, a file below tests/compat. The program writes the requests that it gets,
    /// and what it does, to `log`.
    pub fn start(env: &TestEnv, script: &str, log: &Path) -> ScriptedModel {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("compat").join(script);
        let mut command = env.command("node");
        command.arg(script).arg(log).stdout(Stdio::piped());
        let mut child = command.spawn().expect("node starts");
        let mut port = String::new();
        let output = child.stdout.take().expect("the output is piped");
        BufReader::new(output).read_line(&mut port).expect("the model prints its port");
        ScriptedModel { child, address: format!("http://127.0.0.1:{}", port.trim()) }
    }

    /// The URL of the model, without a path.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
