import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import kafka.log.UnifiedLog;
import kafka.server.BrokerTopicStats;
import kafka.server.RequestLocal;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.FetchIsolation;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.VerificationGuard;

/**
 * Builds, reads, converts and appends record batches, one command per line of standard input.
 *
 * read HEX: batches and records, as lines of fields, in one line of answer.
 * build MAGIC CODEC TIME_TYPE BASE LOG_APPEND_TIME PRODUCER_ID EPOCH SEQUENCE TRANSACTIONAL RECORDS
 * down MAGIC FIRST_OFFSET HEX
 * produce VERSION NOW SETTINGS HEX: appended by a real leader's log, whose clock says NOW.
 * A record is time:key:value:name=value;name=value with everything in hex and - for null.
 */
public class RecordBatches {
    static final HexFormat HEX = HexFormat.of();

    static byte[] bytes(String hex) {
        return hex.equals("-") ? null : HEX.parseHex(hex);
    }

    static String hex(ByteBuffer buffer) {
        if (buffer == null)
            return "-";
        byte[] copy = new byte[buffer.remaining()];
        buffer.duplicate().get(copy);
        return HEX.formatHex(copy);
    }

    static MemoryRecords records(String hex) {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(hex)));
    }

    static String read(String hex) {
        List<String> told = new ArrayList<>();
        for (RecordBatch batch : records(hex).batches()) {
            batch.ensureValid();
            told.add("B " + batch.baseOffset() + " " + batch.lastOffset() + " " + batch.magic() + " "
                + batch.compressionType().id + " " + batch.timestampType().id + " " + batch.maxTimestamp() + " "
                + batch.producerId() + " " + batch.producerEpoch() + " " + batch.baseSequence() + " "
                + batch.isTransactional() + " " + batch.isControlBatch() + " " + batch.partitionLeaderEpoch() + " "
                + batch.deleteHorizonMs().orElse(-1) + " " + batch.sizeInBytes());
            for (Record record : batch) {
                StringBuilder headers = new StringBuilder();
                for (Header header : record.headers())
                    headers.append(HEX.formatHex(header.key().getBytes(java.nio.charset.StandardCharsets.UTF_8)))
                        .append('=').append(header.value() == null ? "-" : HEX.formatHex(header.value())).append(';');
                told.add("R " + record.offset() + " " + record.timestamp() + " " + hex(record.key()) + " "
                    + hex(record.value()) + " " + record.sequence() + " " + headers);
            }
        }
        return String.join("|", told);
    }

    static String build(String[] words) {
        long base = Long.parseLong(words[4]);
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1024), Byte.parseByte(words[1]),
            Compression.of(CompressionType.forId(Integer.parseInt(words[2]))).build(),
            TimestampType.forName(words[3]), base, Long.parseLong(words[5]), Long.parseLong(words[6]),
            Short.parseShort(words[7]), Integer.parseInt(words[8]), Boolean.parseBoolean(words[9]), 3);
        for (String record : words[10].split(",")) {
            String[] fields = record.split(":", -1);
            List<Header> headers = new ArrayList<>();
            for (String header : fields[3].split(";"))
                if (!header.isEmpty()) {
                    String[] pair = header.split("=", -1);
                    headers.add(new RecordHeader(new String(HEX.parseHex(pair[0]),
                        java.nio.charset.StandardCharsets.UTF_8), bytes(pair[1])));
                }
            builder.append(Long.parseLong(fields[0]), bytes(fields[1]), bytes(fields[2]), headers.toArray(new Header[0]));
        }
        return hex(builder.build().buffer());
    }

    static final class Clock implements Time {
        long now;

        public long milliseconds() {
            return now;
        }

        public long nanoseconds() {
            return now * 1_000_000;
        }

        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    static final Clock CLOCK = new Clock();
    static final Map<String, UnifiedLog> LOGS = new HashMap<>();
    static final KafkaScheduler SCHEDULER = new KafkaScheduler(1, true);
    static File root;

    static UnifiedLog log(String settings) {
        return LOGS.computeIfAbsent(settings, key -> {
            Properties properties = new Properties();
            for (String setting : settings.split(";"))
                if (setting.contains("="))
                    properties.setProperty(setting.split("=")[0], setting.split("=")[1]);
            File directory = new File(root, "topic-" + LOGS.size());
            directory.mkdirs();
            return UnifiedLog.apply(directory, new LogConfig(properties), 0L, 0L, SCHEDULER,
                new BrokerTopicStats(false), CLOCK, 900_000, new ProducerStateManagerConfig(86_400_000, false),
                600_000, new LogDirFailureChannel(1), true, scala.Option.empty(), true, new ConcurrentHashMap<>(),
                false, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        });
    }

    static String produce(String[] words) throws Exception {
        CLOCK.now = Long.parseLong(words[2]);
        MemoryRecords produced = words.length > 4 ? records(words[4]) : MemoryRecords.EMPTY;
        UnifiedLog log = log(words[3]);
        try {
            ProduceRequest.validateRecords(Short.parseShort(words[1]), produced);
            LogAppendInfo info = log.appendAsLeader(produced, 3, AppendOrigin.CLIENT,
                MetadataVersion.LATEST_PRODUCTION, RequestLocal.NoCaching(), VerificationGuard.SENTINEL);
            if (info.validBytes() <= 0)
                return "NONE -1";
            FileRecords written = (FileRecords) log.read(info.firstOffset(), 1 << 30, FetchIsolation.LOG_END, true).records;
            ByteBuffer buffer = ByteBuffer.allocate(written.sizeInBytes());
            written.readInto(buffer, 0);
            return "NONE " + info.firstOffset() + " " + hex(buffer);
        } catch (RecordValidationException e) {
            return Errors.forException(e.invalidException()) + " "
                + e.recordErrors().stream().map(error -> "" + error.batchIndex).collect(Collectors.joining(","));
        } catch (Throwable e) {
            return Errors.forException(e).toString();
        }
    }

    static String answer(String line) throws Exception {
        String[] words = line.split(" ");
        switch (words[0]) {
            case "read":
                return read(words[1]);
            case "build":
                return build(words);
            case "down":
                return hex(((MemoryRecords) records(words[3])
                    .downConvert(Byte.parseByte(words[1]), Long.parseLong(words[2]), Time.SYSTEM).records()).buffer());
            default:
                return produce(words);
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        root = Files.createTempDirectory("record-batches").toFile();
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = in.readLine(); line != null; line = in.readLine())
                try {
                    out.println(answer(line));
                } catch (Exception e) {
                    out.println("failed " + Errors.forException(e));
                }
        } finally {
            for (UnifiedLog log : LOGS.values())
                log.close();
            org.apache.kafka.common.utils.Utils.delete(root);
        }
        out.flush();
        System.exit(0);
    }
}
