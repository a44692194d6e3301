//! Putting a new greatest key into a tree whose last leaf is at hand: no descent, no search.

use crate::dirty::Workspace;
use crate::page::{self, NormBuf, Order, SearchKey};

use super::Tree;

/// Room for a value of `len` bytes under `key` after all records, if the last change was made in
/// the last leaf, and `key` surely comes after it and fits. Else `None`, and nothing is changed.
#[inline]
pub(crate) fn append<'w>(
    ws: &'w mut Workspace,
    tree: &mut Tree,
    key: &[u8],
    len: usize,
) -> Option<&'w mut [u8]> {
    if !tree.finger.is_last_leaf() {
        return None;
    }
    match tree.order {
        Order::Bytes => append_norm(ws, tree, key, key, len),
        Order::Reversed => append_reversed(ws, tree, key, len),
        Order::Custom(_) => None,
    }
}

/// Apart, so that keys in byte order need no room for a normal form.
#[inline(never)]
fn append_reversed<'w>(
    ws: &'w mut Workspace,
    tree: &mut Tree,
    key: &[u8],
    len: usize,
) -> Option<&'w mut [u8]> {
    let mut buf = NormBuf::default();
    let norm = SearchKey::new(&Order::Reversed, key, &mut buf).norm();
    append_norm(ws, tree, key, norm, len)
}

#[inline]
fn append_norm<'w>(
    ws: &'w mut Workspace,
    tree: &mut Tree,
    key: &[u8],
    norm: &[u8],
    len: usize,
) -> Option<&'w mut [u8]> {
    let txn = ws.txn();
    let slot = ws.owned_slot(tree.finger.leaf()?)?;
    let align = usize::from(tree.desc.options.align);
    let value = page::append(ws.page_mut(slot).ok()?, key, norm, len, align)?;
    tree.desc.modified = txn;
    tree.desc.entries += 1;
    Some(value)
}
