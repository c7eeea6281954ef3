import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import kafka.coordinator.group.GroupMetadata;
import kafka.coordinator.group.GroupMetadataManager;
import kafka.coordinator.group.MemberMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.group.generated.GroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Reads records of __consumer_offsets with Kafka's own code and writes them again.
 *
 * Lines "kind number content" on standard input, content in Base64; one line out for each. A kind
 * with "as" writes in the version of that number, the others as the coordinator of 3.9 would; for
 * partition the content is a group id and the number a count of partitions.
 */
public class OffsetsTopicRecords {
    static ApiMessage read(ApiMessage message, ByteBuffer buffer) {
        short version = buffer.getShort();
        message.read(new ByteBufferAccessor(buffer), version);
        return message;
    }

    static byte[] written(String kind, short number, ByteBuffer buffer) {
        switch (kind) {
            case "offset-key-as":
                return MessageUtil.toVersionPrefixedBytes(number, read(new OffsetCommitKey(), buffer));
            case "offset-as":
                return MessageUtil.toVersionPrefixedBytes(number, read(new OffsetCommitValue(), buffer));
            case "group-as":
                return MessageUtil.toVersionPrefixedBytes(number, read(new GroupMetadataValue(), buffer));
            case "offset-key":
                OffsetCommitKey key = (OffsetCommitKey) read(new OffsetCommitKey(), buffer);
                return GroupMetadataManager.offsetCommitKey(
                    key.group(), new TopicPartition(key.topic(), key.partition()));
            case "group-key":
                return GroupMetadataManager.groupMetadataKey(
                    ((GroupMetadataKey) read(new GroupMetadataKey(), buffer)).group());
            case "offset":
                return GroupMetadataManager.offsetCommitValue(
                    GroupMetadataManager.readOffsetMessageValue(buffer), MetadataVersion.IBP_3_9_IV0);
            case "group":
                return rewrittenGroup(buffer);
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    static byte[] rewrittenGroup(ByteBuffer buffer) {
        GroupMetadata group = GroupMetadataManager.readGroupMessageValue("g", buffer, Time.SYSTEM);
        Map<String, byte[]> assignment = new HashMap<>();
        scala.collection.Iterator<MemberMetadata> members = group.allMemberMetadata().iterator();
        while (members.hasNext()) {
            MemberMetadata member = members.next();
            assignment.put(member.memberId(), member.assignment());
        }
        return GroupMetadataManager.groupMetadataValue(
            group,
            scala.collection.immutable.Map$.MODULE$.from(scala.jdk.javaapi.CollectionConverters.asScala(assignment)),
            MetadataVersion.IBP_3_9_IV0);
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, UTF_8);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", 3);
            byte[] content = Base64.getDecoder().decode(words[2]);
            int number = Integer.parseInt(words[1]);
            if (words[0].equals("partition"))
                out.println(Utils.abs(new String(content, UTF_8).hashCode()) % number);
            else
                out.println(Base64.getEncoder().encodeToString(
                    written(words[0], (short) number, ByteBuffer.wrap(content))));
        }
    }
}
