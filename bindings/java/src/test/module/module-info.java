/** A program that uses the store as a module. */
module app {
    requires zubilo;
}
