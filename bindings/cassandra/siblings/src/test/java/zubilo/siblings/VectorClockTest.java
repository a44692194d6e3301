package zubilo.siblings;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;

import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

class VectorClockTest {
    @Provide
    Arbitrary<VectorClock> clocks() {
        return Arbitraries.maps(Arbitraries.of("a", "b", "c", "\u00e4 long name"), Arbitraries.longs().between(-1, 3))
                .map(entries -> new VectorClock(new TreeMap<>(entries)));
    }

    @Property
    void bytesGiveTheClockBack(@ForAll("clocks") VectorClock clock) {
        assertEquals(clock, VectorClock.of(clock.toBytes()));
    }

    @Property
    void twoClocksAgreeOnTheirOrder(@ForAll("clocks") VectorClock one, @ForAll("clocks") VectorClock two) {
        VectorClock.Order back = two.compare(one);
        switch (one.compare(two)) {
            case EQUAL -> assertEquals(one, two);
            case BEFORE -> assertEquals(VectorClock.Order.AFTER, back);
            case AFTER -> assertEquals(VectorClock.Order.BEFORE, back);
            case CONCURRENT -> assertEquals(VectorClock.Order.CONCURRENT, back);
        }
        assertTrue(one.merge(two).dominates(one) && one.merge(two).dominates(two));
        assertEquals(one.merge(two), two.merge(one));
    }

    /**
     * Writers with replicas of their own, which exchange versions at random. The model knows of each version all writes
     * that went into it: siblings are exactly those that went into no other one.
     */
    @Property(tries = 300)
    void siblingsAreTheVersionsThatWentIntoNoOther(@ForAll Random random) {
        List<Map<VectorClock, Set<Integer>>> replicas = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            replicas.add(new HashMap<>());
        }
        long[] numbers = new long[3];
        for (int step = 1; step <= 40; step++) {
            int at = random.nextInt(3);
            Map<VectorClock, Set<Integer>> here = replicas.get(at);
            if (random.nextInt(3) == 0) {
                here.putAll(replicas.get(random.nextInt(3)));
                continue;
            }
            Versions read = Versions.of(here.keySet().stream().map(clock -> new Version(clock, ByteBuffer.allocate(0))).toList());
            Set<Set<Integer>> expected = new HashSet<>(here.values());
            expected.removeIf(history -> here.values().stream().anyMatch(other -> other.size() > history.size() && other.containsAll(history)));
            Set<Set<Integer>> siblings = new HashSet<>();
            read.siblings().forEach(version -> siblings.add(here.get(version.clock())));
            assertEquals(expected, siblings);
            assertEquals(here.size(), read.siblings().size() + read.obsolete().size());

            Set<Integer> history = new HashSet<>(Set.of(step));
            siblings.forEach(history::addAll);
            here.put(read.clock().with("writer" + at, ++numbers[at]), history);
        }
    }
}
