//! Taking secrets out of what others say: MAAS, a power driver or a proxy may quote what it was given. Used by the client for every error.

use std::{borrow::Cow, cmp::Reverse};

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// What is shorter cannot be told from a part of a word. The parts of an API key have 18 and 32 letters.
const SHORTEST: usize = 4;

/// Shorter lines of a secret of several lines are in every second text.
const SHORTEST_LINE: usize = 8;

/// What nobody may quote.
#[derive(Default)]
pub(crate) struct Secrets<'a>(Vec<Cow<'a, str>>);

impl<'a> Secrets<'a> {
    /// The secret and each of its lines, for whoever finds fault with a long text quotes the line; as they are and as a form spells them.
    pub fn add(&mut self, secret: &'a str) {
        self.add_lines(secret.into());
        // User-data is sent in base64 and may be quoted as what it says.
        let compact: String = secret.split_ascii_whitespace().collect();
        if let Some(text) = STANDARD.decode(compact).ok().and_then(|bytes| String::from_utf8(bytes).ok()) {
            self.add_lines(text.into());
        }
    }

    fn add_lines(&mut self, text: Cow<'a, str>) {
        if text.trim().contains('\n') {
            for line in text.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE) {
                self.add_one(line.to_owned().into());
            }
        }
        self.add_one(text);
    }

    fn add_one(&mut self, secret: Cow<'a, str>) {
        let secret = match secret {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
            Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
        };
        if secret.len() >= SHORTEST {
            let encoded: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
            if encoded != secret {
                self.0.push(encoded.into());
            }
            self.0.push(secret);
        }
    }

    /// The text without any secret. Secrets of very few letters are in every second word and stay.
    pub fn scrub(&self, text: &str) -> String {
        let quoted: Vec<&str> = self.0.iter().map(Cow::as_ref).filter(|secret| text.contains(secret)).collect();
        let mut scrubbed = String::new();
        let mut rest = text;
        // Once through: what is put in is not looked at again, in case a secret is found in it.
        while let Some((at, secret)) =
            quoted.iter().filter_map(|secret| Some((rest.find(secret)?, *secret))).min_by_key(|(at, secret)| (*at, Reverse(secret.len())))
        {
            scrubbed.push_str(&rest[..at]);
            scrubbed.push_str("[redacted]");
            rest = &rest[at + secret.len()..];
        }
        scrubbed + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubbed(secrets: &[&str], text: &str) -> String {
        let mut all = Secrets::default();
        for secret in secrets {
            all.add(secret);
        }
        all.scrub(text)
    }

    #[test]
    fn texts_lose_every_secret_and_nothing_else() {
        let key = ["acted", "acted-longer", "redacted"];
        assert_eq!(scrubbed(&key, "a redacted b acted-longer c acted"), "a [redacted] b [redacted] c [redacted]");
        assert_eq!(scrubbed(&key, "nothing of it"), "nothing of it");
        assert_eq!(scrubbed(&["c", "t", "at"], "No Machine matches the given query"), "No Machine matches the given query");
    }

    #[test]
    fn a_secret_is_found_however_it_is_spelled() {
        assert_eq!(scrubbed(&["p&ss wörd"], "sent p%26ss+w%C3%B6rd, that is p&ss wörd"), "sent [redacted], that is [redacted]");
        let user_data = STANDARD.encode("#cloud-config\nruncmd:\n  - join --token abcdef.0123\n");
        assert_eq!(scrubbed(&[&user_data], &format!("cannot take {user_data}")), "cannot take [redacted]");
        assert_eq!(scrubbed(&[&user_data], "line 3: - join --token abcdef.0123 is bad"), "line 3: [redacted] is bad");
        assert_eq!(scrubbed(&["-----BEGIN KEY-----\nMIIEvQIBADAN\n-----END KEY-----\n"], "near 'MIIEvQIBADAN\\n'"), "near '[redacted]\\n'");
    }
}
