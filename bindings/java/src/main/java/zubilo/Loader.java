package zubilo;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/**
 * Finds the native library: the file that the property {@code zubilo.library} names, else the one inside
 * the jar, which is written to a temporary file, loaded and removed again.
 */
final class Loader {
    private Loader() {}

    /** The library's path; {@code loaded} must be called with it afterwards. */
    static Path find() {
        String named = System.getProperty("zubilo.library");
        if (named != null) {
            return Path.of(named).toAbsolutePath();
        }
        String system = System.getProperty("os.name", "").toLowerCase(Locale.ROOT);
        String processor = System.getProperty("os.arch", "");
        String place = system + "-" + (processor.equals("amd64") ? "x86-64" : processor);
        String resource = "native/" + place + "/libzubilo_java.so";
        try (InputStream in = Loader.class.getResourceAsStream(resource)) {
            if (in == null) {
                throw new UnsatisfiedLinkError("the jar has no native library for " + place
                        + "; name one by -Dzubilo.library=FILE");
            }
            Path file = Files.createTempFile("zubilo-", ".so");
            Files.copy(in, file, StandardCopyOption.REPLACE_EXISTING);
            return file;
        } catch (IOException e) {
            throw (Error) new UnsatisfiedLinkError("cannot write the native library to "
                    + System.getProperty("java.io.tmpdir") + "; set java.io.tmpdir, or zubilo.library")
                    .initCause(e);
        }
    }

    /** Removes a temporary file: the library stays mapped. */
    static void loaded(Path file) {
        if (System.getProperty("zubilo.library") == null) {
            try {
                Files.deleteIfExists(file);
            } catch (IOException e) {
                file.toFile().deleteOnExit();
            }
        }
    }

    /** Refuses a library of another version of the interface. */
    static void checkVersion(long version) {
        if (version != 1) {
            throw new UnsatisfiedLinkError("the native library has interface " + version + ", this jar needs 1");
        }
    }
}
