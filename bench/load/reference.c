/* The least that a broker can do, to measure others against: parse, check, append, answer.

   Produce 7, Fetch 11 and ApiVersions 0. A topic is there once it is named. One file per
   partition, begun anew when it is full. No replication, no waiting, no recovery, no limits: what
   it costs is what the kernel, the checksum and a little C cost.

   reference PORT DIRECTORY [--partitions N] [--gather] [--pread] [--segment-bytes N]
     --gather  one write per partition and turn of the loop instead of one per batch
     --pread   what is fetched goes through a buffer instead of sendfile */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bytes.h"
#include "crc32c.h"
#include "frames.h"

#define EVENTS_MAX 256
#define GATHERED_MAX 512
#define INPUT_BYTES (256u * 1024)
#define FRAME_BYTES_MAX (128u << 20)
#define OUTPUT_BYTES (64u * 1024)
#define ANSWER_BYTES_MAX 512u
#define INDEX_INTERVAL_BYTES 4096
#define CORRUPT_MESSAGE 2
#define OFFSET_OUT_OF_RANGE 1
#define UNKNOWN_PARTITION 3
#define TOPICS_MAX 16
#define NAME_BYTES_MAX 251 /* with its length */

struct entry {
    uint64_t offset;
    off_t position;
};

struct partition {
    int file;
    uint64_t start_offset;
    uint64_t next_offset;
    off_t size;
    struct entry *entries; /* sparse, in order */
    size_t entry_count;
    size_t entry_capacity;
    struct iovec gathered[GATHERED_MAX];
    int gathered_count;
};

struct connection {
    int socket;
    bool is_closed;
    bool is_touched; /* has something to send or to make room for at the end of the turn */
    uint8_t *input;
    size_t input_bytes;
    size_t input_capacity;
    size_t used_bytes; /* of the input, by requests that were answered */
    uint8_t output[OUTPUT_BYTES];
    size_t output_bytes;
    size_t output_sent;
    int file; /* that is sent after the output */
    off_t file_position;
    size_t file_bytes;
    uint8_t *read_buffer; /* with --pread */
};

struct topic {
    uint8_t name[NAME_BYTES_MAX];
    size_t name_bytes;
    struct partition *partitions;
};

static struct topic topics[TOPICS_MAX];
static size_t topic_count;
static uint32_t partition_count = 64; /* of each topic */
static const char *directory;
static bool gathers, uses_pread;
static off_t segment_bytes = 256 << 20;
static int poller;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static struct topic *add_topic(const uint8_t *name, size_t name_bytes) {
    char path[PATH_MAX];
    if (topic_count == TOPICS_MAX || name_bytes > NAME_BYTES_MAX)
        return NULL;
    struct topic *topic = &topics[topic_count];
    memcpy(topic->name, name, name_bytes);
    topic->name_bytes = name_bytes;
    topic->partitions = calloc(partition_count, sizeof *topic->partitions);
    for (uint32_t index = 0; index < partition_count; index++) {
        snprintf(path, sizeof path, "%s/%zu-%u.log", directory, topic_count, index);
        topic->partitions[index].file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (topic->partitions[index].file < 0)
            fail(path);
    }
    topic_count++;
    return topic;
}

/* The partition, NULL when there is none; the name comes with its length. */
static struct partition *find_partition(const uint8_t *name, size_t name_bytes, uint32_t index) {
    struct topic *topic = topics;
    struct topic *end = topics + topic_count;
    while (topic < end && (topic->name_bytes != name_bytes ||
                           memcmp(topic->name, name, name_bytes)))
        topic++;
    if (topic == end)
        topic = add_topic(name, name_bytes);
    return topic && index < partition_count ? &topic->partitions[index] : NULL;
}

static void write_gathered(struct partition *partition) {
    if (!partition->gathered_count)
        return;
    size_t size = 0;
    for (int index = 0; index < partition->gathered_count; index++)
        size += partition->gathered[index].iov_len;
    if (writev(partition->file, partition->gathered, partition->gathered_count) != (ssize_t)size)
        fail("writev");
    partition->gathered_count = 0;
}

static void write_all_gathered(void) {
    for (size_t topic = 0; gathers && topic < topic_count; topic++)
        for (uint32_t index = 0; index < partition_count; index++)
            write_gathered(&topics[topic].partitions[index]);
}

static void begin_anew(struct partition *partition) {
    write_gathered(partition);
    if (ftruncate(partition->file, 0) || lseek(partition->file, 0, SEEK_SET))
        fail("ftruncate");
    partition->size = 0;
    partition->entry_count = 0;
    partition->start_offset = partition->next_offset;
}

static void note_entry(struct partition *partition) {
    off_t last = partition->entry_count
                     ? partition->entries[partition->entry_count - 1].position
                     : -INDEX_INTERVAL_BYTES;
    if (partition->size - last < INDEX_INTERVAL_BYTES)
        return;
    if (partition->entry_count == partition->entry_capacity) {
        partition->entry_capacity = 2 * partition->entry_capacity + 1024;
        partition->entries = realloc(partition->entries,
                                     partition->entry_capacity * sizeof *partition->entries);
    }
    partition->entries[partition->entry_count++] =
        (struct entry){partition->next_offset, partition->size};
}

static uint64_t append(struct partition *partition, uint8_t *batch, size_t size) {
    uint64_t base_offset = partition->next_offset;
    if (partition->size + (off_t)size > segment_bytes)
        begin_anew(partition);
    note_entry(partition);
    put64(batch, base_offset);
    put32(batch + 12, 0);
    if (gathers) {
        if (partition->gathered_count == GATHERED_MAX)
            write_gathered(partition);
        partition->gathered[partition->gathered_count++] = (struct iovec){batch, size};
    } else if (write(partition->file, batch, size) != (ssize_t)size) {
        fail("write");
    }
    partition->size += (off_t)size;
    partition->next_offset += get32(batch + 23) + 1;
    return base_offset;
}

/* Where the batch that holds the offset begins. */
static off_t position_of(struct partition *partition, uint64_t offset) {
    size_t low = 0, high = partition->entry_count;
    while (low + 1 < high) {
        size_t middle = (low + high) / 2;
        if (partition->entries[middle].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    off_t position = partition->entry_count ? partition->entries[low].position : 0;
    uint8_t header[BATCH_HEADER_BYTES];
    while (position < partition->size) {
        if (pread(partition->file, header, sizeof header, position) != (ssize_t)sizeof header)
            fail("pread");
        if (get64(header) + get32(header + 23) >= offset)
            break;
        position += 12 + (off_t)get32(header + 8);
    }
    return position;
}

/* What follows is at least so long? */
static bool has(const uint8_t *at, const uint8_t *end, size_t size) {
    return (size_t)(end - at) >= size;
}

/* Skips a nullable string; NULL when it is not all there. */
static uint8_t *skip_string(uint8_t *at, const uint8_t *end) {
    if (!at || !has(at, end, 2))
        return NULL;
    int16_t size = (int16_t)get16(at);
    at += 2;
    return size <= 0 ? at : has(at, end, (size_t)size) ? at + size : NULL;
}

static uint8_t *begin_answer(struct connection *connection, uint32_t correlation) {
    uint8_t *at = connection->output + connection->output_bytes;
    return put32(at + 4, correlation);
}

static void end_answer(struct connection *connection, uint8_t *at, size_t file_bytes) {
    uint8_t *start = connection->output + connection->output_bytes;
    put32(start, (uint32_t)((size_t)(at - start) - 4 + file_bytes));
    connection->output_bytes = (size_t)(at - connection->output);
}

static bool on_produce(struct connection *connection, uint32_t correlation, uint8_t *at,
                       const uint8_t *end) {
    at = skip_string(at, end); /* transactional id */
    if (!at || !has(at, end, 12) || get32(at + 6) != 1)
        return false;
    uint8_t *name = at + 10;
    at = skip_string(name, end);
    if (!at || !has(at, end, 12) || get32(at) != 1)
        return false;
    size_t name_bytes = (size_t)(at - name);
    uint32_t index = get32(at + 4);
    uint32_t size = get32(at + 8);
    uint8_t *batch = at + 12;
    if (!has(batch, end, size) || size < BATCH_HEADER_BYTES || name_bytes > NAME_BYTES_MAX)
        return false;
    uint16_t error = 0;
    uint64_t base_offset = UINT64_MAX;
    struct partition *partition = find_partition(name, name_bytes, index);
    if (!partition)
        error = UNKNOWN_PARTITION;
    else if (crc32c(0, batch + 21, size - 21) != get32(batch + 17))
        error = CORRUPT_MESSAGE;
    else
        base_offset = append(partition, batch, size);
    uint8_t *answer = put32(begin_answer(connection, correlation), 1);
    memcpy(answer, name, name_bytes);
    answer = put32(put32(answer + name_bytes, 1), index);
    answer = put64(put16(answer, error), base_offset);
    answer = put32(put64(put64(answer, UINT64_MAX), 0), 0);
    end_answer(connection, answer, 0);
    return true;
}

static bool on_fetch(struct connection *connection, uint32_t correlation, uint8_t *at,
                     const uint8_t *end) {
    if (!has(at, end, 29) || get32(at + 25) != 1)
        return false;
    uint8_t *name = at + 29;
    at = skip_string(name, end);
    if (!at || !has(at, end, 32) || get32(at) != 1)
        return false;
    size_t name_bytes = (size_t)(at - name);
    uint32_t index = get32(at + 4);
    uint64_t offset = get64(at + 12);
    size_t size = get32(at + 28);
    struct partition *partition = find_partition(name, name_bytes, index);
    if (!partition)
        return false;
    write_gathered(partition);
    bool is_inside = offset >= partition->start_offset && offset <= partition->next_offset;
    off_t position = is_inside ? position_of(partition, offset) : partition->size;
    if (partition->size - position < (off_t)size)
        size = (size_t)(partition->size - position);
    uint8_t *answer = put32(begin_answer(connection, correlation), 0);
    answer = put32(put32(put16(answer, 0), 0), 1);
    memcpy(answer, name, name_bytes);
    answer = put32(put32(answer + name_bytes, 1), index);
    answer = put16(answer, is_inside ? 0 : OFFSET_OUT_OF_RANGE);
    answer = put64(put64(answer, partition->next_offset), partition->next_offset);
    answer = put32(put32(put64(answer, partition->start_offset), UINT32_MAX), UINT32_MAX);
    answer = put32(answer, (uint32_t)size);
    end_answer(connection, answer, size);
    connection->file = partition->file;
    connection->file_position = position;
    connection->file_bytes = size;
    return true;
}

static bool on_api_versions(struct connection *connection, uint32_t correlation) {
    static const uint16_t APIS[][2] = {{API_PRODUCE, PRODUCE_VERSION},
                                       {API_FETCH, FETCH_VERSION},
                                       {API_API_VERSIONS, 0}};
    size_t count = sizeof APIS / sizeof *APIS;
    uint8_t *answer = put16(begin_answer(connection, correlation), 0);
    answer = put32(answer, (uint32_t)count);
    for (size_t index = 0; index < count; index++)
        answer = put16(put16(put16(answer, APIS[index][0]), APIS[index][1]), APIS[index][1]);
    end_answer(connection, answer, 0);
    return true;
}

static bool on_request(struct connection *connection, uint8_t *at, const uint8_t *end) {
    if (!has(at, end, 8))
        return false;
    uint16_t key = get16(at), version = get16(at + 2);
    uint32_t correlation = get32(at + 4);
    at = skip_string(at + 8, end); /* client id */
    if (!at)
        return false;
    if (key == API_PRODUCE && version == PRODUCE_VERSION)
        return on_produce(connection, correlation, at, end);
    if (key == API_FETCH && version == FETCH_VERSION)
        return on_fetch(connection, correlation, at, end);
    return key == API_API_VERSIONS && version == 0 && on_api_versions(connection, correlation);
}

/* All whole requests that came, until the output is full or a file has to be sent first. */
static bool take_requests(struct connection *connection) {
    while (!connection->file_bytes &&
           connection->output_bytes + ANSWER_BYTES_MAX < OUTPUT_BYTES) {
        uint8_t *at = connection->input + connection->used_bytes;
        size_t left = connection->input_bytes - connection->used_bytes;
        if (left < 4)
            break;
        size_t size = get32(at);
        if (size > FRAME_BYTES_MAX)
            return false;
        if (left < 4 + size)
            break;
        if (!on_request(connection, at + 4, at + 4 + size))
            return false;
        connection->used_bytes += 4 + size;
    }
    return true;
}

/* Makes room for the rest of a frame: what was used is overwritten, so it must be on disk. */
static void compact(struct connection *connection) {
    size_t left = connection->input_bytes - connection->used_bytes;
    memmove(connection->input, connection->input + connection->used_bytes, left);
    connection->input_bytes = left;
    connection->used_bytes = 0;
    size_t wanted = left >= 4 ? 4 + (size_t)get32(connection->input) : INPUT_BYTES;
    if (wanted > connection->input_capacity) {
        connection->input_capacity = 2 * wanted;
        connection->input = realloc(connection->input, connection->input_capacity);
    }
}

static bool read_requests(struct connection *connection) {
    ssize_t count = recv(connection->socket, connection->input + connection->input_bytes,
                         connection->input_capacity - connection->input_bytes, 0);
    if (count <= 0)
        return count < 0 && errno == EAGAIN;
    connection->input_bytes += (size_t)count;
    return take_requests(connection);
}

static bool send_file(struct connection *connection) {
    while (connection->file_bytes) {
        ssize_t sent;
        if (uses_pread) {
            size_t size = connection->file_bytes < 1u << 20 ? connection->file_bytes : 1u << 20;
            if (!connection->read_buffer)
                connection->read_buffer = malloc(1u << 20);
            if (pread(connection->file, connection->read_buffer, size,
                      connection->file_position) != (ssize_t)size)
                return false;
            sent = send(connection->socket, connection->read_buffer, size, MSG_NOSIGNAL);
            if (sent > 0)
                connection->file_position += sent;
        } else {
            sent = sendfile(connection->socket, connection->file, &connection->file_position,
                            connection->file_bytes);
        }
        if (sent <= 0)
            return sent < 0 && errno == EAGAIN;
        connection->file_bytes -= (size_t)sent;
    }
    return true;
}

/* Sends as much as the socket takes; false when the connection is no more. */
static bool send_answers(struct connection *connection) {
    if (connection->output_sent < connection->output_bytes) {
        ssize_t sent = send(connection->socket, connection->output + connection->output_sent,
                            connection->output_bytes - connection->output_sent,
                            MSG_NOSIGNAL | (connection->file_bytes ? MSG_MORE : 0));
        if (sent < 0)
            return errno == EAGAIN;
        connection->output_sent += (size_t)sent;
        if (connection->output_sent < connection->output_bytes)
            return true;
        connection->output_sent = connection->output_bytes = 0;
    }
    return send_file(connection);
}

static void accept_all(int listener) {
    int one = 1;
    for (;;) {
        int accepted = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (accepted < 0)
            return;
        setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct connection *connection = calloc(1, sizeof *connection);
        connection->socket = accepted;
        connection->input_capacity = INPUT_BYTES;
        connection->input = malloc(INPUT_BYTES);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        epoll_ctl(poller, EPOLL_CTL_ADD, accepted, &event);
    }
}

static void drop(struct connection *connection) {
    close(connection->socket);
    free(connection->input);
    free(connection->read_buffer);
    free(connection);
}

static bool is_sending(const struct connection *connection) {
    return connection->output_bytes || connection->file_bytes;
}

/* After what was appended is written: answers leave, input makes room. */
static void end_turn_of(struct connection *connection, bool was_sending) {
    bool is_open = !connection->is_closed;
    while (is_open && is_sending(connection)) {
        is_open = send_answers(connection);
        if (!is_open || is_sending(connection))
            break;
        is_open = take_requests(connection); /* those that waited behind a file */
        write_all_gathered();
    }
    if (!is_open) {
        drop(connection);
        return;
    }
    compact(connection);
    if (is_sending(connection) == was_sending)
        return;
    struct epoll_event event = {.events = was_sending ? EPOLLIN : EPOLLOUT,
                                .data.ptr = connection};
    epoll_ctl(poller, EPOLL_CTL_MOD, connection->socket, &event);
}

static void run(int listener) {
    struct epoll_event events[EVENTS_MAX];
    bool was_sending[EVENTS_MAX];
    for (;;) {
        int count = epoll_wait(poller, events, EVENTS_MAX, -1);
        for (int index = 0; index < count; index++) {
            struct connection *connection = events[index].data.ptr;
            if (!connection) {
                accept_all(listener);
                continue;
            }
            was_sending[index] = is_sending(connection);
            if (!was_sending[index])
                connection->is_closed = !read_requests(connection);
        }
        write_all_gathered();
        for (int index = 0; index < count; index++)
            if (events[index].data.ptr)
                end_turn_of(events[index].data.ptr, was_sending[index]);
    }
}

static int listen_at(uint16_t port) {
    int one = 1;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096))
        fail("listen");
    return listener;
}

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "reference PORT DIRECTORY [options]\n");
        return 2;
    }
    for (int index = 3; index < count; index++) {
        bool has_value = index + 1 < count;
        if (!strcmp(arguments[index], "--gather"))
            gathers = true;
        else if (!strcmp(arguments[index], "--pread"))
            uses_pread = true;
        else if (!strcmp(arguments[index], "--partitions") && has_value)
            partition_count = (uint32_t)atoi(arguments[++index]);
        else if (!strcmp(arguments[index], "--segment-bytes") && has_value)
            segment_bytes = atoll(arguments[++index]);
        else
            return fprintf(stderr, "reference: %s?\n", arguments[index]), 2;
    }
    signal(SIGPIPE, SIG_IGN);
    directory = arguments[2];
    int listener = listen_at((uint16_t)atoi(arguments[1]));
    poller = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    run(listener);
}
