//! Container images without a registry: a folder becomes an OCI image of one layer, as an archive that containerd
//! imports. The same files give the same bytes: owners and times are not taken over.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

/// Writes the image `name` (such as `sites.local/nginx:1`) of the files below `roots` to `archive`.
///
/// `config` is the `config` object of the OCI image specification: `Entrypoint`, `Env`, `User` and so on.
pub(super) fn write(name: &str, roots: &[&Path], config: &Value, archive: &Path) -> Result<()> {
    let layer_file = archive.with_extension("layer");
    let mut layer = Hashing { inner: BufWriter::new(File::create(&layer_file)?), hash: Sha256::new(), length: 0 };
    {
        let mut tar = Builder::new(&mut layer);
        for root in roots {
            add_folder(&mut tar, root, Path::new(""))?;
        }
        tar.finish()?;
    }
    layer.flush()?;
    let (layer_digest, layer_length) = (hex(layer.hash), layer.length);
    let digest = format!("sha256:{layer_digest}");

    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let config = serde_json::to_vec(&json!({
        "architecture": architecture, "os": "linux", "created": "1970-01-01T00:00:00Z", "config": config,
        "rootfs": {"type": "layers", "diff_ids": [digest]},
    }))?;
    let manifest = serde_json::to_vec(&json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob("application/vnd.oci.image.config.v1+json", &sha256(&config), config.len() as u64),
        "layers": [blob("application/vnd.oci.image.layer.v1.tar", &layer_digest, layer_length)],
    }))?;
    let mut entry = blob("application/vnd.oci.image.manifest.v1+json", &sha256(&manifest), manifest.len() as u64);
    entry["platform"] = json!({"architecture": architecture, "os": "linux"});
    entry["annotations"] = json!({"io.containerd.image.name": name});
    let index = serde_json::to_vec(&json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry],
    }))?;

    let mut out = Builder::new(BufWriter::new(File::create(archive)?));
    append(&mut out, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    append(&mut out, "index.json", &index)?;
    append(&mut out, &format!("blobs/sha256/{}", sha256(&config)), &config)?;
    append(&mut out, &format!("blobs/sha256/{}", sha256(&manifest)), &manifest)?;
    let mut header = header(EntryType::Regular, 0o644);
    header.set_size(layer_length);
    out.append_data(&mut header, format!("blobs/sha256/{layer_digest}"), File::open(&layer_file)?)?;
    out.into_inner()?.flush()?;
    fs::remove_file(&layer_file)?;
    Ok(())
}

fn add_folder<W: Write>(tar: &mut Builder<W>, root: &Path, below: &Path) -> Result<()> {
    let dir = root.join(below);
    let mut entries =
        fs::read_dir(&dir).with_context(|| format!("reading {}", dir.display()))?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, inside) = (entry.path(), below.join(entry.file_name()));
        let metadata = fs::symlink_metadata(&path)?;
        let mode = metadata.permissions().mode() & 0o7777;
        if metadata.is_symlink() {
            let target = fs::read_link(&path)?;
            tar.append_link(&mut header(EntryType::Symlink, 0o777), &inside, target)?;
        } else if metadata.is_dir() {
            tar.append_data(&mut header(EntryType::Directory, mode), &inside, io::empty())?;
            add_folder(tar, root, &inside)?;
        } else if metadata.is_file() {
            let mut header = header(EntryType::Regular, mode);
            header.set_size(metadata.len());
            tar.append_data(&mut header, &inside, File::open(&path)?)?;
        }
    }
    Ok(())
}

fn header(kind: EntryType, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(0);
    header
}

fn append<W: Write>(tar: &mut Builder<W>, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut header = header(EntryType::Regular, 0o644);
    header.set_size(bytes.len() as u64);
    tar.append_data(&mut header, name, bytes)
}

fn blob(media_type: &str, digest: &str, size: u64) -> Value {
    json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size})
}

fn sha256(bytes: &[u8]) -> String {
    hex(Sha256::new().chain_update(bytes))
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

/// Hashes and counts what is written through it.
struct Hashing<W> {
    inner: W,
    hash: Sha256,
    length: u64,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hash.update(&bytes[..count]);
        self.length += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
