package zubilo;

import java.util.List;

/**
 * What a check has found.
 *
 * @param snapshot number of the commit that was checked
 * @param tables tables
 * @param entries records in all tables
 * @param pages pages up to the last one ever used
 * @param leafPages pages with records
 * @param branchPages pages above them
 * @param runPages pages of large values
 * @param freeSpaceLogPages pages of the free-space log
 * @param freePages pages that can be used at once
 * @param retiredPages dead pages that somebody may still see
 * @param redoLogPages pages of the redo log; 0 without one
 * @param problemCount how many problems there are, at most 1000
 * @param problems the problems as text, as many as fit 256 KiB
 */
public record CheckReport(long snapshot, long tables, long entries, long pages, long leafPages, long branchPages,
        long runPages, long freeSpaceLogPages, long freePages, long retiredPages, long redoLogPages,
        long problemCount, List<String> problems) {
    /**
     * Whether nothing is wrong.
     *
     * @return true without problems
     */
    public boolean isOk() {
        return problemCount == 0;
    }
}
