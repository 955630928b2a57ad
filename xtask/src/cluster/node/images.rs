//! The images of the local cluster: from Debian packages, our own Go builds, npm packages and the product's binary.
//! What does not change is made once and kept in the cache folder.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::cluster::build::{NodeBinaries, once};
use crate::cluster::possible::on_path;
use crate::cluster::{fetched, image, openid};
use crate::paths;
use crate::progress::Step;

/// Sandbox of every pod, and helper of the volume provisioner.
pub(super) const BUSYBOX: &str = "busybox";

/// The image of all roles of the product.
pub(super) const SITES: &str = "sites";

/// An application that a Site brings itself.
const CUSTOM_APP: &str = "custom-app";

/// A search path for all images.
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The certificate authorities of this machine, as Debian keeps them.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The C library and a few commands to look around with.
const BASE: &[&str] = &["busybox", "libc6", "libgcc-s1"];

/// The reference of an image of ours. The registry does not exist: everything is loaded before it is asked for.
#[must_use]
pub fn image(name: &str) -> String {
    format!("sites.local/{name}:local")
}

struct Recipe {
    name: &'static str,
    packages: &'static [&'static str],
    config: fn() -> Value,
    fill: fn(&Path, &NodeBinaries) -> Result<()>,
}

const RECIPES: &[Recipe] = &[
    Recipe {
        name: BUSYBOX,
        packages: &["busybox-static"],
        config: || json!({"Entrypoint": ["/bin/sleep", "infinity"], "User": "65534:65534", "Env": [PATH]}),
        fill: |_, _| Ok(()),
    },
    Recipe {
        name: "nginx",
        packages: &["nginx", "nginx-common", "libcrypt1", "libpcre2-8-0", "libssl3", "zlib1g"],
        config: || json!({"Cmd": ["nginx", "-g", "daemon off;"], "Env": [PATH], "StopSignal": "SIGQUIT"}),
        fill: |_, _| Ok(()),
    },
    Recipe {
        name: "oauth2-proxy",
        packages: &["busybox-static"],
        config: || json!({"Entrypoint": ["oauth2-proxy"], "User": "65532:65532", "Env": [PATH]}),
        fill: |root, binaries| copy(&binaries.oauth2_proxy.join("oauth2-proxy"), &root.join("usr/bin")),
    },
    Recipe {
        name: "redis",
        packages: &[
            "redis-tools",
            "libatomic1",
            "libcap2",
            "libgcrypt20",
            "libgpg-error0",
            "libjemalloc2",
            "liblz4-1",
            "liblzf1",
            "liblzma5",
            "libssl3",
            "libstdc++6",
            "libsystemd0",
            "libzstd1",
            "redis-server",
        ],
        config: || {
            let command = ["redis-server", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""];
            json!({"Cmd": command, "User": "1000:1000", "Env": [PATH], "WorkingDir": "/tmp"})
        },
        fill: |_, _| Ok(()),
    },
    Recipe {
        name: "openid-provider",
        packages: &["libstdc++6"],
        config: || json!({"Cmd": ["node", "/srv/provider.mjs"], "User": "1000:1000", "Env": [PATH]}),
        fill: |root, _| strip(&openid::copy_below(root)?),
    },
    // What a person's own application may look like.
    Recipe {
        name: CUSTOM_APP,
        packages: &[
            "libexpat1",
            "libpython3.11-minimal",
            "libpython3.11-stdlib",
            "libssl3",
            "python3.11-minimal",
            "zlib1g",
        ],
        config: || json!({"Cmd": ["python3.11", "/srv/app.py"], "User": "1000:1000", "Env": [PATH]}),
        fill: |root, _| copy(&custom_app(), &root.join("srv")),
    },
];

/// Archives of the images that never change while this checkout does not, made now if they were not yet.
pub(super) fn prepared(binaries: &NodeBinaries) -> Result<Vec<PathBuf>> {
    RECIPES.iter().map(|recipe| archive(recipe, binaries)).collect()
}

/// The folders of everything that this checkout keeps of images; `oauth2_proxy` is the folder of that program.
pub(super) fn folders(oauth2_proxy: &Path) -> Result<Vec<PathBuf>> {
    let images = RECIPES.iter().map(|recipe| folder(recipe, oauth2_proxy));
    images.chain([Ok(base_folder())]).collect()
}

fn folder(recipe: &Recipe, oauth2_proxy: &Path) -> Result<PathBuf> {
    let build = oauth2_proxy.display().to_string();
    let mut inputs = vec![include_bytes!("images.rs").as_slice(), build.as_bytes()];
    let sources = openid::inputs()?;
    if recipe.name == "openid-provider" {
        inputs.extend(sources.iter().map(Vec::as_slice));
    }
    let custom = fs::read(custom_app())?;
    if recipe.name == CUSTOM_APP {
        inputs.push(&custom);
    }
    Ok(fetched::place(&format!("image-{}", recipe.name), &inputs))
}

fn archive(recipe: &Recipe, binaries: &NodeBinaries) -> Result<PathBuf> {
    let folder = folder(recipe, &binaries.oauth2_proxy)?;
    once(&folder, |partial| {
        let root = partial.join("root");
        let base = if recipe.packages.contains(&"busybox-static") { &[] } else { BASE };
        fetched::debian(&[recipe.packages, base].concat(), &root)?;
        (recipe.fill)(&root, binaries)?;
        furnish(&root)?;
        let step = Step::begin("image", recipe.name);
        image::write(&image(recipe.name), &[&root], &(recipe.config)(), &partial.join("image.tar"))?;
        fs::remove_dir_all(root)?;
        step.done(recipe.name);
        Ok(())
    })?;
    Ok(folder.join("image.tar"))
}

/// Everything of the image `sites` but the binary.
fn base_folder() -> PathBuf {
    fetched::place("rootfs-sites", &[include_bytes!("images.rs")])
}

/// The image of all our roles, with this binary of the product, as `archive`. It is as short-lived as the binary.
pub(super) fn sites(binary: &Path, archive: &Path) -> Result<()> {
    let base = base_folder();
    once(&base, |partial| {
        let root = partial.join("root");
        fetched::debian(&[BASE, &["ca-certificates", "tzdata"]].concat(), &root)?;
        furnish(&root)
    })?;
    let own = archive.with_extension("root");
    let program = own.join("usr/bin/sites");
    fs::create_dir_all(own.join("usr/bin"))?;
    fs::copy(binary, &program).with_context(|| format!("copying {}", binary.display()))?;
    strip(&program)?;
    // The Hub asks servers outside the cluster: it has to know whom to trust.
    let trusted = own.join(AUTHORITIES.trim_start_matches('/'));
    fs::create_dir_all(trusted.parent().context("a folder")?)?;
    fs::copy(AUTHORITIES, &trusted).with_context(|| format!("{AUTHORITIES} (Debian's ca-certificates)"))?;
    let config = json!({"Entrypoint": ["sites"], "User": "1000:1000", "Env": [PATH]});
    image::write(&image(SITES), &[&base.join("root"), &own], &config, archive)?;
    fs::remove_dir_all(own)?;
    Ok(())
}

/// What every image has: users, places to write, and busybox's commands unless a package brings them.
fn furnish(root: &Path) -> Result<()> {
    for dir in ["tmp", "run", "proc", "sys", "dev", "root", "var/tmp", "etc", "data"] {
        fs::create_dir_all(root.join(dir))?;
    }
    for dir in ["tmp", "var/tmp"] {
        fs::set_permissions(root.join(dir), fs::Permissions::from_mode(0o1777))?;
    }
    let users = "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33::/var/www:/bin/false\nsites:x:1000:1000::/tmp:/bin/sh\n\
                 nobody:x:65534:65534::/:/bin/false\n";
    fs::write(root.join("etc/passwd"), users)?;
    fs::write(root.join("etc/group"), "root:x:0:\nwww-data:x:33:\nsites:x:1000:\nnogroup:x:65534:\n")?;
    fs::write(root.join("etc/nsswitch.conf"), "passwd: files\ngroup: files\nhosts: files dns\n")?;
    let busybox = ["bin", "usr/bin"].map(|dir| root.join(dir).join("busybox")).into_iter().find(|path| path.is_file());
    let busybox = busybox.context("the image has no busybox")?;
    let out = Command::new(&busybox).arg("--list").output().context("running busybox")?;
    ensure!(out.status.success(), "`busybox --list` failed");
    for applet in String::from_utf8_lossy(&out.stdout).lines() {
        let link = root.join("usr/bin").join(applet);
        if fs::symlink_metadata(&link).is_err() {
            symlink("busybox", link)?;
        }
    }
    Ok(())
}

/// Takes out what is there for debuggers only: three quarters of a debug build.
fn strip(program: &Path) -> Result<()> {
    let mut magic = [0; 4];
    fs::File::open(program)?.read_exact(&mut magic)?;
    if magic == *b"\x7fELF" && on_path("strip") {
        fetched::run(Command::new("strip").arg("--strip-debug").arg(program))
    } else {
        Ok(())
    }
}

fn custom_app() -> PathBuf {
    paths::cluster_sources().join("custom-app/app.py")
}

fn copy(file: &Path, dir: &Path) -> Result<()> {
    fs::create_dir_all(dir)?;
    let name = file.file_name().context("a file has a name")?;
    fs::copy(file, dir.join(name)).with_context(|| format!("copying {}", file.display()))?;
    Ok(())
}
