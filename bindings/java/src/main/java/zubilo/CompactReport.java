package zubilo;

/**
 * What compaction has gained.
 *
 * @param usedBefore bytes up to the last page ever used, before
 * @param usedAfter the same, after
 * @param fileBefore length of the file in bytes, before
 * @param fileAfter the same, after
 * @param held bytes that cannot be used again yet, because somebody may still read them
 * @param finished false if it ended early because the file would have grown, beside a reader of an old snapshot
 */
public record CompactReport(long usedBefore, long usedAfter, long fileBefore, long fileAfter, long held,
        boolean finished) {}
