//! litmus against ours and against Apache's `mod_dav` in the same run: what Apache passes, ours passes.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tokio::process::Command;
use xtask::process::{Process, free_port, last_lines};

use crate::support::hub::ask;
use crate::support::{MASTER, RunningSite, SOON, SiteClient, eventually};

/// What litmus has to say of a server: the tests that it passes and those that it does not run, each as suite, number
/// and name.
async fn passed(mut litmus: Command, url: &str) -> [BTreeSet<String>; 2] {
    let run = litmus.args(["-k", url, "team", MASTER]).output().await;
    let said = String::from_utf8_lossy(&run.expect("litmus: apt-get install litmus").stdout).into_owned();
    let (mut suite, mut test) = (String::new(), String::new());
    let [mut passed, mut skipped] = [BTreeSet::new(), BTreeSet::new()];
    // A line is written over until its result is known, and goes on in the next one after a warning.
    for line in said.split(['\n', '\r']).map(str::trim) {
        if let Some(begun) = line.strip_prefix("-> running `") {
            begun.trim_end_matches("':").clone_into(&mut suite);
            continue;
        }
        let mut told = line;
        if let Some((number, rest)) = line.split_once(". ").filter(|(number, _)| number.parse::<u8>().is_ok()) {
            let name = rest.split(['.', ' ']).next().unwrap_or_default();
            test = format!("{suite} {number} {name}");
            told = rest.strip_prefix(name).unwrap_or_default();
        }
        let told = told.trim_start_matches(['.', ' ']);
        if told.starts_with("pass") {
            passed.insert(test.clone());
        } else if told.starts_with("SKIPPED") {
            skipped.insert(test.clone());
        }
    }
    assert!(passed.len() > 50, "all suites run: {said}");
    [passed, skipped]
}

/// An Apache of this machine with a folder to write to; nobody's process where that can be.
async fn apache(folder: &Path) -> (Process, String) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port().unwrap()));
    let here = folder.display();
    let modules: String = ["mpm_event", "authz_core", "dav", "dav_fs"]
        .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
        .concat();
    let configuration = format!(
        "ServerName localhost\nServerRoot {here}\nListen {address}\nPidFile {here}/pid\nErrorLog {here}/log\n\
         Mutex pthread\n{modules}DavLockDB {here}/locks\nDocumentRoot {here}/dav\n\
         <Directory {here}/dav>\nDav On\n</Directory>\n"
    );
    std::fs::create_dir(folder.join("dav")).unwrap();
    std::fs::write(folder.join("httpd.conf"), configuration).unwrap();
    for place in [folder.to_owned(), folder.join("dav")] {
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let mut command = std::process::Command::new("setpriv");
    if rustix::process::getuid().is_root() {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    }
    command.args(["--pdeathsig", "KILL", "--", "/usr/sbin/apache2", "-X", "-f"]).arg(folder.join("httpd.conf"));
    let output = folder.join("output");
    let process = Process::start("apache", command, &output).expect("apache2: apt-get install apache2-bin");
    eventually("Apache answers", SOON, || async {
        let told = ask(address, "OPTIONS", "/", &[], "").await;
        told.map_err(|reason| format!("{reason}: {}{}", last_lines(&output, 5), last_lines(&folder.join("log"), 5)))
    })
    .await;
    (process, format!("http://{address}/"))
}

/// Compares a site with Apache.
pub async fn passes_what_apache_passes(dav: &SiteClient) {
    let folder = tempfile::tempdir().unwrap();
    let (process, url) = apache(folder.path()).await;
    let mut litmus = Command::new("litmus");
    litmus.current_dir(folder.path());
    let [theirs, _] = passed(litmus, &url).await;
    drop(process);
    // It writes what it does into the folder that it is in.
    let litmus = dav.program_in(folder.path(), "litmus");
    let [ours, mut skipped] = passed(litmus, &dav.page_url("s/dav/")).await;
    // It does not do this one over https at all.
    if dav.behind_edge() {
        assert!(skipped.remove("http 2 expect100"), "{skipped:?}");
    }
    assert!(skipped.is_empty(), "{skipped:?}");
    let missing: Vec<_> =
        theirs.difference(&ours).filter(|test| !dav.behind_edge() || *test != "http 2 expect100").collect();
    assert!(missing.is_empty(), "Apache passes {}, we {} and not {missing:?}", theirs.len(), ours.len());
    for suite in ["basic", "copymove", "props", "locks", "http"] {
        assert!(theirs.iter().any(|test| test.starts_with(suite)), "{suite} was compared");
    }
}

#[tokio::test]
async fn litmus_passes_what_apache_passes() {
    let site = RunningSite::private().await;
    let role = site.role("webdav").await;
    passes_what_apache_passes(&site.client_of(&role)).await;
}
