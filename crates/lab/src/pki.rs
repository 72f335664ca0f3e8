//! Certificates of a lab's management cluster: one authority, P-256 keys, valid for as long as any lab lives.

use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use crate::LabError;

/// The authority that signs everything in one lab.
pub(crate) struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, both PEM.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new(name: &str) -> Result<Self, LabError> {
        let fail = |source| LabError::Certificate { subject: name.to_owned(), source };
        let mut params = CertificateParams::new(Vec::new()).map_err(fail)?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(fail)?;
        let certificate = params.self_signed(&key).map_err(fail)?;
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// The authority's own certificate, PEM.
    pub fn certificate(&self) -> String {
        self.certificate.pem()
    }

    /// The authority's own key, PEM; kube-controller-manager signs kubelet certificates with it.
    pub fn key(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// A certificate for a server that answers under these names and addresses.
    pub fn server(&self, common_name: &str, names: &[&str]) -> Result<Credentials, LabError> {
        self.issue(common_name, None, names, vec![ExtendedKeyUsagePurpose::ServerAuth])
    }

    /// A certificate that logs its holder in as `user` of `group`.
    pub fn client(&self, user: &str, group: &str) -> Result<Credentials, LabError> {
        self.issue(user, Some(group), &[], vec![ExtendedKeyUsagePurpose::ClientAuth])
    }

    /// A certificate for a server that answers under this address and also calls others of its kind.
    pub fn peer(&self, common_name: &str, address: &str) -> Result<Credentials, LabError> {
        self.issue(common_name, None, &[address], vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth])
    }

    fn issue(
        &self,
        common_name: &str,
        organization: Option<&str>,
        names: &[&str],
        usages: Vec<ExtendedKeyUsagePurpose>,
    ) -> Result<Credentials, LabError> {
        let fail = |source| LabError::Certificate { subject: common_name.to_owned(), source };
        let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).map_err(fail)?;
        params.distinguished_name.push(DnType::CommonName, common_name);
        if let Some(organization) = organization {
            params.distinguished_name.push(DnType::OrganizationName, organization);
        }
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = usages;
        let key = KeyPair::generate().map_err(fail)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(fail)?;
        Ok(Credentials { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// A fresh pair of keys that signs and verifies service account tokens, both PEM: the private one, then the public one.
/// kube-apiserver reads the public key only from a file of its own when the private one is PKCS #8.
pub(crate) fn service_account_keys() -> Result<(String, String), LabError> {
    KeyPair::generate()
        .map(|key| (key.serialize_pem(), key.public_key_pem()))
        .map_err(|source| LabError::Certificate { subject: "service accounts".to_owned(), source })
}
