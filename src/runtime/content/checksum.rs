//! Checksums of files.

use std::io::Read;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256, Sha512};
use utoipa::ToSchema;

use super::{Content, ContentError, SitePath};

/// How a checksum is made.
#[derive(Serialize, Deserialize, ToSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// SHA-256.
    #[default]
    Sha256,
    /// SHA-512.
    Sha512,
}

impl Content {
    /// The checksum of a file in lower-case hexadecimal digits, and the number of bytes that it is of.
    pub fn checksum(&self, path: &SitePath, algorithm: Algorithm) -> Result<(String, u64), ContentError> {
        let opened = self.read(path)?;
        match algorithm {
            Algorithm::Sha256 => digest::<Sha256>(opened.file),
            Algorithm::Sha512 => digest::<Sha512>(opened.file),
        }
        .map_err(|error| ContentError::io("read", path, error))
    }
}

fn digest<D: Digest>(mut file: std::fs::File) -> std::io::Result<(String, u64)> {
    let mut digest = D::new();
    let mut buffer = vec![0; 128 << 10];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((hexadecimal(&digest.finalize()), bytes)),
            read => {
                digest.update(&buffer[..read]);
                bytes += read as u64;
            }
        }
    }
}

/// Lower-case hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
