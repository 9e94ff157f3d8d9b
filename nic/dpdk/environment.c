/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the EAL is told: little memory, no files of its own, no processor of its own, huge pages where there are some,
 * and the PCI bus only when a port lies on it. What the user gives with --eal comes last.
 */
#include "nic/dpdk/environment.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include "wire/log.h"

#define ARGUMENTS_MAX     (2 * OPTION_LIST_MAX + 32)
#define BASE_MEMORY_MIB   64
#define MBUFS_MORE        2048u /* in the hands of the reader, and in caches */
#define POOL_CACHE        256
#define HEADER_ROOM_BYTES 2048u /* more of a frame than its headers need not be in one piece */

struct arguments {
    char texts[ARGUMENTS_MAX][SPECIFICATION_ARGUMENT_BYTES];
    char *list[ARGUMENTS_MAX + 1];
    int count;
};

static int add_argument(struct arguments *arguments, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int add_argument(struct arguments *arguments, const char *format, ...)
{
    char *text = arguments->texts[arguments->count];
    va_list values;

    if (arguments->count == ARGUMENTS_MAX)
        return log_error_return(-E2BIG, "too many --port and --eal arguments");
    va_start(values, format);
    int length = vsnprintf(text, sizeof arguments->texts[0], format, values);
    va_end(values);
    if (length >= (int)sizeof arguments->texts[0])
        return log_error_return(-ENAMETOOLONG, "'%.40s...' is too long for an argument of DPDK", text);
    arguments->list[arguments->count++] = text;
    return 0;
}

static bool has_huge_pages(void)
{
    char line[128];
    unsigned long free_pages = 0;
    FILE *file = fopen("/proc/meminfo", "re");

    while (file != NULL && free_pages == 0 && fgets(line, sizeof line, file) != NULL)
        (void)sscanf(line, "HugePages_Free: %lu", &free_pages);
    if (file != NULL)
        fclose(file);
    return free_pages != 0;
}

/* The processors that we may run on, so that DPDK does not bind us to one of them. */
static void list_processors(char *text, size_t capacity)
{
    cpu_set_t set;
    size_t used = 0;

    text[0] = '\0';
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE && used + 8 < capacity; cpu++) {
        if (CPU_ISSET(cpu, &set))
            used += (size_t)snprintf(text + used, capacity - used, "%s%d", used == 0 ? "" : ",", cpu);
    }
}

unsigned environment_room_bytes(const struct specification *ports, size_t ports_count)
{
    unsigned room_bytes = HEADER_ROOM_BYTES;

    for (size_t i = 0; i < ports_count; i++)
        room_bytes = ports[i].frame_bytes > room_bytes ? ports[i].frame_bytes : room_bytes;
    return room_bytes;
}

/* For one queue of each port: as many as lie in the queues, twice. */
static unsigned count_mbufs(const struct specification *ports, size_t ports_count)
{
    unsigned count = MBUFS_MORE;

    for (size_t i = 0; i < ports_count; i++)
        count += 2 * ports[i].descriptors;
    return count;
}

static int add_memory(struct arguments *arguments, const struct specification *ports, size_t ports_count,
                      unsigned queues)
{
    unsigned room_bytes = environment_room_bytes(ports, ports_count);
    uint64_t pools_bytes =
        (uint64_t)queues * count_mbufs(ports, ports_count) * (room_bytes + 2 * RTE_PKTMBUF_HEADROOM + 256);

    if (has_huge_pages())
        return add_argument(arguments, "--in-memory");
    int error = add_argument(arguments, "--no-huge");
    if (error == 0)
        error = add_argument(arguments, "--no-shconf");
    return error != 0 ? error
                      : add_argument(arguments, "-m%u", BASE_MEMORY_MIB + (unsigned)(pools_bytes / (1024 * 1024)));
}

static int add_own_arguments(struct arguments *arguments)
{
    char processors[SPECIFICATION_ARGUMENT_BYTES - 16];
    bool has_pci = false;

    for (int i = 0; i < arguments->count; i++)
        has_pci |= strncmp(arguments->texts[i], "--allow=", 8) == 0;
    list_processors(processors, sizeof processors);
    int error = add_argument(arguments, "--no-telemetry");
    if (error == 0)
        error = add_argument(arguments, "--log-level=*:error");
    if (error == 0)
        error = add_argument(arguments, "--lcores=0@(%s)", processors);
    return error == 0 && !has_pci ? add_argument(arguments, "--no-pci") : error;
}

static int collect(struct arguments *arguments, const struct specification *ports, size_t ports_count, unsigned queues,
                   const struct option_list *eal_arguments)
{
    int error = add_argument(arguments, "qpscope-nic");

    for (size_t i = 0; i < ports_count && error == 0; i++) {
        if (ports[i].argument[0] != '\0')
            error = add_argument(arguments, "%s", ports[i].argument);
    }
    if (error == 0)
        error = add_own_arguments(arguments);
    if (error == 0)
        error = add_memory(arguments, ports, ports_count, queues);
    for (size_t i = 0; i < eal_arguments->count && error == 0; i++)
        error = add_argument(arguments, "%s", eal_arguments->values[i]);
    return error;
}

int environment_start(const struct specification *ports, size_t ports_count, unsigned queues,
                      const struct option_list *eal_arguments)
{
    static struct arguments arguments; /* DPDK keeps pointers to them */
    int error = collect(&arguments, ports, ports_count, queues, eal_arguments);

    if (error != 0)
        return error;
    if (rte_eal_init(arguments.count, arguments.list) < 0)
        return log_error_return(-ENODEV,
                                "DPDK did not start (%s); it needs the right to open the ports (root or CAP_NET_RAW), "
                                "and each --port must be a device that it knows",
                                rte_strerror(rte_errno));
    return 0;
}

void environment_end(void)
{
    rte_eal_cleanup();
}

struct rte_mempool *environment_make_pool(const char *part, unsigned queue, const struct specification *ports,
                                          size_t ports_count, unsigned room_bytes)
{
    char name[RTE_MEMPOOL_NAMESIZE];

    snprintf(name, sizeof name, "%s%u", part, queue);
    struct rte_mempool *pool = rte_pktmbuf_pool_create(name, count_mbufs(ports, ports_count), POOL_CACHE, 0,
                                                       (uint16_t)(room_bytes + RTE_PKTMBUF_HEADROOM), SOCKET_ID_ANY);
    if (pool == NULL)
        log_error("DPDK has no memory for frames (%s); give it more with --eal -m1024", rte_strerror(rte_errno));
    return pool;
}

void environment_free_pool(struct rte_mempool *pool)
{
    rte_mempool_free(pool);
}
