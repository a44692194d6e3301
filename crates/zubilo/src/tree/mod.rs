//! The B+tree: what a tree is (descriptor, references, pages) and the algorithms on it.
//!
//! A tree is known by its [`TreeDesc`]. Reading goes through [`Pages`], which turns a reference
//! into checked page bytes; changing goes through [`crate::dirty::Workspace`], which copies a
//! page before its first change. Nothing here does I/O or takes a lock.
//!
//! Invariants: all leaves are on one level; a child's level is its parent's minus one, and every
//! descent checks it, so no walk can run in circles; no page but a fresh root is empty.

pub(crate) mod append;
pub(crate) mod batch;
pub(crate) mod build;
pub(crate) mod compact;
pub(crate) mod cursor;
pub(crate) mod desc;
mod edge;
pub(crate) mod estimate;
pub(crate) mod insert;
pub(crate) mod leaves;
mod located;
pub(crate) mod lookup;
pub(crate) mod pages;
pub(crate) mod pair_range;
pub(crate) mod pairs;
pub(crate) mod path;
pub(crate) mod place;
pub(crate) mod range;
pub(crate) mod rank;
pub(crate) mod remove;
pub(crate) mod remove_range;
mod repack;
pub(crate) mod run;
mod siblings;
pub(crate) mod split;
pub(crate) mod values;
pub(crate) mod verify;

pub(crate) use desc::{TreeDesc, TreeOptions};
pub(crate) use located::Located;
pub(crate) use pages::{Pages, Ref, Snapshot, any_dirty};
pub(crate) use path::Path;
pub(crate) use run::RunRef;

use crate::page::Order;
use crate::page::row::Rules;

/// A tree that is being worked on: its descriptor and what the descriptor means.
#[derive(Clone)]
pub(crate) struct Tree {
    /// Root, counts and options, as they will be stored.
    pub(crate) desc: TreeDesc,
    /// Order of the keys.
    pub(crate) order: Order,
    /// Order of the values of one key, where there can be many.
    pub(crate) values: Order,
    /// Where the last change happened; spares the descent for neighbouring keys.
    pub(crate) finger: insert::Finger,
    /// Which of the write transaction's changes was the last one of this tree, or moved its pages. Never
    /// goes back. Cursors know by it whether the way to their record is still right.
    pub(crate) version: u64,
}

impl Tree {
    /// A tree as stored, with its orders.
    pub(crate) fn new(desc: TreeDesc, order: Order, values: Order) -> Tree {
        Tree { desc, order, values, finger: insert::Finger::default(), version: 0 }
    }

    /// The same without the finger.
    pub(crate) fn to_read(&self) -> Tree {
        let read = Tree::new(self.desc, self.order.clone(), self.values.clone());
        Tree { version: self.version, ..read }
    }

    /// Becomes another one; versions go on.
    pub(crate) fn replace(&mut self, other: Tree) {
        *self = Tree { version: self.version, ..other };
    }

    /// What all its pages have in common.
    #[inline(always)]
    pub(crate) fn rules(&self) -> Rules<'_> {
        Rules::of_leaves(&self.order, usize::from(self.desc.options.align))
    }

    /// The table of tables.
    pub(crate) fn main(desc: TreeDesc) -> Tree {
        Tree::new(desc, Order::Bytes, Order::Bytes)
    }
}
