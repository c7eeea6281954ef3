import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.TreeMap;
import kafka.log.LogManager;
import kafka.log.UnifiedLog;
import kafka.server.BrokerTopicStats;
import kafka.server.metadata.ConfigRepository;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.properties.MetaPropertiesEnsemble;
import org.apache.kafka.metadata.properties.MetaPropertiesEnsemble.VerificationFlag;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Opens log directories with Kafka's own log manager, tells what it found, and stops it cleanly.
 *
 * Arguments: cluster id, broker id, topic settings as key=value joined by commas, directories.
 */
public class OpenLogDirectories {
    private static <T> Seq<T> seq(List<T> list) {
        return CollectionConverters.asScala(list).toList();
    }

    public static void main(String[] args) throws Exception {
        List<String> paths = Arrays.asList(args).subList(3, args.length);
        MetaPropertiesEnsemble ensemble =
            new MetaPropertiesEnsemble.Loader().addLogDirs(paths).load();
        ensemble.verify(
            Optional.of(args[0]),
            OptionalInt.of(Integer.parseInt(args[1])),
            EnumSet.of(VerificationFlag.REQUIRE_AT_LEAST_ONE_VALID, VerificationFlag.REQUIRE_V0));
        Properties defaults = new Properties();
        for (String setting : args[2].split(",")) {
            String[] parts = setting.split("=", 2);
            if (parts.length == 2) defaults.put(parts[0], parts[1].replace('+', ','));
        }
        List<File> directories = new ArrayList<>();
        for (String path : paths) directories.add(new File(path));
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        LogManager manager = new LogManager(
            seq(directories),
            seq(new ArrayList<>()),
            new ConfigRepository() {
                @Override
                public Properties config(ConfigResource resource) {
                    return new Properties();
                }
            },
            new LogConfig(defaults),
            new CleanerConfig(false),
            1,
            Long.MAX_VALUE,
            60000L,
            60000L,
            300000L,
            900000,
            new ProducerStateManagerConfig(86400000, true),
            600000,
            MetadataVersion.latestProduction(),
            scheduler,
            new BrokerTopicStats(false),
            new LogDirFailureChannel(directories.size()),
            Time.SYSTEM,
            true,
            false,
            30000L);
        manager.startup(
            CollectionConverters.asScala(new java.util.HashSet<String>()).toSet(),
            log -> false);
        TreeMap<String, String> found = new TreeMap<>();
        for (UnifiedLog log : CollectionConverters.asJava(manager.allLogs())) {
            StringBuilder line = new StringBuilder();
            TopicPartition key = log.topicPartition();
            line.append("log ").append(key)
                .append(" start=").append(log.logStartOffset())
                .append(" end=").append(log.logEndOffset())
                .append(" recovery=").append(log.recoveryPoint())
                .append(" segments=");
            List<String> segments = new ArrayList<>();
            for (LogSegment segment : log.logSegments())
                segments.add(segment.baseOffset() + ":" + segment.size());
            line.append(String.join(",", segments));
            line.append(" producers=").append(log.activeProducers().size());
            line.append(" epoch=").append(log.latestEpoch().isDefined() ? log.latestEpoch().get() : -1);
            line.append(" id=").append(log.topicId().isDefined() ? log.topicId().get() : "none");
            found.put(key.toString(), line.toString());
        }
        for (String line : found.values()) System.out.println(line);
        manager.shutdown(-1L);
        scheduler.shutdown();
        System.out.println("closed");
    }
}
