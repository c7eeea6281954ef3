import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.Base64;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.common.errors.RetriableException;

/**
 * Runs Kafka's command-line tools, several of them in one JVM.
 *
 * tools: lines of a class and its arguments, each in Base64, with spaces between; for each line the
 * exit code, what it wrote to standard output and what to standard error, likewise.
 * retriable: the names of the error codes that Kafka's clients ask again for.
 * murmur2: lines of Base64 in, hashes out.
 */
public class KafkaTools {
    static class Ended extends RuntimeException {
        final int code;

        Ended(int code) {
            this.code = code;
        }
    }

    // Scala keeps the stream that it finds when it is first used.
    static final ByteArrayOutputStream out = new ByteArrayOutputStream();
    static final ByteArrayOutputStream err = new ByteArrayOutputStream();

    static String decoded(String text) {
        return text.equals("-") ? "" : new String(Base64.getDecoder().decode(text), UTF_8);
    }

    static String encoded(ByteArrayOutputStream bytes) {
        return bytes.size() == 0 ? "-" : Base64.getEncoder().encodeToString(bytes.toByteArray());
    }

    static void run(String line, PrintStream answers) throws Exception {
        String[] words = Arrays.stream(line.split(" ")).map(KafkaTools::decoded).toArray(String[]::new);
        out.reset();
        err.reset();
        String[] answer = new String[1];
        Exit.Procedure ended = (code, message) -> {
            System.out.flush();
            System.err.flush();
            if (answer[0] == null)
                answer[0] = code + " " + encoded(out) + " " + encoded(err);
            throw new Ended(code);
        };
        Exit.setExitProcedure(ended);
        Exit.setHaltProcedure(ended);
        String[] arguments = Arrays.copyOfRange(words, 1, words.length);
        try {
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
            ended.execute(0, null);
        } catch (InvocationTargetException | Ended end) {
            if (answer[0] == null)
                answer[0] = "1 " + encoded(out) + " " + encoded(err);
        }
        answers.println(answer[0]);
        answers.flush();
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        if (arguments[0].equals("retriable")) {
            for (Errors error : Errors.values())
                if (error.exception() instanceof RetriableException)
                    answers.println(error.name());
            return;
        }
        if (arguments[0].equals("tools")) {
            System.setOut(new PrintStream(out, true));
            System.setErr(new PrintStream(err, true));
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (arguments[0].equals("murmur2"))
                answers.println(Utils.murmur2(line.equals("-") ? new byte[0] : Base64.getDecoder().decode(line)));
            else
                run(line, answers);
        }
    }
}
