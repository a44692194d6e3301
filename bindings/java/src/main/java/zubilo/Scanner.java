package zubilo;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * Goes through records in batches. Between two native calls nothing of it lies on the other side: each call
 * says behind which record to go on. So it may be forgotten at any moment, and where a table changes the next
 * batch is read as of then.
 */
final class Scanner implements Iterator<KeyValue> {
    private static final int FIRST_BATCH = 8;
    private static final int BATCH_MAX = 1024;
    private static final int ROOM = 32 << 10;
    private static final int ROOM_MAX = 256 << 10;
    private static final int MAPPED_ENTRY = 32;

    private final Table table;
    private final Lifetime lifetime;
    /** Either a range, or a key whose values are meant. */
    private final Range range;
    private final byte[] key;

    /** The batch: addresses and lengths, or records as they were copied. */
    private long[] places;
    private byte[] copies;
    private int at;
    private int left;
    private int batch = FIRST_BATCH;
    private int room = ROOM;
    private boolean ended;
    private int changes;
    /** The caller has asked whether there is more since the last record, so all was looked at. */
    private boolean checked;
    /** The record to go on after; null for the start. Once one was given it is the one at {@code lastAt} of the batch. */
    private KeyValue last;
    private int lastAt = -1;

    Scanner(Table table, Range range, KeyValue after) {
        this(table, range, null, after);
    }

    /** Goes through the values of a key. */
    Scanner(Table table, byte[] key) {
        this(table, null, key, null);
    }

    private Scanner(Table table, Range range, byte[] key, KeyValue after) {
        this.table = table;
        this.range = range;
        this.key = key;
        last = after;
        lifetime = table.txn.lifetime();
        changes = table.txn.changes;
    }

    /** The first record only. */
    KeyValue one() {
        batch = 1;
        return hasNext() ? next() : null;
    }

    @Override
    public boolean hasNext() {
        table.txn.check();
        checked = true;
        if (changes != table.txn.changes) {
            // What was read ahead may be gone, or have got neighbours.
            changes = table.txn.changes;
            left = 0;
            ended = false;
        }
        while (left == 0 && !ended) {
            fill();
        }
        return left > 0;
    }

    @Override
    public KeyValue next() {
        if ((!checked || left == 0) && !hasNext()) {
            throw new NoSuchElementException();
        }
        checked = false;
        left--;
        lastAt = at;
        // Only its place is kept, so that a record that its user does not keep need not be made at all.
        if (lifetime != null) {
            at += 4;
        } else {
            at += 8 + number(at) + number(at + 4);
        }
        return record(lastAt);
    }

    /** The record at a place of the batch. */
    private KeyValue record(int i) {
        if (lifetime != null) {
            return new KeyValue(lifetime.view(places[i], places[i + 1]), lifetime.view(places[i + 2], places[i + 3]));
        }
        int keyLen = number(i);
        return new KeyValue(new Bytes.HeapBytes(copies, i + 8, keyLen),
                new Bytes.HeapBytes(copies, i + 8 + keyLen, number(i + 4)));
    }

    private int number(int i) {
        return copies[i] & 0xff | (copies[i + 1] & 0xff) << 8 | (copies[i + 2] & 0xff) << 16 | copies[i + 3] << 24;
    }

    private void fill() {
        if (lastAt >= 0) {
            last = record(lastAt);
            lastAt = -1;
        }
        Scratch scratch = Scratch.take();
        try {
            long size = request(scratch);
            Scratch.Room out = scratch.out(lifetime != null ? batch * (long) MAPPED_ENTRY : room);
            long answer = call(scratch.in(0), size, out);
            while (Failures.check(answer) == 0 && lifetime == null) {
                // The next record alone is longer.
                out = scratch.out(out.buffer.getLong(0));
                answer = call(scratch.in(0), size, out);
            }
            take(out, (int) (answer >> 1));
            ended = (answer & 1) != 0;
        } finally {
            scratch.give();
            Reference.reachabilityFence(table.txn);
        }
        batch = Math.min(BATCH_MAX, batch * 4);
        room = Math.min(ROOM_MAX, room * 2);
    }

    private long request(Scratch scratch) {
        if (range != null) {
            long size = range.length(last);
            range.write(scratch.in(size).buffer, last);
            return size;
        }
        byte[] after = last == null ? null : last.value().toByteArray();
        long size = 8L + key.length + (after == null ? 0 : 4 + after.length);
        ByteBuffer in = scratch.in(size).buffer.position(0);
        in.putInt(key.length).put(key).putInt(after == null ? 0 : 1);
        if (after != null) {
            in.putInt(after.length).put(after);
        }
        return size;
    }

    private long call(Scratch.Room in, long size, Scratch.Room out) {
        long copy = lifetime == null ? 2 : 0;
        long cap = lifetime == null ? out.size : batch * (long) MAPPED_ENTRY;
        return range != null
                ? Native.scan(table.handle, table.index, copy | (range.reversed ? 1 : 0), batch, in.at, size, out.at, cap)
                : Native.values(table.handle, table.index, copy, batch, in.at, size, out.at, cap);
    }

    private void take(Scratch.Room out, int count) {
        left = count;
        at = 0;
        if (lifetime != null) {
            if (places == null || places.length < count * 4) {
                places = new long[count * 4];
            }
            out.buffer.position(0).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(places, 0, count * 4);
            return;
        }
        int used = 0;
        for (int i = 0; i < count; i++) {
            used += 8 + out.buffer.getInt(used) + out.buffer.getInt(used + 4);
        }
        // A new array each time: entries that were given keep the old one.
        copies = new byte[used];
        out.buffer.get(0, copies);
    }

    /** The values of a scanner's records. */
    record Values(Scanner scanner) implements Iterator<Bytes> {
        @Override
        public boolean hasNext() {
            return scanner.hasNext();
        }

        @Override
        public Bytes next() {
            return scanner.next().value();
        }
    }
}
