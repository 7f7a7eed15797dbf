//! Masks well-known secrets in texts: keys and tokens of services, private keys, passwords in URLs,
//! values of authorization headers, and values of variables whose names stand for secrets. Ordinary
//! prose, paths, UUIDs and git hashes stay.

mod find_secrets;
mod name_keys;
mod named_values;
mod url_and_curl_passwords;
mod words_and_values;

use crate::format_preserving_json::replace_lone_surrogates;
use crate::redact_variables::redact;
use find_secrets::find_secrets;
use name_keys::{is_free_key, is_name_key};
use named_values::is_name_of_secret;
use serde_json::Value;
use std::borrow::Cow;

/// What replaces a secret.
pub const MASK: &str = "(hidden)";

/// Returns `text` with [`MASK`] in place of each secret.
pub fn mask_secrets(text: &str) -> Cow<'_, str> {
    let mut secrets = find_secrets(text);
    if secrets.is_empty() {
        return Cow::Borrowed(text);
    }
    secrets.sort_by_key(|secret| (secret.start, secret.end));
    let (mut masked, mut position) = (String::with_capacity(text.len()), 0);
    for secret in secrets {
        if secret.start >= position {
            masked.push_str(&text[position..secret.start]);
            masked.push_str(MASK);
        }
        position = position.max(secret.end);
    }
    masked.push_str(&text[position..]);
    Cow::Owned(masked)
}

/// Returns the text of a JSON file with its secrets masked. A text without secrets stays as it is.
///
/// # Errors
/// If the text is not valid JSON.
pub fn mask_secrets_in_json_text(text: &str) -> serde_json::Result<Cow<'_, str>> {
    mask_json_text(text, |_| Keys::OfProtocol)
}

fn mask_json_text(text: &str, keys: impl Fn(&Value) -> Keys) -> serde_json::Result<Cow<'_, str>> {
    let original: Value = serde_json::from_str(&replace_lone_surrogates(text))?;
    let mut masked = original.clone();
    mask_value(&mut masked, keys(&original));
    Ok(if masked == original { Cow::Borrowed(text) } else { Cow::Owned(masked.to_string()) })
}

/// Masks the secrets in the texts of a JSON value. Names, ids, times and paths stay as they are,
/// because the recording of a team could not be replayed without them. The objects `env` and
/// `git_env` hold environment variables: there, a value is also masked if the name of its variable
/// stands for a secret. If a text is itself JSON, the secrets inside that JSON are masked.
pub fn mask_secrets_in_json(value: &mut Value) {
    mask_value(value, Keys::OfProtocol);
}

/// Who has chosen the keys of the objects in a value.
#[derive(Debug, Clone, Copy)]
enum Keys {
    /// A key says whether its value is a name or a text.
    OfProtocol,
    /// An agent or a user has. A value under any key may be a secret.
    Free,
}

fn mask_value(value: &mut Value, keys: Keys) {
    match value {
        Value::String(text) => {
            let payload = Some(&*text).filter(|text| text.starts_with('{'));
            let masked = payload.and_then(|payload| mask_payload(payload).ok());
            if let Cow::Owned(masked) = masked.unwrap_or_else(|| mask_secrets(text)) {
                *text = masked;
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| mask_value(element, keys)),
        Value::Object(fields) => fields.iter_mut().for_each(|(key, field)| mask_field(key, field, keys)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn mask_field(key: &str, field: &mut Value, keys: Keys) {
    match (keys, field) {
        (_, Value::Object(variables)) if key == "env" || key == "git_env" => {
            variables.iter_mut().for_each(|(name, variable)| mask_variable(name, variable));
        }
        (_, Value::String(text)) if is_name_of_secret(key) && !text.is_empty() => *text = MASK.to_owned(),
        (Keys::OfProtocol, field) if is_free_key(key) => mask_value(field, Keys::Free),
        (Keys::OfProtocol, field) if is_name_key(key) && has_no_object(field) => {}
        (keys, field) => mask_value(field, keys),
    }
}

fn has_no_object(value: &Value) -> bool {
    !value.is_object() && value.as_array().is_none_or(|elements| elements.iter().all(has_no_object))
}

/// Masks a text that is JSON. Only an object with a type is a message of the protocol.
fn mask_payload(text: &str) -> serde_json::Result<Cow<'_, str>> {
    mask_json_text(text, |payload| if payload["type"].is_string() { Keys::OfProtocol } else { Keys::Free })
}

fn mask_variable(name: &str, value: &mut Value) {
    match value {
        Value::String(text) if redact(name, text) != text => *value = MASK.into(),
        value => mask_value(value, Keys::Free),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_masked_and_the_rest_of_the_text_stays() {
        for (text, expected) in [
            ("use sk-ant-api03-abcDEF012345 now", "use (hidden) now"),
            ("ghp_0123456789abcdefABCDEF0123456789abcd.", "(hidden)."),
            (
                "id AKIAIOSFODNN7EXAMPLE, key wJalrXUtnFEMI/K7MDENG3/bPxR4iCY5EXAMPLEKEY",
                "id (hidden), key (hidden)",
            ),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "(hidden)"),
            (r#"{"text":"a\nsk-proj-0123456789abc\n"}"#, r#"{"text":"a\n(hidden)\n"}"#),
            ("\u{1b}[31msk-proj-0123456789abc\u{1b}[0m", "\u{1b}[31m(hidden)\u{1b}[0m"),
            (r"\u001b[31msk-proj-0123456789abc\u001b[0m", r"\u001b[31m(hidden)\u001b[0m"),
            ("git clone https://ann:hunter2@host/x", "git clone https://ann:(hidden)@host/x"),
            ("-H 'Authorization: Bearer abc.def'", "-H 'Authorization: Bearer (hidden)'"),
            (r#""authorization": "Basic dTpw""#, r#""authorization": "Basic (hidden)""#),
            ("Authorization: abcdefgh\r\nHost: x", "Authorization: (hidden)\r\nHost: x"),
            ("bearer 0123456789abcdef0123", "bearer (hidden)"),
            ("export DB_PASSWORD='hunter 2' X=1", "export DB_PASSWORD='(hidden)' X=1"),
            ("OPENAI_API_KEY=abc DEBUG=1", "OPENAI_API_KEY=(hidden) DEBUG=1"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nok", "(hidden)\nok"),
            (r#"{"key":"-----BEGIN PRIVATE KEY-----\nMII"}"#, r#"{"key":"(hidden)"}"#),
            ("token Zx8Kq2Lw9Rt4Vb7Nm1Pc5Hd3Gf6Js0Ya.", "token (hidden)."),
            ("été ghp_0123456789 été", "été (hidden) été"),
            ("db_password=hunter X=1", "db_password=(hidden) X=1"),
            ("user: ann\npassword: hunter\n", "user: ann\npassword: (hidden)\n"),
            ("MY_API_KEY: abc123", "MY_API_KEY: (hidden)"),
            (r#"{"api_key": "ab cd", "password":"x"}"#, r#"{"api_key": "(hidden)", "password":"(hidden)"}"#),
            (r#""{\"apiKey\": \"abc\"}""#, r#""{\"apiKey\": \"(hidden)\"}""#),
            ("API_KEY = abc123\nB = 2", "API_KEY = (hidden)\nB = 2"),
            ("aws_secret_access_key = wJal1/x+y", "aws_secret_access_key = (hidden)"),
            ("--db-pass='a b' next", "--db-pass='(hidden)' next"),
            ("https://host/?access_token=abc123", "https://host/?access_token=(hidden)"),
            ("curl -u ann:hunter2 https://host", "curl -u ann:(hidden) https://host"),
            ("curl -s --user 'ann:hunter2' x", "curl -s --user 'ann:(hidden)' x"),
            ("git clone https://0123456789abcdef@host/x", "git clone https://(hidden)@host/x"),
        ] {
            assert_eq!(mask_secrets(text), expected, "{text}");
        }
    }

    #[test]
    fn ordinary_texts_stay() {
        for text in [
            "",
            "The tokens of this task: 12 of 3000. A key question, passed on.",
            "pip install sk-learn-1.5; use sk-toggleable in the sk_buff, eyJ and hf_hub.",
            "/home/ann/Projects/MyApp2/src/TestFile3OfManyFiles4/Component5.tsx",
            "550e8400-e29b-41d4-a716-446655440000 and 550E8400-E29B-41D4-A716-446655440000",
            "commit 4f5e1d0c9b8a7f6e5d4c3b2a1f0e9d8c7b6a5f4e",
            "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bd15d6c15b0f00a08",
            "testUserCanLoginWith2FactorAuthenticationOnTheSecondTry",
            "ssh://git@github.com/x and https://example.com/a@b?c:d and mailto:a@b",
            "TOKEN=$TOKEN curl -H \"Authorization: $HEADER\" PATH=/usr/bin",
            "the bearer of this message; Authorization is needed",
            "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
            "a-member-name-with-2-numbers-and-64-characters",
            "The password is in the safe. token: the word; pass: 3 tests, output token: 12",
            "let token = next_token(1); token::new(); if token == x1 {} fn f(password: &str, secret: String)",
            "sudo -u ann x:y; https://ann@host; PWD=/w pwd: /w; tokens: 12k; compass: n4; cache_key: a1",
            "perm-1770977144590@ann 2026-02-13T10:05:44.590Z",
            "\u{1b}[1;32m●\u{1b}[0m done 日本",
        ] {
            assert!(matches!(mask_secrets(text), Cow::Borrowed(_)), "{}", mask_secrets(text));
        }
    }

    #[test]
    fn payloads_in_json_stay_json() {
        let text = json!([{"text": json!({"command": "API_KEY=\"a b\" x", "n": 1}).to_string(), "x": 1.50}])
            .to_string();
        let masked: Value = serde_json::from_str(&mask_secrets_in_json_text(&text).unwrap()).unwrap();
        assert_eq!(masked[0]["text"], json!({"command": "API_KEY=\"(hidden)\" x", "n": 1}).to_string());
        assert!(matches!(mask_secrets_in_json_text(" [1.50, \"\\ud800\"] "), Ok(Cow::Borrowed(_))));
        assert!(mask_secrets_in_json_text("[").is_err());
    }

    #[test]
    fn variables_are_masked_by_name_and_all_texts_by_pattern() {
        let mut value = json!({
            "env": {"DB_PASS": "x", "LANG": "C", "URL": "https://a:b@host"},
            "author": "ann", "argv": ["--key", "ghp_0123456789ab"], "number": 7,
            "input": {"password": "a b", "key": "x"}
        });
        mask_secrets_in_json(&mut value);
        let expected = json!({
            "env": {"DB_PASS": MASK, "LANG": "C", "URL": MASK},
            "author": "ann", "argv": ["--key", MASK], "number": 7,
            "input": {"password": MASK, "key": "x"}
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn names_and_ids_stay_where_the_protocol_has_them() {
        let name = "sk-learn-upgrade-2026";
        let message = json!({"type": "permission_request", "requestId": name, "agentId": name,
            "input": {"name": name}, "description": name});
        let mut value = json!({
            "kind": "call", "team": name, "blockedBy": [name], "members": [{"name": name, "prompt": name}],
            "message": {"from": name, "text": message.to_string()}, "text": json!({"name": name}).to_string(),
            "request": {"create_team": {"team_name": name, "cwd": format!("/w/{name}"), "description": name}},
            "metadata": {"id": name}, "unknown": name,
        });
        mask_secrets_in_json(&mut value);
        let message = json!({"type": "permission_request", "requestId": name, "agentId": name,
            "input": {"name": MASK}, "description": MASK});
        let expected = json!({
            "kind": "call", "team": name, "blockedBy": [name], "members": [{"name": name, "prompt": MASK}],
            "message": {"from": name, "text": message.to_string()}, "text": json!({"name": MASK}).to_string(),
            "request": {"create_team": {"team_name": name, "cwd": format!("/w/{name}"), "description": MASK}},
            "metadata": {"id": MASK}, "unknown": MASK,
        });
        assert_eq!(value, expected);
    }
}
