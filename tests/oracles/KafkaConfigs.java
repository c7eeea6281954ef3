import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayInputStream;
import java.io.PrintStream;
import java.util.Base64;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Tells what Kafka knows of its configuration keys, and judges settings line by line.
 *
 * keys: one line per key: kind, name, type, default in Base64 or -, importance, internal, mode,
 * validator in Base64 or -, synonyms.
 * judge: lines "broker|topic name=value;name=value" in Base64 on standard input, ok or refused out.
 * properties: lines of Base64 in, the sorted entries in Base64 out.
 */
public class KafkaConfigs {
    static String encoded(Object text) {
        return text == null ? "-" : "=" + Base64.getEncoder().encodeToString(text.toString().getBytes(UTF_8));
    }

    static String decoded(String text) {
        return new String(Base64.getDecoder().decode(text), UTF_8);
    }

    static void keys(PrintStream out) throws Exception {
        Object dynamic = Class.forName("kafka.server.DynamicBrokerConfig$").getField("MODULE$").get(null);
        @SuppressWarnings("unchecked")
        Map<String, String> modes =
            (Map<String, String>) dynamic.getClass().getMethod("dynamicConfigUpdateModes").invoke(dynamic);
        for (ConfigDef.ConfigKey key : kafka.server.KafkaConfig.configDef().configKeys().values())
            out.println(row("broker", key, modes.getOrDefault(key.name, "read-only"), "-"));
        for (ConfigDef.ConfigKey key : LogConfig.configDefCopy().configKeys().values()) {
            StringBuilder synonyms = new StringBuilder("-");
            ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.getOrDefault(key.name, java.util.List.of())
                .forEach(s -> synonyms.append(s.name()).append('*').append(s.converter().apply("1")).append(','));
            out.println(row("topic", key, "read-only", synonyms.toString()));
        }
    }

    static String row(String kind, ConfigDef.ConfigKey key, String mode, String synonyms) {
        String value = key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null;
        return String.join(" ", kind, key.name, key.type.toString(), encoded(value), key.importance.toString(),
            Boolean.toString(key.internalConfig), mode, encoded(key.validator), synonyms);
    }

    static String judge(String line) {
        String[] words = line.split(" ", 2);
        Properties properties = new Properties();
        if (words.length > 1)
            for (String setting : decoded(words[1]).split("\u0000")) {
                int end = setting.indexOf('=');
                properties.setProperty(setting.substring(0, end), setting.substring(end + 1));
            }
        try {
            if (words[0].equals("topic")) {
                LogConfig.validate(Map.of(), properties, LogConfig.configDefCopy().parse(Map.of()), false, true);
            } else {
                properties.setProperty("zookeeper.connect", "nowhere:1");
                kafka.server.KafkaConfig.fromProps(properties, false);
            }
            return "ok";
        } catch (RuntimeException refused) {
            return "refused " + encoded(refused.getMessage());
        }
    }

    static String properties(String line) {
        Properties properties = new Properties();
        try {
            properties.load(new ByteArrayInputStream(Base64.getDecoder().decode(line.substring(1))));
        } catch (Exception malformed) {
            return "malformed";
        }
        StringBuilder out = new StringBuilder();
        Set<String> names = new java.util.TreeSet<>(properties.stringPropertyNames());
        for (String name : names)
            out.append(encoded(name)).append(' ').append(encoded(properties.getProperty(name))).append(' ');
        return out.toString();
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        if (arguments[0].equals("keys")) {
            keys(out);
            return;
        }
        var in = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine())
            out.println(arguments[0].equals("judge") ? judge(line) : properties(line));
    }
}
