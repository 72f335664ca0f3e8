//! What the wire says of a certificate of MAAS that is not trusted, and what to do about it. [`super::guard`] and
//! [`super::AccountError`] read it.

/// How the wire begins, whatever is wrong with the certificate.
const REJECTED: &str = "invalid peer certificate: ";
/// What follows is the time of the attempt. With it, the same news would be another text every time.
const MOMENT: &str = ": verification time";

/// The words of an attempt that ended at the certificate, the same at every attempt. Nothing if it ended elsewhere.
pub(super) fn steady(words: &str) -> Option<String> {
    let (_, fault) = words.split_once(REJECTED)?;
    let fault = fault.split_once(MOMENT).map_or(fault, |(fault, _)| fault);
    Some(format!("{REJECTED}{fault}"))
}

/// What a person can do about it, if the attempt ended at the certificate.
pub(super) fn next_step(words: &str) -> Option<&'static str> {
    let fault = words.split_once(REJECTED)?.1.to_lowercase();
    let has = |word| fault.contains(word);
    let step = if has("expired") {
        "renew the certificate of MAAS, and check the clock here"
    } else if has("not valid yet") || has("notvalidyet") {
        "check the clock here and at MAAS"
    } else if has("valid for name") || has("notvalidforname") {
        "name MAAS in its endpoint as its certificate does, or give it a certificate with that name"
    } else {
        "put the PEM text of the certificate that signed MAAS's own beside its API key, as ca.crt in the Secret or MAAS_CA_BUNDLE in the \
         manager's environment"
    };
    Some(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{CertificateError, Error, pki_types::UnixTime};
    use std::time::Duration;

    /// As the wire tells it.
    fn told(fault: CertificateError) -> Option<String> {
        let words = steady(&format!("error sending request: client error (Connect): {}", Error::InvalidCertificate(fault)))?;
        next_step(&words).map(|step| format!("{words}; {step}"))
    }

    #[test]
    fn every_fault_of_a_certificate_has_its_next_step() {
        for (fault, words, step) in [
            (CertificateError::Expired, "certificate: Expired;", "renew the certificate of MAAS"),
            (CertificateError::NotValidYet, "certificate: NotValidYet;", "check the clock"),
            (CertificateError::NotValidForName, "certificate: NotValidForName;", "name MAAS in its endpoint"),
            (CertificateError::UnknownIssuer, "certificate: UnknownIssuer;", "as ca.crt in the Secret or MAAS_CA_BUNDLE"),
        ] {
            let told = told(fault).unwrap();
            assert!(told.starts_with("invalid peer ") && told.contains(words) && told.contains(step), "{told}");
        }
        let elsewhere = "error sending request: tcp connect error: Connection refused (os error 111)";
        assert_eq!((steady(elsewhere), next_step(elsewhere)), (None, None));
    }

    #[test]
    fn the_same_fault_is_the_same_text_at_any_time() {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let expired = |now| told(CertificateError::ExpiredContext { time: at(now), not_after: at(1000) }).unwrap();
        assert_eq!(expired(2000), expired(3000));
        assert!(expired(2000).starts_with("invalid peer certificate: certificate expired; renew the certificate"), "{}", expired(2000));
        let early = |now| told(CertificateError::NotValidYetContext { time: at(now), not_before: at(9000) }).unwrap();
        assert_eq!(early(2000), early(3000));
        assert!(early(2000).contains("certificate not valid yet; check the clock"), "{}", early(2000));
    }
}
