package zubilo;

import java.nio.charset.StandardCharsets;

/** Turns the negative numbers of native calls into exceptions. */
final class Failures {
    private Failures() {}

    private static final int ROOM = 4096;

    /** The number itself, unless it is a failure. */
    static long check(long answer) {
        if (answer < 0) {
            throw of(answer);
        }
        return answer;
    }

    static ZubiloException of(long answer) {
        if (answer == -1) {
            return new ZubiloException.Closed("closed already");
        }
        if (answer == -2) {
            return new ZubiloException.Invalid("not possible in this kind of transaction, or at this point");
        }
        if (answer == -3) {
            return new ZubiloException.Busy("too many transactions or tables are open");
        }
        // A buffer of its own: the thread's may hold what the caller still needs.
        Scratch.Room room = new Scratch.Room(ROOM);
        long len = Native.failure(answer, room.at, ROOM);
        if (len < 24) {
            return new ZubiloException.Internal("unknown failure " + answer);
        }
        long kind = room.buffer.getLong(0);
        long a = room.buffer.getLong(8);
        long b = room.buffer.getLong(16);
        byte[] text = new byte[(int) len - 24];
        room.buffer.get(24, text);
        return make((int) kind, a, b, new String(text, StandardCharsets.UTF_8));
    }

    private static ZubiloException make(int kind, long a, long b, String text) {
        switch (kind) {
            case 1: return new ZubiloException.Io(text, a);
            case 2: return new ZubiloException.OutOfNativeMemory(text);
            case 3: return new ZubiloException.Corrupted(text, a);
            case 4: return new ZubiloException.NotAStore(text);
            case 5: return new ZubiloException.NewerFormat(text);
            case 6:
            case 22: return new ZubiloException.Invalid(text);
            case 7:
            case 8: return new ZubiloException.TooLong(text, a, b);
            case 9: return new ZubiloException.ManyValues(text);
            case 10: return new ZubiloException.Full(text, a);
            case 11: return new ZubiloException.ReadersFull(text);
            case 12: return new ZubiloException.Busy(text);
            case 14: return new ZubiloException.Poisoned(text);
            case 15: return new ZubiloException.ReadOnly(text);
            case 16: return new ZubiloException.NoSuchTable(text);
            case 17: return new ZubiloException.TableExists(text);
            case 18: return new ZubiloException.Incompatible(text);
            case 19: return new ZubiloException.Broken(text);
            default: return new ZubiloException.Internal(text);
        }
    }
}
