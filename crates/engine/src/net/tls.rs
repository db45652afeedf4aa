//! TLS with the modes of the servers' own clients: only encryption, a trusted certificate, or also
//! the right host name.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use super::address::{Roots, SslMode};
use crate::error::Error;

/// Returns the TLS configuration of `mode`, with the trusted authorities of `root`, or else the
/// system's.
pub(crate) fn client_config(
    mode: SslMode,
    root: Option<&Roots>,
) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let (mut inner, mut roots) = (None, Vec::new());
    if mode >= SslMode::VerifyCa {
        roots = root_certificates(root)?;
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(roots.iter().cloned());

        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(&provider));
        let failed = |error| Error::refused(format!("cannot use the root certificates: {error}"));
        inner = Some(verifier.build().map_err(failed)?);
    }

    let verifier =
        Verifier { mode, inner, roots, algorithms: provider.signature_verification_algorithms };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::refused(format!("cannot set up TLS: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Returns a readable error text. For most errors, the library only has names.
pub(crate) fn error_text(error: &rustls::Error) -> String {
    use CertificateError::{
        Expired, ExpiredContext, NotValidForNameContext, NotValidYet, NotValidYetContext, Other,
        UnknownIssuer,
    };

    let rustls::Error::InvalidCertificate(reason) = error else {
        return spaced(&error.to_string());
    };

    let what = match reason {
        UnknownIssuer => "no trusted authority signed it".into(),
        Expired | ExpiredContext { .. } => "it has expired".into(),
        NotValidYet | NotValidYetContext { .. } => "it is not valid yet".into(),
        NotValidForNameContext { expected, presented } => {
            let quoted: Vec<String> = presented
                .iter()
                .filter_map(|name| dns_name(name))
                .map(|name| format!("`{name}`"))
                .collect();
            let names = if quoted.is_empty() { "no host".into() } else { quoted.join(", ") };
            let expected = expected.to_str();
            return format!(
                "the server's certificate is not valid for `{expected}`, but for {names}"
            );
        }
        Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "it belongs to an authority, not to a server".into()
        }
        reason => spaced(&format!("{reason:?}")),
    };
    format!("the server's certificate is not accepted: {what}")
}

/// Returns the name in `DnsName("db.example")`.
fn dns_name(text: &str) -> Option<&str> {
    text.split(['(', ')', '"']).rfind(|part| !part.is_empty())
}

/// Splits names into words: `HandshakeFailure` becomes `handshake failure`.
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

fn root_certificates(root: Option<&Roots>) -> Result<Vec<CertificateDer<'static>>, Error> {
    let source = match root {
        None => "the system's store".into(),
        Some(Roots::File(path)) => format!("`{}`", path.display()),
        Some(Roots::Pem(_)) => "the URL".into(),
    };

    let read = match root {
        None => Ok(rustls_native_certs::load_native_certs().certs),
        Some(Roots::File(path)) => CertificateDer::pem_file_iter(path).and_then(Iterator::collect),
        Some(Roots::Pem(pem)) => CertificateDer::pem_slice_iter(pem.as_bytes()).collect(),
    };

    let certificates = read.map_err(|error| {
        Error::refused(format!("cannot read root certificates from {source}: {error}"))
    })?;
    if certificates.is_empty() {
        return Err(Error::refused(format!("{source} contains no root certificate")));
    }

    Ok(certificates)
}

#[derive(Debug)]
struct Verifier {
    mode: SslMode,
    inner: Option<Arc<WebPkiServerVerifier>>,
    roots: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
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
            )) if self.mode == SslMode::VerifyCa => Ok(ServerCertVerified::assertion()),
            // The server's self-signed certificate is the trusted root, which is common with
            // databases. The verifier refuses it because it may also sign other
            // certificates.
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(_)))
                if self.roots.iter().any(|root| root == end_entity) =>
            {
                if self.mode == SslMode::VerifyFull {
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
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rustls::{AlertDescription, OtherError, PeerIncompatible};

    use super::*;

    #[test]
    fn errors_are_readable() {
        let not_accepted = |wrong| error_text(&rustls::Error::InvalidCertificate(wrong));
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
            assert!(error_text(&error).to_lowercase().contains(words), "{}", error_text(&error));
        }
    }
}
