//! The cluster's keys, certificate, tokens and kubeconfigs, as files in its folder. All are made for one cluster.

use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};

/// Who talks to the API server: file name, user, group.
const USERS: &[(&str, &str, &str)] = &[
    ("admin", "admin", "system:masters"),
    ("controller-manager", "system:kube-controller-manager", ""),
    ("scheduler", "system:kube-scheduler", ""),
    ("kwok", "kwok", "system:masters"),
];

/// The files of one cluster.
#[derive(Debug)]
pub(super) struct Pki {
    dir: PathBuf,
}

impl Pki {
    /// Makes everything in `dir` for an API server at `server`.
    pub(super) fn create(dir: &Path, server: &str) -> Result<Self> {
        fs::create_dir_all(dir)?;
        let pki = Self { dir: dir.into() };

        let ca_key = KeyPair::generate()?;
        let mut ca = CertificateParams::default();
        ca.distinguished_name.push(DnType::CommonName, "sites local cluster");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        fs::write(pki.ca(), ca.self_signed(&ca_key)?.pem())?;
        let issuer = Issuer::new(ca, ca_key);

        let key = KeyPair::generate()?;
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(names.map(String::from))?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.subject_alt_names.push(SanType::IpAddress(IpAddr::from([127, 0, 0, 1])));
        params.subject_alt_names.push(SanType::IpAddress(IpAddr::from([10, 0, 0, 1])));
        fs::write(pki.server_certificate(), params.signed_by(&key, &issuer)?.pem())?;
        write_secret(&pki.server_key(), &key.serialize_pem())?;
        let key = KeyPair::generate()?;
        write_secret(&pki.service_account_key(), &key.serialize_pem())?;
        fs::write(pki.service_account_public_key(), key.public_key_pem())?;

        let mut tokens = String::new();
        for (file, user, group) in USERS {
            let token = random_token()?;
            writeln!(tokens, "{token},{user},{user},\"{group}\"")?;
            write_secret(&pki.kubeconfig(file), &kubeconfig(server, &pki.ca(), &token))?;
        }
        write_secret(&pki.tokens(), &tokens)?;
        Ok(pki)
    }

    pub(super) fn ca(&self) -> PathBuf {
        self.dir.join("ca.crt")
    }

    pub(super) fn server_certificate(&self) -> PathBuf {
        self.dir.join("server.crt")
    }

    pub(super) fn server_key(&self) -> PathBuf {
        self.dir.join("server.key")
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
