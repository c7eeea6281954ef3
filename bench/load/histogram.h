/* Latencies, counted in buckets of less than 1.6 % of their value, and the exact maximum. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

#define SUB_BUCKET_BITS 6
#define SUB_BUCKETS (1u << SUB_BUCKET_BITS)
#define BUCKETS ((64 - SUB_BUCKET_BITS + 1) * SUB_BUCKETS)

struct histogram {
    uint64_t counts[BUCKETS];
    uint64_t total;
    uint64_t max_ns;
};

static inline unsigned bucket_of(uint64_t value) {
    if (value < SUB_BUCKETS)
        return (unsigned)value;
    unsigned shift = 63 - (unsigned)__builtin_clzll(value) - SUB_BUCKET_BITS;
    return (shift + 1) * SUB_BUCKETS + (unsigned)(value >> shift) - SUB_BUCKETS;
}

static inline void note_latency(struct histogram *histogram, uint64_t value_ns) {
    histogram->counts[bucket_of(value_ns)]++;
    histogram->total++;
    if (value_ns > histogram->max_ns)
        histogram->max_ns = value_ns;
}

/* The smallest value of the bucket in which the given part of all values is reached. */
static inline double quantile_us(const struct histogram *histogram, double part) {
    uint64_t wanted = (uint64_t)((double)histogram->total * part);
    uint64_t seen = 0;
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++) {
        seen += histogram->counts[bucket];
        if (seen > wanted) {
            unsigned shift = bucket < SUB_BUCKETS ? 0 : bucket / SUB_BUCKETS - 1;
            uint64_t value = bucket < SUB_BUCKETS
                                 ? bucket
                                 : (uint64_t)(bucket % SUB_BUCKETS + SUB_BUCKETS) << shift;
            return (double)value / 1000;
        }
    }
    return (double)histogram->max_ns / 1000;
}

#endif
