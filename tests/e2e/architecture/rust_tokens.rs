//! Splits Rust source into the tokens that paths are made of. Comments, texts and attributes are
//! left out, and so is everything under `#[cfg(test)]`.

/// The tokens of a file outside of tests.
pub(super) struct FileTokens {
    /// Words, `::`, and every other character by itself.
    pub(super) tokens: Vec<String>,
    /// Modules that are declared with `#[cfg(test)] mod NAME;`: their files are tests too.
    pub(super) test_modules: Vec<String>,
}

/// An item that begins with none of these is a field, a variant or an arm, and ends at a comma.
const ITEM_KEYWORDS: [&str; 15] = [
    "async",
    "const",
    "enum",
    "extern",
    "fn",
    "impl",
    "let",
    "macro_rules",
    "mod",
    "static",
    "struct",
    "trait",
    "type",
    "unsafe",
    "use",
];

pub(super) fn file_tokens(text: &str) -> FileTokens {
    let all = split(text);
    let mut file = FileTokens { tokens: Vec::new(), test_modules: Vec::new() };
    let mut at = 0;
    while at < all.len() {
        if let Some(end) = attribute_end(&all, at) {
            let is_test = is_test_attribute(&all[at..end]);
            at = end;
            if is_test {
                while let Some(end) = attribute_end(&all, at) {
                    at = end;
                }
                let end = item_end(&all, at);
                file.test_modules.extend(declared_module(&all[at..end]));
                at = end;
            }
            continue;
        }
        file.tokens.push(all[at].clone());
        at += 1;
    }
    file
}

/// Where the attribute that begins at `at` ends. None if none begins there.
fn attribute_end(tokens: &[String], at: usize) -> Option<usize> {
    let token = |offset: usize| tokens.get(at + offset).map(String::as_str);
    let open = match (token(0)?, token(1)?, token(2)?) {
        ("#", "[", _) => at + 1,
        ("#", "!", "[") => at + 2,
        _ => return None,
    };
    Some(group_end(tokens, open))
}

/// `#[cfg(test)]`, `#[cfg(all(test, unix))]`; not `#[cfg(not(test))]`.
fn is_test_attribute(attribute: &[String]) -> bool {
    let has = |word: &str| attribute.iter().any(|token| token == word);
    has("cfg") && has("test") && !has("not")
}

/// Behind the bracket that closes the one at `open`.
fn group_end(tokens: &[String], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// Behind the item, field or variant that begins at `start`.
fn item_end(tokens: &[String], start: usize) -> usize {
    let mut at = start;
    if tokens.get(at).is_some_and(|token| token == "pub") {
        at += 1;
        if tokens.get(at).is_some_and(|token| token == "(") {
            at = group_end(tokens, at);
        }
    }
    let keyword = tokens.get(at).map_or("", String::as_str);
    let is_item = ITEM_KEYWORDS.contains(&keyword);
    let ends_with_block = is_item && !["use", "const", "static", "let"].contains(&keyword);
    while at < tokens.len() {
        match tokens[at].as_str() {
            ";" => return at + 1,
            "," if !is_item => return at + 1,
            // What the field belongs to ends here.
            "}" => return at,
            "{" if ends_with_block => return group_end(tokens, at),
            "(" | "[" | "{" => at = group_end(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// The name of `mod NAME;`.
fn declared_module(item: &[String]) -> Option<String> {
    match item {
        [.., keyword, name, end] if keyword == "mod" && end == ";" => Some(name.clone()),
        _ => None,
    }
}

fn is_word_char(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn split(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = skipped_length(rest);
        if length > 0 {
            rest = &rest[length..];
            continue;
        }
        let length = match first {
            _ if is_word_char(first) => rest.find(|letter| !is_word_char(letter)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        tokens.push(rest[..length].to_owned());
        rest = &rest[length..];
    }
    tokens
}

/// How much white space, comment or literal `rest` begins with, bytes.
fn skipped_length(rest: &str) -> usize {
    let first = rest.chars().next().unwrap_or(' ');
    if first.is_whitespace() {
        first.len_utf8()
    } else if rest.starts_with("//") {
        rest.find('\n').unwrap_or(rest.len())
    } else if rest.starts_with("/*") {
        block_comment_length(rest)
    } else if first == '\'' {
        char_length(rest)
    } else {
        string_length(rest)
    }
}

fn block_comment_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// A character between quotes, or a lifetime.
fn char_length(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    match letters.next() {
        Some((_, '\\')) => {
            letters.next();
            letters.find(|(_, letter)| *letter == '\'').map_or(rest.len(), |(at, _)| at + 1)
        }
        Some(_) => match letters.next() {
            Some((at, '\'')) => at + 1,
            _ => 1 + rest[1..].find(|letter| !is_word_char(letter)).unwrap_or(rest.len() - 1),
        },
        None => rest.len(),
    }
}

/// A text between double quotes, with or without `b`, `c`, `r` and `#` ahead of it; 0 if there is
/// none.
fn string_length(rest: &str) -> usize {
    let prefix = rest.len() - rest.trim_start_matches(['b', 'c', 'r']).len();
    let hashes = rest[prefix..].len() - rest[prefix..].trim_start_matches('#').len();
    let is_raw = rest[..prefix].contains('r');
    let open = prefix + hashes;
    if prefix > 2 || !rest[open..].starts_with('"') || (hashes > 0 && !is_raw) {
        return 0;
    }
    let body = open + 1;
    if is_raw {
        let close = format!("\"{}", "#".repeat(hashes));
        return rest[body..].find(&close).map_or(rest.len(), |at| body + at + close.len());
    }
    let mut letters = rest[body..].char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => {
                letters.next();
            }
            '"' => return body + at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[test]
fn comments_texts_and_tests_are_left_out() {
    let text = r###"
        //! [`crate::a`]
        /* crate::b /* nested */ crate::c */
        #[derive(Debug)]
        fn f<'a>(x: &'a str) -> char { g("crate::d \" x", r#"crate::"e" "#, b"y", '"', '\''); super::h() }
        #[cfg(test)]
        #[path = "t.rs"]
        mod tests;
        #[cfg(test)]
        mod more { use crate::i; }
        struct S { #[cfg(test)] seen: Vec<crate::J>, #[cfg(not(test))] here: u8 }
    "###;
    let file = file_tokens(text);
    assert_eq!(
        file.tokens.join(" "),
        "fn f < > ( x : & str ) -> char { g ( , , , , ) ; super :: h ( ) } struct S { here : u8 }"
            .replace("->", "- >")
    );
    assert_eq!(file.test_modules, ["tests"]);
}
