//! Methods that several kinds of tables have alike, as macros: tables with one value under a key and
//! with many, in read and in write transactions. `inner` is the engine's table.

/// Figures, of every kind.
macro_rules! figures {
    () => {
        /// Number of records: each value of a key counts.
        pub fn len(&self) -> u64 {
            self.inner.len()
        }

        /// True without records.
        pub fn is_empty(&self) -> bool {
            self.inner.is_empty()
        }

        /// The number that the table's sequence gives next; 0 until it is drawn from.
        pub fn sequence(&self) -> u64 {
            self.inner.sequence()
        }

        /// Figures of the table.
        pub fn stats(&self) -> zubilo::TableStats {
            self.inner.stats()
        }
    };
}

/// What Rust's maps have, of every kind.
macro_rules! map_like {
    ($life:lifetime) => {
        /// Whether there is a record with this key.
        pub fn contains_key(&self, key: K::Input<'_>) -> Result<bool> {
            Ok(K::encoded(key, |key| self.inner.contains_key(key))??)
        }

        /// The first record, as [`Self::first`].
        pub fn first_key_value(&self) -> Result<Option<(K::View<$life>, V::View<$life>)>> {
            self.first()
        }

        /// The last record, as [`Self::last`].
        pub fn last_key_value(&self) -> Result<Option<(K::View<$life>, V::View<$life>)>> {
            self.last()
        }

        /// Whether `value` is stored under `key`; where a key has many, whether it is one of them.
        pub fn contains(&self, key: K::Input<'_>, value: V::Input<'_>) -> Result<bool> {
            Ok(both::<K, V, _>(key, value, |k, v| self.inner.contains(k, v))??)
        }
    };
}

/// Counts and ranks, of counted tables of every kind.
macro_rules! counting {
    ($life:lifetime) => {
        /// Record `n` in the order of the table, counted from 0; each value of a key is one. Only
        /// in counted tables.
        pub fn nth(&self, n: u64) -> Result<Option<(K::View<$life>, V::View<$life>)>> {
            self.inner.nth(n)?.map(crate::iter::decoded::<K, V>).transpose()
        }

        /// The number of records before those of `key`, which need not be there. Only in counted
        /// tables.
        pub fn rank(&self, key: K::Input<'_>) -> Result<u64> {
            Ok(K::encoded(key, |key| self.inner.rank(key))??)
        }

        /// The number of records with keys inside `range`; each value of a key is one. Only in
        /// counted tables.
        pub fn range_len<'k>(&self, range: impl RangeBounds<K::Input<'k>>) -> Result<u64> {
            Ok(self.inner.range_len(encoded_range::<K>(range)?)?)
        }
    };
}

/// The values of a key, of both kinds with many.
macro_rules! of_a_key {
    ($life:lifetime) => {
        /// The values under `key` in their order; in a write transaction as of now.
        pub fn get(&self, key: K::Input<'_>) -> Result<Values<$life, V>> {
            Ok(Values::new(K::encoded(key, |key| self.inner.get_all(key))??))
        }

        /// The first value under `key`.
        pub fn first_of(&self, key: K::Input<'_>) -> Result<Option<V::View<$life>>> {
            K::encoded(key, |key| self.inner.get(key))??.map(V::decode).transpose()
        }

        /// The number of values under `key`; it costs no more than finding the key.
        pub fn count(&self, key: K::Input<'_>) -> Result<u64> {
            Ok(K::encoded(key, |key| self.inner.count(key))??)
        }

        /// Value `n` under `key`, counted from 0. Only in counted tables.
        pub fn nth_of(&self, key: K::Input<'_>, n: u64) -> Result<Option<V::View<$life>>> {
            K::encoded(key, |key| self.inner.nth_value(key, n))??.map(V::decode).transpose()
        }

        /// The number of records before that of `key` with `value`, which need not be there. Only
        /// in counted tables.
        pub fn rank_of(&self, key: K::Input<'_>, value: V::Input<'_>) -> Result<u64> {
            Ok(both::<K, V, _>(key, value, |k, v| self.inner.rank_of_pair(k, v))??)
        }
    };
}

/// Records in order, of both kinds in read transactions.
macro_rules! reading {
    () => {
        /// All records in the order of their keys; a key comes with each of its values.
        pub fn iter(&self) -> Records<'t, K, V> {
            Records::new(self.inner.iter())
        }

        /// The records with keys inside `range`; `.rev()` goes backwards.
        pub fn range<'k>(&self, range: impl RangeBounds<K::Input<'k>>) -> Records<'t, K, V> {
            Records::of(encoded_range::<K>(range), |range| self.inner.range(range))
        }

        /// The records whose keys begin so; see [`Prefix`].
        pub fn prefix(&self, prefix: impl Prefix<K>) -> Records<'t, K, V> {
            Records::of(encoded_prefix(prefix), |prefix| self.inner.prefix(prefix))
        }

        /// The first record.
        pub fn first(&self) -> Result<Option<(K::View<'t>, V::View<'t>)>> {
            self.iter().next().transpose()
        }

        /// The last record.
        pub fn last(&self) -> Result<Option<(K::View<'t>, V::View<'t>)>> {
            self.iter().next_back().transpose()
        }

        /// A cursor that stands nowhere yet.
        pub fn cursor(&self) -> Cursor<'t, K, V> {
            Cursor::new(self.inner.cursor())
        }

        /// A cursor at the place where another stood, in this or another transaction.
        pub fn resume(&self, parked: &zubilo::ParkedCursor) -> Result<Cursor<'t, K, V>> {
            Ok(Cursor::new(self.inner.resume(parked)?))
        }
    };
}

/// Records in order and what is removed by ranges, of both kinds in write transactions.
macro_rules! writing {
    () => {
        /// Removes all records with keys inside `range`; gives their number.
        pub fn delete_range<'k>(&mut self, range: impl RangeBounds<K::Input<'k>>) -> Result<u64> {
            Ok(self.inner.delete_range(encoded_range::<K>(range)?)?)
        }

        /// Puts `new` in the place of `old`, a value of `key`; false, and nothing changes, if the key
        /// does not have it. Where a key has many values and `new` is one already, `old` merely goes.
        pub fn replace_value(
            &mut self,
            key: K::Input<'_>,
            old: V::Input<'_>,
            new: V::Input<'_>,
        ) -> Result<bool> {
            let replaced = K::encoded(key, |key| {
                both::<V, V, _>(old, new, |old, new| self.inner.replace_value(key, old, new))
            });
            Ok(replaced???)
        }

        /// Removes the first record and gives it; of a key with many values only the first one goes.
        ///
        /// ```
        /// use zubilo_typed::Table;
        ///
        /// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
        /// const JOBS: Table<u32, &str> = Table::new("jobs");
        /// let mut txn = env.write()?;
        /// let mut jobs = JOBS.open_mut(&mut txn)?;
        /// jobs.put(1, "first job")?;
        /// jobs.put(2, "second job")?;
        /// assert_eq!(jobs.pop_first()?, Some((1, "first job".to_string())));
        /// assert_eq!(jobs.len(), 1);
        /// # Ok(())
        /// # }
        /// # let dir = tempfile::tempdir().unwrap();
        /// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
        /// ```
        pub fn pop_first(&mut self) -> Result<Option<(K::Owned, V::Owned)>> {
            self.pop(false)
        }

        /// Removes the last record and gives it.
        pub fn pop_last(&mut self) -> Result<Option<(K::Owned, V::Owned)>> {
            self.pop(true)
        }

        fn pop(&mut self, last: bool) -> Result<Option<(K::Owned, V::Owned)>> {
            let mut cursor = self.inner.cursor_mut()?;
            let record = if last { cursor.last()? } else { cursor.first()? };
            let Some(record) = record else { return Ok(None) };
            // Before it goes: what cannot be read stays.
            let (key, value) = decoded::<K, V>(record)?;
            let taken = (K::own(key), V::own(value));
            cursor.delete()?;
            Ok(Some(taken))
        }

        /// Removes all records that `keep` gives false for; gives their number. At a record that cannot
        /// be read it ends with that error; what is removed by then stays removed.
        ///
        /// ```
        /// use zubilo_typed::Table;
        ///
        /// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
        /// const STOCK: Table<&str, u32> = Table::new("stock");
        /// let mut txn = env.write()?;
        /// let mut stock = STOCK.open_mut(&mut txn)?;
        /// stock.put("nails", 500)?;
        /// stock.put("screws", 0)?;
        /// assert_eq!(stock.retain(|_, pieces| pieces > 0)?, 1);
        /// assert!(stock.contains_key("nails")? && !stock.contains_key("screws")?);
        /// # Ok(())
        /// # }
        /// # let dir = tempfile::tempdir().unwrap();
        /// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
        /// ```
        pub fn retain(
            &mut self,
            mut keep: impl FnMut(K::View<'_>, V::View<'_>) -> bool,
        ) -> Result<u64> {
            let mut cursor = self.inner.cursor_mut()?;
            let mut removed = 0;
            while let Some(record) = cursor.next()? {
                let (key, value) = decoded::<K, V>(record)?;
                if !keep(key, value) {
                    removed += u64::from(cursor.delete()?);
                }
            }
            Ok(removed)
        }

        /// Draws `count` numbers from the table's sequence and gives the first of them.
        pub fn next_sequence(&mut self, count: u64) -> Result<u64> {
            Ok(self.inner.next_sequence(count)?)
        }

        /// Removes all records.
        pub fn clear(&mut self) -> Result<()> {
            Ok(self.inner.clear()?)
        }

        /// All records in the order of their keys, as of now; a key comes with each of its values.
        pub fn iter(&self) -> Records<'_, K, V> {
            Records::new(self.inner.iter())
        }

        /// The records with keys inside `range`, as of now.
        pub fn range<'k>(&self, range: impl RangeBounds<K::Input<'k>>) -> Records<'_, K, V> {
            Records::of(encoded_range::<K>(range), |range| self.inner.range(range))
        }

        /// The records whose keys begin so, as of now; see [`Prefix`].
        pub fn prefix(&self, prefix: impl Prefix<K>) -> Records<'_, K, V> {
            Records::of(encoded_prefix(prefix), |prefix| self.inner.prefix(prefix))
        }

        /// The first record, as of now.
        pub fn first(&self) -> Result<Option<(K::View<'_>, V::View<'_>)>> {
            self.iter().next().transpose()
        }

        /// The last record, as of now.
        pub fn last(&self) -> Result<Option<(K::View<'_>, V::View<'_>)>> {
            self.iter().next_back().transpose()
        }

        /// A cursor that stands nowhere yet; the table cannot change while it lives.
        pub fn cursor(&self) -> Result<Cursor<'_, K, V>> {
            Ok(Cursor::new(self.inner.cursor()?))
        }

        /// A cursor through which the table can be changed; it stands nowhere yet.
        pub fn cursor_mut(&mut self) -> Result<WriteCursor<'_, K, V>> {
            Ok(WriteCursor::new(self.inner.cursor_mut()?))
        }

        /// A cursor at the place where another stood, in this or another transaction; the table
        /// cannot change while it lives.
        pub fn resume(&self, parked: &zubilo::ParkedCursor) -> Result<Cursor<'_, K, V>> {
            Ok(Cursor::new(self.inner.resume(parked)?))
        }

        /// The same, to change the table through it.
        pub fn resume_mut(
            &mut self,
            parked: &zubilo::ParkedCursor,
        ) -> Result<WriteCursor<'_, K, V>> {
            Ok(WriteCursor::new(self.inner.resume_mut(parked)?))
        }
    };
}

pub(crate) use {counting, figures, map_like, of_a_key, reading, writing};
