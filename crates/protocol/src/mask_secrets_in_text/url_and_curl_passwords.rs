//! Finds the passwords in URLs and in the arguments of curl.

use super::words_and_values::value_length;
use std::ops::Range;

/// A name of a user in a URL that is so long and has a digit is a token.
const MIN_TOKEN_LENGTH: usize = 12;

/// The passwords of URLs such as `https://user:password@host`, and tokens in the place of a user.
pub(super) fn url_passwords(text: &str) -> impl Iterator<Item = Range<usize>> {
    let in_url = move |(found, separator): (usize, &str)| {
        let start = found + separator.len();
        let is_end = |c: char| c.is_whitespace() || c.is_control() || "/?#\"'<>`\\".contains(c);
        let authority = text[start..].split(is_end).next()?;
        let (user_info, _) = authority.rsplit_once('@')?;
        let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
        let end = start + user_info.len();
        let is_http = text[..found].ends_with("http") || text[..found].ends_with("https");
        let user = (is_http && is_token(user)).then_some(start..start + user.len());
        let password = (!password.is_empty()).then_some(end - password.len()..end);
        Some(user.into_iter().chain(password))
    };
    text.match_indices("://").filter_map(in_url).flatten()
}

fn is_token(user: &str) -> bool {
    user.len() >= MIN_TOKEN_LENGTH && user.bytes().any(|byte| byte.is_ascii_digit())
}

/// The passwords of commands such as `curl -u user:password`.
pub(super) fn curl_passwords(text: &str) -> impl Iterator<Item = Range<usize>> {
    let options = ["-u", "--user", "-U", "--proxy-user"];
    options.into_iter().flat_map(move |option| text.match_indices(option)).filter_map(|(found, option)| {
        let line = text[..found].rsplit('\n').next()?;
        let value = text[found + option.len()..].trim_start_matches([' ', '=', '\\', '"', '\'']);
        let is_option = line.ends_with([' ', '"', '\'']) && line.contains("curl");
        let start = text.len() - value.len();
        let (user, password) = value[..value_length(value)].split_once(':')?;
        let start = start + user.len() + 1;
        (is_option && !password.is_empty() && !password.starts_with(['$', '/']))
            .then_some(start..start + password.len())
    })
}
