//! Members that act as a person types commands: their programs write their environment to a file,
//! and the test runs commands in it.

use crate::{CommandOutput, McpClient, TestEnv};

/// The variables with which teamd identifies a member, as the member's program got them.
#[derive(Debug, Clone, Default)]
pub struct MemberEnv {
    variables: Vec<(String, String)>,
}

impl MemberEnv {
    /// Name and value of each variable.
    pub fn variables(&self) -> Vec<(&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// The value of the variable `name`.
    ///
    /// # Panics
    /// If the member has no such variable.
    pub fn get(&self, name: &str) -> &str {
        let found = self.variables.iter().find(|(key, _)| key == name);
        &found.unwrap_or_else(|| panic!("the member has no {name}")).1
    }

    /// The member's token for the control socket.
    pub fn token(&self) -> &str {
        self.get("TEAMD_TOKEN")
    }

    /// The same variables without `name`.
    #[must_use]
    pub fn without(&self, name: &str) -> MemberEnv {
        MemberEnv { variables: self.variables.iter().filter(|(key, _)| key != name).cloned().collect() }
    }

    /// The same variables, with another value of `name`.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> MemberEnv {
        let mut changed = self.without(name);
        changed.variables.push((name.to_owned(), value.to_owned()));
        changed
    }
}

impl TestEnv {
    /// Spawns a member whose program only waits, and returns its environment.
    pub fn spawn_member(&self, team: &str, name: &str) -> MemberEnv {
        let script = self.member_script(team, name);
        self.teamctl_with(&["-t", team, "spawn", name, "--", "sh", "-c", &script], &[]).expect_success();
        self.read_member_env(team, name)
    }

    /// The shell script of a member whose environment [`TestEnv::read_member_env`] reads. Call this
    /// before each spawn, because it removes the file of an earlier one.
    pub fn member_script(&self, team: &str, name: &str) -> String {
        let file = self.path(&format!("out/{team}-{name}"));
        std::fs::remove_file(&file).ok();
        let file = file.display();
        format!("env >{file}.new; mv {file}.new {file}; exec sleep 3600")
    }

    /// Waits until the script of [`TestEnv::member_script`] has written the member's environment.
    pub fn read_member_env(&self, team: &str, name: &str) -> MemberEnv {
        let text = self.wait_until("the environment is written", || {
            Some(self.read(&format!("out/{team}-{name}"))).filter(|text| text.contains("TEAMD_TOKEN="))
        });
        let variables = text.lines().filter_map(|line| line.split_once('='));
        let own = variables.filter(|(name, _)| name.starts_with("TEAMD_"));
        MemberEnv { variables: own.map(|(name, value)| (name.to_owned(), value.to_owned())).collect() }
    }

    /// Runs teamctl in the environment of a member.
    pub fn teamctl_as(&self, member: &MemberEnv, args: &[&str]) -> CommandOutput {
        self.teamctl_with(args, &member.variables())
    }

    /// Starts `teamctl mcp` in the environment of a member.
    pub fn mcp_as(&self, member: &MemberEnv) -> McpClient {
        McpClient::connect_with_env(self, &[], &member.variables())
    }
}
