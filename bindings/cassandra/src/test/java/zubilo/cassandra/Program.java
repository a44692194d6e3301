package zubilo.cassandra;

/** A main program that ends its process, whatever threads it started. */
interface Program {
    void run() throws Exception;

    /** Runs a program and ends the process without a farewell: with code 1 if the program throws. */
    static void main(Program program) {
        int code = 1;
        try {
            program.run();
            code = 0;
        } catch (Throwable failed) {
            failed.printStackTrace();
        }
        System.out.flush();
        Runtime.getRuntime().halt(code);
    }
}
