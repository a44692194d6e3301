//! What the user gives, and the keys of a file that are made of it.

use std::fmt;
use std::sync::Arc;

use blake2::Blake2bMac;
use blake2::digest::consts::{U32, U64};
use blake2::digest::{KeyInit, Mac};
use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::aead::rand_core::RngCore;
use chacha20poly1305::{Key, Tag, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::platform::Purpose;

/// Bytes of a nonce.
pub(super) const NONCE: usize = 24;
/// Of these, what is drawn for each write.
pub(super) const DRAWN: usize = 16;
/// Bytes of a tag.
const TAG: usize = 16;
/// Bytes that a page is longer in the file.
pub(super) const TRAILER: usize = NONCE + TAG;

/// What the page with this trailer was written for, as its number; see [`Purpose`].
pub(super) fn purpose_of(trailer: &[u8; TRAILER]) -> u8 {
    trailer[NONCE - 1]
}

/// What opens an encrypted store.
#[derive(Clone)]
pub(crate) enum Secret {
    Key(Arc<Zeroizing<[u8; 32]>>),
    Passphrase(Arc<Zeroizing<Vec<u8>>>),
}

impl Secret {
    pub(crate) fn key(key: &[u8; 32]) -> Secret {
        Secret::Key(Arc::new(Zeroizing::new(*key)))
    }

    pub(crate) fn passphrase(bytes: &[u8]) -> Secret {
        Secret::Passphrase(Arc::new(Zeroizing::new(bytes.to_vec())))
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Secret) -> bool {
        match (self, other) {
            (Secret::Key(a), Secret::Key(b)) => ***a == ***b,
            (Secret::Passphrase(a), Secret::Passphrase(b)) => ***a == ***b,
            _ => false,
        }
    }
}

impl fmt::Debug for Secret {
    /// Says which kind it is, and nothing of what it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Secret::Key(_) => "Key",
            Secret::Passphrase(_) => "Passphrase",
        })
    }
}

/// The keys of one file.
pub(crate) struct Keys {
    pages: XChaCha20Poly1305,
    metas: Zeroizing<[u8; 32]>,
}

impl Keys {
    /// The keys of the file whose header this is, made of the 32 bytes that the user's key or passphrase gave.
    pub(super) fn derive(master: &[u8; 32], salt: &[u8; 32]) -> Keys {
        let mut mac = keyed::<Blake2bMac<U64>>(master);
        mac.update(b"zubilo, keys of a file, 1");
        mac.update(salt);
        let both = Zeroizing::new(<[u8; 64]>::from(mac.finalize().into_bytes()));
        let mut metas = Zeroizing::new([0; 32]);
        metas.copy_from_slice(&both[32..]);
        Keys { pages: XChaCha20Poly1305::new(Key::from_slice(&both[..32])), metas }
    }

    /// What proves that somebody with the key has written `bytes` for a `purpose`.
    pub(super) fn proof(&self, purpose: &[u8], bytes: &[u8]) -> [u8; 32] {
        let mut mac = keyed::<Blake2bMac<U32>>(&self.metas);
        mac.update(&(purpose.len() as u64).to_le_bytes());
        mac.update(purpose);
        mac.update(bytes);
        mac.finalize().into_bytes().into()
    }

    /// The nonce of a page with this purpose: its last byte names that, and so it is authenticated.
    fn of_purpose(mut nonce: [u8; NONCE], purpose: Purpose) -> [u8; NONCE] {
        nonce[NONCE - 1] = purpose as u8;
        nonce
    }

    /// Encrypts a page in its place; gives its trailer. The last byte of the nonce is made here.
    pub(super) fn seal(
        &self,
        number: u64,
        nonce: [u8; NONCE],
        page: &mut [u8],
        purpose: Purpose,
    ) -> Result<[u8; TRAILER]> {
        let nonce = Keys::of_purpose(nonce, purpose);
        let (number, at) = (number.to_le_bytes(), XNonce::from_slice(&nonce));
        let tag = self.pages.encrypt_in_place_detached(at, &number, page);
        let tag = tag.map_err(|_| Error::Invalid("a page is too long to be encrypted"))?;
        let mut trailer = [0; TRAILER];
        trailer[..NONCE].copy_from_slice(&nonce);
        trailer[NONCE..].copy_from_slice(&tag);
        Ok(trailer)
    }

    /// Decrypts a page in its place; false, and nobody knows what it holds, if it is not the one. What its trailer says
    /// of its purpose is true then.
    pub(super) fn open(&self, number: u64, page: &mut [u8], trailer: &[u8; TRAILER]) -> bool {
        let (nonce, tag) = trailer.split_at(NONCE);
        let (nonce, tag) = (XNonce::from_slice(nonce), Tag::from_slice(tag));
        let number = number.to_le_bytes();
        self.pages.decrypt_in_place_detached(nonce, &number, page, tag).is_ok()
    }
}

/// A keyed hash. Its key always has 32 bytes, which fit.
fn keyed<M: Mac + KeyInit>(key: &[u8; 32]) -> M {
    <M as KeyInit>::new_from_slice(key).expect("a key of 32 bytes")
}

/// Fills `bytes` with random numbers of the system.
pub(super) fn draw(bytes: &mut [u8]) -> Result<()> {
    let drawn = chacha20poly1305::aead::OsRng.try_fill_bytes(bytes);
    drawn.map_err(|error| {
        let source = match error.raw_os_error() {
            Some(code) => std::io::Error::from_raw_os_error(code),
            None => std::io::Error::other("no random numbers"),
        };
        Error::Io { op: "draw random numbers", path: None, source }
    })
}
