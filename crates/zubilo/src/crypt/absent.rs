//! What there is without the feature: no key, so nothing that is encrypted.

use crate::error::Result;
use crate::platform::Purpose;

/// What opens an encrypted store.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Secret {}

/// The keys and the layout of one file.
pub(crate) enum Sealer {}

impl Sealer {
    pub(crate) fn new(secret: &Secret, _: u32) -> Result<Sealer> {
        match *secret {}
    }

    pub(crate) fn of_header(_: &[u8], _: u32, secret: &Secret) -> Option<Result<Sealer>> {
        match *secret {}
    }

    pub(crate) fn header(&self) -> Vec<u8> {
        match *self {}
    }

    pub(crate) fn place(&self, _: u64) -> u64 {
        match *self {}
    }

    pub(crate) fn stride(&self) -> usize {
        match *self {}
    }

    pub(crate) fn file_len(&self, _: u64) -> u64 {
        match *self {}
    }

    pub(crate) fn store_len(&self, _: u64) -> u64 {
        match *self {}
    }

    pub(crate) fn seal(&self, _: u64, _: &[u8], _: Purpose) -> Result<Vec<u8>> {
        match *self {}
    }

    pub(crate) fn open(&self, _: u64, _: Vec<u8>, _: Purpose) -> Option<Vec<u8>> {
        match *self {}
    }

    pub(crate) fn authenticator(&self, _: &[u8]) -> [u8; 32] {
        match *self {}
    }
}
