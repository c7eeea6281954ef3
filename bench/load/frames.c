/* Builds Produce 7 with one batch of magic 2, and Fetch 11 without a session. */
#include "frames.h"

#include <stdlib.h>

#include "bytes.h"
#include "crc32c.h"

#define CLIENT "bench"
#define TIMEOUT_MS 30000
#define TIMESTAMP_MS 1700000000000u

static uint8_t *begin(struct frame *frame, uint16_t key, uint16_t version) {
    uint8_t *at = put16(frame->bytes + 4, key);
    at = put16(at, version);
    frame->correlation_at = (size_t)(at - frame->bytes);
    at = put32(at, 0);
    return put_string(at, CLIENT, strlen(CLIENT));
}

static void end(struct frame *frame, uint8_t *at) {
    frame->size = (size_t)(at - frame->bytes);
    put32(frame->bytes, (uint32_t)(frame->size - 4));
}

static uint8_t *put_varint(uint8_t *at, int64_t value) {
    uint64_t raw = (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
    for (; raw >= 0x80; raw >>= 7)
        *at++ = (uint8_t)(raw | 0x80);
    *at++ = (uint8_t)raw;
    return at;
}

/* Bytes that do not compress, the same in every run. */
static uint8_t *put_noise(uint8_t *at, size_t size) {
    static uint64_t state = 0x9E3779B97F4A7C15u;
    while (size--) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *at++ = (uint8_t)state;
    }
    return at;
}

static uint8_t *put_record(uint8_t *at, size_t index, size_t value_bytes) {
    uint8_t fields[32];
    uint8_t *end_of_fields = put_varint(put8(fields, 0), 0);
    end_of_fields = put_varint(end_of_fields, (int64_t)index);
    end_of_fields = put_varint(end_of_fields, -1);
    end_of_fields = put_varint(end_of_fields, (int64_t)value_bytes);
    size_t fields_bytes = (size_t)(end_of_fields - fields);
    at = put_varint(at, (int64_t)(fields_bytes + value_bytes + 1));
    memcpy(at, fields, fields_bytes);
    return put_varint(put_noise(at + fields_bytes, value_bytes), 0);
}

static uint8_t *put_batch(uint8_t *batch, size_t record_bytes, size_t records) {
    uint8_t *at = put64(batch, 0);
    at = put32(at + 4, UINT32_MAX);
    at = put8(at, 2);
    uint8_t *crc_at = at;
    uint8_t *covered = at + 4;
    at = put16(covered, 0);
    at = put32(at, (uint32_t)(records - 1));
    at = put64(put64(at, TIMESTAMP_MS), TIMESTAMP_MS);
    at = put16(put64(at, UINT64_MAX), UINT16_MAX);
    at = put32(put32(at, UINT32_MAX), (uint32_t)records);
    for (size_t index = 0; index < records; index++)
        at = put_record(at, index, record_bytes);
    put32(batch + 8, (uint32_t)(at - batch - 12));
    put32(crc_at, crc32c(0, covered, (size_t)(at - covered)));
    return at;
}

struct frame build_produce(const char *topic, int16_t acks, size_t record_bytes, size_t records) {
    struct frame frame = {.bytes = calloc(1, records * (record_bytes + 40) + 512)};
    uint8_t *at = begin(&frame, API_PRODUCE, PRODUCE_VERSION);
    at = put16(at, UINT16_MAX); /* no transactional id */
    at = put32(put16(at, (uint16_t)acks), TIMEOUT_MS);
    at = put_string(put32(at, 1), topic, strlen(topic));
    at = put32(at, 1);
    frame.partition_at = (size_t)(at - frame.bytes);
    uint8_t *size_at = put32(at, 0);
    uint8_t *batch = size_at + 4;
    at = put_batch(batch, record_bytes, records);
    put32(size_at, (uint32_t)(at - batch));
    end(&frame, at);
    return frame;
}

struct frame build_fetch(const char *topic, struct fetch_limits limits) {
    struct frame frame = {.bytes = calloc(1, 512)};
    uint8_t *at = begin(&frame, API_FETCH, FETCH_VERSION);
    at = put32(at, UINT32_MAX); /* not a replica */
    at = put32(put32(put32(at, limits.wait_ms), limits.min_bytes), limits.max_bytes);
    at = put8(at, 0);
    at = put32(put32(at, 0), UINT32_MAX); /* no session */
    at = put_string(put32(at, 1), topic, strlen(topic));
    at = put32(at, 1);
    frame.partition_at = (size_t)(at - frame.bytes);
    at = put32(put32(at, 0), UINT32_MAX);
    frame.offset_at = (size_t)(at - frame.bytes);
    at = put64(put64(at, 0), UINT64_MAX);
    at = put32(at, limits.max_bytes);
    at = put16(put32(at, 0), 0); /* nothing forgotten, no rack */
    end(&frame, at);
    return frame;
}

struct frame copy_frame(const struct frame *frame) {
    struct frame copy = *frame;
    copy.bytes = malloc(frame->size);
    memcpy(copy.bytes, frame->bytes, frame->size);
    return copy;
}
