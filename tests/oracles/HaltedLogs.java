import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import kafka.log.LogManager;
import kafka.log.UnifiedLog;
import kafka.server.BrokerTopicStats;
import kafka.server.RequestLocal;
import kafka.server.metadata.ConfigRepository;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Writes logs with Kafka's own log manager and halts: nothing is closed, nothing trimmed.
 *
 * Arguments: directory, number of batches. Tells the ends of its logs.
 */
public class HaltedLogs {
    private static <T> scala.collection.immutable.Seq<T> seq(List<T> list) {
        return CollectionConverters.asScala(list).toList();
    }

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("segment.bytes", "4096");
        settings.put("index.interval.bytes", "300");
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        LogManager manager = new LogManager(
            seq(Collections.singletonList(new File(args[0]))),
            seq(new ArrayList<File>()),
            new ConfigRepository() {
                @Override
                public Properties config(ConfigResource resource) {
                    return new Properties();
                }
            },
            new LogConfig(settings),
            new CleanerConfig(false),
            1,
            Long.MAX_VALUE,
            60000L,
            60000L,
            300000L,
            900000,
            new ProducerStateManagerConfig(86400000, false),
            600000,
            MetadataVersion.latestProduction(),
            scheduler,
            new BrokerTopicStats(false),
            new LogDirFailureChannel(1),
            Time.SYSTEM,
            true,
            false,
            30000L);
        manager.startup(
            CollectionConverters.asScala(new java.util.HashSet<String>()).toSet(), log -> false);
        int batches = Integer.parseInt(args[1]);
        for (String topic : new String[] {"plain", "idempotent"}) {
            UnifiedLog log = manager.getOrCreateLog(
                new TopicPartition(topic, 0), true, false, Option.apply(Uuid.randomUuid()),
                Option.empty());
            for (int number = 0; number < batches; number++) {
                SimpleRecord[] records = new SimpleRecord[1 + number % 3];
                for (int index = 0; index < records.length; index++)
                    records[index] = new SimpleRecord(
                        System.currentTimeMillis(), null,
                        (topic + "-" + number + "-" + index).getBytes(StandardCharsets.UTF_8));
                MemoryRecords batch = topic.equals("plain")
                    ? MemoryRecords.withRecords(Compression.NONE, records)
                    : MemoryRecords.withIdempotentRecords(
                        Compression.NONE, 77L, (short) 0, sequenceOf(number), records);
                log.appendAsLeader(
                    batch, number / 40, AppendOrigin.CLIENT,
                    MetadataVersion.latestProduction(),
                    RequestLocal.NoCaching(),
                    VerificationGuard.SENTINEL);
            }
            System.out.println(topic + " " + log.logEndOffset());
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    /** Batches hold 1, 2, 3, 1, 2, 3, ... records. */
    private static int sequenceOf(int number) {
        return number / 3 * 6 + (number % 3 == 0 ? 0 : number % 3 == 1 ? 1 : 3);
    }
}
