/* Sockets that never block: small requests leave together, a large one from where it stands. */
#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bytes.h"

#define TOGETHER_BYTES (128u * 1024)
#define INPUT_BYTES (64u * 1024)
#define ANSWER_BYTES_MAX (300u << 20)

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int open_socket(uint16_t port) {
    int one = 1;
    int opened = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (opened < 0 || connect(opened, (struct sockaddr *)&address, sizeof address))
        fail("connect");
    setsockopt(opened, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (fcntl(opened, F_SETFL, O_NONBLOCK))
        fail("fcntl");
    return opened;
}

struct connection *connect_to(uint16_t port, uint32_t index, const struct frame *frame,
                              uint32_t outstanding_max) {
    struct connection *connection = calloc(1, sizeof *connection);
    connection->socket = open_socket(port);
    connection->index = index;
    connection->frame = copy_frame(frame);
    uint32_t places = 1;
    while (places < outstanding_max)
        places *= 2;
    connection->begun_ns = calloc(places, sizeof *connection->begun_ns);
    connection->begun_mask = places - 1;
    connection->input_capacity = INPUT_BYTES;
    connection->input = malloc(INPUT_BYTES);
    return connection;
}

void disconnect(struct connection *connection) {
    close(connection->socket);
    free(connection->frame.bytes);
    free(connection->begun_ns);
    free(connection->input);
    free(connection);
}

static void patch(struct connection *connection, uint32_t request, uint32_t partitions) {
    struct frame *frame = &connection->frame;
    put32(frame->bytes + frame->correlation_at, request);
    if (partitions)
        put32(frame->bytes + frame->partition_at, (request + connection->index) % partitions);
}

/* Notes what left of the requests from `sent` on; the last may have left in part. */
static void note_sent(struct connection *connection, size_t bytes, bool is_closed_loop,
                      uint64_t now) {
    while (bytes) {
        if (!connection->sent_bytes && is_closed_loop)
            connection->begun_ns[connection->sent & connection->begun_mask] = now;
        size_t left = connection->frame.size - connection->sent_bytes;
        if (bytes < left) {
            connection->sent_bytes += bytes;
            return;
        }
        bytes -= left;
        connection->sent_bytes = 0;
        connection->sent++;
    }
}

static size_t gather(struct connection *connection, uint8_t *together, uint32_t partitions) {
    size_t size = 0;
    size_t skipped = connection->sent_bytes;
    for (uint32_t request = connection->sent; request != connection->due; request++) {
        size_t bytes = connection->frame.size - skipped;
        if (size + bytes > TOGETHER_BYTES)
            break;
        patch(connection, request, partitions);
        memcpy(together + size, connection->frame.bytes + skipped, bytes);
        size += bytes;
        skipped = 0;
    }
    return size;
}

void send_due(struct connection *connection, uint32_t partitions, bool is_closed_loop) {
    static uint8_t together[TOGETHER_BYTES];
    while (connection->sent != connection->due) {
        const uint8_t *from = together;
        size_t size;
        if (connection->frame.size <= TOGETHER_BYTES / 4) {
            size = gather(connection, together, partitions);
        } else {
            if (!connection->sent_bytes)
                patch(connection, connection->sent, partitions);
            from = connection->frame.bytes + connection->sent_bytes;
            size = connection->frame.size - connection->sent_bytes;
        }
        uint64_t now = is_closed_loop ? now_ns() : 0;
        ssize_t left = send(connection->socket, from, size, MSG_NOSIGNAL);
        if (left < 0) {
            if (errno == EAGAIN)
                return;
            fail("send");
        }
        note_sent(connection, (size_t)left, is_closed_loop, now);
        if ((size_t)left < size)
            return;
    }
}

static void make_room(struct connection *connection, size_t wanted) {
    if (wanted > ANSWER_BYTES_MAX) {
        fprintf(stderr, "load: an answer of %zu bytes\n", wanted);
        exit(1);
    }
    if (wanted <= connection->input_capacity)
        return;
    connection->input_capacity = wanted;
    connection->input = realloc(connection->input, wanted);
    if (!connection->input)
        fail("realloc");
}

bool receive(struct connection *connection, answer_handler *handle) {
    ssize_t count = recv(connection->socket, connection->input + connection->input_bytes,
                         connection->input_capacity - connection->input_bytes, 0);
    if (count < 0 && errno == EAGAIN)
        return true;
    if (count <= 0)
        return false;
    uint64_t now = now_ns();
    connection->input_bytes += (size_t)count;
    size_t used = 0;
    while (connection->input_bytes - used >= 4) {
        size_t size = 4 + (size_t)get32(connection->input + used);
        if (connection->input_bytes - used < size) {
            memmove(connection->input, connection->input + used, connection->input_bytes - used);
            connection->input_bytes -= used;
            make_room(connection, size);
            return true;
        }
        handle(connection, connection->input + used + 4, size - 4, now);
        used += size;
    }
    memmove(connection->input, connection->input + used, connection->input_bytes - used);
    connection->input_bytes -= used;
    return true;
}
