/* Requests as they go over the wire, built once and patched for each sending. */
#ifndef BENCH_FRAMES_H
#define BENCH_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#define API_PRODUCE 0
#define API_FETCH 1
#define API_API_VERSIONS 18
#define PRODUCE_VERSION 7
#define FETCH_VERSION 11

#define BATCH_HEADER_BYTES 61

struct frame {
    uint8_t *bytes; /* with the length in front */
    size_t size;
    size_t correlation_at;
    size_t partition_at;
    size_t offset_at; /* of a fetch */
};

struct fetch_limits {
    uint32_t wait_ms;
    uint32_t min_bytes;
    uint32_t max_bytes;
};

struct frame build_produce(const char *topic, int16_t acks, size_t record_bytes, size_t records);
struct frame build_fetch(const char *topic, struct fetch_limits limits);
struct frame copy_frame(const struct frame *frame);

#endif
