//! Options of tables: what is fixed when one is created, and the comparators of callers, which are
//! given each time one is opened.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::page::{Compare, Order};
use crate::tree::desc::{FLAG_COUNTED, FLAG_DUPLICATES, FLAG_FIXED, ORDER_CUSTOM};
use crate::tree::{Tree, TreeDesc, TreeOptions};

/// How keys, or the values of one key, are sorted.
///
/// ```
/// use zubilo::{KeyOrder, TableOptions};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut txn = env.write()?;
/// let hosts = TableOptions::new().key_order(KeyOrder::Reversed);
/// let mut hosts = txn.table_or_create_with("hosts", &hosts)?;
/// hosts.put("www.example.org", "1.2.3.4")?;
/// hosts.put("example.com", "1.2.3.5")?;
/// // Compared from their ends, so that these begin with the prefix.
/// assert_eq!(hosts.prefix(".org").count(), 1);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum KeyOrder {
    /// Byte by byte, the shorter first where one begins with the other.
    #[default]
    Bytes = 0,
    /// From the last byte to the first (`REVERSEKEY`, `REVERSEDUP`).
    Reversed = 1,
    /// Numbers of 4 or 8 bytes, little-endian, all of one size (`INTEGERKEY`, `INTEGERDUP`).
    Integer = 2,
    /// As a function of the caller says; see [`TableOptions::compare_keys`].
    Custom = 3,
}

impl KeyOrder {
    fn of_code(code: u8) -> KeyOrder {
        match code {
            0 => KeyOrder::Bytes,
            1 => KeyOrder::Reversed,
            2 => KeyOrder::Integer,
            _ => KeyOrder::Custom,
        }
    }
}

/// Options of a table, fixed when it is created.
///
/// ```
/// use zubilo::TableOptions;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut txn = env.write()?;
/// let tags = TableOptions::new().duplicates();
/// let mut tags = txn.table_or_create_with("tags", &tags)?;
/// tags.put("rust", "article 1")?;
/// tags.put("rust", "article 2")?;
/// assert_eq!(tags.count("rust")?, 2);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone)]
#[must_use]
pub struct TableOptions {
    align: u8,
    keys: KeyOrder,
    values: KeyOrder,
    duplicates: bool,
    fixed: bool,
    counted: bool,
    compare_keys: Option<Compare>,
    compare_values: Option<Compare>,
}

impl Default for TableOptions {
    fn default() -> TableOptions {
        TableOptions {
            align: 1,
            keys: KeyOrder::Bytes,
            values: KeyOrder::Bytes,
            duplicates: false,
            fixed: false,
            counted: false,
            compare_keys: None,
            compare_values: None,
        }
    }
}

impl fmt::Debug for TableOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableOptions")
            .field("align", &self.align)
            .field("keys", &self.keys)
            .field("duplicates", &self.duplicates)
            .field("values", &self.values)
            .field("fixed", &self.fixed)
            .field("counted", &self.counted)
            .finish_non_exhaustive()
    }
}

/// A comparison that callers give; a total order that never changes.
///
/// ```
/// use zubilo::TableOptions;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let by_length = |a: &[u8], b: &[u8]| a.len().cmp(&b.len()).then(a.cmp(b));
/// let options = TableOptions::new().compare_keys(by_length);
/// let mut txn = env.write()?;
/// let mut words = txn.table_or_create_with("words", &options)?;
/// words.put("long", "")?;
/// words.put("the", "")?;
/// assert_eq!(words.first()?, Some((&b"the"[..], &b""[..])));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
pub trait Comparator: Fn(&[u8], &[u8]) -> Ordering + Send + Sync + 'static {}
impl<F: Fn(&[u8], &[u8]) -> Ordering + Send + Sync + 'static> Comparator for F {}

impl TableOptions {
    /// Keys in byte order, one value under a key, values anywhere.
    pub fn new() -> TableOptions {
        TableOptions::default()
    }

    /// Aligns every value to 2, 4, 8 or 16 bytes, so that it can be cast in place. Values in runs
    /// of their own are page-aligned anyway. Not for tables with duplicates.
    ///
    /// ```
    /// use zubilo::{KeyOrder, TableOptions};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let options = TableOptions::new().align_values(8).counted();
    /// let mut txn = env.write()?;
    /// let mut numbers = txn.table_or_create_with("numbers", &options)?;
    /// numbers.put("key", 7u64.to_ne_bytes())?;
    /// let value = numbers.get("key")?.expect("it is there");
    /// assert_eq!(value.as_ptr() as usize % 8, 0);
    /// let stored = numbers.options();
    /// assert_eq!((stored.alignment(), stored.is_counted(), stored.keys()), (8, true, KeyOrder::Bytes));
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn align_values(mut self, bytes: u8) -> TableOptions {
        self.align = bytes;
        self
    }

    /// Sorts the keys so. For [`KeyOrder::Custom`] use [`TableOptions::compare_keys`].
    pub fn key_order(mut self, order: KeyOrder) -> TableOptions {
        self.keys = order;
        self
    }

    /// Sorts the keys as `compare` says. The function is not stored: it must be given, and be the
    /// same, whenever the table is opened, else its records are not found.
    pub fn compare_keys(mut self, compare: impl Comparator) -> TableOptions {
        self.keys = KeyOrder::Custom;
        self.compare_keys = Some(Arc::new(compare));
        self
    }

    /// Keeps many values under a key, sorted and each once (`DUPSORT`). A value is then as short as
    /// a key must be, and together with its key about half a page at most.
    pub fn duplicates(mut self) -> TableOptions {
        self.duplicates = true;
        self
    }

    /// Keeps many values under a key, all in the table of one size, that of the first, and packs
    /// them without gaps (`DUPFIXED`).
    pub fn fixed_duplicates(mut self) -> TableOptions {
        self.fixed = true;
        self.duplicates()
    }

    /// Keeps many values under a key, sorted so.
    ///
    /// ```
    /// use zubilo::{KeyOrder, TableOptions};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let options = TableOptions::new().fixed_duplicates().value_order(KeyOrder::Integer);
    /// let mut txn = env.write()?;
    /// let mut numbers = txn.table_or_create_with("numbers", &options)?;
    /// numbers.put("key", 256u32.to_ne_bytes())?;
    /// numbers.put("key", 1u32.to_ne_bytes())?;
    /// assert_eq!(numbers.get("key")?, Some(&1u32.to_ne_bytes()[..]));
    /// let stored = numbers.options();
    /// assert!(stored.has_duplicates() && stored.has_fixed_values());
    /// assert_eq!(stored.values(), KeyOrder::Integer);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn value_order(mut self, order: KeyOrder) -> TableOptions {
        self.values = order;
        self.duplicates()
    }

    /// Keeps many values under a key, sorted as `compare` says; see [`TableOptions::compare_keys`].
    ///
    /// ```
    /// use zubilo::TableOptions;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// // The longest value first.
    /// let longest = TableOptions::new().duplicates().compare_values(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
    /// let mut txn = env.write()?;
    /// let mut words = txn.table_or_create_with("words", &longest)?;
    /// ["a", "ccc", "bb"].iter().try_for_each(|word| words.put("key", word))?;
    /// assert_eq!(words.get("key")?, Some(&b"ccc"[..]));
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn compare_values(mut self, compare: impl Comparator) -> TableOptions {
        self.values = KeyOrder::Custom;
        self.compare_values = Some(Arc::new(compare));
        self.duplicates()
    }

    /// Counts records in the branches of the tree, 8 bytes for each page, so that the n-th record,
    /// the rank of a key and the number of records in a range cost one or two look-ups:
    /// [`crate::ReadTable::nth`], [`crate::ReadTable::rank`], [`crate::ReadTable::range_len`].
    pub fn counted(mut self) -> TableOptions {
        self.counted = true;
        self
    }

    /// Whether the branches count records.
    pub fn is_counted(&self) -> bool {
        self.counted
    }

    /// To how many bytes small values are aligned; 1 is not at all.
    pub fn alignment(&self) -> u8 {
        self.align
    }

    /// The order of the keys.
    pub fn keys(&self) -> KeyOrder {
        self.keys
    }

    /// The order of the values of a key.
    pub fn values(&self) -> KeyOrder {
        self.values
    }

    /// Whether a key can have many values.
    pub fn has_duplicates(&self) -> bool {
        self.duplicates
    }

    /// Whether all values have one size.
    pub fn has_fixed_values(&self) -> bool {
        self.fixed
    }

    /// The options of a tree, with the comparators that it has.
    pub(crate) fn of_tree(tree: &Tree) -> TableOptions {
        let stored = tree.desc.options;
        let compare = |order: &Order| match order {
            Order::Custom(compare) => Some(Arc::clone(compare)),
            _ => None,
        };
        TableOptions {
            align: stored.align,
            keys: KeyOrder::of_code(stored.order),
            values: KeyOrder::of_code(stored.value_order_code()),
            duplicates: stored.has_duplicates(),
            fixed: stored.is_fixed(),
            counted: stored.is_counted(),
            compare_keys: compare(&tree.order),
            compare_values: compare(&tree.values),
        }
    }

    pub(crate) fn without_comparators(mut self) -> TableOptions {
        (self.compare_keys, self.compare_values) = (None, None);
        self
    }

    /// The options as they are stored.
    pub(crate) fn to_tree(&self) -> Result<TreeOptions> {
        if !matches!(self.align, 1 | 2 | 4 | 8 | 16) {
            return Err(Error::Invalid("`align_values` takes 1, 2, 4, 8 or 16 bytes"));
        }
        if self.duplicates && self.align != 1 {
            return Err(Error::Invalid(
                "values of tables with `duplicates` cannot be aligned: `align_values`",
            ));
        }
        let missing = (self.keys == KeyOrder::Custom && self.compare_keys.is_none())
            || (self.values == KeyOrder::Custom && self.compare_values.is_none());
        if missing {
            return Err(NO_COMPARATOR);
        }
        let flag = |on, flag| if on { flag } else { 0 };
        let flags = flag(self.duplicates, FLAG_DUPLICATES)
            | flag(self.fixed, FLAG_FIXED)
            | flag(self.counted, FLAG_COUNTED);
        let options = TreeOptions { order: self.keys as u8, align: self.align, flags };
        Ok(options.with_value_order(self.values as u8))
    }

    /// Refuses a table that was created with other options.
    pub(crate) fn check_same(&self, stored: &TreeOptions) -> Result<()> {
        let wanted = self.to_tree()?;
        if wanted == *stored {
            return Ok(());
        }
        let fields = |of: &TreeOptions| {
            let flags = (of.has_duplicates(), of.is_fixed(), of.is_counted());
            (of.order, flags, of.value_order_code(), of.align)
        };
        let (order, (duplicates, fixed, counted), values, align) = fields(stored);
        let (order_wanted, (duplicates_wanted, fixed_wanted, counted_wanted), ..) = fields(&wanted);
        Err(Error::incompatible(if order != order_wanted {
            "it was created with another `key_order`"
        } else if duplicates && !duplicates_wanted {
            "it was created with `duplicates`, many values under a key"
        } else if duplicates != duplicates_wanted {
            "it was created without `duplicates`, with one value under a key"
        } else if counted != counted_wanted {
            if counted { "it was created `counted`" } else { "it was created without `counted`" }
        } else if fixed != fixed_wanted {
            "it was created with another choice of `fixed_duplicates`"
        } else if values != wanted.value_order_code() {
            "it was created with another `value_order`"
        } else if align != wanted.align {
            "it was created with another `align_values`"
        } else {
            "it was created with other options"
        }))
    }

    /// The tree of a table with these options.
    pub(crate) fn tree(&self, desc: TreeDesc) -> Result<Tree> {
        let order = |builtin: Option<Order>, custom: &Option<Compare>| {
            builtin.or_else(|| custom.clone().map(Order::Custom)).ok_or(NO_COMPARATOR)
        };
        let keys = order(desc.options.builtin_order(), &self.compare_keys)?;
        let values = order(desc.options.builtin_value_order(), &self.compare_values)?;
        Ok(Tree::new(desc, keys, values))
    }
}

/// A name in the catalogue that is none of a table.
pub(super) const NO_TABLE: Error =
    Error::incompatible("the name belongs to a plain record, not to a table");

const NO_COMPARATOR: Error =
    Error::incompatible("the table has a caller's comparator, none was given");

/// The tree of a table whose orders need no caller's function.
pub(crate) fn builtin_tree(desc: TreeDesc) -> Result<Tree> {
    match (desc.options.builtin_order(), desc.options.builtin_value_order()) {
        (Some(keys), Some(values)) => Ok(Tree::new(desc, keys, values)),
        _ => Err(NO_COMPARATOR),
    }
}

/// The tree of any table, for what needs no order: dropping and renaming it. Nothing is to be
/// looked up in it.
pub(crate) fn unordered_tree(desc: TreeDesc) -> Tree {
    let keys = desc.options.builtin_order().unwrap_or_else(Order::as_stored);
    let values = desc.options.builtin_value_order().unwrap_or_else(Order::as_stored);
    Tree::new(desc, keys, values)
}

/// Whether a caller's function is needed to look something up.
pub(crate) fn needs_comparator(options: &TreeOptions) -> bool {
    options.order == ORDER_CUSTOM || options.value_order_code() == ORDER_CUSTOM
}
