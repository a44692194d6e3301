package zubilo;

/**
 * Figures of a table.
 *
 * @param entries records
 * @param depth levels of the tree; 0 when empty
 * @param leafPages pages with records
 * @param branchPages pages above them
 * @param runPages pages of values that have pages of their own
 * @param valuePages pages of trees that hold the values of one key each
 * @param modified number of the transaction that changed the table last
 */
public record TableStats(long entries, int depth, long leafPages, long branchPages, long runPages,
        long valuePages, long modified) {}
