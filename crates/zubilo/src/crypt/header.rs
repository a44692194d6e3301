//! The header of an encrypted file: how its keys are made of the user's, and whether these are the right ones.
//!
//! It takes the page after the metas: two sectors with the same content, each with a checksum, and zeros.

use argon2::{Algorithm, Argon2, Block, Params, Version};
use twox_hash::XxHash3_64;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::num::load_u32;

use super::keys::{Keys, Secret, draw};
use super::{HEADER_SIZE, MAGIC, SUM_AT, is_header};

/// Where the second copy begins, after the first.
const SECOND: usize = 2048;
/// XChaCha20-Poly1305 for the pages, BLAKE2b for metas and keys.
const CIPHER: u32 = 1;
/// What proves the key, after all that it is about.
const PROOF_AT: usize = 96;

/// KiB of memory, passes and lanes with which a passphrase becomes a key.
type Cost = [u32; 3];
/// Of new stores.
const COST: Cost = [64 << 10, 3, 1];
/// A file that asks for more is not answered: whoever can write it could take all of the memory.
const COST_MAX: Cost = [1 << 20, 16, 16];

fn no_memory() -> Error {
    let source = std::io::Error::from(std::io::ErrorKind::OutOfMemory);
    Error::Io { op: "make a key of a passphrase", path: None, source }
}

/// How a file is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) shift: u32,
    /// None: a key of 32 bytes.
    cost: Option<Cost>,
    /// Of the passphrase.
    salt: [u8; 16],
    /// Of the keys of this file.
    file_salt: [u8; 32],
    proof: [u8; 32],
}

impl Header {
    /// One for a new file of such pages, with its keys.
    pub(crate) fn new(secret: &Secret, shift: u32) -> Result<(Header, Keys)> {
        let cost = matches!(secret, Secret::Passphrase(_)).then_some(COST);
        let (mut salt, mut file_salt) = ([0; 16], [0; 32]);
        draw(&mut salt)?;
        draw(&mut file_salt)?;
        let mut header = Header { shift, cost, salt, file_salt, proof: [0; 32] };
        let keys = header.derive(secret)?;
        header.proof = header.proof_by(&keys);
        Ok((header, keys))
    }

    /// The keys of the file, if `secret` is the right one.
    pub(crate) fn keys(&self, secret: &Secret) -> Result<Keys> {
        if self.cost.is_some() != matches!(secret, Secret::Passphrase(_)) {
            return Err(Error::WrongKey);
        }
        let keys = self.derive(secret)?;
        if self.proof_by(&keys) != self.proof {
            return Err(Error::WrongKey);
        }
        Ok(keys)
    }

    fn derive(&self, secret: &Secret) -> Result<Keys> {
        let mut master = Zeroizing::new([0; 32]);
        match (secret, self.cost) {
            (Secret::Passphrase(phrase), Some([memory, passes, lanes])) => {
                let params = Params::new(memory, passes, lanes, Some(master.len()));
                let failed = |_| Error::Invalid("no key can be made of such a passphrase");
                let params = params.map_err(failed)?;
                let mut blocks = Vec::new();
                // An allocation that fails must be no abort: the file says how large it is.
                blocks.try_reserve_exact(params.block_count()).map_err(|_| no_memory())?;
                blocks.resize(params.block_count(), Block::new());
                let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
                let out = master.as_mut_slice();
                let made =
                    argon.hash_password_into_with_memory(phrase, &self.salt, out, &mut blocks);
                made.map_err(failed)?;
            }
            (Secret::Key(key), None) => master.copy_from_slice(key.as_slice()),
            _ => return Err(Error::WrongKey),
        }
        Ok(Keys::derive(&master, &self.file_salt))
    }

    fn proof_by(&self, keys: &Keys) -> [u8; 32] {
        keys.proof(b"header", &self.encode()[..PROOF_AT])
    }

    /// One copy, as stored.
    pub(crate) fn encode(&self) -> [u8; HEADER_SIZE] {
        let mut out = [0; HEADER_SIZE];
        let [memory, passes, lanes] = self.cost.unwrap_or_default();
        out[..8].copy_from_slice(&MAGIC);
        let words = [CIPHER, self.shift, u32::from(self.cost.is_some()), memory, passes, lanes];
        for (i, word) in words.into_iter().enumerate() {
            out[8 + i * 4..12 + i * 4].copy_from_slice(&word.to_le_bytes());
        }
        out[32..48].copy_from_slice(&self.salt);
        out[48..80].copy_from_slice(&self.file_salt);
        out[PROOF_AT..PROOF_AT + 32].copy_from_slice(&self.proof);
        let sum = XxHash3_64::oneshot(&out[..SUM_AT]);
        out[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// What goes into the page after the metas.
    pub(crate) fn page(&self) -> Vec<u8> {
        let mut page = vec![0; 1 << self.shift];
        for at in [0, SECOND] {
            page[at..at + HEADER_SIZE].copy_from_slice(&self.encode());
        }
        page
    }

    /// The header in the page after the metas, from whichever copy is whole.
    pub(crate) fn of_page(page: &[u8], shift: u32) -> Option<Header> {
        let copies = [0, SECOND].into_iter().filter_map(|at| page.get(at..at + HEADER_SIZE));
        copies.filter_map(Header::decode).find(|header| header.shift == shift)
    }

    fn decode(bytes: &[u8]) -> Option<Header> {
        if !is_header(bytes) {
            return None;
        }
        let word = |i: usize| load_u32(bytes, 8 + i * 4).unwrap_or_default();
        let cost = [word(3), word(4), word(5)];
        let has_cost = word(2) == 1;
        let fits = cost.iter().zip(COST_MAX).all(|(cost, max)| *cost <= max);
        if word(0) != CIPHER || word(2) > 1 || !fits {
            return None;
        }
        Some(Header {
            shift: word(1),
            cost: has_cost.then_some(cost),
            salt: *bytes.get(32..)?.first_chunk()?,
            file_salt: *bytes.get(48..)?.first_chunk()?,
            proof: *bytes.get(PROOF_AT..)?.first_chunk()?,
        })
    }
}
