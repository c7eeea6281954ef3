import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import kafka.controller.LeaderIsrAndControllerEpoch;
import kafka.zk.BrokerIdZNode;
import kafka.zk.ClusterIdZNode;
import kafka.zk.ConfigEntityZNode;
import kafka.zk.ControllerZNode;
import kafka.zk.FeatureZNode;
import kafka.zk.IsrChangeNotificationSequenceZNode;
import kafka.zk.LogDirEventNotificationSequenceZNode;
import kafka.zk.PreferredReplicaElectionZNode;
import kafka.zk.ProducerIdBlockZNode;
import kafka.zk.ReassignPartitionsZNode;
import kafka.zk.TopicPartitionStateZNode;
import kafka.zk.TopicZNode;
import org.apache.zookeeper.data.Stat;
import scala.Option;

/**
 * Reads the content of znodes with Kafka's own code and writes it again.
 *
 * Lines "kind content" on standard input, content in Base64; one line out for each: what Kafka
 * writes for the value it read, in Base64, or refused.
 */
public class KafkaZnodes {
    interface Rewrite {
        byte[] apply(byte[] content) throws Exception;
    }

    static class Refused extends Exception {
    }

    static <T> T taken(Option<T> found) throws Refused {
        if (found.isEmpty())
            throw new Refused();
        return found.get();
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Rewrite> rewrites = new HashMap<>();
        rewrites.put("registration", b -> BrokerIdZNode.encode(BrokerIdZNode.decode(1, b)));
        rewrites.put("topic", b -> {
            TopicZNode.TopicIdReplicaAssignment topic = TopicZNode.decode("t", b);
            return TopicZNode.encode(topic.topicId(), topic.assignment());
        });
        rewrites.put("state", b -> {
            LeaderIsrAndControllerEpoch state = taken(TopicPartitionStateZNode.decode(b, new Stat()));
            return TopicPartitionStateZNode.encode(state);
        });
        rewrites.put("controller", b -> {
            kafka.zk.ZKControllerRegistration found = ControllerZNode.decodeController(b, 0);
            int kraft = found.kraftEpoch().isEmpty() ? -1 : (Integer) found.kraftEpoch().get();
            return ControllerZNode.encode(found.broker(), 0, kraft);
        });
        rewrites.put("config", b -> ConfigEntityZNode.encode(ConfigEntityZNode.decode(b)));
        rewrites.put("cluster", b -> ClusterIdZNode.toJson(ClusterIdZNode.fromJson(b)));
        rewrites.put("log_dir", b ->
            LogDirEventNotificationSequenceZNode.encode(
                (Integer) taken(LogDirEventNotificationSequenceZNode.decode(b))));
        rewrites.put("preferred", b ->
            PreferredReplicaElectionZNode.encode(PreferredReplicaElectionZNode.decode(b)));
        rewrites.put("isr_changes", b ->
            IsrChangeNotificationSequenceZNode.encode(IsrChangeNotificationSequenceZNode.decode(b)));
        rewrites.put("reassign", b ->
            ReassignPartitionsZNode.encode(ReassignPartitionsZNode.decode(b).toOption().get()));
        rewrites.put("producer_ids", b ->
            ProducerIdBlockZNode.generateProducerIdBlockJson(ProducerIdBlockZNode.parseProducerIdBlockData(b)));
        rewrites.put("feature", b -> FeatureZNode.encode(FeatureZNode.decode(b)));

        PrintStream out = new PrintStream(System.out, false, UTF_8);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            try {
                byte[] written = rewrites.get(words[0]).apply(Base64.getDecoder().decode(words[1]));
                out.println(Base64.getEncoder().encodeToString(written));
            } catch (Exception refused) {
                out.println("refused " + refused);
            }
        }
        out.flush();
    }
}
