/**
 * Zubilo, an embedded, transactional, ordered key-value store.
 *
 * <p>The module is named so that native access can be granted to it alone:
 * {@code --enable-native-access=zubilo}.
 */
module zubilo {
    exports zubilo;
}
