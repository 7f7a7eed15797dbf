//! Splits Rust source into the tokens of which paths consist. Comments, string literals, attributes
//! and items with `#[cfg(test)]` are left out.

/// The tokens of a file outside of tests.
pub(super) struct FileTokens {
    /// Words, `::`, and every other character by itself.
    pub(super) tokens: Vec<String>,
    /// Modules that are declared with `#[cfg(test)] mod NAME;`. Their files are tests, too.
    pub(super) test_modules: Vec<String>,
}

/// The first words of items. Code that begins with another word is a field, a variant or a match
/// arm, and ends at a comma.
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
    let tokens = split(text);
    let mut file = FileTokens { tokens: Vec::new(), test_modules: Vec::new() };
    let mut index = 0;
    while index < tokens.len() {
        if let Some(end) = attribute_end(&tokens, index) {
            let is_test = is_test_attribute(&tokens[index..end]);
            index = end;
            if is_test {
                while let Some(end) = attribute_end(&tokens, index) {
                    index = end;
                }
                let end = item_end(&tokens, index);
                file.test_modules.extend(declared_module(&tokens[index..end]));
                index = end;
            }
            continue;
        }
        file.tokens.push(tokens[index].clone());
        index += 1;
    }
    file
}

/// The index after the attribute that begins at `start`. `None` if no attribute begins there.
fn attribute_end(tokens: &[String], start: usize) -> Option<usize> {
    let token = |offset: usize| tokens.get(start + offset).map(String::as_str);
    let open = match (token(0)?, token(1)?, token(2)?) {
        ("#", "[", _) => start + 1,
        ("#", "!", "[") => start + 2,
        _ => return None,
    };
    Some(group_end(tokens, open))
}

/// Whether the attribute is like `#[cfg(test)]` or `#[cfg(all(test, unix))]`, not
/// `#[cfg(not(test))]`.
fn is_test_attribute(attribute: &[String]) -> bool {
    let has = |word: &str| attribute.iter().any(|token| token == word);
    has("cfg") && has("test") && !has("not")
}

/// The index after the bracket that closes the one at `open`.
fn group_end(tokens: &[String], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

/// The index after the item, field or variant that begins at `start`.
fn item_end(tokens: &[String], start: usize) -> usize {
    let mut index = start;
    if tokens.get(index).is_some_and(|token| token == "pub") {
        index += 1;
        if tokens.get(index).is_some_and(|token| token == "(") {
            index = group_end(tokens, index);
        }
    }
    let keyword = tokens.get(index).map_or("", String::as_str);
    let is_item = ITEM_KEYWORDS.contains(&keyword);
    let ends_with_block = is_item && !["use", "const", "static", "let"].contains(&keyword);
    while index < tokens.len() {
        match tokens[index].as_str() {
            ";" => return index + 1,
            "," if !is_item => return index + 1,
            // The end of the struct or enum to which a last field belongs.
            "}" => return index,
            "{" if ends_with_block => return group_end(tokens, index),
            "(" | "[" | "{" => index = group_end(tokens, index),
            _ => index += 1,
        }
    }
    index
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

/// The length in bytes of the white space, comment or literal at the start of `rest`.
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
    let (mut depth, mut index) = (0, 0);
    while index < rest.len() {
        if rest[index..].starts_with("/*") {
            (depth, index) = (depth + 1, index + 2);
        } else if rest[index..].starts_with("*/") {
            (depth, index) = (depth - 1, index + 2);
            if depth == 0 {
                return index;
            }
        } else {
            index += rest[index..].chars().next().map_or(1, char::len_utf8);
        }
    }
    index
}

/// The length of the character literal or lifetime at the start of `rest`, in bytes.
fn char_length(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    match letters.next() {
        Some((_, '\\')) => {
            letters.next();
            letters.find(|(_, letter)| *letter == '\'').map_or(rest.len(), |(index, _)| index + 1)
        }
        Some(_) => match letters.next() {
            Some((index, '\'')) => index + 1,
            _ => 1 + rest[1..].find(|letter| !is_word_char(letter)).unwrap_or(rest.len() - 1),
        },
        None => rest.len(),
    }
}

/// The length of the string literal at the start of `rest`, with its prefix of `b`, `c`, `r` and
/// `#`, in bytes. 0 if there is none.
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
        return rest[body..].find(&close).map_or(rest.len(), |index| body + index + close.len());
    }
    let mut letters = rest[body..].char_indices();
    while let Some((index, letter)) = letters.next() {
        match letter {
            '\\' => {
                letters.next();
            }
            '"' => return body + index + 1,
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
