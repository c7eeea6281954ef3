/* CRC-32C, continued from a checksum so far (0 to begin with). */
#ifndef BENCH_CRC32C_H
#define BENCH_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(uint32_t crc, const uint8_t *data, size_t size);

#endif
