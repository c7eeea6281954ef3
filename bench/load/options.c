/* Reads the command line; every number has a limit, so that no run grows without bounds. */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char USAGE[] =
    "load produce|fetch|park --port N [--pid N[,N]] [--topic NAME] [--partitions N]\n"
    "  --connections N   --in-flight N        closed loop: so many unanswered requests each\n"
    "  --rate N                               open loop: so many requests per second in all,\n"
    "                                         latency counts from when each was due\n"
    "  --record-bytes N  --records N  --acks -1|1          of a batch that is produced\n"
    "  --max-bytes N     --check                           of a fetch; verify checksums\n"
    "  --warmup SECONDS  --seconds SECONDS  --requests N   when to stop\n"
    "Talks to 127.0.0.1 alone and prints one line of JSON.\n";

static void refuse(const char *what) {
    fprintf(stderr, "load: %s\n%s", what, USAGE);
    exit(2);
}

static double number(const char *text, double smallest, double largest) {
    char *end;
    double value = strtod(text, &end);
    if (*end || end == text || !(value >= smallest && value <= largest))
        refuse(text);
    return value;
}

static void read_ids(char *text, struct processes *processes) {
    for (char *id = strtok(text, ","); id; id = strtok(NULL, ",")) {
        if (processes->count == PROCESSES_MAX)
            refuse("too many processes");
        processes->ids[processes->count++] = (int)number(id, 1, 1 << 30);
    }
}

enum { PORT = 256, PID, TOPIC, PARTITIONS, CONNECTIONS, IN_FLIGHT, RATE, RECORD_BYTES, RECORDS,
       ACKS, MAX_BYTES, CHECK, WARMUP, SECONDS, REQUESTS };

static const struct option OPTIONS[] = {
    {"port", 1, 0, PORT},
    {"pid", 1, 0, PID},
    {"topic", 1, 0, TOPIC},
    {"partitions", 1, 0, PARTITIONS},
    {"connections", 1, 0, CONNECTIONS},
    {"in-flight", 1, 0, IN_FLIGHT},
    {"rate", 1, 0, RATE},
    {"record-bytes", 1, 0, RECORD_BYTES},
    {"records", 1, 0, RECORDS},
    {"acks", 1, 0, ACKS},
    {"max-bytes", 1, 0, MAX_BYTES},
    {"check", 0, 0, CHECK},
    {"warmup", 1, 0, WARMUP},
    {"seconds", 1, 0, SECONDS},
    {"requests", 1, 0, REQUESTS},
    {0, 0, 0, 0},
};

static void set_option(struct options *options, int option, char *text) {
    switch (option) {
    case PORT: options->port = (uint16_t)number(text, 1, 65535); break;
    case PID: read_ids(text, &options->brokers); break;
    case TOPIC: options->topic = text; break;
    case PARTITIONS: options->partitions = (uint32_t)number(text, 1, 10000); break;
    case CONNECTIONS: options->connections = (uint32_t)number(text, 1, 10000); break;
    case IN_FLIGHT: options->in_flight = (uint32_t)number(text, 1, 1000); break;
    case RATE: options->rate = number(text, 1, 5e6); break;
    case RECORD_BYTES: options->record_bytes = (size_t)number(text, 0, 64 << 20); break;
    case RECORDS: options->records = (size_t)number(text, 1, 1 << 20); break;
    case ACKS: options->acks = (int)number(text, -1, 1); break;
    case MAX_BYTES: options->max_bytes = (uint32_t)number(text, 1, 256 << 20); break;
    case CHECK: options->checks_crc = true; break;
    case WARMUP: options->warmup_seconds = number(text, 0, 600); break;
    case SECONDS: options->seconds = number(text, 0.01, 3600); break;
    case REQUESTS: options->requests = (uint64_t)number(text, 1, 1e9); break;
    default: refuse("an option is not known");
    }
}

struct options read_options(int count, char **arguments) {
    struct options options = {.topic = "bench", .partitions = 8, .connections = 8, .in_flight = 1,
                              .record_bytes = 100, .records = 1, .acks = -1,
                              .max_bytes = 1 << 20, .warmup_seconds = 0.5, .seconds = 2};
    if (count < 2)
        refuse("produce, fetch or park?");
    if (!strcmp(arguments[1], "produce"))
        options.mode = PRODUCE;
    else if (!strcmp(arguments[1], "fetch"))
        options.mode = FETCH;
    else if (!strcmp(arguments[1], "park"))
        options.mode = PARK;
    else
        refuse(arguments[1]);
    optind = 2;
    for (;;) {
        int option = getopt_long(count, arguments, "", OPTIONS, NULL);
        if (option == -1)
            break;
        set_option(&options, option, optarg);
    }
    if (!options.port)
        refuse("which --port?");
    if (options.acks == 0)
        refuse("with --acks 0 nothing is answered");
    if (options.records * (options.record_bytes + 40) > 128u << 20)
        refuse("the batch is too large");
    if (options.mode != PRODUCE && options.rate == 0 && options.in_flight != 1)
        refuse("a fetch is followed by the next one: --in-flight 1");
    if (options.mode != PRODUCE && options.rate != 0)
        refuse("only what is produced can come at a --rate");
    return options;
}
