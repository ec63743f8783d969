//! The keys of a request, which no tape has: they change, and servers repeat them.

use gavel_endpoint::{names_a_key, without_secret};
use http::HeaderName;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;

/// Headers with keys. Two requests that differ only here are the same.
pub(super) const SECRET_HEADERS: [&str; 7] =
    ["authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-auth-token", "x-goog-api-key"];

/// The keys in the headers and in the query of a request, each with the name of its header or variable.
pub(super) struct Secrets(Vec<(String, Vec<u8>)>);

impl Secrets {
    /// The keys of a request by a plugin that sees `variables`.
    pub(super) fn of(head: &Parts, variables: &[(String, String)]) -> Self {
        let mut secrets = Vec::new();
        let of_header =
            |name: &'static str| head.headers.get_all(name).iter().map(move |value| (name, value.as_bytes()));
        for (name, value) in SECRET_HEADERS.into_iter().flat_map(of_header) {
            let (separator, before) = if name == "cookie" { (b';', b'=') } else { (b',', b' ') };
            for part in value.split(|byte| *byte == separator) {
                let part = part.trim_ascii();
                // The key after `Bearer ` or `session=`.
                let start = part.iter().position(|byte| *byte == before).map_or(0, |at| at + 1);
                secrets.push((name.to_owned(), part[start..].to_vec()));
            }
        }
        secrets.extend(sent_variables(head, variables));
        Self(secrets)
    }

    /// The bytes of a response with `$NAME` in place of each key.
    pub(super) fn remove_from(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.0.iter().fold(bytes, |bytes, (name, secret)| without_secret(bytes, secret, &format!("${name}")))
    }

    /// Whether the name of a header has a key, in lower case as all names are. Those that say how to read the body have
    /// none.
    pub(super) fn are_in_name(&self, name: &HeaderName) -> bool {
        if *name == CONTENT_TYPE || *name == CONTENT_LENGTH {
            return false;
        }
        let name = name.as_str().as_bytes().to_vec();
        let has = |secret: &[u8]| without_secret(name.clone(), &secret.to_ascii_lowercase(), "") != name;
        self.0.iter().any(|(_, secret)| has(secret))
    }
}

/// The variables that are sent as keys: as a header, by whatever name a server wants it, or as a parameter of the query
/// of which one of the names looks like a key. Another variable may be a word that the server answers for its own sake.
fn sent_variables(head: &Parts, variables: &[(String, String)]) -> Vec<(String, Vec<u8>)> {
    let query = head.uri.query().unwrap_or_default();
    let parameters = query.split('&').map(|part| part.split_once('=').unwrap_or(("", part)));
    let parameters: Vec<(&str, Vec<u8>)> = parameters.map(|(name, value)| (name, decoded(value))).collect();
    let is_sent = |variable: &str, value: &[u8]| {
        let is_parameter = |name: &str| names_a_key(variable) || names_a_key(name);
        head.headers.iter().any(|(name, text)| is_in_header(name, text.as_bytes(), value))
            || parameters.iter().any(|(name, text)| text.as_slice() == value && is_parameter(name))
    };
    let variables = variables.iter().map(|(name, value)| (name, value.trim().as_bytes()));
    let sent = variables.filter(|(name, value)| is_sent(name, value));
    sent.map(|(name, value)| (name.clone(), value.to_vec())).collect()
}

/// Whether `value` is the text of a header, or what follows its first word, as in `Bearer X`. A header that always has a
/// key may have more beside it, such as a user.
fn is_in_header(name: &HeaderName, text: &[u8], value: &[u8]) -> bool {
    let text = text.trim_ascii();
    let after_word = text.iter().position(|byte| *byte == b' ').map(|at| text[at..].trim_ascii());
    let is_whole = text == value || after_word == Some(value);
    is_whole || (SECRET_HEADERS.contains(&name.as_str()) && without_secret(text.to_vec(), value, "") != text)
}

/// A value of a query without its escapes.
fn decoded(value: &str) -> Vec<u8> {
    let (mut decoded, mut rest) = (Vec::new(), value.as_bytes());
    while let Some((byte, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| *byte == b'%').and_then(|digits| str::from_utf8(digits).ok());
        let escaped = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(escaped.unwrap_or(*byte));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    #[test]
    fn a_variable_that_is_sent_is_a_key() {
        let variables =
            [("QUERY_KEY", "qu/ery-k3y"), ("HEADER_KEY", " subscr1ption\n"), ("MODE", "verbose"), ("SHORT", "5000")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let request = Request::builder()
            .uri("https://judge.example/score?key=qu%2Fery-k3y&page=5000")
            .header("Ocp-Apim-Subscription-Key", "subscr1ption")
            .header("authorization", "Bearer b3arer")
            .header("accept", "application/json");
        let secrets = Secrets::of(&request.body(()).unwrap().into_parts().0, &variables);
        let clean = |text: &str| String::from_utf8(secrets.remove_from(text.into())).unwrap();
        let expected = "$QUERY_KEY $QUERY_KEY 5000 $HEADER_KEY $authorization verbose application/json";
        assert_eq!(clean("qu/ery-k3y qu%2Fery-k3y 5000 subscr1ption b3arer verbose application/json"), expected);
        let name = |name: &'static str| secrets.are_in_name(&HeaderName::from_static(name));
        assert!(name("x-of-subscr1ption") && !name("x-of-verbose"));
    }

    #[test]
    fn a_variable_that_is_a_word_of_the_request_is_no_key() {
        let variables = [
            ("METRIC", "accuracy"),
            ("PART", "subscr1p"),
            ("PASSED", "t0ken-by-name"),
            ("OWN_TOKEN", "by-own-name"),
            ("SCHEME", "after-a-word"),
            ("USER_KEY", "k3y-of-user"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let request = Request::builder()
            .uri("https://judge.example/score?metric=accuracy&token=t0ken-by-name&by=by-own-name&key=1-accuracy")
            .header("user-agent", "a judge of accuracy")
            .header("ocp-apim-subscription-key", "subscr1ption")
            .header("x-signed", "ApiKey  after-a-word")
            // `user:k3y-of-user`
            .header("authorization", "Basic dXNlcjprM3ktb2YtdXNlcg==");
        let secrets = Secrets::of(&request.body(()).unwrap().into_parts().0, &variables);
        let clean = |text: &str| String::from_utf8(secrets.remove_from(text.into())).unwrap();
        assert_eq!(clean(r#"{"accuracy": 0.9, "by": "subscr1ption"}"#), r#"{"accuracy": 0.9, "by": "subscr1ption"}"#);
        let expected = "$PASSED $OWN_TOKEN $SCHEME $USER_KEY";
        assert_eq!(clean("t0ken-by-name by-own-name after-a-word k3y-of-user"), expected);
    }

    #[test]
    fn what_says_how_to_read_the_body_stays() {
        let request = Request::builder().header("x-api-key", "content");
        let secrets = Secrets::of(&request.body(()).unwrap().into_parts().0, &[]);
        let name = |name: &'static str| secrets.are_in_name(&HeaderName::from_static(name));
        assert!(!name("content-type") && !name("content-length") && name("x-content"));
    }
}
