//! Fields that several of s3s's types have by the same names: each list of them stands here once.

/// `$type` with the checksums of `$from`, and other fields.
macro_rules! checksums {
    ($type:ident, $from:ident $(, $field:ident: $value:expr)*) => {
        $type {
            $($field: $value,)*
            checksum_crc32: $from.checksum_crc32,
            checksum_crc32c: $from.checksum_crc32c,
            checksum_crc64nvme: $from.checksum_crc64nvme,
            checksum_sha1: $from.checksum_sha1,
            checksum_sha256: $from.checksum_sha256,
            ..$type::default()
        }
    };
}

/// The conditions of a request on its object, or on the source of a copy.
macro_rules! conditions {
    (source of $input:ident) => {
        Conditions {
            matches: $input.copy_source_if_match,
            none_match: $input.copy_source_if_none_match,
            modified_since: $input.copy_source_if_modified_since,
            unmodified_since: $input.copy_source_if_unmodified_since,
        }
    };
    ($input:ident) => {
        Conditions {
            matches: $input.if_match,
            none_match: $input.if_none_match,
            modified_since: $input.if_modified_since,
            unmodified_since: $input.if_unmodified_since,
        }
    };
}
