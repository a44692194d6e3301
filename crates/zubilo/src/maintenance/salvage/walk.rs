//! One damaged tree: what of it can still be reached from its root, and, for the gaps, what leaves of
//! this and older commits hold of them.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

use crate::page::row::Node;
use crate::page::{Branch, Leaf, NormBuf, Order, SearchKey, packed};
use crate::tree::TreeDesc;
use crate::tree::desc::MAX_DEPTH;

use super::source::Source;

/// Bound of a gap, in normal form; none is infinite.
type Fence = Option<Vec<u8>>;

/// A stretch of a tree, in the order of keys.
pub(super) enum Part {
    /// A leaf that is whole.
    Leaf(u64),
    /// Keys from the first to before the second fence cannot be reached.
    Gap(Fence, Fence),
}

/// A tree as far as it can be walked.
#[derive(Default)]
pub(super) struct Outline {
    pub(super) parts: Vec<Part>,
    pub(super) gaps: u64,
    seen: HashSet<u64>,
    /// The leaves of `parts`.
    leaves: HashSet<u64>,
}

/// Where a record lies that fills a gap.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) page: u64,
    pub(super) index: usize,
}

/// Records by the normal form of their keys.
pub(super) type Fill = BTreeMap<Vec<u8>, Place>;

/// A tree to be walked: its table's identity and order, and the commit it is of.
pub(super) struct Walk<'s> {
    pub(super) source: &'s Source,
    pub(super) table: u32,
    pub(super) order: Order,
    /// Nothing younger belongs to it.
    pub(super) birth: u64,
}

impl Walk<'_> {
    /// Walks from the root that a descriptor names.
    pub(super) fn outline_of(&self, desc: &TreeDesc) -> Outline {
        let mut outline = Outline::default();
        if desc.depth > 0 && usize::from(desc.depth) <= MAX_DEPTH {
            self.descend(&mut outline, desc.root.0, desc.depth - 1, self.birth, None, None);
        }
        outline
    }

    /// Of a tree whose root nobody knows everything is a gap.
    pub(super) fn without_root() -> Outline {
        Outline { parts: vec![Part::Gap(None, None)], gaps: 1, ..Outline::default() }
    }

    fn descend(
        &self,
        outline: &mut Outline,
        at: u64,
        level: u8,
        birth: u64,
        low: Fence,
        high: Fence,
    ) {
        // A page twice would be a cycle or a lie. A child is never younger than its parent: such a
        // page was used again.
        let page =
            if outline.seen.insert(at) { self.source.page(at, self.table, birth) } else { None };
        let Some(page) = page else { return outline.gap(low, high) };
        if level == 0 {
            if self.leaf_is_whole(&page) {
                outline.leaves.insert(at);
                outline.parts.push(Part::Leaf(at));
            } else {
                outline.gap(low, high)
            }
            return;
        }
        let branch = Branch::on_level(&page, level).ok();
        let branch = branch.filter(|b| b.count() > 0 && b.check(&self.order).is_ok());
        let Some(branch) = branch else { return outline.gap(low, high) };
        let birth = crate::page::header::birth(&page);
        let mut below = low;
        for i in 0..branch.count() {
            let mut separator = Vec::new();
            let above = if i + 1 < branch.count() {
                branch.separator(i + 1, &mut separator).ok().map(|()| separator)
            } else {
                high.clone()
            };
            match branch.child(i) {
                Ok(child) => {
                    self.descend(outline, child, level - 1, birth, below, above.clone());
                }
                Err(_) => outline.gap(below, above.clone()),
            }
            below = above;
        }
    }

    fn leaf_is_whole(&self, page: &[u8]) -> bool {
        let check = Node::on_level(page, 0).and_then(|node| match node {
            Node::Packed(packed) => {
                packed::check_header(page, &self.order).and_then(|()| packed.check(&self.order))
            }
            Node::Leaf(leaf) => leaf.check(&self.order),
            Node::Branch(branch) => branch.check(&self.order),
        });
        check.is_ok()
    }

    /// What leaves that the root does not lead to say about the gaps, newest first: where a younger
    /// leaf reaches from one key to another, an older one has nothing to say about what lies between.
    pub(super) fn fill(&self, outline: &Outline) -> Fill {
        let mut fill = Fill::new();
        if outline.gaps == 0 {
            return fill;
        }
        let gaps = Gaps::of(outline, &self.order);
        let mut covered = Covered::default();
        for found in self.source.leaves(self.table) {
            if found.birth > self.birth || outline.leaves.contains(&found.page) {
                continue;
            }
            let Some(page) = self.source.page(found.page, self.table, found.birth) else {
                continue;
            };
            let Ok(leaf) = Leaf::on_level_0(&page) else { continue };
            if leaf.check(&self.order).is_err() {
                continue;
            }
            let mut keys = Vec::new();
            for i in 0..leaf.count() {
                let Ok(key) = leaf.key(i) else { continue };
                let norm = normal(&self.order, key);
                if gaps.hold(&norm) && !covered.holds(&norm) {
                    let place = Place { page: found.page, index: i };
                    fill.entry(norm.clone()).or_insert(place);
                }
                keys.push(norm);
            }
            if !self.order.is_custom()
                && let (Some(first), Some(last)) = (keys.first(), keys.last())
            {
                covered.add(first.clone(), last.clone());
            }
        }
        fill
    }
}

/// A key in the form whose bytes sort as its table does.
pub(super) fn normal(order: &Order, key: &[u8]) -> Vec<u8> {
    SearchKey::new(order, key, &mut NormBuf::default()).norm().to_vec()
}

impl Outline {
    fn gap(&mut self, low: Fence, high: Fence) {
        self.gaps += 1;
        self.parts.push(Part::Gap(low, high));
    }
}

/// The gaps of an outline, by their lower fences.
enum Gaps {
    /// A caller's order is not known: any key may lie in a gap.
    Anywhere,
    At(BTreeMap<Vec<u8>, Fence>),
}

impl Gaps {
    fn of(outline: &Outline, order: &Order) -> Gaps {
        if order.is_custom() {
            return Gaps::Anywhere;
        }
        let mut gaps = BTreeMap::new();
        for part in &outline.parts {
            if let Part::Gap(low, high) = part {
                gaps.insert(low.clone().unwrap_or_default(), high.clone());
            }
        }
        Gaps::At(gaps)
    }

    fn hold(&self, key: &[u8]) -> bool {
        match self {
            Gaps::Anywhere => true,
            Gaps::At(gaps) => gaps
                .range::<[u8], _>(up_to(key))
                .next_back()
                .is_some_and(|(_, high)| high.as_deref().is_none_or(|high| key < high)),
        }
    }
}

fn up_to(key: &[u8]) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Unbounded, Bound::Included(key))
}

/// Closed stretches of keys.
#[derive(Default)]
struct Covered(BTreeMap<Vec<u8>, Vec<u8>>);

impl Covered {
    fn holds(&self, key: &[u8]) -> bool {
        let before = self.0.range::<[u8], _>(up_to(key)).next_back();
        before.is_some_and(|(_, last)| key <= last.as_slice())
    }

    fn add(&mut self, mut first: Vec<u8>, mut last: Vec<u8>) {
        while let Some((low, high)) = self.0.range::<[u8], _>(up_to(&last)).next_back()
            && *high >= first
        {
            let low = low.clone();
            let high = self.0.remove(&low).unwrap_or_default();
            first = first.min(low);
            last = last.max(high);
        }
        self.0.insert(first, last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_grow_together() {
        let mut covered = Covered::default();
        let key = |n: u8| vec![n];
        covered.add(key(10), key(20));
        covered.add(key(30), key(40));
        covered.add(key(50), key(60));
        assert!(covered.holds(&key(10)) && covered.holds(&key(20)) && !covered.holds(&key(25)));
        covered.add(key(15), key(35));
        assert_eq!(covered.0.len(), 2);
        assert!(covered.holds(&key(25)) && !covered.holds(&key(45)) && !covered.holds(&key(9)));
        covered.add(key(1), key(99));
        assert_eq!(covered.0.len(), 1);
    }
}
