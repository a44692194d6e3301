package zubilo.cassandra;

import java.nio.file.Files;
import java.nio.file.Path;

import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.cql3.UntypedResultSet;
import org.apache.cassandra.db.ConsistencyLevel;

/** Starts a node, runs the statements of a file on it, and goes on serving clients if there is another argument. */
public final class Sample {
    private Sample() {}

    public static void main(String[] arguments) {
        Program.main(() -> {
            Node.start();
            for (String statement : Files.readString(Path.of(arguments[0])).split(";\n")) {
                System.out.println("cql> " + statement.strip());
                show(QueryProcessor.execute(statement, ConsistencyLevel.ONE));
            }
            if (arguments.length > 1) {
                System.out.println("The node serves clients until you press Ctrl-C.");
                Thread.sleep(Long.MAX_VALUE);
            }
        });
    }

    private static void show(UntypedResultSet result) {
        if (result == null) {
            return;
        }
        for (UntypedResultSet.Row row : result) {
            StringBuilder line = new StringBuilder("    ");
            row.getColumns().forEach(column -> {
                String name = column.name.toString();
                line.append(name).append(" = ").append(row.has(name) ? column.type.getString(row.getBlob(name)) : "null").append("  ");
            });
            System.out.println(line.toString().stripTrailing());
        }
    }
}
