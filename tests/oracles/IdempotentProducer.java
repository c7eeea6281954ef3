import java.util.Properties;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Sends numbered records idempotently, says how many were acknowledged, and any error. */
public class IdempotentProducer {
    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int count = Integer.parseInt(args[2]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("enable.idempotence", "true");
        settings.put("acks", "all");
        settings.put("linger.ms", "1");
        settings.put("delivery.timeout.ms", "60000");
        settings.put("reconnect.backoff.max.ms", "200");
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        AtomicInteger acknowledged = new AtomicInteger();
        AtomicInteger errors = new AtomicInteger();
        Semaphore window = new Semaphore(2000);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            for (int number = 0; number < count; number++) {
                window.acquire();
                String value = "record-" + number;
                producer.send(new ProducerRecord<>(topic, 0, null, value), (metadata, problem) -> {
                    window.release();
                    if (problem != null) {
                        errors.incrementAndGet();
                        System.out.println("error " + problem);
                    } else if (acknowledged.incrementAndGet() % 100 == 0) {
                        System.out.println("acknowledged " + acknowledged.get());
                    }
                });
            }
        }
        System.out.println("done " + acknowledged.get() + " errors " + errors.get());
    }
}
