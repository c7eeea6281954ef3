/* Reads /proc: schedstat counts nanoseconds on a processor, which the ticks of stat do not. */
#include "processes.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static uint64_t first_number_in(const char *path) {
    unsigned long long value = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%llu", &value) != 1)
        value = 0;
    fclose(file);
    return value;
}

static uint64_t cpu_ns_of(int id) {
    char path[512];
    snprintf(path, sizeof path, "/proc/%d/task", id);
    DIR *threads = opendir(path);
    if (!threads)
        return 0;
    uint64_t total = 0;
    for (struct dirent *entry = readdir(threads); entry; entry = readdir(threads)) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", id, entry->d_name);
        total += first_number_in(path);
    }
    closedir(threads);
    return total;
}

static void add_status(int id, struct usage *usage) {
    char line[256];
    snprintf(line, sizeof line, "/proc/%d/status", id);
    FILE *file = fopen(line, "r");
    if (!file)
        return;
    unsigned long kb;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "VmRSS: %lu", &kb) == 1)
            usage->resident_kb += kb;
        if (sscanf(line, "VmHWM: %lu", &kb) == 1)
            usage->peak_kb += kb;
    }
    fclose(file);
}

static uint64_t minor_faults_of(int id) {
    char text[1024];
    snprintf(text, sizeof text, "/proc/%d/stat", id);
    FILE *file = fopen(text, "r");
    if (!file)
        return 0;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    unsigned long faults = 0;
    const char *after_name = strrchr(text, ')');
    if (after_name)
        sscanf(after_name + 2, "%*c %*d %*d %*d %*d %*d %*u %lu", &faults);
    return faults;
}

struct usage usage_of(const struct processes *processes) {
    struct usage usage = {0};
    for (int index = 0; index < processes->count; index++) {
        usage.cpu_ns += cpu_ns_of(processes->ids[index]);
        usage.minor_faults += minor_faults_of(processes->ids[index]);
        add_status(processes->ids[index], &usage);
    }
    return usage;
}
