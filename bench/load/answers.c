/* Reads answers to Produce 7 and Fetch 11, and the batches in the latter. */
#include "answers.h"

#include "bytes.h"
#include "crc32c.h"
#include "frames.h"

struct cursor {
    const uint8_t *at;
    const uint8_t *end;
    bool is_short;
};

static const uint8_t *take(struct cursor *cursor, size_t size) {
    static const uint8_t zeros[8];
    if (cursor->is_short || (size_t)(cursor->end - cursor->at) < size) {
        cursor->is_short = true;
        return zeros;
    }
    const uint8_t *taken = cursor->at;
    cursor->at += size;
    return taken;
}

static uint16_t take16(struct cursor *cursor) { return get16(take(cursor, 2)); }
static uint32_t take32(struct cursor *cursor) { return get32(take(cursor, 4)); }
static uint64_t take64(struct cursor *cursor) { return get64(take(cursor, 8)); }

/* One topic with one partition; its index is passed over. */
static void take_partition(struct cursor *cursor) {
    if (take32(cursor) != 1)
        cursor->is_short = true;
    uint16_t name_bytes = take16(cursor);
    if (!cursor->is_short && (size_t)(cursor->end - cursor->at) >= name_bytes)
        cursor->at += name_bytes;
    else
        cursor->is_short = true;
    if (take32(cursor) != 1)
        cursor->is_short = true;
    take32(cursor);
}

bool read_produce_answer(const uint8_t *at, size_t size, struct produce_answer *answer) {
    struct cursor cursor = {at, at + size, false};
    answer->correlation = take32(&cursor);
    take_partition(&cursor);
    answer->error = (int16_t)take16(&cursor);
    answer->base_offset = take64(&cursor);
    return !cursor.is_short;
}

bool read_fetch_answer(const uint8_t *at, size_t size, struct fetch_answer *answer) {
    struct cursor cursor = {at, at + size, false};
    answer->correlation = take32(&cursor);
    take32(&cursor);
    answer->error = (int16_t)take16(&cursor);
    take32(&cursor);
    if (answer->error)
        return !cursor.is_short;
    take_partition(&cursor);
    answer->error = (int16_t)take16(&cursor);
    answer->high_watermark = take64(&cursor);
    take64(&cursor);
    take64(&cursor);
    int32_t aborted = (int32_t)take32(&cursor);
    for (; aborted > 0 && !cursor.is_short; aborted--) {
        take64(&cursor);
        take64(&cursor);
    }
    take32(&cursor);
    int32_t records_bytes = (int32_t)take32(&cursor);
    answer->records = cursor.at;
    answer->records_bytes = records_bytes > 0 ? (size_t)records_bytes : 0;
    return !cursor.is_short && answer->records_bytes <= (size_t)(cursor.end - cursor.at);
}

uint64_t walk_batches(const struct fetch_answer *answer, uint64_t offset, bool checks_crc,
                      bool *is_wrong) {
    const uint8_t *at = answer->records;
    size_t left = answer->records_bytes;
    bool is_first = true;
    while (left >= BATCH_HEADER_BYTES) {
        uint64_t base_offset = get64(at);
        size_t size = 12 + (size_t)get32(at + 8);
        uint64_t next_offset = base_offset + get32(at + 23) + 1;
        bool follows = is_first ? base_offset <= offset && offset < next_offset
                                : base_offset == offset;
        if (!follows || at[16] != 2 || size < BATCH_HEADER_BYTES) {
            *is_wrong = true;
            return 0;
        }
        if (size > left)
            break;
        if (checks_crc && crc32c(0, at + 21, size - 21) != get32(at + 17))
            *is_wrong = true;
        offset = next_offset;
        is_first = false;
        at += size;
        left -= size;
    }
    return offset;
}
