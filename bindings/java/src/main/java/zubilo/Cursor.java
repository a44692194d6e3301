package zubilo;

/**
 * A position in a table, moved by hand. It lives as long as its transaction and holds nothing, so it need not be
 * closed. It is for one thread at a time.
 *
 * <p>Moves give the record that they lead to, or null. Where a step finds nothing the cursor keeps its place.
 * If the table changes the next step leads to the neighbour, as of then, of the record that it stands on.
 */
public final class Cursor {
    private enum Place { NOWHERE, RECORD, END }

    private final Table table;
    private Place place = Place.NOWHERE;
    private KeyValue current;
    private Scanner run;
    private boolean backwards;

    Cursor(Table table) {
        this.table = table;
    }

    private KeyValue start(Range range, KeyValue after) {
        run = new Scanner(table, range, after);
        backwards = range.reversed;
        return step();
    }

    private KeyValue step() {
        if (!run.hasNext()) {
            return null;
        }
        current = run.next();
        place = Place.RECORD;
        return current;
    }

    private KeyValue placed(KeyValue entry, Place otherwise) {
        if (entry == null) {
            current = null;
            run = null;
            place = otherwise;
        }
        return entry;
    }

    /**
     * To the first record.
     *
     * @return the record, or null in an empty table
     */
    public KeyValue first() {
        return placed(start(Range.all(), null), Place.NOWHERE);
    }

    /**
     * To the last record.
     *
     * @return the record, or null in an empty table
     */
    public KeyValue last() {
        return placed(start(Range.all().reversed(), null), Place.NOWHERE);
    }

    /**
     * To the next record: the next value of the key, or the first of the next key. From nowhere to the first one.
     *
     * @return the record, or null at the end
     */
    public KeyValue next() {
        switch (place) {
            case NOWHERE: return first();
            case END: return null;
            default: return run != null && !backwards ? step() : start(Range.all(), current);
        }
    }

    /**
     * To the record before. From nowhere, and from the end, to the last one.
     *
     * @return the record, or null at the start
     */
    public KeyValue previous() {
        if (place != Place.RECORD) {
            return last();
        }
        return run != null && backwards ? step() : start(Range.all().reversed(), current);
    }

    /**
     * To the first value of the next key.
     *
     * @return the record, or null if there is none
     */
    public KeyValue nextKey() {
        if (place != Place.RECORD) {
            return next();
        }
        return start(Range.all().startingAfter(current.key().toByteArray()), null);
    }

    /**
     * To the last value of the key before.
     *
     * @return the record, or null if there is none
     */
    public KeyValue previousKey() {
        if (place != Place.RECORD) {
            return last();
        }
        return start(Range.all().endingBefore(current.key().toByteArray()).reversed(), null);
    }

    /**
     * To the first record whose key is not less than this one; else after the last record, from where
     * {@link #previous} leads back.
     *
     * @param key the key
     * @return the record, or null if there is none
     */
    public KeyValue seek(byte[] key) {
        return placed(start(Range.from(key), null), Place.END);
    }

    /**
     * To the last record whose key is not greater than this one; else nowhere.
     *
     * @param key the key
     * @return the record, or null if there is none
     */
    public KeyValue seekBack(byte[] key) {
        return placed(start(Range.all().endingWith(key).reversed(), null), Place.NOWHERE);
    }

    /**
     * To the first value of this key; else nowhere.
     *
     * @param key the key
     * @return the record, or null if there is none
     */
    public KeyValue seekExact(byte[] key) {
        KeyValue found = placed(new Scanner(table, Range.only(key), null).one(), Place.NOWHERE);
        return at(found);
    }

    /**
     * To this record; else nowhere.
     *
     * @param key the key
     * @param value the value
     * @return the record, or null if there is none
     */
    public KeyValue seekPair(byte[] key, byte[] value) {
        KeyValue found = table.contains(key, value) ? new KeyValue(Bytes.of(key.clone()), Bytes.of(value.clone())) : null;
        return at(placed(found, Place.NOWHERE));
    }

    private KeyValue at(KeyValue entry) {
        run = null;
        if (entry != null) {
            current = entry;
            place = Place.RECORD;
        }
        return entry;
    }

    /**
     * The record that the cursor stands on, as it was when it came there.
     *
     * @return the record, or null where there is none
     */
    public KeyValue current() {
        table.txn.check();
        return current;
    }

    /**
     * Removes the record that the cursor stands on; the next step leads to its neighbours.
     *
     * @return whether it was still there
     * @throws ZubiloException.ReadOnly in a read transaction
     * @throws ZubiloException.Invalid if it stands on none
     */
    public boolean delete() {
        if (!(table instanceof WriteTable writing)) {
            throw new ZubiloException.ReadOnly("a read transaction changes nothing");
        }
        if (current == null) {
            throw new ZubiloException.Invalid("the cursor stands on no record");
        }
        byte[] key = current.key().toByteArray();
        return table.options().hasDuplicates()
                ? writing.deleteValue(key, current.value().toByteArray())
                : writing.delete(key);
    }
}
