/* What the load generator is told on its command line. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "processes.h"

enum mode { PRODUCE, FETCH, PARK };

struct options {
    enum mode mode;
    uint16_t port;
    const char *topic;
    uint32_t partitions;
    uint32_t connections;
    uint32_t in_flight; /* of each connection, in a closed loop */
    double rate;        /* requests per second of an open loop; 0: closed */
    size_t record_bytes;
    size_t records; /* of a batch */
    int acks;
    uint32_t max_bytes;  /* of a fetch */
    bool checks_crc;     /* of what is fetched */
    uint64_t requests;   /* to stop after; 0: after the time */
    double warmup_seconds;
    double seconds;
    struct processes brokers;
};

struct options read_options(int count, char **arguments);

#endif
