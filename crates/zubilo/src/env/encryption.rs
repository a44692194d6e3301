//! Which stores are encrypted, and the way into them: the engine gets a file whose pages it can read.
//!
//! What must hold: who gives a key never gets a file that is not encrypted, and who gives none never gets one that is. What
//! the file says may be what an attacker has put there a moment ago, so those who join others go by what the first of them
//! found: the lock file has it.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::platform::DataFile;
use crate::shared::Role;

use super::join::Joined;
use super::meta::Meta;
use super::metas::{self, Found};
use super::open::is_encrypted;
use super::options::Options;

/// How often who joins others looks for a meta, and the pause between two looks: metas are rewritten meanwhile.
const LOOKS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

pub(crate) use keys::Prepared;

/// The key of the file as it is now, before others are kept away: to make one of a passphrase takes a while.
pub(crate) fn prepared(data: &dyn DataFile, options: &Options) -> Result<Option<Prepared>> {
    match metas::read(data)? {
        Found::Metas(metas) if options.secret.is_some() && is_encrypted(&metas) => {
            let shift = metas.first().map(|(_, meta)| meta.page_shift);
            shift.map(|shift| keys::prepared(data, shift, options)).transpose()
        }
        _ => Ok(None),
    }
}

/// The file as the engine reads it, with the key of the options. Who creates a store keeps others away meanwhile.
pub(crate) fn unlocked(
    data: Box<dyn DataFile>,
    joined: &Joined,
    prepared: Option<Prepared>,
    options: &Options,
) -> Result<Box<dyn DataFile>> {
    match joined.role {
        Role::First => as_first(data, prepared, options),
        Role::Joined => as_one_of_many(data, joined, prepared, options),
    }
}

/// Nobody else has the store open, or it is looked at by itself.
pub(crate) fn as_first(
    data: Box<dyn DataFile>,
    prepared: Option<Prepared>,
    options: &Options,
) -> Result<Box<dyn DataFile>> {
    match metas::read(data.as_ref())? {
        Found::Metas(metas) => {
            let shift = metas.first().map(|(_, meta)| meta.page_shift);
            match shift.filter(|_| is_encrypted(&metas)) {
                Some(shift) => keys::with_key(data, shift, prepared, options),
                None if options.secret.is_some() => Err(Error::NotEncrypted),
                None => Ok(data),
            }
        }
        Found::Nothing if options.create && !options.read_only => keys::created(data, options),
        // What is wrong is reported by those who look for a commit. They may find something else than was here:
        // with a key that must be nothing that they could use.
        found => match options.secret {
            None => Ok(data),
            Some(_) => Err(metas::unusable(found, data.as_ref())),
        },
    }
}

/// Others have it open, and have found out whether it is encrypted.
fn as_one_of_many(
    data: Box<dyn DataFile>,
    joined: &Joined,
    prepared: Option<Prepared>,
    options: &Options,
) -> Result<Box<dyn DataFile>> {
    match (joined.shared.is_encrypted(), options.secret.is_some()) {
        (false, false) => return Ok(data),
        (false, true) => return Err(Error::NotEncrypted),
        (true, false) => return Err(Error::KeyMissing),
        (true, true) => {}
    }
    let shift = joined.shift();
    let data = keys::with_key(data, shift, prepared, options)?;
    // One that somebody with the key has written: the others have the same file open with the same key.
    let is_theirs =
        |(_, meta): &(usize, Meta)| meta.page_shift == shift && joined.shared.has_uuid(meta.uuid);
    for _ in 0..LOOKS {
        match metas::read(data.as_ref())? {
            Found::Metas(metas) if metas.iter().any(is_theirs) => return Ok(data),
            _ => std::thread::sleep(PAUSE),
        }
    }
    let reason = "others have it open as an encrypted store, and its metas are not of one";
    Err(Error::Corrupted { page: PageNo(0), reason })
}

#[cfg(not(feature = "encryption"))]
mod keys {
    use super::*;

    /// The keys of a header.
    pub(crate) enum Prepared {}

    pub(super) fn prepared(_: &dyn DataFile, _: u32, _: &Options) -> Result<Prepared> {
        Err(Error::KeyMissing)
    }

    pub(super) fn with_key(
        _: Box<dyn DataFile>,
        _: u32,
        _: Option<Prepared>,
        _: &Options,
    ) -> Result<Box<dyn DataFile>> {
        Err(Error::KeyMissing)
    }

    pub(super) fn created(data: Box<dyn DataFile>, _: &Options) -> Result<Box<dyn DataFile>> {
        Ok(data)
    }
}

#[cfg(feature = "encryption")]
mod keys {
    use super::super::meta::META_COUNT;
    use super::*;
    use crate::crypt::{EncryptedFile, Header, Keys};

    /// The keys of a header.
    pub(crate) struct Prepared {
        header: Header,
        keys: Keys,
    }

    pub(super) fn prepared(data: &dyn DataFile, shift: u32, options: &Options) -> Result<Prepared> {
        let secret = options.secret.as_ref().ok_or(Error::KeyMissing)?;
        let page = metas::header_page(data, shift);
        let header = page.and_then(|page| Header::of_page(&page, shift));
        let reason = "the header of the encrypted store is damaged";
        let header = header.ok_or(Error::Corrupted { page: PageNo(META_COUNT), reason })?;
        let keys = header.keys(secret)?;
        Ok(Prepared { header, keys })
    }

    /// The file with the key of its header, which is that of the options.
    pub(super) fn with_key(
        data: Box<dyn DataFile>,
        shift: u32,
        known: Option<Prepared>,
        options: &Options,
    ) -> Result<Box<dyn DataFile>> {
        if options.secret.is_none() {
            return Err(Error::KeyMissing);
        }
        let page = metas::header_page(data.as_ref(), shift);
        let header = page.and_then(|page| Header::of_page(&page, shift));
        let known = known.filter(|known| Some(&known.header) == header.as_ref());
        let Prepared { keys, .. } = match known {
            Some(known) => known,
            None => prepared(data.as_ref(), shift, options)?,
        };
        Ok(Box::new(EncryptedFile::new(data, keys, shift)?))
    }

    /// A file that is about to become a store.
    pub(super) fn created(data: Box<dyn DataFile>, options: &Options) -> Result<Box<dyn DataFile>> {
        let Some(secret) = &options.secret else { return Ok(data) };
        let shift = options.page_size.trailing_zeros();
        let (header, keys) = Header::new(secret, shift)?;
        EncryptedFile::write_header(data.as_ref(), &header)?;
        Ok(Box::new(EncryptedFile::new(data, keys, shift)?))
    }
}
