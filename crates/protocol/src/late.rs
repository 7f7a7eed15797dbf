//! Blanks in arguments that are filled later than all others: `{prompt}`, `{session}` and `{mode}` for each turn, `{color}`,
//! `{lead_session}` and the `{session}` of a life before when the daemon lets an agent start.

/// All there are.
pub const BLANKS: [&str; 5] = ["prompt", "session", "mode", "color", "lead_session"];

/// `text` as it must stand in an argument so that nothing in it is taken for a blank. No argument can hold a zero
/// byte: one breaks each blank up, and [`filled`] takes it out again.
pub fn literal(text: &str) -> String {
    BLANKS
        .iter()
        .fold(text.to_owned(), |text, name| text.replace(&format!("{{{name}}}"), &format!("{{\0{name}}}")))
}

/// `text` with every blank filled that `value` knows; what it puts there is not looked at again.
pub fn filled<'a>(text: &str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(open) = rest.find('{') {
        let (before, braced) = rest.split_at(open);
        let name = braced[1..].split_once('}').map(|(name, _)| name).filter(|name| BLANKS.contains(name));
        out.push_str(before);
        let length = match name.and_then(|name| Some((name.len() + 2, value(name)?))) {
            Some((length, value)) => {
                out.push_str(value);
                length
            }
            None => {
                out.push('{');
                1
            }
        };
        rest = &braced[length..];
    }
    out.push_str(rest);
    out.replace('\0', "")
}

/// A text that is an argument of its own must not be taken for an option: where no `--` stands before it, a space does.
pub fn not_an_option(template: &[String], text: &str) -> String {
    let own = template.iter().position(|argument| argument == "{prompt}");
    let dashes = template.iter().position(|argument| argument == "--");
    match own {
        Some(own) if text.starts_with('-') && dashes.is_none_or(|dashes| dashes > own) => format!(" {text}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_literal_arrives_as_it_stood_and_blanks_are_filled_once() {
        let value = |name: &str| match name {
            "color" => Some("{session}"),
            "session" => Some("s"),
            _ => None,
        };
        assert_eq!(filled("{color}{session}{prompt}{x}{", value), "{session}s{prompt}{x}{");
        for text in ["{color}", "{{session}}", "{prompt}{color", "{\"a\":1}", "é{", ""] {
            assert_eq!(filled(&literal(text), value), text);
        }
        assert_eq!(filled(&format!("{}={{color}}", literal("{color}")), value), "{color}={session}");
    }
}
