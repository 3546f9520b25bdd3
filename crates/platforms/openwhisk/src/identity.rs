//! Who calls: a namespace and the key that opens it.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;

use crate::name::EntityName;

/// `uuid:secret`. The first part names the caller, the second proves it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    uuid: String,
    secret: String,
}

/// A text that is no key. It does not quote the text, which may be a secret with a typing mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key has the form uuid:secret, at most 256 visible characters")]
pub struct BadKey;

impl Key {
    /// The part before the colon.
    pub fn uuid(&self) -> &str {
        &self.uuid
    }

    /// A new random key in OpenWhisk's form: a UUID, a colon and 64 characters.
    ///
    /// # Errors
    /// If the system has no random numbers to give.
    pub fn generate() -> Result<Self, getrandom::Error> {
        const LETTERS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789ab";
        let mut random = [0_u8; 80];
        getrandom::fill(&mut random)?;
        // Version 4, variant 1.
        random[6] = (random[6] & 0x0f) | 0x40;
        random[8] = (random[8] & 0x3f) | 0x80;
        let hex: String = random[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        let uuid = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
        let secret =
            random[16..].iter().map(|byte| char::from(LETTERS[usize::from(byte & 63)])).collect();
        Ok(Self { uuid, secret })
    }

    /// Whether `other` is this key. The time it takes does not depend on where they differ.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let uuid = self.uuid.as_bytes().ct_eq(other.uuid.as_bytes());
        let secret = self.secret.as_bytes().ct_eq(other.secret.as_bytes());
        bool::from(uuid & secret)
    }

    /// The value of an `Authorization` header, e.g. `Basic MjNiYz...`.
    pub fn to_basic(&self) -> String {
        format!("Basic {}", STANDARD.encode(self.to_string()))
    }

    /// Reads the value of an `Authorization` header.
    pub fn from_basic(header: &[u8]) -> Result<Self, BadKey> {
        let (scheme, coded) = header.split_at_checked(6).ok_or(BadKey)?;
        if !scheme.eq_ignore_ascii_case(b"basic ") || coded.len() > 512 {
            return Err(BadKey);
        }
        let plain = STANDARD.decode(coded.trim_ascii()).map_err(|_| BadKey)?;
        std::str::from_utf8(&plain).map_err(|_| BadKey)?.parse()
    }
}

impl FromStr for Key {
    type Err = BadKey;
    fn from_str(text: &str) -> Result<Self, BadKey> {
        let (uuid, secret) = text.split_once(':').ok_or(BadKey)?;
        let is_visible = text.len() <= 256 && text.bytes().all(|letter| letter.is_ascii_graphic());
        if uuid.is_empty() || secret.is_empty() || !is_visible {
            return Err(BadKey);
        }
        Ok(Self { uuid: uuid.to_owned(), secret: secret.to_owned() })
    }
}

/// The whole key, secret included: for the one place that prints it to its owner.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.uuid, self.secret)
    }
}

/// Without the secret, so that it cannot end up in a log.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}:…)", self.uuid)
    }
}

/// A caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The namespace the caller owns; also the subject in records.
    pub namespace: EntityName,
    /// What the caller proves itself with.
    pub key: Key,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_key_has_the_form_clients_expect() {
        let key = Key::generate().unwrap();
        let text = key.to_string();
        assert_eq!((key.uuid().len(), text.len()), (36, 36 + 1 + 64));
        assert_eq!(text.parse::<Key>().unwrap(), key);
        assert!(key.is(&Key::from_basic(key.to_basic().as_bytes()).unwrap()));
        assert!(!key.is(&Key::generate().unwrap()));
        assert!(!format!("{key:?}").contains(&text[37..]));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for bad in ["", "a", ":", "a:", ":b", "a:b c", "ä:b"] {
            assert!(bad.parse::<Key>().is_err(), "{bad}");
        }
        for bad in ["", "Basic", "Basic ", "Bearer YTpi", "Basic !!!!", "Basic YQ=="] {
            assert!(Key::from_basic(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(Key::from_basic(b"basic YTpi").is_ok());
    }
}
