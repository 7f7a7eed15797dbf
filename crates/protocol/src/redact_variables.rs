//! Hides secrets in environment variables that are shown to people.

/// Parts of the names of variables that hold secrets.
const SECRET_NAME_PARTS: [&str; 12] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASS",
    "_PWD",
    "AUTH",
    "CREDENTIAL",
    "COOKIE",
    "PRIVATE",
    "BEARER",
    "SIGNATURE",
    "_PAT",
];

/// Prefixes of well-known secrets.
pub(crate) const SECRET_PREFIXES: [&str; 15] = [
    "sk-",
    "sk_",
    "pk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xox",
    "AKIA",
    "AIza",
    "eyJ",
    "hf_",
    "-----BEGIN",
];

/// Text in a variable's value may be a secret if it has at least this many characters, with both
/// letters and digits. Ordinary words are shorter.
const MIN_SECRET_LENGTH: usize = 24;

/// Returns the value of the environment variable `name` for output. A value that may be a secret is
/// replaced by `(hidden)`.
pub fn redact<'a>(name: &str, value: &'a str) -> &'a str {
    if value.is_empty() || !(is_secret_name(name) || is_secret_like(value)) { value } else { "(hidden)" }
}

/// Whether the name of a variable stands for a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    SECRET_NAME_PARTS.iter().any(|part| upper.contains(part))
}

fn is_secret_like(value: &str) -> bool {
    let value = value.trim();
    if SECRET_PREFIXES.iter().any(|start| value.starts_with(start)) {
        return true;
    }
    // A URL with a password: scheme://user:password@host
    let authority =
        value.split_once("://").map(|(_, rest)| rest.split(['/', '?']).next().unwrap_or_default());
    if authority.is_some_and(|authority| authority.contains('@')) {
        return true;
    }
    let parts = value.split(|c: char| !(c.is_ascii_alphanumeric() || "-_+=".contains(c)));
    parts.into_iter().any(|part| {
        let (digit, letter) = (
            part.bytes().any(|byte| byte.is_ascii_digit()),
            part.bytes().any(|byte| byte.is_ascii_alphabetic()),
        );
        part.len() >= MIN_SECRET_LENGTH && digit && letter
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden() {
        for (name, value) in [
            ("OPENAI_API_KEY", "x"),
            ("npm_config__authToken", "x"),
            ("GITHUB_PAT", "x"),
            ("DB_PASS", "x"),
            ("MYSQL_PWD", "x"),
            ("SSHPASS", "x"),
            ("db_password", "x"),
            ("A", "sk-ant-abc"),
            ("A", "ghp_x"),
            ("A", "https://user:password@proxy:8080/"),
            ("A", "Bearer abcdefghij0123456789abcdef"),
            ("A", "0123456789abcdef0123456789abcdef"),
            ("A", "-----BEGIN PRIVATE"),
        ] {
            assert_eq!(redact(name, value), "(hidden)", "{name}={value}");
        }
        for (name, value) in [
            ("PATH", "/usr/local/bin:/usr/bin"),
            ("LANG", "en_US.UTF-8"),
            ("PWD", "/w"),
            ("OLDPWD", "/w"),
            ("A", ""),
            ("API_KEY", ""),
            ("URL", "https://example.com/a@b"),
            ("TERM", "xterm-256color"),
            ("A", "a-long-name-without-any-number"),
        ] {
            assert_eq!(redact(name, value), value, "{name}={value}");
        }
    }
}
