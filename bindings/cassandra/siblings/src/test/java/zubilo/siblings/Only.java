package zubilo.siblings;

import java.net.InetSocketAddress;

import com.datastax.oss.driver.api.core.context.DriverContext;
import com.datastax.oss.driver.api.core.loadbalancing.NodeDistance;
import com.datastax.oss.driver.api.core.loadbalancing.NodeDistanceEvaluator;
import com.datastax.oss.driver.api.core.metadata.Node;

/** The driver talks to one node only. */
public final class Only implements NodeDistanceEvaluator {
    static volatile String address;

    /** The driver makes it. */
    public Only(DriverContext context, String profile) {}

    @Override
    public NodeDistance evaluateDistance(Node node, String localDatacenter) {
        InetSocketAddress its = (InetSocketAddress) node.getEndPoint().resolve();
        return its.getAddress().getHostAddress().equals(address) ? NodeDistance.LOCAL : NodeDistance.IGNORED;
    }
}
