/* CRC-32C by the instruction of SSE4.2 where the processor has it, by a table elsewhere. */
#include "crc32c.h"

#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL 0x82F63B78u

static uint32_t table[256];

static void fill_table(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? value >> 1 ^ POLYNOMIAL : value >> 1;
        table[byte] = value;
    }
}

static uint32_t by_table(uint32_t state, const uint8_t *data, size_t size) {
    if (!table[1])
        fill_table();
    while (size--)
        state = table[(state ^ *data++) & 0xFF] ^ state >> 8;
    return state;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t state,
                                                                 const uint8_t *data,
                                                                 size_t size) {
    uint64_t wide = state;
    for (; size >= 8; data += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, data, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    state = (uint32_t)wide;
    while (size--)
        state = __builtin_ia32_crc32qi(state, *data++);
    return state;
}

static bool has_instruction(void) { return __builtin_cpu_supports("sse4.2"); }
#else
static uint32_t by_instruction(uint32_t state, const uint8_t *data, size_t size) {
    return by_table(state, data, size);
}

static bool has_instruction(void) { return false; }
#endif

uint32_t crc32c(uint32_t crc, const uint8_t *data, size_t size) {
    uint32_t state = ~crc;
    return ~(has_instruction() ? by_instruction(state, data, size) : by_table(state, data, size));
}
