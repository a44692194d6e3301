//! Which stores are encrypted, and the way into them: the engine gets a file whose pages it can read.

use crate::error::{Error, Result};
use crate::platform::DataFile;

use super::metas::{self, Found};
use super::options::Options;

/// The file as the engine reads it, with the key of the options. Who creates a store keeps others away meanwhile.
pub(crate) fn unlocked(data: Box<dyn DataFile>, options: &Options) -> Result<Box<dyn DataFile>> {
    let encrypted = match metas::read(data.as_ref())? {
        Found::Metas(metas) => {
            let encrypted = metas.iter().any(|(_, meta)| meta.authenticator.is_some());
            encrypted.then_some(metas.first().map(|(_, meta)| meta.page_shift)).flatten()
        }
        Found::Nothing if options.create && !options.read_only => {
            return created(data, options);
        }
        // What is wrong is reported by those who look for a commit.
        _ => return Ok(data),
    };
    match encrypted {
        Some(shift) => with_key(data, shift, options),
        None if options.secret.is_some() => Err(Error::NotEncrypted),
        None => Ok(data),
    }
}

#[cfg(not(feature = "encryption"))]
mod keys {
    use super::*;

    pub(super) fn with_key(_: Box<dyn DataFile>, _: u32, _: &Options) -> Result<Box<dyn DataFile>> {
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
    use crate::crypt::{EncryptedFile, Header};
    use crate::num::PageNo;

    /// The file with the key of its header, which is that of the options.
    pub(super) fn with_key(
        data: Box<dyn DataFile>,
        shift: u32,
        options: &Options,
    ) -> Result<Box<dyn DataFile>> {
        let secret = options.secret.as_ref().ok_or(Error::KeyMissing)?;
        let page = metas::header_page(data.as_ref(), shift);
        let header = page.and_then(|page| Header::of_page(&page, shift));
        let reason = "the header of the encrypted store is damaged";
        let header = header.ok_or(Error::Corrupted { page: PageNo(META_COUNT), reason })?;
        let keys = header.keys(secret)?;
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

use keys::{created, with_key};
