//! Changing tables with many values under a key: a value alone, a small set in the record, or a
//! tree of values, and the ways between them.
//!
//! A set grows inside its record until the record has half a leaf, then becomes a tree; a tree that
//! would make a set of half that size becomes one again, so that neither happens at every change.

use std::cmp::Ordering;

use crate::dirty::{View, Workspace};
use crate::error::{Error, Result};
use crate::page::{self, NewValue, NormBuf, Order, Packed, SearchKey, ValueKind, leaf, packed};

use super::cursor::ValuePlace;
use super::insert::{TreeMut, broken_path, mark_dirty_runs};
use super::lookup::{descend_by, descend_leaf};
use super::place::Place;
use super::remove::drop_tree;
use super::values::{Values, values_of};
use super::{Located, Pages, Path, Tree, TreeDesc};

/// What a table with fixed-size values says to others.
const WRONG_SIZE: Error =
    Error::Invalid("all values of this table have one size, this has another");

/// Adds a value to those of a key; false when it is there already.
pub(crate) fn put_pair(
    ws: &mut Workspace,
    tree: &mut Tree,
    key: &[u8],
    value: &[u8],
) -> Result<bool> {
    check_size(tree, value)?;
    if tree.desc.depth == 0 {
        tree.desc.item_size = if tree.desc.options.is_fixed() { value.len() as u16 } else { 0 };
    }
    let mut at = TreeMut::new(ws, tree);
    if at.locate(key)? {
        return at.add_value(value);
    }
    at.insert_new(key, NewValue::of(ValueKind::Inline, value))?;
    Ok(true)
}

/// Whether the table can have a value of this size.
pub(crate) fn check_size(tree: &Tree, value: &[u8]) -> Result<()> {
    let same = usize::from(tree.desc.item_size) == value.len();
    if tree.desc.options.is_fixed() && tree.desc.depth > 0 && !same {
        return Err(WRONG_SIZE);
    }
    Ok(())
}

/// Removes one value of a key; false when the key does not have it.
pub(crate) fn remove_pair(
    ws: &mut Workspace,
    tree: &mut Tree,
    key: &[u8],
    value: &[u8],
) -> Result<bool> {
    let mut at = TreeMut::new(ws, tree);
    if !at.find(key)? {
        return Ok(false);
    }
    let order = &at.tree.values;
    let place = match at.values()? {
        Values::One(own) => order.compare(value, own).is_eq().then_some(ValuePlace::One),
        Values::Set(set) => set.position(order, value)?.ok().map(ValuePlace::Set),
        Values::Tree(desc) => {
            let mut path = Path::default();
            let view = at.ws.view();
            let found = descend_leaf::<_, Packed<'_>>(&view, &desc, order, value, &mut path)?;
            found.then_some(ValuePlace::Tree(Place::of(path)))
        }
    };
    let Some(place) = place else { return Ok(false) };
    at.remove_value(place)?;
    Ok(true)
}

/// Removes the value at `place` among those of the entry at the end of `path`.
pub(crate) fn remove_value_at(
    ws: &mut Workspace,
    tree: &mut Tree,
    path: Path,
    place: ValuePlace,
) -> Result<()> {
    TreeMut { ws, tree, path }.remove_value(place)
}

/// As `descend_leaf`, fetching the whole leaf at once: with very many keys that have trees of values
/// each change comes to a leaf that is not in the CPU's caches.
fn descend_to_insert(
    view: &View<'_>,
    desc: &TreeDesc,
    order: &Order,
    value: &[u8],
    path: &mut Path,
) -> Result<bool> {
    if desc.depth == 1 {
        view.prefetch_to_change(desc.root);
    }
    let mut buf = NormBuf::default();
    let search = SearchKey::new(order, value, &mut buf);
    let prefetch = |view: &View<'_>, child, level| {
        if level == 1 {
            view.prefetch_to_change(child);
        }
    };
    let (found, _) = descend_by::<_, Packed<'_>>(view, desc.top(), order, &search, path, prefetch)?;
    Ok(found)
}

/// The values of the entry at the end of the path: a value alone, a small set, or a tree.
impl TreeMut<'_> {
    fn values(&self) -> Result<Values<'_>> {
        let (at, index) = self.end()?;
        let view = self.ws.view();
        values_of(&view, at, &view.leaf(at)?.entry(index)?)
    }

    /// The tree of values under the entry, ready to be changed at the end of `path`.
    fn value_tree(&self, desc: TreeDesc) -> Tree {
        Tree::new(desc, self.tree.values.clone(), self.tree.values.clone())
    }

    /// The most bytes that a small set may take in its record.
    fn set_max(&self) -> Result<usize> {
        let (at, index) = self.end()?;
        let key = self.ws.view().leaf(at)?.key(index)?;
        Ok(page::max_inline(self.ws.page_size()).saturating_sub(key.len()))
    }

    /// Adds a value; false when it is there already.
    fn add_value(&mut self, value: &[u8]) -> Result<bool> {
        let order = &self.tree.values;
        let added = match self.values()? {
            Values::One(own) => {
                let both = match order.compare(value, own) {
                    Ordering::Equal => None,
                    Ordering::Less => Some([value, own]),
                    Ordering::Greater => Some([own, value]),
                };
                both.map(|both| {
                    let mut set = Vec::new();
                    let size = usize::from(self.tree.desc.item_size);
                    packed::build_record(size, both.into_iter(), &mut set);
                    Addition::Set(set)
                })
            }
            Values::Set(set) => {
                let len = set.len_in_record() + packed::footprint(set.item_size(), value.len());
                set.position(order, value)?.err().map(|i| Addition::Item(i, len))
            }
            Values::Tree(desc) => {
                let mut path = Path::default();
                let found = descend_to_insert(&self.ws.view(), &desc, order, value, &mut path)?;
                (!found).then_some(Addition::Tree(desc, path))
            }
        };
        let Some(added) = added else {
            // No change; the path stays cached.
            self.keep_finger();
            return Ok(false);
        };
        self.touch()?;
        match added {
            Addition::Set(set) => self.store_set(&set)?,
            Addition::Item(i, len) => self.grow_set(i, value, len)?,
            Addition::Tree(desc, path) => {
                let mut values = self.value_tree(desc);
                TreeMut { ws: self.ws, tree: &mut values, path }
                    .insert_new(value, NewValue::of(ValueKind::Inline, &[]))?;
                self.store_tree(&desc, &values.desc)?;
            }
        }
        self.tree.desc.entries += 1;
        self.tree.desc.modified = self.ws.txn();
        Ok(true)
    }

    /// Inserts a value into the set, which has `len` bytes then.
    fn grow_set(&mut self, i: usize, value: &[u8], len: usize) -> Result<()> {
        let (at, index) = self.end()?;
        let (order, fits) = (&self.tree.order, len <= self.set_max()?);
        let grown = self.ws.edit(at, |page| {
            let old_len = leaf::value_mut(page, index)?.len();
            let room = if fits { leaf::resize_value(page, index, order, len)? } else { None };
            let Some(bytes) = room else {
                // The leaf is full: the record goes where there is room for it as it will be.
                let mut bytes = leaf::value_mut(page, index)?.to_vec();
                bytes.resize(len, 0);
                packed::insert_in_record(&mut bytes, old_len, i, value)?;
                return Ok(Some(bytes));
            };
            packed::insert_in_record(bytes, old_len, i, value)?;
            Ok(None)
        })?;
        match grown {
            Some(set) => self.store_set(&set),
            None => {
                self.keep_finger();
                Ok(())
            }
        }
    }

    /// Stores a set: in the record, or in a page if it is longer than a record may be.
    fn store_set(&mut self, set: &[u8]) -> Result<()> {
        if set.len() <= self.set_max()? {
            return self.set_value(NewValue::of(ValueKind::Duplicates, set)).map(drop);
        }
        let mut values = self.value_tree(self.tree.desc.of_values());
        let root = TreeMut::new(self.ws, &mut values).first_leaf()?;
        let count = self.ws.edit(root, |page| packed::fill_from_record(page, set))?;
        values.desc.entries = count as u64;
        values.desc.modified = self.ws.txn();
        self.tree.desc.value_pages += values.desc.pages();
        let place = self.set_value(NewValue::of(ValueKind::Tree, &values.desc.to_bytes()))?;
        self.ws.edit(place.at, |page| {
            mark_dirty_runs(page);
            Ok(())
        })
    }

    /// Stores the changed descriptor of the tree of values.
    pub(super) fn store_tree(&mut self, old: &TreeDesc, new: &TreeDesc) -> Result<()> {
        let (at, index) = self.end()?;
        let bytes = new.to_bytes();
        let stored = self.ws.edit(at, |page| {
            let value = leaf::value_mut(page, index)?.get_mut(..bytes.len());
            let stored = value.map(|value| value.copy_from_slice(&bytes)).is_some();
            mark_dirty_runs(page);
            Ok(stored)
        })?;
        if !stored {
            return Err(broken_path());
        }
        let pages = self.tree.desc.value_pages.saturating_sub(old.pages());
        self.tree.desc.value_pages = pages.saturating_add(new.pages());
        self.keep_finger();
        Ok(())
    }

    /// Removes the value at `place`.
    fn remove_value(&mut self, place: ValuePlace) -> Result<()> {
        self.tree.finger.reset();
        match (self.values()?, place) {
            (Values::One(_), ValuePlace::One) => return self.remove(),
            (Values::Set(set), ValuePlace::Set(i)) if set.count() == 2 => {
                let last = set.item(1 - i.min(1))?.to_vec();
                self.touch()?;
                self.set_shorter(ValueKind::Inline, &last)?;
            }
            (Values::Set(_), ValuePlace::Set(i)) => {
                self.touch()?;
                self.shrink_set(i)?;
            }
            (Values::Tree(desc), ValuePlace::Tree(place)) => {
                self.touch()?;
                let path = place.into_path();
                let mut values = self.value_tree(desc);
                TreeMut { ws: self.ws, tree: &mut values, path }.remove()?;
                self.shrink_tree(&desc, &values.desc)?;
            }
            _ => return Err(broken_path()),
        }
        self.tree.desc.entries = self.tree.desc.entries.saturating_sub(1);
        self.tree.desc.modified = self.ws.txn();
        Ok(())
    }

    /// Gives the entry a shorter value, and looks after its leaf.
    fn set_shorter(&mut self, kind: ValueKind, bytes: &[u8]) -> Result<()> {
        let path = self.path.clone();
        let before = self.tree.desc.leaf_pages;
        self.set_value(NewValue::of(kind, bytes))?;
        if self.tree.desc.leaf_pages != before {
            // A set longer than the descriptor before it has split the leaf: that is full enough.
            return Ok(());
        }
        self.tree.finger.reset();
        self.path = path;
        self.rebalance(self.path.len() - 1)
    }

    fn shrink_set(&mut self, i: usize) -> Result<()> {
        let (at, index) = self.end()?;
        let order = &self.tree.order;
        self.ws.edit(at, |page| {
            let len = packed::remove_in_record(leaf::value_mut(page, index)?, i)?;
            leaf::resize_value(page, index, order, len).map(drop)
        })?;
        self.rebalance(self.path.len() - 1)
    }

    /// Stores a tree of values that has lost one, as a set or a single value if few are left.
    fn shrink_tree(&mut self, old: &TreeDesc, new: &TreeDesc) -> Result<()> {
        let Some((kind, bytes)) = as_record(self.ws, new, self.set_max()?)? else {
            return self.store_tree(old, new);
        };
        drop_tree(self.ws, new)?;
        let desc = &mut self.tree.desc;
        desc.value_pages = desc.value_pages.saturating_sub(old.pages());
        self.set_shorter(kind, &bytes)
    }
}

/// How a value is to be added to those of a key.
enum Addition {
    /// The value there is becomes a set of two.
    Set(Vec<u8>),
    /// At this index of the set, which has so many bytes then.
    Item(usize, usize),
    /// At the end of a path in the tree of values.
    Tree(TreeDesc, Path),
}

/// The values of a tree as a record keeps them, if they are few enough; a set takes `max` bytes there.
fn as_record(ws: &Workspace, desc: &TreeDesc, max: usize) -> Result<Option<(ValueKind, Vec<u8>)>> {
    if desc.depth != 1 {
        return Ok(None);
    }
    let leaf: Located<Packed<'_>> = ws.view().leaf_of_kind(desc.root)?;
    if leaf.count() == 1 {
        return Ok(Some((ValueKind::Inline, leaf.item(0)?.to_vec())));
    }
    if leaf.len_in_record() > max / 2 {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(leaf.len_in_record());
    packed::to_record(&leaf, &mut bytes);
    Ok(Some((ValueKind::Duplicates, bytes)))
}
