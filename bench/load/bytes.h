/* Big-endian numbers in byte arrays, and the clock: what generator and reference share. */
#ifndef BENCH_BYTES_H
#define BENCH_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

static inline uint16_t get16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }

static inline uint32_t get32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return __builtin_bswap32(value);
}

static inline uint64_t get64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return __builtin_bswap64(value);
}

static inline uint8_t *put8(uint8_t *at, uint8_t value) {
    *at = value;
    return at + 1;
}

static inline uint8_t *put16(uint8_t *at, uint16_t value) {
    value = __builtin_bswap16(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

static inline uint8_t *put32(uint8_t *at, uint32_t value) {
    value = __builtin_bswap32(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

static inline uint8_t *put64(uint8_t *at, uint64_t value) {
    value = __builtin_bswap64(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

static inline uint8_t *put_string(uint8_t *at, const char *text, size_t size) {
    at = put16(at, (uint16_t)size);
    memcpy(at, text, size);
    return at + size;
}

static inline uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
