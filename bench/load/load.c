/* Load for a broker, closed loop or open, and what it cost the broker.

   Closed loop: every connection has a number of requests unanswered and sends the next one when
   an answer comes. It shows capacity and cost, and hides stalls: while the broker stands still,
   nothing is asked of it. Open loop: requests are due at a fixed rate whatever the broker does,
   and latency counts from when a request was due.

   The same frames are sent again and again: corruption on the way to the disk cannot be seen
   here, which is what real clients with random payloads are for. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "answers.h"
#include "bytes.h"
#include "connection.h"
#include "histogram.h"
#include "options.h"

#define EVENTS_MAX 256
#define SPIN_NS 200000u /* an arrival that is due sooner is waited for without sleeping */
#define PARK_WAIT_MS 600000u
#define SETTLE_SECONDS 0.5

static struct options options;
static struct connection **connections;
static int poller;
static struct histogram latencies;
static uint64_t begun_total; /* requests that were due so far, of all connections */
static uint64_t answers, errors, wrong, answer_bytes, record_bytes;
static int first_error;

static void note_error(int error) {
    if (error && !errors++)
        first_error = error;
}

static void note_answer(struct connection *connection, uint32_t correlation, size_t size,
                        uint64_t now) {
    if (correlation != connection->answered)
        wrong++;
    uint64_t begun = connection->begun_ns[connection->answered & connection->begun_mask];
    connection->answered++;
    note_latency(&latencies, now - begun);
    answers++;
    answer_bytes += size + 4;
}

static void due_once(struct connection *connection) {
    if (options.requests && begun_total == options.requests)
        return;
    begun_total++;
    connection->due++;
}

static void on_produced(struct connection *connection, const uint8_t *at, size_t size,
                        uint64_t now) {
    struct produce_answer answer;
    if (!read_produce_answer(at, size, &answer))
        wrong++;
    note_error(answer.error);
    note_answer(connection, answer.correlation, size, now);
    if (options.rate == 0)
        due_once(connection);
}

/* The end is left a little early: what the broker then serves is always a full answer. */
static void on_fetched(struct connection *connection, const uint8_t *at, size_t size,
                       uint64_t now) {
    struct fetch_answer answer = {0};
    bool is_wrong = !read_fetch_answer(at, size, &answer);
    note_error(answer.error);
    note_answer(connection, answer.correlation, size, now);
    uint64_t offset = connection->offset;
    if (!is_wrong && !answer.error)
        offset = walk_batches(&answer, offset, options.checks_crc, &is_wrong);
    wrong += is_wrong;
    record_bytes += answer.records_bytes;
    uint64_t step = offset - connection->offset;
    connection->high_watermark = answer.high_watermark;
    connection->offset = offset + step > answer.high_watermark || !step ? 0 : offset;
    put64(connection->frame.bytes + connection->frame.offset_at, connection->offset);
    due_once(connection);
}

static void on_parked(struct connection *connection, const uint8_t *at, size_t size,
                      uint64_t now) {
    struct fetch_answer answer = {0};
    if (!read_fetch_answer(at, size, &answer))
        wrong++;
    note_error(answer.error);
    note_answer(connection, answer.correlation, size, now);
    connection->high_watermark = answer.high_watermark;
}

static answer_handler *handler(void) {
    return options.mode == PRODUCE ? on_produced : options.mode == FETCH ? on_fetched : on_parked;
}

static void pump(struct connection *connection) {
    send_due(connection, options.mode == PRODUCE ? options.partitions : 0, options.rate == 0);
    bool wants_to_write = connection->sent != connection->due;
    if (wants_to_write == connection->wants_to_write)
        return;
    connection->wants_to_write = wants_to_write;
    struct epoll_event event = {.events = EPOLLIN | (wants_to_write ? EPOLLOUT : 0),
                                .data.ptr = connection};
    epoll_ctl(poller, EPOLL_CTL_MOD, connection->socket, &event);
}

static void open_connections(const struct frame *frame) {
    uint32_t outstanding = options.rate ? OUTSTANDING_MAX : options.in_flight;
    poller = epoll_create1(EPOLL_CLOEXEC);
    connections = calloc(options.connections, sizeof *connections);
    for (uint32_t index = 0; index < options.connections; index++) {
        struct connection *connection = connect_to(options.port, index, frame, outstanding);
        connections[index] = connection;
        if (options.mode != PRODUCE) {
            connection->partition = index % options.partitions;
            put32(connection->frame.bytes + connection->frame.partition_at,
                  connection->partition);
        }
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        epoll_ctl(poller, EPOLL_CTL_ADD, connection->socket, &event);
    }
}

/* Every request that was due by now, on one connection after the other. */
static uint64_t note_arrivals(uint64_t started, uint64_t now) {
    uint64_t due_ns = started + (uint64_t)((double)begun_total * 1e9 / options.rate);
    while (due_ns <= now) {
        struct connection *connection = connections[begun_total % options.connections];
        if (connection->due - connection->answered == OUTSTANDING_MAX) {
            fprintf(stderr, "load: %u requests unanswered: the broker does not keep up\n",
                    OUTSTANDING_MAX);
            exit(3);
        }
        connection->begun_ns[connection->due & connection->begun_mask] = due_ns;
        uint32_t before = connection->due;
        due_once(connection);
        if (connection->due == before)
            return UINT64_MAX;
        if (connection->due - connection->sent == 1)
            pump(connection);
        due_ns = started + (uint64_t)((double)begun_total * 1e9 / options.rate);
    }
    return due_ns;
}

static void turn(int wait_ms) {
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(poller, events, EVENTS_MAX, wait_ms);
    for (int index = 0; index < count; index++) {
        struct connection *connection = events[index].data.ptr;
        if (events[index].events & ~(uint32_t)EPOLLOUT && !receive(connection, handler())) {
            fprintf(stderr, "load: the broker closed connection %u\n", connection->index);
            exit(1);
        }
        pump(connection);
    }
}

static void turns_until(uint64_t started, uint64_t until) {
    for (uint64_t now = now_ns(); now < until; now = now_ns()) {
        if (options.requests && answers == options.requests)
            return;
        int wait_ms = (int)((until - now) / 1000000 + 1);
        if (options.rate) {
            uint64_t next = note_arrivals(started, now);
            wait_ms = next < now + SPIN_NS ? 0 : wait_ms > 1 ? 1 : wait_ms;
        }
        turn(wait_ms < 100 ? wait_ms : 100);
    }
}

static double cpu_seconds_of_this(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void print_figures(struct usage before, uint64_t begun, double own_cpu) {
    struct usage after = usage_of(&options.brokers);
    double seconds = (double)(now_ns() - begun) / 1e9;
    double cpu = (double)(after.cpu_ns - before.cpu_ns) / 1e9;
    double count = answers ? (double)answers : 1;
    double bytes = options.mode == FETCH ? (double)record_bytes
                                         : (double)answers * (double)connections[0]->frame.size;
    printf("{\"requests\": %lu, \"seconds\": %.3f, \"requests_per_second\": %.0f, ", answers,
           seconds, (double)answers / seconds);
    printf("\"megabytes_per_second\": %.1f, \"cpu_us_per_request\": %.3f, ", bytes / seconds / 1e6,
           cpu * 1e6 / count);
    printf("\"cpu_seconds_per_gigabyte\": %.4f, \"broker_utilisation\": %.3f, ",
           bytes > 0 ? cpu / (bytes / 1e9) : 0, cpu / seconds);
    printf("\"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f, ",
           quantile_us(&latencies, 0.5), quantile_us(&latencies, 0.99),
           quantile_us(&latencies, 0.999), (double)latencies.max_ns / 1000);
    printf("\"resident_kb\": %lu, \"peak_kb\": %lu, \"minor_faults_per_request\": %.3f, ",
           after.resident_kb, after.peak_kb,
           (double)(after.minor_faults - before.minor_faults) / count);
    printf("\"errors\": %lu, \"first_error\": %d, \"wrong\": %lu, ", errors, first_error, wrong);
    printf("\"request_bytes\": %zu, \"own_cpu_us_per_request\": %.3f}\n",
           connections[0]->frame.size, (cpu_seconds_of_this() - own_cpu) * 1e6 / count);
}

/* With a number of requests all of them count; otherwise those after the warm-up. */
static void run_loops(void) {
    struct usage before = usage_of(&options.brokers);
    double own_cpu = cpu_seconds_of_this();
    uint64_t started = now_ns();
    uint64_t measured_from = started;
    for (uint32_t index = 0; options.rate == 0 && index < options.connections; index++) {
        for (uint32_t request = 0; request < options.in_flight; request++)
            due_once(connections[index]);
        pump(connections[index]);
    }
    if (!options.requests) {
        turns_until(started, started + (uint64_t)(options.warmup_seconds * 1e9));
        memset(&latencies, 0, sizeof latencies);
        answers = answer_bytes = record_bytes = 0;
        before = usage_of(&options.brokers);
        own_cpu = cpu_seconds_of_this();
        measured_from = now_ns();
    }
    turns_until(started, measured_from + (uint64_t)(options.seconds * 1e9));
    print_figures(before, measured_from, own_cpu);
}

static void ask_all_and_wait(uint64_t answers_wanted) {
    for (uint32_t index = 0; index < options.connections; index++) {
        connections[index]->due++;
        pump(connections[index]);
    }
    uint64_t deadline = now_ns() + (uint64_t)(options.seconds * 1e9);
    while (answers < answers_wanted && now_ns() < deadline)
        turn(10);
}

/* Long polls at the end of the log: what an idle connection costs, and what one that waits. */
static void run_park(void) {
    struct usage alone = usage_of(&options.brokers);
    struct frame frame = build_fetch(options.topic, (struct fetch_limits){0, 1, 1});
    open_connections(&frame);
    ask_all_and_wait(options.connections);
    usleep((useconds_t)(SETTLE_SECONDS * 1e6));
    struct usage connected = usage_of(&options.brokers);
    struct frame parked = build_fetch(options.topic, (struct fetch_limits){PARK_WAIT_MS, 1, 1});
    for (uint32_t index = 0; index < options.connections; index++) {
        struct connection *connection = connections[index];
        memcpy(connection->frame.bytes, parked.bytes, parked.size);
        put32(connection->frame.bytes + parked.partition_at, connection->partition);
        put64(connection->frame.bytes + parked.offset_at, connection->high_watermark);
    }
    uint64_t answered = answers;
    ask_all_and_wait(answered + 1);
    struct usage waiting = usage_of(&options.brokers);
    double count = options.connections;
    printf("{\"connections\": %u, \"errors\": %lu, \"first_error\": %d, \"wrong\": %lu, ",
           options.connections, errors, first_error, wrong);
    printf("\"answered_at_once\": %lu, \"answered_when_parked\": %lu, ", answered,
           answers - answered);
    printf("\"resident_kb\": %lu, \"connected_kb\": %lu, \"parked_kb\": %lu, ",
           alone.resident_kb, connected.resident_kb, waiting.resident_kb);
    printf("\"bytes_per_connection\": %.0f, \"bytes_per_parked\": %.0f, ",
           1024 * ((double)connected.resident_kb - (double)alone.resident_kb) / count,
           1024 * ((double)waiting.resident_kb - (double)connected.resident_kb) / count);
    printf("\"cpu_ms_while_parked\": %.3f}\n",
           (double)(waiting.cpu_ns - connected.cpu_ns) / 1e6);
}

int main(int count, char **arguments) {
    options = read_options(count, arguments);
    if (options.mode == PARK) {
        run_park();
    } else {
        struct frame frame =
            options.mode == PRODUCE
                ? build_produce(options.topic, (int16_t)options.acks, options.record_bytes,
                                options.records)
                : build_fetch(options.topic, (struct fetch_limits){500, 1, options.max_bytes});
        open_connections(&frame);
        run_loops();
    }
    for (uint32_t index = 0; index < options.connections; index++)
        disconnect(connections[index]);
    return errors || wrong ? 4 : 0;
}
