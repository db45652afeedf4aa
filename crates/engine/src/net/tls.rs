//! TLS as the servers' own clients mean it: the least encrypts, the next wants a trusted signature, the last also the
//! right name.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use crate::Error;

/// Whose certificate is good enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Whoever's.
    Anyone,
    /// One that a trusted authority has signed.
    Authority,
    /// Such a certificate for the very host that was asked for.
    Name,
}

/// How TLS is to be done with `trust`, with the authorities in `root`, or the system's without one.
pub(crate) fn client_config(trust: Trust, root: Option<&Path>) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let (inner, roots) = match trust {
        Trust::Anyone => (None, Vec::new()),
        Trust::Authority | Trust::Name => {
            let roots = root_certificates(root)?;
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(roots.iter().cloned());
            let inner =
                WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(&provider))
                    .build()
                    .map_err(|error| {
                        refused(format!("cannot use the root certificates: {error}"))
                    })?;
            (Some(inner), roots)
        }
    };
    let verifier = Verifier {
        trust,
        inner,
        roots,
        provider: Arc::clone(&provider),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(format!("cannot set up TLS: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Returns what went wrong, in words: of most of its errors the library has only the names.
pub(crate) fn in_words(error: &rustls::Error) -> String {
    use CertificateError::{
        Expired, ExpiredContext, NotValidForNameContext, NotValidYet, NotValidYetContext, Other,
        UnknownIssuer,
    };
    let rustls::Error::InvalidCertificate(wrong) = error else {
        return spaced(&error.to_string());
    };
    let what = match wrong {
        UnknownIssuer => "no trusted authority signed it",
        Expired | ExpiredContext { .. } => "it has expired",
        NotValidYet | NotValidYetContext { .. } => "it is not valid yet",
        NotValidForNameContext {
            expected,
            presented,
        } => {
            // `DnsName("db.example")`
            let name = |it: &String| {
                let name = it.split_once('(').map_or(it.as_str(), |(_, name)| name);
                format!("`{}`", name.trim_matches([')', '"']))
            };
            let names: Vec<String> = presented.iter().map(name).collect();
            return format!(
                "the server's certificate is not valid for `{}`, but for {}",
                expected.to_str(),
                if names.is_empty() {
                    "no host".into()
                } else {
                    names.join(", ")
                }
            );
        }
        Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "it belongs to an authority, not to a server"
        }
        wrong => {
            return format!(
                "the server's certificate is not accepted: {}",
                spaced(&format!("{wrong:?}"))
            );
        }
    };
    format!("the server's certificate is not accepted: {what}")
}

/// Parts the names of a text into words: `HandshakeFailure` is `handshake failure`.
fn spaced(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut last = ' ';
    for char in text.chars() {
        let is_new = char.is_ascii_uppercase() && last.is_ascii_lowercase();
        match char {
            '(' | ')' | '{' | '}' => out.push(' '),
            _ if is_new => out.extend([' ', char.to_ascii_lowercase()]),
            _ if char.is_ascii_uppercase() && last == ' ' => out.push(char.to_ascii_lowercase()),
            _ => out.push(char),
        }
        last = char;
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn refused(message: String) -> Error {
    Error::refused(message)
}

fn root_certificates(root: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, Error> {
    let (certificates, place) = match root {
        Some(path) => {
            let read: Result<Vec<_>, _> =
                CertificateDer::pem_file_iter(path).and_then(|certificates| certificates.collect());
            let read = read.map_err(|error| {
                refused(format!(
                    "cannot read root certificates `{}`: {error}",
                    path.display()
                ))
            })?;
            (read, format!("`{}`", path.display()))
        }
        None => (
            rustls_native_certs::load_native_certs().certs,
            "the system's store".to_string(),
        ),
    };
    if certificates.is_empty() {
        return Err(refused(format!("no root certificate in {place}")));
    }
    Ok(certificates)
}

#[derive(Debug)]
struct Verifier {
    trust: Trust,
    inner: Option<Arc<WebPkiServerVerifier>>,
    roots: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(inner) = &self.inner else {
            return Ok(ServerCertVerified::assertion());
        };
        match inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.trust == Trust::Authority => Ok(ServerCertVerified::assertion()),
            // A server whose self-signed certificate is itself the trusted root: usual with databases, and refused by
            // the verifier because such a certificate may also sign others.
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(_)))
                if self.roots.iter().any(|root| root == end_entity) =>
            {
                if self.trust == Trust::Name {
                    verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rustls::{AlertDescription, OtherError, PeerIncompatible};

    use super::*;

    #[test]
    fn errors_are_in_words() {
        let not_accepted = |wrong| in_words(&rustls::Error::InvalidCertificate(wrong));
        assert_eq!(
            not_accepted(CertificateError::UnknownIssuer),
            "the server's certificate is not accepted: no trusted authority signed it"
        );
        let other = OtherError(Arc::new(std::io::Error::other("CaUsedAsEndEntity")));
        assert!(not_accepted(CertificateError::Other(other)).ends_with("not to a server"));
        let other_host = CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("127.0.0.1").unwrap(),
            presented: vec!["DnsName(\"localhost\")".into()],
        };
        assert_eq!(
            not_accepted(other_host),
            "the server's certificate is not valid for `127.0.0.1`, but for `localhost`"
        );
        assert!(not_accepted(CertificateError::BadEncoding).ends_with(": bad encoding"));
        for (error, words) in [
            (
                rustls::Error::AlertReceived(AlertDescription::HandshakeFailure),
                "received fatal alert: handshake failure",
            ),
            (
                rustls::Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon),
                "peer is incompatible: no cipher suites in common",
            ),
        ] {
            assert!(
                in_words(&error).to_lowercase().contains(words),
                "{}",
                in_words(&error)
            );
        }
    }
}
