//! Encrypted stores: keys, the header that says how they were made, and the file whose pages they protect.
//!
//! An encrypted file is `metas | header | pages`. The metas are readable, each with a proof that somebody with the key
//! has written it. The header is a page that is written once, at the creation. Each page after it is as long as a page
//! of the store and 40 bytes more: the ciphertext, then the nonce and the tag of XChaCha20-Poly1305. So the engine
//! above sees pages of the usual size, and their checksums, runs and segments are as in any store.
//!
//! What must hold:
//! * Every file has keys of its own, made of the user's key and 32 random bytes in its header. Pages of one file
//!   are none of another, be it a copy.
//! * A nonce is 16 bytes from the system's random numbers, drawn for each write, and the number of the page in that write. So it
//!   does not come again, whatever was lost, restored or forked.
//! * A page's number is authenticated with it.

#[cfg(feature = "encryption")]
mod file;
#[cfg(feature = "encryption")]
mod header;
#[cfg(feature = "encryption")]
mod keys;
#[cfg(feature = "encryption")]
mod layout;
#[cfg(feature = "encryption")]
mod sealer;

#[cfg(not(feature = "encryption"))]
mod absent;

use twox_hash::XxHash3_64;

use crate::num::load_u64;

#[cfg(feature = "encryption")]
pub(crate) use file::EncryptedFile;
#[cfg(feature = "encryption")]
pub(crate) use header::Header;
#[cfg(feature = "encryption")]
pub(crate) use keys::{Keys, Secret};
#[cfg(feature = "encryption")]
pub(crate) use sealer::Sealer;

#[cfg(not(feature = "encryption"))]
pub(crate) use absent::{Sealer, Secret};

/// Bytes of one copy of the header.
const HEADER_SIZE: usize = 512;
/// Where its checksum is.
const SUM_AT: usize = HEADER_SIZE - 8;
const MAGIC: [u8; 8] = *b"ZUBILO\x1a\x0c";

/// Whether these bytes of a sector are a copy of a header that is whole.
pub(crate) fn is_header(sector: &[u8]) -> bool {
    sector.len() == HEADER_SIZE
        && sector.starts_with(&MAGIC)
        && load_u64(sector, SUM_AT) == Some(XxHash3_64::oneshot(&sector[..SUM_AT]))
}
