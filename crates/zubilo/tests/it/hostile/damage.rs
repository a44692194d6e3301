//! Changes of a valid file, with or without right checksums afterwards.

use std::collections::BTreeSet;

use twox_hash::XxHash3_64;

use crate::common::Rng;

const METAS: usize = 4;
const META_SIZE: usize = 4096;
const HEADER: usize = 48;

/// A file being damaged.
pub(super) struct Damage {
    bytes: Vec<u8>,
    page_size: usize,
    rng: Rng,
    /// Pages whose checksums are made right at the end.
    sealed: BTreeSet<usize>,
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()))
}

impl Damage {
    pub(super) fn of(store: &[u8], rng: &mut Rng) -> Damage {
        let page_size = 1 << store[20];
        let rng = Rng::new(rng.next());
        Damage { bytes: store.to_vec(), page_size, rng, sealed: BTreeSet::new() }
    }

    fn pages(&self) -> usize {
        self.bytes.len() / self.page_size
    }

    fn newest_meta(&self) -> usize {
        let at = |i: usize| i * self.page_size;
        let valid = |i: &usize| self.bytes[at(*i) + 8..].starts_with(b"ZUBILO");
        (0..METAS).filter(valid).max_by_key(|i| u64_at(&self.bytes, at(*i) + 56)).unwrap()
    }

    fn end(&self) -> usize {
        u64_at(&self.bytes, self.newest_meta() * self.page_size + 64) as usize
    }

    /// Numbers of the pages of trees, old ones too.
    fn tree_pages(&self) -> Vec<usize> {
        let end = self.end().min(self.pages());
        let is_tree = |p: &usize| {
            let at = p * self.page_size;
            u64_at(&self.bytes, at + 8) == *p as u64 && matches!(self.bytes[at + 24], 1..=3)
        };
        (METAS..end).filter(is_tree).collect()
    }

    fn branches(&self) -> Vec<usize> {
        let pages = self.tree_pages().into_iter();
        pages.filter(|p| self.bytes[p * self.page_size + 24] == 1).collect()
    }

    /// A number that lies well.
    fn interesting(&mut self) -> u64 {
        let end = self.end() as u64;
        let any = self.rng.next();
        let txn = u64_at(&self.bytes, self.newest_meta() * self.page_size + 56);
        let page = self.rng.below(end.wrapping_add(1));
        let size = self.page_size as u64;
        let lies = [
            0,
            1,
            2,
            3,
            4,
            u64::MAX,
            u64::MAX - 1,
            1 << 63,
            1 << 63 | self.rng.below(8),
            1 << 62,
            1 << 61,
            1 << 52,
            1 << 32,
            u64::from(u32::MAX),
            u64::from(u16::MAX),
            1 << 15,
            1 << 14,
            end,
            end.wrapping_sub(1),
            end.wrapping_add(1),
            page,
            page,
            page,
            txn,
            txn.wrapping_add(1),
            txn.wrapping_sub(1),
            size,
            size - 1,
            size - 2,
            HEADER as u64,
            any,
            any >> 56,
        ];
        self.rng.pick(&lies)
    }

    fn put(&mut self, at: usize, width: usize, value: u64) {
        let width = width.min(self.bytes.len().saturating_sub(at));
        self.bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    }

    /// Some bits anywhere, nothing made right.
    pub(super) fn flip_bits(&mut self) {
        for _ in 0..1 + self.rng.below(6) {
            let at = self.rng.below(self.bytes.len() as u64) as usize;
            self.bytes[at] ^= 1 << self.rng.below(8);
        }
    }

    /// Fields of tree pages get other numbers, or bytes change a little.
    pub(super) fn lie_in_pages(&mut self) {
        let pages = self.tree_pages();
        for _ in 0..1 + self.rng.below(4) {
            let page = self.rng.pick(&pages);
            let start = page * self.page_size;
            let count = u16_at(&self.bytes, start + 28);
            let heap = u64_at(&self.bytes, start + 32) as u32 as usize;
            let arrays = (HEADER + 24 + count * 22).min(self.page_size);
            let heap_len = self.page_size.saturating_sub(heap).max(1);
            let at = match self.rng.below(10) {
                0..=2 => 16 + self.rng.below(32) as usize,
                3..=6 => HEADER + self.rng.below((arrays - HEADER) as u64) as usize,
                _ => self.page_size - 1 - self.rng.below(heap_len as u64) as usize,
            };
            let width = self.rng.pick(&[1, 1, 2, 2, 4, 8]);
            let at = start + at.min(self.page_size - width);
            let value = match self.rng.below(3) {
                0 => u64_at(&[&self.bytes[at..at + width], &[0; 8]].concat(), 0)
                    .wrapping_add(self.rng.pick(&[1, 2, 4, 8, u64::MAX, u64::MAX - 3])),
                1 => self.rng.next(),
                _ => self.interesting(),
            };
            self.put(at, width, value);
            self.sealed.insert(page);
        }
    }

    /// Children of branches, runs and tables lead elsewhere.
    pub(super) fn redirect(&mut self) {
        for _ in 0..1 + self.rng.below(3) {
            let branches = self.branches();
            if branches.is_empty() || self.rng.one_in(3) {
                self.redirect_values();
                continue;
            }
            let page = self.rng.pick(&branches);
            let start = page * self.page_size;
            let (count, prefix) =
                (u16_at(&self.bytes, start + 28), u16_at(&self.bytes, start + 30));
            let children = HEADER + prefix + 6 * count;
            if children + 8 * count > self.page_size {
                continue;
            }
            let at = start + children + 8 * self.rng.below(count as u64) as usize;
            let tree_pages = self.tree_pages();
            let to = match self.rng.below(4) {
                0 => self.interesting(),
                1 => page as u64,
                _ => self.rng.pick(&tree_pages) as u64,
            };
            self.put(at, 8, to);
            // Levels and tables that would give it away are made right as well.
            let to = to as usize;
            if tree_pages.contains(&to) && self.rng.one_in(2) {
                let level = self.bytes[start + 25].wrapping_sub(1);
                self.bytes[to * self.page_size + 25] = level;
                self.sealed.insert(to);
            }
            self.sealed.insert(page);
        }
    }

    /// Words of references to runs and of descriptors of tables, which lie in leaves.
    fn redirect_values(&mut self) {
        let leaves = self.tree_pages();
        let page = self.rng.pick(&leaves);
        let start = page * self.page_size;
        let (count, prefix) = (u16_at(&self.bytes, start + 28), u16_at(&self.bytes, start + 30));
        if self.bytes[start + 24] != 2 || count == 0 {
            return;
        }
        for i in 0..count {
            let offset = start + HEADER + prefix + 4 * count + 2 * i;
            if offset + 2 > start + self.page_size {
                return;
            }
            let record = start + u16_at(&self.bytes, offset);
            if record + 4 > start + self.page_size {
                return;
            }
            let (klen, vlen) = (u16_at(&self.bytes, record), u16_at(&self.bytes, record + 2));
            let is_reference = klen >> 14 != 0;
            if !is_reference && !self.rng.one_in(40) || vlen < 8 {
                continue;
            }
            let word = self.rng.below(vlen as u64 / 8) as usize;
            let at = record + 4 + (klen & 0x3FFF) + 8 * word;
            if at + 8 > start + self.page_size {
                return;
            }
            let lie = self.interesting();
            self.put(at, self.rng.clone().pick(&[1, 4, 8]), lie);
            self.sealed.insert(page);
        }
    }

    /// Pages change places or are copied over others, with the right numbers.
    pub(super) fn move_pages(&mut self) {
        for _ in 0..1 + self.rng.below(4) {
            let end = self.end().min(self.pages()) as u64;
            let first = if self.rng.one_in(5) { 0 } else { METAS as u64 };
            let a = (first + self.rng.below(end - first)) as usize;
            let b = (first + self.rng.below(end - first)) as usize;
            let page = |p: usize| p * self.page_size..(p + 1) * self.page_size;
            let (old_a, old_b) = (self.bytes[page(a)].to_vec(), self.bytes[page(b)].to_vec());
            self.bytes[page(a)].copy_from_slice(&old_b);
            if self.rng.one_in(2) {
                let range = b * self.page_size..(b + 1) * self.page_size;
                self.bytes[range].copy_from_slice(&old_a);
            }
            for p in [a, b] {
                if p >= METAS && !self.rng.one_in(8) {
                    self.put(p * self.page_size + 8, 8, p as u64);
                    self.sealed.insert(p);
                }
            }
        }
    }

    /// Fields of metas, the ends of the free-space log in them, and the segments that they name.
    pub(super) fn lie_in_metas(&mut self) {
        for _ in 0..1 + self.rng.below(3) {
            let meta = match self.rng.below(6) {
                0 => self.rng.below(METAS as u64) as usize,
                _ => self.newest_meta(),
            };
            let start = meta * self.page_size;
            let log_len = (u64_at(&self.bytes, start + 264) as u32).min(3824);
            let (at, width) = match self.rng.below(8) {
                0..=3 => (20 + self.rng.below(252) as usize, self.rng.pick(&[1, 4, 8])),
                4 => (16 + 8 * self.rng.below(32) as usize, 8),
                5 if self.lie_in_a_segment(start) => continue,
                _ => (272 + self.rng.below(u64::from(log_len.max(1))) as usize, 1),
            };
            let lie = self.interesting();
            self.put(start + at, width, lie);
            self.sealed.insert(meta);
        }
    }

    /// A byte of a segment of the free-space log, with right checksums from there to the meta.
    fn lie_in_a_segment(&mut self, meta: usize) -> bool {
        // Each reference, with the range that it names.
        let mut names = Vec::new();
        let mut reference = meta + 224;
        while names.len() < 40 {
            let first = u64_at(&self.bytes, reference) as usize;
            let len = u64_at(&self.bytes, reference + 8) as usize;
            let start = first.saturating_mul(self.page_size);
            if first == 0 || len < 8 || start.saturating_add(len) > self.bytes.len() {
                break;
            }
            names.push((reference, start, len));
            reference = start;
        }
        if names.is_empty() {
            return false;
        }
        let which = self.rng.below(names.len() as u64) as usize;
        let (_, start, len) = names[which];
        let within = if self.rng.one_in(2) { 60 } else { len as u64 };
        let at = start + self.rng.below(within) as usize;
        let lie = self.interesting();
        let width = self.rng.pick(&[1, 1, 8]).min(start + len - at);
        self.put(at, width, lie);
        for (reference, start, len) in names[..=which].iter().rev() {
            let checksum = XxHash3_64::oneshot(&self.bytes[*start..start + len]);
            self.put(reference + 16, 8, checksum);
        }
        self.sealed.insert(meta / self.page_size);
        true
    }

    /// The file ends early, or in the middle of a page.
    pub(super) fn cut(&mut self) {
        let len = self.bytes.len() as u64;
        let len = match self.rng.below(4) {
            0 => self.rng.below(len),
            1 => self.rng.below(6) * 4096,
            2 => (self.end() * self.page_size) as u64 - self.rng.below(3),
            _ => self.rng.below(self.pages() as u64) * self.page_size as u64,
        };
        self.bytes.truncate(len as usize);
        if self.rng.one_in(3) {
            // Metas that know of the cut.
            for meta in 0..METAS.min(self.pages()) {
                let end = (self.pages() as u64).saturating_sub(self.rng.below(3));
                self.put(meta * self.page_size + 64, 8, end);
                self.sealed.insert(meta);
            }
        }
    }

    /// The damaged file, with right checksums where that was wanted.
    pub(super) fn finish(mut self) -> Vec<u8> {
        for page in std::mem::take(&mut self.sealed) {
            let start = page * self.page_size;
            let len = if page < METAS { META_SIZE } else { self.page_size };
            if start + len > self.bytes.len() {
                continue;
            }
            if page < METAS {
                zubilo::seal_meta(&mut self.bytes[start..start + len]);
                continue;
            }
            let checksum = XxHash3_64::oneshot(&self.bytes[start + 8..start + len]);
            self.put(start, 8, checksum);
        }
        self.bytes
    }
}
