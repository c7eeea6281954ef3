/* One connection to the broker: requests that are owed to it, and the answers it gave. */
#ifndef BENCH_CONNECTION_H
#define BENCH_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frames.h"

#define OUTSTANDING_MAX (1u << 16)

struct connection {
    int socket;
    uint32_t index;
    bool wants_to_write;
    struct frame frame;
    size_t sent_bytes;         /* of the request that is being sent */
    uint32_t sent;             /* requests sent so far; their number is the correlation id */
    uint32_t due;              /* requests to be sent so far */
    uint32_t answered;         /* requests answered so far */
    uint64_t *begun_ns;        /* by correlation id: when a request was sent, or due */
    uint32_t begun_mask;
    uint8_t *input;
    size_t input_bytes;
    size_t input_capacity;
    uint32_t partition;        /* that is fetched from */
    uint64_t offset;           /* to be fetched next */
    uint64_t high_watermark;   /* as the last fetch told */
};

/* Called with every whole answer, without its length. */
typedef void answer_handler(struct connection *connection, const uint8_t *answer, size_t size,
                            uint64_t now);

/* Ends the program when the broker cannot be reached. */
struct connection *connect_to(uint16_t port, uint32_t index, const struct frame *frame,
                              uint32_t outstanding_max);
void disconnect(struct connection *connection);

/* Sends what is due as far as the socket takes it. With `is_closed_loop` requests begin when they
   are sent, otherwise when they were due; rotates over `partitions` unless that is 0. */
void send_due(struct connection *connection, uint32_t partitions, bool is_closed_loop);

/* Reads once and hands over all whole answers; false when the broker has closed. */
bool receive(struct connection *connection, answer_handler *handle);

#endif
