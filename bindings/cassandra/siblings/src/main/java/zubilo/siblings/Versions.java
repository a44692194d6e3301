package zubilo.siblings;

import java.util.ArrayList;
import java.util.List;

/**
 * What was read of a key, and what a write that follows replaces.
 *
 * @param siblings the versions that no other one dominates: none where the key is not there, more than one after
 *         writes that did not know of each other
 * @param obsolete clocks of versions that were found and are dominated; the next write removes them
 */
public record Versions(List<Version> siblings, List<VectorClock> obsolete) {
    /** Nothing was read: a write that follows replaces nothing. */
    public static final Versions NONE = new Versions(List.of(), List.of());

    /**
     * Sorts out what was found of a key.
     *
     * @param found all stored versions
     * @return the siblings and the rest
     */
    public static Versions of(List<Version> found) {
        List<Version> siblings = new ArrayList<>();
        List<VectorClock> obsolete = new ArrayList<>();
        for (Version version : found) {
            boolean dominated = found.stream().anyMatch(other -> other.clock().compare(version.clock()) == VectorClock.Order.AFTER);
            if (dominated) {
                obsolete.add(version.clock());
            } else {
                siblings.add(version);
            }
        }
        return new Versions(List.copyOf(siblings), List.copyOf(obsolete));
    }

    /**
     * A clock that knows all that was read.
     *
     * @return the merged clocks of the siblings
     */
    public VectorClock clock() {
        return siblings.stream().map(Version::clock).reduce(VectorClock.EMPTY, VectorClock::merge);
    }

    /**
     * Whether the caller has a conflict to resolve.
     *
     * @return whether there is more than one sibling
     */
    public boolean isConflict() {
        return siblings.size() > 1;
    }

    /** All clocks whose rows a write that knows of them removes. */
    List<VectorClock> rows() {
        List<VectorClock> rows = new ArrayList<>(obsolete);
        siblings.forEach(version -> rows.add(version.clock()));
        return rows;
    }
}
