//! Parses the file in which a user defines an agent type, in Claude Code's format. It has front
//! matter between two lines of dashes, then the body with the agent's instructions.
//!
//! This module parses the file for programs that do not read it themselves. A program that reads it
//! (Claude Code) gets only the name of the agent type.

/// The parts of an agent type's file that matter for a program that does not read the file itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AgentType {
    /// The model as written in the file. `None` if the file names none.
    pub model: Option<String>,
    /// The tools that the agent may use. Empty if it may use all tools.
    pub tools: Vec<String>,
    /// The instructions: the file's text below its header.
    pub body: String,
}

impl AgentType {
    /// The model that the agent type's file names. `None` if the file names no model. Also `None`
    /// if the model is `opus`, `sonnet` or `haiku` and `program` is not Claude Code, because other
    /// programs do not know these names.
    pub fn model_for(&self, program: Option<&str>) -> Option<String> {
        let claude = program.is_some_and(|program| program.rsplit('/').next() == Some("claude"));
        let own_word = |model: &&String| ["opus", "sonnet", "haiku"].contains(&model.as_str());
        self.model.as_ref().filter(|model| claude || !own_word(model)).cloned()
    }

    /// The names of the tools, without their restrictions: `Bash` for `Bash(git log:*)`.
    pub fn tool_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for tool in &self.tools {
            let name = tool.split('(').next().unwrap_or(tool).trim();
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }
}

/// Parses the file of an agent type. In a file without front matter the whole text is the body.
pub fn parse_agent_type(text: &str) -> AgentType {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let parts = text.strip_prefix("---\n").and_then(|rest| {
        let end = rest
            .find("\n---\n")
            .map(|at| (at, at + 5))
            .or_else(|| rest.strip_suffix("\n---").map(|r| (r.len(), rest.len())));
        end.map(|(end, body)| (&rest[..end], &rest[body..]))
    });
    let Some((front, body)) = parts else {
        return AgentType { body: text.trim().to_owned(), ..AgentType::default() };
    };
    let model = front_matter_values(front, "model").into_iter().next().filter(|model| model != "inherit");
    let tools = front_matter_values(front, "tools").into_iter().filter(|tool| tool != "*").collect();
    AgentType { model, tools, body: body.trim().to_owned() }
}

/// The values of `key` in front matter. They are either on the key's own line, separated by commas
/// and optionally in brackets, or on the lines below the key, each after a dash.
fn front_matter_values(front: &str, key: &str) -> Vec<String> {
    let mut lines = front.lines().skip_while(|line| line.split(':').next() != Some(key));
    let Some((_, inline)) = lines.next().and_then(|line| line.split_once(':')) else { return Vec::new() };
    let inline = inline.trim();
    let inline = inline.strip_prefix('[').and_then(|inline| inline.strip_suffix(']')).unwrap_or(inline);
    let below =
        lines.take_while(|line| line.trim_start().starts_with("- ")).map(|line| &line.trim_start()[2..]);
    let items: Vec<&str> = if inline.is_empty() { below.collect() } else { split_at_commas(inline) };
    items.into_iter().map(unquote).filter(|item| !item.is_empty()).collect()
}

/// Splits at commas outside parentheses: `Bash(a,b), Read` has two parts.
fn split_at_commas(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}

fn unquote(item: &str) -> String {
    let item = item.trim();
    let bare = |quote| item.strip_prefix(quote).and_then(|item| item.strip_suffix(quote));
    bare('"').or_else(|| bare('\'')).unwrap_or(item).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_parsed_in_every_notation() {
        let agent_type = parse_agent_type(
            "---\nname: tester\ndescription: tests: all\ntools: Read, Bash(git log:*, x), Grep\nmodel: \"opus\"\n---\n\nTest it.\n---\nAll of it.\n",
        );
        assert_eq!(agent_type.tools, ["Read", "Bash(git log:*, x)", "Grep"]);
        assert_eq!(
            (agent_type.model.as_deref(), agent_type.body.as_str()),
            (Some("opus"), "Test it.\n---\nAll of it.")
        );
        assert_eq!(agent_type.tool_names(), ["Read", "Bash", "Grep"]);
        assert_eq!(agent_type.model_for(Some("/opt/claude")).as_deref(), Some("opus"));
        assert_eq!((agent_type.model_for(Some("gemini")), agent_type.model_for(None)), (None, None));
        let with_list =
            parse_agent_type("---\r\ntools:\r\n  - Read\r\n  - 'Grep'\r\nmodel: inherit\r\n---\r\nx");
        assert_eq!(
            (with_list.tools.join(" "), with_list.model, with_list.body.as_str()),
            ("Read Grep".to_owned(), None, "x")
        );
        assert_eq!(parse_agent_type("---\ntools: [Read, Edit]\n---").tools, ["Read", "Edit"]);
        assert!(parse_agent_type("---\ntools: \"*\"\n---\nx").tools.is_empty());
    }

    #[test]
    fn text_without_front_matter_is_the_body() {
        for text in ["Test it.", "---\nmodel: x\nno end", "", "--- \nmodel: x\n---\n"] {
            assert_eq!(
                parse_agent_type(text),
                AgentType { body: text.trim().to_owned(), ..AgentType::default() },
                "{text}"
            );
        }
    }
}
