package zubilo;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Semaphore;

/**
 * Who of this JVM's threads may write a store: they take turns here, in Java, before one of them waits natively for
 * those of other processes. A virtual thread that waits here gives its carrier to others; natively it would keep it,
 * perhaps from the very thread that it waits for.
 */
final class Turns {
    private Turns() {}

    private static final Map<Path, WeakReference<Semaphore>> TURNS = new HashMap<>();

    /** The turn of the store at a path, which is there; in order of arrival. */
    static Semaphore of(Path path) {
        Path real;
        try {
            real = path.toRealPath();
        } catch (IOException e) {
            real = path.toAbsolutePath().normalize();
        }
        synchronized (TURNS) {
            TURNS.values().removeIf(turn -> turn.get() == null);
            WeakReference<Semaphore> known = TURNS.get(real);
            Semaphore turn = known == null ? null : known.get();
            if (turn == null) {
                turn = new Semaphore(1, true);
                TURNS.put(real, new WeakReference<>(turn));
            }
            return turn;
        }
    }
}
