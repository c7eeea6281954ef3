/* What brokers answer, read with every length checked. */
#ifndef BENCH_ANSWERS_H
#define BENCH_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct produce_answer {
    uint32_t correlation;
    int16_t error;
    uint64_t base_offset;
};

struct fetch_answer {
    uint32_t correlation;
    int16_t error;
    uint64_t high_watermark;
    const uint8_t *records;
    size_t records_bytes;
};

/* False when the bytes are not an answer about one partition. */
bool read_produce_answer(const uint8_t *at, size_t size, struct produce_answer *answer);
bool read_fetch_answer(const uint8_t *at, size_t size, struct fetch_answer *answer);

/* Walks whole batches: the offset after the last one, or 0 and *is_wrong when one does not follow
   the one before. The first may begin below `offset`. */
uint64_t walk_batches(const struct fetch_answer *answer, uint64_t offset, bool checks_crc,
                      bool *is_wrong);

#endif
