//! The cluster's keys, certificates, tokens and kubeconfigs, as files in its folder. All are made for one cluster.

use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};

/// Who talks to the API server of every profile, beside its administrator: file name, user, group.
const USERS: &[(&str, &str, &str)] =
    &[("controller-manager", "system:kube-controller-manager", ""), ("scheduler", "system:kube-scheduler", "")];

/// The files of one cluster.
#[derive(Debug)]
pub(super) struct Pki {
    dir: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

/// Where the API server is.
#[derive(Debug, Clone)]
pub(super) struct Servers {
    /// For the administrator.
    pub(super) outside: String,
    /// For the cluster's own parts.
    pub(super) inside: String,
    /// Addresses in its certificate beside 127.0.0.1.
    pub(super) addresses: Vec<IpAddr>,
}

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    Server,
    Client,
}

impl Pki {
    /// Makes everything in `dir`; `users` are those of the profile, as file name, user, group.
    pub(super) fn create(dir: &Path, servers: &Servers, users: &[(&str, &str, &str)]) -> Result<Self> {
        fs::create_dir_all(dir)?;
        let ca_key = KeyPair::generate()?;
        let mut ca = CertificateParams::default();
        ca.distinguished_name.push(DnType::CommonName, "sites local cluster");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let certificate = ca.self_signed(&ca_key)?.pem();
        let pki = Self { dir: dir.into(), issuer: Issuer::new(ca, ca_key) };
        fs::write(pki.ca(), certificate)?;

        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let addresses = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 0, 0, 1])];
        let addresses: Vec<_> = addresses.iter().chain(&servers.addresses).copied().collect();
        pki.issue("server", ("kube-apiserver", ""), &names, &addresses, Usage::Server)?;
        let key = KeyPair::generate()?;
        write_secret(&pki.service_account_key(), &key.serialize_pem())?;
        fs::write(pki.service_account_public_key(), key.public_key_pem())?;

        let mut tokens = String::new();
        let admin = [("admin", "admin", "system:masters")];
        for (file, user, group) in admin.iter().chain(USERS).chain(users) {
            let token = random_token()?;
            writeln!(tokens, "{token},{user},{user},\"{group}\"")?;
            let server = if *file == "admin" { &servers.outside } else { &servers.inside };
            write_secret(&pki.kubeconfig(file), &kubeconfig(server, &pki.ca(), &token))?;
        }
        write_secret(&pki.tokens(), &tokens)?;
        Ok(pki)
    }

    /// Makes a key and its certificate as files of the given name; `subject` is its common name and organization.
    pub(super) fn issue(
        &self,
        name: &str,
        subject: (&str, &str),
        names: &[&str],
        addresses: &[IpAddr],
        usage: Usage,
    ) -> Result<()> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        params.distinguished_name.push(DnType::CommonName, subject.0);
        if !subject.1.is_empty() {
            params.distinguished_name.push(DnType::OrganizationName, subject.1);
        }
        params.subject_alt_names.extend(addresses.iter().copied().map(SanType::IpAddress));
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages = vec![match usage {
            Usage::Server => ExtendedKeyUsagePurpose::ServerAuth,
            Usage::Client => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        fs::write(self.certificate(name), params.signed_by(&key, &self.issuer)?.pem())?;
        write_secret(&self.key(name), &key.serialize_pem())
    }

    pub(super) fn ca(&self) -> PathBuf {
        self.dir.join("ca.crt")
    }

    /// The certificate of a name given to [`Self::issue`].
    pub(super) fn certificate(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.crt"))
    }

    /// The key of a name given to [`Self::issue`].
    pub(super) fn key(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.key"))
    }

    pub(super) fn service_account_key(&self) -> PathBuf {
        self.dir.join("service-account.key")
    }

    pub(super) fn service_account_public_key(&self) -> PathBuf {
        self.dir.join("service-account.pub")
    }

    pub(super) fn tokens(&self) -> PathBuf {
        self.dir.join("tokens.csv")
    }

    pub(super) fn kubeconfig(&self, who: &str) -> PathBuf {
        self.dir.join(format!("{who}.kubeconfig"))
    }
}

/// The text of a kubeconfig for a bearer token.
#[must_use]
pub fn kubeconfig(server: &str, ca: &Path, token: &str) -> String {
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": {"server": server, "certificate-authority": ca}}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "user"}}],
        "current-context": "local",
    });
    // JSON is YAML, and every reader of kubeconfigs takes it.
    format!("{config:#}\n")
}

fn random_token() -> Result<String> {
    let mut bytes = [0_u8; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}")))
}

fn write_secret(path: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(())
}
