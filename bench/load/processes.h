/* What the kernel says that other processes have used. */
#ifndef BENCH_PROCESSES_H
#define BENCH_PROCESSES_H

#include <stdint.h>

#define PROCESSES_MAX 8

struct processes {
    int ids[PROCESSES_MAX];
    int count;
};

struct usage {
    uint64_t cpu_ns; /* of all threads that live */
    uint64_t minor_faults;
    uint64_t resident_kb;
    uint64_t peak_kb;
};

struct usage usage_of(const struct processes *processes);

#endif
