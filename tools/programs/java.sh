#!/usr/bin/env bash
# Java: lmdbjava from Maven Central with its own verifier, ranges, duplicates, an order of the program's
# own (called from C), nested transactions, reserved and multiple values, copies.
. "$(dirname "$0")/common.sh"
need default-jdk-headless maven liblmdb0
version=0.8.3
mkdir "$top/java"
cat >"$top/java/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>t</groupId><artifactId>t</artifactId><version>1</version>
<dependencies><dependency><groupId>org.lmdbjava</groupId><artifactId>lmdbjava</artifactId><version>$version</version></dependency></dependencies></project>
POM
mvn -q -B -f "$top/java/pom.xml" dependency:copy-dependencies -DoutputDirectory="$top/java/jars" >"$top/java/log" 2>&1 ||
    { tail -n 5 "$top/java/log"; echo "SKIPPED lmdbjava cannot be had"; exit 3; }
cat >"$top/java/Work.java" <<'JAVA'
import static org.lmdbjava.DbiFlags.*;
import static org.lmdbjava.PutFlags.*;
import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.lmdbjava.*;

public class Work {
    static ByteBuffer buffer(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        ByteBuffer made = ByteBuffer.allocateDirect(bytes.length);
        made.put(bytes).flip();
        return made;
    }

    static String text(ByteBuffer buffer) {
        return StandardCharsets.UTF_8.decode(buffer.duplicate()).toString();
    }

    static void list(String what, CursorIterable<ByteBuffer> found) {
        StringBuilder line = new StringBuilder(what);
        int n = 0;
        for (CursorIterable.KeyVal<ByteBuffer> pair : found) {
            if (n++ < 8) line.append(' ').append(text(pair.key())).append('=').append(text(pair.val()));
        }
        System.out.println(line + " (" + n + ")");
        found.close();
    }

    static void ranges(Env<ByteBuffer> env, Dbi<ByteBuffer> dbi) {
        ByteBuffer a = buffer("k020"), b = buffer("k031x");
        try (Txn<ByteBuffer> txn = env.txnRead()) {
            list("all", dbi.iterate(txn));
            list("allBackward", dbi.iterate(txn, KeyRange.allBackward()));
            list("atLeast", dbi.iterate(txn, KeyRange.atLeast(a)));
            list("atLeastBackward", dbi.iterate(txn, KeyRange.atLeastBackward(b)));
            list("atMost", dbi.iterate(txn, KeyRange.atMost(b)));
            list("closed", dbi.iterate(txn, KeyRange.closed(a, b)));
            list("closedBackward", dbi.iterate(txn, KeyRange.closedBackward(b, a)));
            list("closedOpen", dbi.iterate(txn, KeyRange.closedOpen(a, b)));
            list("greaterThan", dbi.iterate(txn, KeyRange.greaterThan(a)));
            list("greaterThanBackward", dbi.iterate(txn, KeyRange.greaterThanBackward(a)));
            list("lessThan", dbi.iterate(txn, KeyRange.lessThan(a)));
            list("open", dbi.iterate(txn, KeyRange.open(a, b)));
            list("openBackward", dbi.iterate(txn, KeyRange.openBackward(b, a)));
            list("openClosed", dbi.iterate(txn, KeyRange.openClosed(a, b)));
        }
    }

    static void error(String what, Runnable run) {
        try {
            run.run();
            System.out.println(what + ": no error");
        } catch (Exception found) {
            System.out.println(what + ": " + found.getClass().getSimpleName());
        }
    }

    public static void main(String[] args) throws Exception {
        File dir = new File(args[0]), copy = new File(args[0], "copy");
        copy.mkdir();
        try (Env<ByteBuffer> env = Env.create().setMapSize(64 << 20).setMaxDbs(8).setMaxReaders(7).open(dir)) {
            Dbi<ByteBuffer> plain = env.openDbi("plain", MDB_CREATE), many = env.openDbi("many", MDB_CREATE, MDB_DUPSORT);
            Dbi<ByteBuffer> fixed = env.openDbi("fixed", MDB_CREATE, MDB_DUPSORT, MDB_DUPFIXED);
            Dbi<ByteBuffer> turned = env.openDbi("turned", (x, y) -> y.compareTo(x), MDB_CREATE);
            try (Txn<ByteBuffer> txn = env.txnWrite()) {
                for (int i = 0; i < 100; i++) {
                    String key = String.format("k%03d", i * 37 % 100);
                    plain.put(txn, buffer(key), buffer("v" + i));
                    turned.put(txn, buffer(key), buffer("v" + i));
                    for (int j = 0; j < 5; j++) many.put(txn, buffer(key), buffer("d" + (i + j) % 7));
                }
                System.out.println(plain.put(txn, buffer("k001"), buffer("x"), MDB_NOOVERWRITE));
                System.out.println(many.put(txn, buffer("k001"), buffer("d1"), MDB_NODUPDATA));
                ByteBuffer room = plain.reserve(txn, buffer("room"), 10);
                room.put("0123456789".getBytes()).flip();
                ByteBuffer values = ByteBuffer.allocateDirect(4 * 100);
                for (int i = 0; i < 100; i++) values.putInt(i * 7919 % 1000);
                values.flip();
                try (Cursor<ByteBuffer> cursor = fixed.openCursor(txn)) {
                    cursor.putMultiple(buffer("key"), values, 100, MDB_MULTIPLE);
                    System.out.println("values: " + cursor.count());
                }
                txn.commit();
            }
            try (Txn<ByteBuffer> outer = env.txnWrite()) {
                try (Txn<ByteBuffer> inner = env.txn(outer)) {
                    plain.put(inner, buffer("inner"), buffer("kept"));
                    inner.commit();
                }
                try (Txn<ByteBuffer> inner = env.txn(outer)) {
                    plain.put(inner, buffer("undone"), buffer("x"));
                    inner.abort();
                }
                System.out.println(text(plain.get(outer, buffer("inner"))) + " " + plain.get(outer, buffer("undone")));
                outer.commit();
            }
            ranges(env, plain);
            ranges(env, turned);
            try (Txn<ByteBuffer> txn = env.txnWrite()) {
                try (Cursor<ByteBuffer> cursor = many.openCursor(txn)) {
                    cursor.get(buffer("k050"), GetOp.MDB_SET_KEY);
                    StringBuilder line = new StringBuilder();
                    do line.append(text(cursor.val())).append(' '); while (cursor.seek(SeekOp.MDB_NEXT_DUP));
                    System.out.println(line + "" + cursor.count());
                    cursor.delete();
                    cursor.seek(SeekOp.MDB_NEXT);
                    System.out.println(text(cursor.key()) + text(cursor.val()));
                    cursor.get(buffer("k060"), buffer("d3"), SeekOp.MDB_GET_BOTH);
                    cursor.delete(MDB_NODUPDATA);
                    System.out.println(cursor.seek(SeekOp.MDB_PREV) + text(cursor.key()));
                }
                plain.delete(txn, buffer("k003"));
                System.out.println(plain.delete(txn, buffer("k003")));
                turned.drop(txn);
                txn.commit();
            }
            for (Dbi<ByteBuffer> dbi : new Dbi[] {plain, many, fixed, turned}) {
                try (Txn<ByteBuffer> txn = env.txnRead()) {
                    Stat stat = dbi.stat(txn);
                    System.out.println(new String(dbi.getName()) + " " + stat.entries + " " + dbi.listFlags(txn));
                }
            }
            Txn<ByteBuffer> reader = env.txnRead();
            try (Txn<ByteBuffer> txn = env.txnWrite()) {
                plain.put(txn, buffer("k000"), buffer("newer"));
                txn.commit();
            }
            System.out.println(text(plain.get(reader, buffer("k000"))));
            reader.reset();
            reader.renew();
            System.out.println(text(plain.get(reader, buffer("k000"))));
            reader.close();
            error("long key", () -> { try (Txn<ByteBuffer> txn = env.txnWrite()) { plain.put(txn, buffer("x".repeat(512)), buffer("")); } });
            error("full", () -> { try (Txn<ByteBuffer> txn = env.txnWrite()) { plain.reserve(txn, buffer("x"), 80 << 20); } });
            error("no table", () -> env.openDbi("nobody"));
            System.out.println(env.getMaxKeySize() + " " + env.info().maxReaders + " " + env.info().mapSize + " " + env.getDbiNames().size());
            env.copy(copy, CopyFlags.MDB_CP_COMPACT);
        }
        try (Env<ByteBuffer> env = Env.create().setMapSize(64 << 20).setMaxDbs(8).open(copy)) {
            Dbi<ByteBuffer> plain = env.openDbi("plain");
            try (Txn<ByteBuffer> txn = env.txnRead()) {
                System.out.println(plain.stat(txn).entries);
            }
        }
        File other = new File(dir, "verifier");
        other.mkdir();
        try (Env<ByteBuffer> env = Env.create().setMapSize(256 << 20).setMaxDbs(Verifier.DBI_COUNT).open(other, EnvFlags.MDB_NOSYNC)) {
            System.out.println("verified: " + (new Verifier(env).runFor(5, TimeUnit.SECONDS) > 1000));
        }
    }
}
JAVA
javac -cp "$top/java/jars/*" -d "$top/java" -Xlint:none -nowarn "$top/java/Work.java" >"$top/java/log" 2>&1 || { cat "$top/java/log"; echo "FAILED lmdbjava: the test does not compile"; exit 1; }
work() {
    on java -cp "$top/java/jars/*:$top/java" --add-opens java.base/java.nio=ALL-UNNAMED --add-opens java.base/sun.nio.ch=ALL-UNNAMED \
        -Dlmdbjava.native.lib="${path:-/usr/lib/x86_64-linux-gnu}/liblmdb.so.0" Work "$store"
}
compare "lmdbjava $version"
