//! Options that choose a range of keys.

use std::ffi::OsString;
use std::ops::Bound;

use clap::Args;
use zubilo::KeyOrder;

use crate::encoding::Encoding;
use crate::failure::{Done, Failure};

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

/// A range of keys of a table.
pub(crate) struct KeyRange {
    order: KeyOrder,
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
}

impl RangeArgs {
    /// Whether any bound was given.
    pub(crate) fn is_given(&self) -> bool {
        self.from.is_some() || self.to.is_some() || self.prefix.is_some()
    }

    /// The keys that all given bounds allow, in a table of this order.
    pub(crate) fn range(&self, encoding: Encoding, order: KeyOrder) -> Done<KeyRange> {
        let decode = |what, text: &Option<OsString>| {
            text.as_ref().map(|text| encoding.argument(what, text)).transpose()
        };
        let mut from = decode("--from", &self.from)?;
        let mut to = decode("--to", &self.to)?;
        if let Some(prefix) = decode("--prefix", &self.prefix)? {
            if order != KeyOrder::Bytes || encoding.number().is_some() {
                let cause = "keys with one start are not neighbours in this table";
                return Err(Failure::usage("read --prefix", cause).advise("use --from and --to"));
            }
            to = match (to, behind_prefix(&prefix)) {
                (Some(to), Some(behind)) => Some(to.min(behind)),
                (to, behind) => to.or(behind),
            };
            from = Some(from.unwrap_or_default().max(prefix));
        }
        Ok(KeyRange { order, from, to })
    }
}

impl KeyRange {
    /// Bounds for the store; none if no key can be inside.
    pub(crate) fn bounds(&self) -> Option<Bounds<'_>> {
        let from = self.from.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let to = self.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let empty = match (&self.from, &self.to) {
            (Some(from), Some(to)) => match self.order {
                KeyOrder::Bytes => to <= from,
                // From the last byte: native numbers, of one width, too.
                _ => to.iter().rev().le(from.iter().rev()),
            },
            (None, Some(to)) => to.is_empty(),
            _ => false,
        };
        (!empty).then_some((from, to))
    }
}

/// The least key after all keys that start with `prefix`.
fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix.get(..=kept)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
}
