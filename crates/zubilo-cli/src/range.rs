//! Options that choose a range of keys.

use std::ffi::OsString;
use std::ops::Bound;

use clap::Args;

use crate::encoding::Encoding;
use crate::failure::Done;

/// Which keys.
#[derive(Args, Debug)]
pub(crate) struct RangeArgs {
    /// The first key, included
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// The end of the range, not included
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
    /// What all keys start with
    #[arg(long, value_name = "START")]
    prefix: Option<OsString>,
}

/// Bounds as the store takes them.
type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// A range of keys.
pub(crate) struct KeyRange {
    from: Vec<u8>,
    to: Option<Vec<u8>>,
}

impl RangeArgs {
    /// Whether any bound was given.
    pub(crate) fn is_given(&self) -> bool {
        self.from.is_some() || self.to.is_some() || self.prefix.is_some()
    }

    /// The keys that all given bounds allow.
    pub(crate) fn range(&self, encoding: Encoding) -> Done<KeyRange> {
        let decode = |what, text: &Option<OsString>| {
            text.as_ref().map(|text| encoding.argument(what, text)).transpose()
        };
        let from = decode("--from", &self.from)?;
        let to = decode("--to", &self.to)?;
        let prefix = decode("--prefix", &self.prefix)?;
        let behind = prefix.as_deref().and_then(behind_prefix);
        let to = match (to, behind) {
            (Some(to), Some(behind)) => Some(to.min(behind)),
            (to, behind) => to.or(behind),
        };
        Ok(KeyRange { from: from.unwrap_or_default().max(prefix.unwrap_or_default()), to })
    }
}

impl KeyRange {
    /// Bounds for the store; none if no key can be inside.
    pub(crate) fn bounds(&self) -> Option<Bounds<'_>> {
        let from = Bound::Included(&*self.from);
        match &self.to {
            Some(to) if *to <= self.from => None,
            Some(to) => Some((from, Bound::Excluded(&**to))),
            None => Some((from, Bound::Unbounded)),
        }
    }
}

/// The least key behind all keys that start with `prefix`.
fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix.get(..=kept)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
}
