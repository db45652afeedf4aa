//! Authentication plugins, with which a client proves that it knows the password.

use ed25519_dalek::hazmat::{ExpandedSecretKey, raw_sign};
use ed25519_dalek::{Sha512, VerifyingKey};
use ring::digest::{self, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512};
use rsa::pkcs8::DecodePublicKey;
use rsa::{Oaep, RsaPublicKey};
use words::Secret;

use super::failure;
use crate::error::Error;

/// The privacy of the client's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Privacy {
    /// Others can read it on the network.
    Open,
    /// The traffic stays on this host.
    Local,
    /// The traffic is encrypted.
    Encrypted,
}

/// A method of authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plugin {
    /// Sends a SHA-1 of password and nonce.
    Native,
    /// Sends a SHA-256 of password and nonce, or the password if the server has not cached its
    /// hash.
    CachingSha2,
    /// Sends the password over an encrypted connection, or encrypted with the server's key.
    Sha256,
    /// Sends a signature of the nonce with a key derived from the password (MariaDB).
    Ed25519,
    /// Sends nothing: the unix socket identifies the operating system's user.
    Socket,
    /// Sends the password.
    Clear,
}

/// The plugins by name. The first name of each is the one to send.
const PLUGINS: [(&str, Plugin); 8] = [
    ("mysql_native_password", Plugin::Native),
    // The only method before plugins had names.
    ("", Plugin::Native),
    ("caching_sha2_password", Plugin::CachingSha2),
    ("sha256_password", Plugin::Sha256),
    ("client_ed25519", Plugin::Ed25519),
    ("auth_socket", Plugin::Socket),
    ("unix_socket", Plugin::Socket),
    ("mysql_clear_password", Plugin::Clear),
];

impl Plugin {
    /// Returns the plugin of that name.
    ///
    /// # Errors
    /// [`crate::ErrorClass::Refused`] for an unsupported plugin.
    pub(super) fn by_name(name: &[u8]) -> Result<Self, Error> {
        let known = PLUGINS.iter().find(|(known, _)| known.as_bytes() == name);
        known.map(|(_, plugin)| *plugin).ok_or_else(|| {
            Error::refused(format!(
                "the server requires the authentication plugin `{}`; assay supports mysql_native_password, \
                 caching_sha2_password, sha256_password, client_ed25519, auth_socket and mysql_clear_password",
                String::from_utf8_lossy(name)
            ))
        })
    }

    pub(super) fn name(self) -> &'static str {
        let known = PLUGINS.iter().find(|(_, plugin)| *plugin == self);
        known.map_or("", |(name, _)| name)
    }

    /// Returns the nonce in the data that the server sent with the plugin's name. Most plugins add
    /// a zero after it, but a nonce to sign may itself end with one.
    pub(super) fn nonce(self, data: &[u8]) -> &[u8] {
        let length = match self {
            Self::Ed25519 => 32,
            _ => 20,
        };
        &data[..data.len().min(length)]
    }

    /// Returns the first answer to the server's `nonce`.
    ///
    /// # Errors
    /// [`crate::ErrorClass::Refused`] when others could read the password.
    pub(super) fn answer(
        self,
        password: &[u8],
        nonce: &[u8],
        privacy: Privacy,
    ) -> Result<Vec<u8>, Error> {
        Ok(match self {
            Self::Socket => Vec::new(),
            Self::Native | Self::CachingSha2 if password.is_empty() => Vec::new(),
            Self::Native => native(password, nonce),
            Self::CachingSha2 => caching_sha2(password, nonce),
            Self::Ed25519 => ed25519(password, nonce).to_vec(),
            // One byte requests the server's key. A unix socket does not count as encrypted here.
            Self::Sha256 if privacy != Privacy::Encrypted && !password.is_empty() => vec![1],
            Self::Clear if privacy == Privacy::Open => {
                return Err(Error::refused(
                    "the server requires the password in clear text over an unencrypted connection; use TLS, or another authentication plugin",
                ));
            }
            Self::Sha256 | Self::Clear => with_zero(password),
        })
    }
}

/// Returns the password in clear text, with a terminating zero.
pub(super) fn with_zero(password: &[u8]) -> Vec<u8> {
    [password, &[0]].concat()
}

fn xor(mut one: Vec<u8>, other: &[u8]) -> Vec<u8> {
    one.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
    one
}

fn hash(algorithm: &'static digest::Algorithm, parts: &[&[u8]]) -> Vec<u8> {
    let mut context = digest::Context::new(algorithm);
    parts.iter().for_each(|part| context.update(part));
    context.finish().as_ref().to_vec()
}

/// Returns the hash by which a server knows a password of `mysql_native_password`, as statements
/// write it.
pub(super) fn stored_hash(password: &Secret) -> String {
    let sha1 = |bytes: &[u8]| hash(&SHA1_FOR_LEGACY_USE_ONLY, &[bytes]);
    let twice = sha1(&sha1(password.expose().as_bytes()));
    let digits = twice.iter().map(|byte| format!("{byte:02X}"));
    format!("*{}", digits.collect::<String>())
}

fn native(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let sha1 = |parts: &[&[u8]]| hash(&SHA1_FOR_LEGACY_USE_ONLY, parts);
    let once = sha1(&[password]);
    let stored = sha1(&[&once]);
    xor(once, &sha1(&[nonce, &stored]))
}

fn caching_sha2(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let sha256 = |parts: &[&[u8]]| hash(&SHA256, parts);
    let once = sha256(&[password]);
    let stored = sha256(&[&sha256(&[&once])[..], nonce]);
    xor(once, &stored)
}

/// Signs the nonce with Ed25519. The secret is the password, instead of the usual 32 random bytes.
fn ed25519(password: &[u8], nonce: &[u8]) -> [u8; 64] {
    let mut secret = [0; 64];
    secret.copy_from_slice(&hash(&SHA512, &[password]));
    let secret = ExpandedSecretKey::from_bytes(&secret);
    let public = VerifyingKey::from(&secret);
    raw_sign::<Sha512>(&secret, nonce, &public).to_bytes()
}

/// Encrypts the password with the public key in `pem`.
///
/// # Errors
/// [`crate::ErrorClass::Protocol`] when `pem` is not a public key.
pub(super) fn encrypted(password: &[u8], nonce: &[u8], pem: &[u8]) -> Result<Vec<u8>, Error> {
    let not_a_key =
        |why: String| failure::protocol(format!("invalid public key of the server: {why}"));
    let pem = std::str::from_utf8(pem).map_err(|error| not_a_key(error.to_string()))?;
    let key = RsaPublicKey::from_public_key_pem(pem.trim_matches(['\0', '\n', ' ']))
        .map_err(|error| not_a_key(error.to_string()))?;

    let mut secret = with_zero(password);
    for (byte, mask) in secret.iter_mut().zip(nonce.iter().cycle()) {
        *byte ^= mask;
    }

    key.encrypt(&mut rsa::rand_core::OsRng, Oaep::new::<sha1::Sha1>(), &secret)
        .map_err(|error| not_a_key(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &[u8] = b"0123456789abcdefghij";

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Checks an answer like a server that stores only a hash: undoes the mask and compares hashes.
    #[test]
    fn a_server_with_only_the_hash_accepts_the_answer() {
        let sha1 = |parts: &[&[u8]]| hash(&SHA1_FOR_LEGACY_USE_ONLY, parts);
        let stored = sha1(&[&sha1(&[b"secret"])]);
        assert_eq!(hex(&stored), "14e65567abdb5135d0cfd9a70b3032c179a49ee7");
        let once = xor(native(b"secret", NONCE), &sha1(&[NONCE, &stored]));
        assert_eq!(sha1(&[&once]), stored);
        let sha256 = |parts: &[&[u8]]| hash(&SHA256, parts);
        let stored = sha256(&[&sha256(&[b"secret"])]);
        let once = xor(caching_sha2(b"secret", NONCE), &sha256(&[&stored, NONCE]));
        assert_eq!(sha256(&[&once]), stored);
    }

    #[test]
    fn a_statement_has_the_hash_that_the_server_would_store() {
        let hash = stored_hash(&Secret::new("secret"));
        assert_eq!(hash, "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7");
    }

    #[test]
    fn a_nonce_to_sign_may_end_with_a_zero() {
        let sent = [NONCE, &[0]].concat();
        assert_eq!(Plugin::Native.nonce(&sent), NONCE);
        assert_eq!(Plugin::CachingSha2.nonce(&sent), NONCE);
        let random = [&[7; 31][..], &[0]].concat();
        assert_eq!(Plugin::Ed25519.nonce(&random), random);
        assert!(Plugin::Socket.nonce(b"").is_empty());
    }

    #[test]
    fn an_empty_password_is_an_empty_answer() {
        for plugin in [Plugin::Native, Plugin::CachingSha2, Plugin::Socket] {
            assert!(plugin.answer(b"", NONCE, Privacy::Open).unwrap().is_empty());
        }
    }

    #[test]
    fn no_password_is_sent_in_clear_where_others_can_read() {
        let answer = |plugin: Plugin, privacy| plugin.answer(b"secret", NONCE, privacy);
        assert!(answer(Plugin::Clear, Privacy::Open).is_err());
        for privacy in [Privacy::Open, Privacy::Local] {
            assert_eq!(answer(Plugin::Sha256, privacy).unwrap(), [1]);
        }
        assert_eq!(answer(Plugin::Sha256, Privacy::Encrypted).unwrap(), b"secret\0");

        assert_eq!(answer(Plugin::Clear, Privacy::Local).unwrap(), b"secret\0");
        let error = Plugin::by_name(b"mysql_old_password").unwrap_err();
        assert!(error.message.contains("`mysql_old_password`"), "{error}");
    }

    #[test]
    fn a_signature_is_verified_by_the_public_key() {
        use ed25519_dalek::{Signature, Verifier};
        let mut secret = [0; 64];
        secret.copy_from_slice(&hash(&SHA512, &[b"secret"]));
        let public = VerifyingKey::from(&ExpandedSecretKey::from_bytes(&secret));
        let signature = Signature::from_bytes(&ed25519(b"secret", NONCE));
        assert!(public.verify(NONCE, &signature).is_ok());
        assert!(public.verify(b"other", &signature).is_err());
    }

    #[test]
    fn an_invalid_key_is_refused() {
        assert_eq!(
            encrypted(b"secret", NONCE, b"-----BEGIN PUBLIC KEY-----\nx\n").unwrap_err().class,
            crate::error::ErrorClass::Protocol
        );
    }
}
