import java.io.File;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.AbstractMap;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentNavigableMap;
import org.h2.mvstore.MVMap;
import org.h2.mvstore.MVStore;
import org.h2.mvstore.type.ByteArrayDataType;
import org.lmdbjava.CursorIterable;
import org.lmdbjava.Dbi;
import org.lmdbjava.DbiFlags;
import org.lmdbjava.EnvFlags;
import org.lmdbjava.PutFlags;
import org.lmdbjava.Txn;
import org.mapdb.BTreeMap;
import org.mapdb.DB;
import org.mapdb.DBMaker;
import org.mapdb.Serializer;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksIterator;
import org.rocksdb.WriteBatch;
import org.rocksdb.WriteOptions;
import zubilo.Bytes;
import zubilo.Env;
import zubilo.KeyValue;
import zubilo.ReadTxn;
import zubilo.Table;

/** The stores, each in its usual way of use. */
final class Engines {
    private Engines() {}

    static Engine open(String name, Path dir) throws Exception {
        switch (name) {
            case "zubilo": return new Zubilo(dir);
            case "lmdbjava": return new Lmdb(dir);
            case "rocksdb": return new Rocks(dir);
            case "mvstore": return new Mv(dir);
            case "mapdb": return new Mapdb(dir);
            default: throw new IllegalArgumentException(name);
        }
    }

    static long first(byte[] value) {
        return ByteBuffer.wrap(value).getLong();
    }

    private static final class Zubilo implements Engine {
        private final Env env;
        private ReadTxn txn;
        private Table table;

        Zubilo(Path dir) {
            env = Env.open(dir.resolve("store"));
        }

        @Override
        public void load(Iterable<byte[][]> records) {
            env.update(txn -> txn.tableOrCreate("t").putAll(() -> {
                Iterator<byte[][]> all = records.iterator();
                return new Iterator<Map.Entry<byte[], byte[]>>() {
                    @Override
                    public boolean hasNext() {
                        return all.hasNext();
                    }

                    @Override
                    public Map.Entry<byte[], byte[]> next() {
                        byte[][] record = all.next();
                        return new AbstractMap.SimpleImmutableEntry<>(record[0], record[1]);
                    }
                };
            }));
        }

        @Override
        public void begin() {
            txn = env.read();
            table = txn.table("t");
        }

        @Override
        public void end() {
            txn.close();
        }

        @Override
        public byte[] get(byte[] key) {
            return table.get(key);
        }

        @Override
        public long peek(byte[] key) {
            return table.view(key).getLong(0);
        }

        @Override
        public long peekAll(List<byte[]> keys) {
            long all = 0;
            for (Bytes value : table.getMany(keys)) {
                all ^= value.getLong(0);
            }
            return all;
        }

        @Override
        public long scan() {
            long all = 0;
            for (KeyValue record : table.all()) {
                all ^= record.value().getLong(0);
            }
            return all;
        }

        @Override
        public void put(byte[] key, byte[] value) {
            env.update(txn -> {
                txn.table("t").put(key, value);
                return null;
            });
        }

        @Override
        public void close() {
            env.close();
        }
    }

    private static final class Lmdb implements Engine {
        private final org.lmdbjava.Env<ByteBuffer> env;
        private final Dbi<ByteBuffer> dbi;
        private Txn<ByteBuffer> txn;
        private final ByteBuffer key = ByteBuffer.allocateDirect(64);

        Lmdb(Path dir) {
            File file = dir.resolve("store").toFile();
            env = org.lmdbjava.Env.create().setMapSize(4L << 30).setMaxDbs(1).open(file, EnvFlags.MDB_NOSUBDIR);
            dbi = env.openDbi("t", DbiFlags.MDB_CREATE);
        }

        private ByteBuffer direct(byte[] bytes) {
            return key.clear().put(bytes).flip();
        }

        @Override
        public void load(Iterable<byte[][]> records) {
            ByteBuffer value = ByteBuffer.allocateDirect(1024);
            try (Txn<ByteBuffer> write = env.txnWrite()) {
                for (byte[][] record : records) {
                    dbi.put(write, direct(record[0]), value.clear().put(record[1]).flip(), PutFlags.MDB_APPEND);
                }
                write.commit();
            }
        }

        @Override
        public void begin() {
            txn = env.txnRead();
        }

        @Override
        public void end() {
            txn.close();
        }

        @Override
        public byte[] get(byte[] key) {
            ByteBuffer value = dbi.get(txn, direct(key));
            byte[] copy = new byte[value.remaining()];
            value.get(copy);
            return copy;
        }

        @Override
        public long peek(byte[] key) {
            return dbi.get(txn, direct(key)).getLong(0);
        }

        @Override
        public long peekAll(List<byte[]> keys) {
            long all = 0;
            for (byte[] key : keys) {
                all ^= peek(key);
            }
            return all;
        }

        @Override
        public long scan() {
            long all = 0;
            try (CursorIterable<ByteBuffer> records = dbi.iterate(txn)) {
                for (CursorIterable.KeyVal<ByteBuffer> record : records) {
                    all ^= record.val().getLong(0);
                }
            }
            return all;
        }

        @Override
        public void put(byte[] key, byte[] value) {
            ByteBuffer k = ByteBuffer.allocateDirect(key.length).put(key).flip();
            ByteBuffer v = ByteBuffer.allocateDirect(value.length).put(value).flip();
            try (Txn<ByteBuffer> write = env.txnWrite()) {
                dbi.put(write, k, v);
                write.commit();
            }
        }

        @Override
        public void close() {
            env.close();
        }
    }

    private static final class Rocks implements Engine {
        private final org.rocksdb.Options options = new org.rocksdb.Options().setCreateIfMissing(true);
        private final WriteOptions durable = new WriteOptions().setSync(true);
        private final RocksDB db;
        private ReadOptions read;

        Rocks(Path dir) throws Exception {
            RocksDB.loadLibrary();
            // All of the data fits its cache, as it fits the page cache of the others.
            options.setTableFormatConfig(new org.rocksdb.BlockBasedTableConfig()
                    .setBlockCache(new org.rocksdb.LRUCache(1L << 30))
                    .setFilterPolicy(new org.rocksdb.BloomFilter(10)));
            db = RocksDB.open(options, dir.resolve("store").toString());
        }

        @Override
        public void load(Iterable<byte[][]> records) throws Exception {
            WriteOptions plain = new WriteOptions();
            WriteBatch batch = new WriteBatch();
            int n = 0;
            for (byte[][] record : records) {
                batch.put(record[0], record[1]);
                if (++n % 10_000 == 0) {
                    db.write(plain, batch);
                    batch.clear();
                }
            }
            db.write(plain, batch);
            db.compactRange();
        }

        @Override
        public void begin() {
            read = new ReadOptions().setSnapshot(db.getSnapshot());
        }

        @Override
        public void end() {
            db.releaseSnapshot(read.snapshot());
            read.close();
        }

        @Override
        public byte[] get(byte[] key) throws Exception {
            return db.get(read, key);
        }

        @Override
        public long peek(byte[] key) throws Exception {
            return first(db.get(read, key));
        }

        @Override
        public long peekAll(List<byte[]> keys) throws Exception {
            long all = 0;
            for (byte[] value : db.multiGetAsList(read, keys)) {
                all ^= first(value);
            }
            return all;
        }

        @Override
        public long scan() {
            long all = 0;
            try (RocksIterator records = db.newIterator(read)) {
                for (records.seekToFirst(); records.isValid(); records.next()) {
                    all ^= first(records.value());
                }
            }
            return all;
        }

        @Override
        public void put(byte[] key, byte[] value) throws Exception {
            db.put(durable, key, value);
        }

        @Override
        public void close() {
            db.close();
        }
    }

    /** MVStore's byte arrays have no order of their own. */
    private static final class Ordered extends org.h2.mvstore.type.BasicDataType<byte[]> {
        static final Ordered INSTANCE = new Ordered();

        @Override
        public int compare(byte[] a, byte[] b) {
            return java.util.Arrays.compareUnsigned(a, b);
        }

        @Override
        public int getMemory(byte[] value) {
            return ByteArrayDataType.INSTANCE.getMemory(value);
        }

        @Override
        public void write(org.h2.mvstore.WriteBuffer out, byte[] value) {
            ByteArrayDataType.INSTANCE.write(out, value);
        }

        @Override
        public byte[] read(ByteBuffer in) {
            return ByteArrayDataType.INSTANCE.read(in);
        }

        @Override
        public byte[][] createStorage(int size) {
            return new byte[size][];
        }
    }

    private static final class Mv implements Engine {
        private final MVStore store;
        private final MVMap<byte[], byte[]> map;

        Mv(Path dir) {
            store = new MVStore.Builder().fileName(dir.resolve("store").toString()).cacheSize(1024)
                    .autoCommitDisabled().open();
            map = store.openMap("t", new MVMap.Builder<byte[], byte[]>().keyType(Ordered.INSTANCE)
                    .valueType(ByteArrayDataType.INSTANCE));
        }

        @Override
        public void load(Iterable<byte[][]> records) {
            for (byte[][] record : records) {
                map.put(record[0], record[1]);
            }
            store.commit();
        }

        @Override
        public void begin() {}

        @Override
        public void end() {}

        @Override
        public byte[] get(byte[] key) {
            return map.get(key).clone();
        }

        @Override
        public long peek(byte[] key) {
            return first(map.get(key));
        }

        @Override
        public long peekAll(List<byte[]> keys) {
            long all = 0;
            for (byte[] key : keys) {
                all ^= peek(key);
            }
            return all;
        }

        @Override
        public long scan() {
            long all = 0;
            org.h2.mvstore.Cursor<byte[], byte[]> records = map.cursor(null);
            while (records.hasNext()) {
                records.next();
                all ^= first(records.getValue());
            }
            return all;
        }

        @Override
        public void put(byte[] key, byte[] value) {
            map.put(key, value);
            store.commit();
            store.sync();
        }

        @Override
        public void close() {
            store.close();
        }
    }

    private static final class Mapdb implements Engine {
        private final DB db;
        private final BTreeMap<byte[], byte[]> map;

        Mapdb(Path dir) {
            db = DBMaker.fileDB(dir.resolve("store").toFile()).fileMmapEnableIfSupported().transactionEnable().make();
            map = db.treeMap("t").keySerializer(Serializer.BYTE_ARRAY).valueSerializer(Serializer.BYTE_ARRAY).createOrOpen();
        }

        @Override
        public void load(Iterable<byte[][]> records) {
            int n = 0;
            for (byte[][] record : records) {
                map.put(record[0], record[1]);
                if (++n % 50_000 == 0) {
                    db.commit();
                }
            }
            db.commit();
        }

        @Override
        public void begin() {}

        @Override
        public void end() {}

        @Override
        public byte[] get(byte[] key) {
            return map.get(key);
        }

        @Override
        public long peek(byte[] key) {
            return first(map.get(key));
        }

        @Override
        public long peekAll(List<byte[]> keys) {
            long all = 0;
            for (byte[] key : keys) {
                all ^= peek(key);
            }
            return all;
        }

        @Override
        public long scan() {
            long all = 0;
            Iterator<Map.Entry<byte[], byte[]>> records = ((ConcurrentNavigableMap<byte[], byte[]>) map).entrySet().iterator();
            while (records.hasNext()) {
                all ^= first(records.next().getValue());
            }
            return all;
        }

        @Override
        public void put(byte[] key, byte[] value) {
            map.put(key, value);
            db.commit();
        }

        @Override
        public void close() {
            db.close();
        }
    }
}
