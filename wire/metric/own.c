/* SPDX-License-Identifier: BSD-2-Clause */
/* The program itself, as the kernel shows it when somebody asks; what cannot be read is left out. */
#include "wire/metric/own.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
#define METRIC(name, text, type, unit, help) OWN_##name,
#include "wire/metric/own.def"
#undef METRIC
};

static const struct metric_spec specs[] = {
#define METRIC(name, text, type, unit, help) METRIC_SPEC(text, type, unit, help),
#include "wire/metric/own.def"
#undef METRIC
};

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static void write_cpu(struct metric_writer *writer)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) == 0)
        metric_one(writer, &specs[OWN_CPU], seconds(usage.ru_utime) + seconds(usage.ru_stime));
}

static void write_memory(struct metric_writer *writer)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long all, resident;

    if (file == NULL)
        return;
    if (fscanf(file, "%lu %lu", &all, &resident) == 2)
        metric_one(writer, &specs[OWN_MEMORY], (double)resident * (double)sysconf(_SC_PAGESIZE));
    fclose(file);
}

/* In ticks since the machine was started, the 20th field behind the command's closing bracket. */
static void write_start(struct metric_writer *writer)
{
    char text[1024] = "";
    FILE *file = fopen("/proc/self/stat", "re");
    unsigned long long ticks;
    struct timespec now, since_boot;

    if (file == NULL)
        return;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *rest = strrchr(text, ')');
    if (rest == NULL ||
        sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &ticks) !=
            1)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &since_boot);
    double ago = (double)since_boot.tv_sec - (double)ticks / (double)sysconf(_SC_CLK_TCK);
    metric_one(writer, &specs[OWN_START], (double)(long long)((double)now.tv_sec - ago));
}

static void write_descriptors(struct metric_writer *writer)
{
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;
    uint64_t count = 0;

    if (directory == NULL)
        return;
    while ((entry = readdir(directory)) != NULL)
        count += entry->d_name[0] != '.';
    closedir(directory);
    metric_one(writer, &specs[OWN_DESCRIPTORS], (double)(count - 1)); /* without the one that reads this */
}

void own_write(struct metric_writer *writer, const char *program)
{
    const struct metric_label labels[] = {{"program", program}, {"version", QPSCOPE_VERSION}};

    metric_begin(writer, &specs[OWN_BUILD]);
    metric_labels(writer, labels, 2);
    metric_integer(writer, 1);
    write_start(writer);
    write_cpu(writer);
    write_memory(writer);
    write_descriptors(writer);
}
