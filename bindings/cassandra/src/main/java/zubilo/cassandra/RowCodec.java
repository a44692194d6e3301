package zubilo.cassandra;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.cassandra.db.DeletionInfo;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.MutableDeletionInfo;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.RegularAndStaticColumns;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.rows.BTreeRow;
import org.apache.cassandra.db.rows.DeserializationHelper;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Rows;
import org.apache.cassandra.db.rows.SerializationHelper;
import org.apache.cassandra.db.rows.UnfilteredSerializer;
import org.apache.cassandra.io.util.DataInputBuffer;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.ByteBufferUtil;

/**
 * Rows and deletions as bytes, by Cassandra's own serializers.
 *
 * <p>A serialized row names its columns by their place in a list. The lists are stored too, as <em>layouts</em>: a
 * new one for each change of the columns or of the serializers' version. Each record begins with the number of its
 * layout. Layouts never lose columns, so that a row that holds a cell of a dropped column can be written again.
 */
final class RowCodec {
    /** A list of columns, and the version of Cassandra's serializers that goes with it. */
    static final class Layout {
        final int number;
        final int version;
        final List<Column> columns;
        private volatile Resolved resolved;

        Layout(int number, int version, List<Column> columns) {
            this.number = number;
            this.version = version;
            this.columns = columns;
        }

        byte[] toBytes() {
            try (DataOutputBuffer out = new DataOutputBuffer()) {
                out.writeUnsignedVInt32(version);
                out.writeUnsignedVInt32(columns.size());
                for (Column column : columns) {
                    out.writeByte((column.isStatic ? 1 : 0) | (column.isComplex ? 2 : 0));
                    ByteBufferUtil.writeWithVIntLength(column.name, out);
                }
                return out.toByteArray();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        static Layout of(int number, byte[] bytes) {
            try (DataInputBuffer in = new DataInputBuffer(bytes)) {
                int version = in.readUnsignedVInt32();
                int count = in.readUnsignedVInt32();
                List<Column> columns = new ArrayList<>();
                for (int i = 0; i < count; i++) {
                    int flags = in.readUnsignedByte();
                    columns.add(new Column(ByteBufferUtil.readWithVIntLength(in), (flags & 1) != 0, (flags & 2) != 0));
                }
                return new Layout(number, version, columns);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        Resolved resolve(TableMetadata metadata) {
            Resolved known = resolved;
            if (known == null || known.metadata != metadata) {
                resolved = known = new Resolved(this, metadata);
            }
            return known;
        }
    }

    /** A column of a layout. */
    record Column(ByteBuffer name, boolean isStatic, boolean isComplex) {
        static Column of(ColumnMetadata column) {
            return new Column(column.name.bytes, column.isStatic(), column.isComplex());
        }

        ColumnMetadata find(TableMetadata metadata) {
            ColumnMetadata found = metadata.getColumn(name);
            if (found == null || found.isStatic() != isStatic) {
                found = metadata.getDroppedColumn(name, isStatic);
            }
            if (found == null || found.isComplex() != isComplex) {
                throw new IllegalStateException("stored rows of " + metadata + " have a column that the schema does not know: "
                        + metadata.regularAndStaticColumns() + " lack " + ByteBufferUtil.bytesToHex(name));
            }
            return found;
        }
    }

    /** A layout as the present schema sees it. */
    static final class Resolved {
        final TableMetadata metadata;
        final SerializationHeader header;

        Resolved(Layout layout, TableMetadata metadata) {
            this.metadata = metadata;
            RegularAndStaticColumns.Builder builder = RegularAndStaticColumns.builder();
            for (Column column : layout.columns) {
                builder.add(column.find(metadata));
            }
            header = new SerializationHeader(false, metadata, builder.build(), EncodingStats.NO_STATS);
        }
    }

    private final Map<Integer, Layout> layouts = new ConcurrentHashMap<>();
    private volatile Layout newest;

    /** Makes a stored layout known. */
    void add(Layout layout) {
        layouts.put(layout.number, layout);
        if (newest == null || newest.number < layout.number) {
            newest = layout;
        }
    }

    /** The layout for new records, if there is one that holds these columns. */
    Layout fitting(RegularAndStaticColumns columns, int version) {
        Layout layout = newest;
        return layout != null && layout.version == version && missing(layout, columns).isEmpty() ? layout : null;
    }

    /** A layout with the columns of the newest one and these. Not yet known: it has to be stored first. */
    Layout extended(RegularAndStaticColumns columns, int version) {
        List<Column> all = new ArrayList<>();
        if (newest != null) {
            all.addAll(newest.columns);
            all.addAll(missing(newest, columns));
        } else {
            columns.forEach(column -> all.add(Column.of(column)));
        }
        return new Layout(newest == null ? 1 : newest.number + 1, version, all);
    }

    private static List<Column> missing(Layout layout, RegularAndStaticColumns columns) {
        List<Column> missing = new ArrayList<>();
        for (ColumnMetadata column : columns) {
            Column wanted = Column.of(column);
            if (!layout.columns.contains(wanted)) {
                missing.add(wanted);
            }
        }
        return missing;
    }

    private Layout layout(int number) throws IOException {
        Layout layout = layouts.get(number);
        if (layout == null) {
            throw new IOException("a record has the unknown layout " + number);
        }
        return layout;
    }

    byte[] row(TableMetadata metadata, Layout layout, Row row) {
        try (DataOutputBuffer out = new DataOutputBuffer(row.dataSize() + 64)) {
            SerializationHelper helper = new SerializationHelper(layout.resolve(metadata).header);
            out.writeUnsignedVInt32(layout.number);
            if (row.isStatic()) {
                UnfilteredSerializer.serializer.serializeStaticRow(row, helper, out, layout.version);
            } else {
                UnfilteredSerializer.serializer.serialize(row, helper, out, layout.version);
                // The reader skips rows of which nothing is left, and looks for another one.
                UnfilteredSerializer.serializer.writeEndOfPartition(out);
            }
            return out.toByteArray();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * A stored row.
     *
     * @param filter the columns that are wanted; null for all
     * @return the row, or null if all of it belonged to dropped columns
     */
    Row row(TableMetadata metadata, byte[] record, boolean isStatic, ColumnFilter filter) {
        try (DataInputBuffer in = new DataInputBuffer(record)) {
            Layout layout = layout(in.readUnsignedVInt32());
            SerializationHeader header = layout.resolve(metadata).header;
            DeserializationHelper helper =
                    new DeserializationHelper(metadata, layout.version, DeserializationHelper.Flag.LOCAL, filter);
            if (isStatic) {
                Row row = UnfilteredSerializer.serializer.deserializeStaticRow(in, header, helper);
                return row.isEmpty() ? null : row;
            }
            return (Row) UnfilteredSerializer.serializer.deserialize(in, header, helper, BTreeRow.sortedBuilder());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    byte[] deletions(TableMetadata metadata, Layout layout, DeletionInfo info) {
        try (DataOutputBuffer out = new DataOutputBuffer(64)) {
            out.writeUnsignedVInt32(layout.number);
            write(out, info.getPartitionDeletion());
            out.writeUnsignedVInt32(info.rangeCount());
            for (var ranges = info.rangeIterator(false); ranges.hasNext();) {
                RangeTombstone range = ranges.next();
                Slice.serializer.serialize(range.deletedSlice(), out, layout.version, metadata.comparator.subtypes());
                write(out, range.deletionTime());
            }
            return out.toByteArray();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    MutableDeletionInfo deletions(TableMetadata metadata, byte[] record) {
        if (record == null) {
            return MutableDeletionInfo.live();
        }
        try (DataInputBuffer in = new DataInputBuffer(record)) {
            Layout layout = layout(in.readUnsignedVInt32());
            MutableDeletionInfo info = new MutableDeletionInfo(time(in));
            int count = in.readUnsignedVInt32();
            for (int i = 0; i < count; i++) {
                Slice slice = Slice.serializer.deserialize(in, layout.version, metadata.comparator.subtypes());
                info.add(new RangeTombstone(slice, time(in)), metadata.comparator);
            }
            return info;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void write(DataOutputBuffer out, DeletionTime time) throws IOException {
        out.writeLong(time.markedForDeleteAt());
        out.writeLong(time.localDeletionTime());
    }

    private static DeletionTime time(DataInputBuffer in) throws IOException {
        long markedForDeleteAt = in.readLong();
        long localDeletionTime = in.readLong();
        return markedForDeleteAt == DeletionTime.LIVE.markedForDeleteAt() && localDeletionTime == DeletionTime.LIVE.localDeletionTime()
                ? DeletionTime.LIVE : DeletionTime.build(markedForDeleteAt, localDeletionTime);
    }

    /** The static row, empty instead of missing. */
    Row staticRow(TableMetadata metadata, byte[] record, ColumnFilter filter) {
        Row row = record == null ? null : row(metadata, record, true, filter);
        return row == null ? Rows.EMPTY_STATIC_ROW : row;
    }
}
