package zubilo;

import java.util.Spliterator;
import java.util.Spliterators;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * Records or values to go through, in order. Each iterator begins anew.
 *
 * @param <T> what it gives
 */
@FunctionalInterface
public interface Sequence<T> extends Iterable<T> {
    /**
     * The same as a stream, ordered, for the threads that may use the transaction.
     *
     * @return a new stream, which need not be closed
     */
    default Stream<T> stream() {
        int kind = Spliterator.ORDERED | Spliterator.NONNULL;
        return StreamSupport.stream(Spliterators.spliteratorUnknownSize(iterator(), kind), false);
    }
}
