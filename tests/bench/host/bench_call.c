/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a probe costs a call: calls of functions that are alike, each with its own probe, in turns of one run: without
 * any, with empty programs and with ours, at the entry alone and at entry and return, set as the agent sets them. The
 * functions do nothing; they begin as those of libnccl.so do. Also the ring's bytes a call.
 *
 *   bench_call [TURNS [OBJECT]]
 *
 * OBJECT is the qpscope.bpf.o of another build, whose programs are measured in the same turns.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/event.h"
#include "bpf/qpscope.skel.h"
#include "host/probe/attachment.h"
#include "tests/bench/host/empty.skel.h"
#include "wire/clock.h"
#include "wire/log.h"

#define TURNS_MAX  100000
#define CALLS      200 /* of a turn; fewer than the ring holds */
#define WARM_CALLS 20

typedef int call(const void *send, void *receive, size_t count, int datatype, const void *reduction_or_communicator,
                 void *communicator_or_stream, void *stream);

#if defined(__x86_64__)
#define BODY "push %r15\n pop %r15\n xor %eax, %eax\n ret"
#else
#define BODY "stp x29, x30, [sp, #-16]!\n ldp x29, x30, [sp], #16\n mov w0, #0\n ret"
#endif

#define TARGET(number)                                                                                                 \
    __asm__(".text\n .balign 64\n .type target_" #number ", @function\n target_" #number ":\n " BODY                   \
            "\n .size target_" #number ", . - target_" #number "\n");                                                  \
    call target_##number;
TARGET(0)
TARGET(1)
TARGET(2)
TARGET(3)
TARGET(4)
TARGET(5)
TARGET(6)
TARGET(7)
TARGET(8)
TARGET(9)
TARGET(10)
TARGET(11)

enum object { OBJECT_EMPTY, OBJECT_OURS, OBJECT_OTHER, OBJECTS };

struct bench_case {
    const char *name;
    call *target;
    enum object object;
    const char *entry; /* programs; NULL = none */
    const char *at_return;
    size_t floor; /* the case of an empty probe */
};

static const struct bench_case cases[] = {
    {"none", target_0, OBJECT_EMPTY, NULL, NULL, 1},
    {"empty", target_1, OBJECT_EMPTY, "empty_entry", NULL, 1},
    {"time_and_stack", target_2, OBJECT_EMPTY, "reading_entry", NULL, 1},
    {"all_gather", target_3, OBJECT_OURS, "nccl_all_gather", NULL, 1},
    {"all_reduce", target_4, OBJECT_OURS, "nccl_all_reduce", NULL, 1},
    {"empty_with_return", target_5, OBJECT_EMPTY, "empty_entry", "empty_return", 5},
    {"all_gather_with_return", target_6, OBJECT_OURS, "nccl_all_gather", "nccl_call_return", 5},
    {"all_reduce_with_return", target_7, OBJECT_OURS, "nccl_all_reduce", "nccl_call_return", 5},
    {"other_all_gather", target_8, OBJECT_OTHER, "nccl_all_gather", NULL, 1},
    {"other_all_reduce", target_9, OBJECT_OTHER, "nccl_all_reduce", NULL, 1},
    {"other_all_gather_with_return", target_10, OBJECT_OTHER, "nccl_all_gather", "nccl_call_return", 5},
    {"other_all_reduce_with_return", target_11, OBJECT_OTHER, "nccl_all_reduce", "nccl_call_return", 5},
};
#define CASES (sizeof cases / sizeof cases[0])

struct bench {
    size_t turns;
    struct bpf_object *objects[OBJECTS];
    struct ring_buffer *rings[OBJECTS];
    volatile uint32_t *call_returns[OBJECTS];
    bool multiple; /* attachment.h */
    int links[2 * CASES];
    size_t links_count;
    uint64_t events;
    uint64_t ring_bytes;
    double *ns[CASES];
};

static int take(void *context, void *event, size_t length_bytes)
{
    struct bench *bench = context;
    const struct event_header *header = event;
    if (header->kind != EVENT_CALL && header->kind != EVENT_CALL_RETURN)
        return 0;
    bench->events++;
    bench->ring_bytes += (length_bytes + 8 + 7) / 8 * 8;
    return 0;
}

/* The object's map of global variables, whose name ends so. */
static struct bpf_map *find_section(const struct bpf_object *object, const char *section)
{
    struct bpf_map *map;
    bpf_object__for_each_map(map, object)
    {
        const char *name = bpf_map__name(map);
        if (strlen(name) >= strlen(section) && strcmp(name + strlen(name) - strlen(section), section) == 0)
            return map;
    }
    return NULL;
}

/* Where a global variable lies within its section; -1 = the object has none of that name. */
static ptrdiff_t find_variable(const struct bpf_object *object, const char *section, const char *name)
{
    const struct btf *btf = bpf_object__btf(object);
    const int number = btf__find_by_name_kind(btf, section, BTF_KIND_DATASEC);
    if (number < 0)
        return -1;
    const struct btf_type *type = btf__type_by_id(btf, (uint32_t)number);
    const struct btf_var_secinfo *variables = btf_var_secinfos(type);
    for (int i = 0; i < btf_vlen(type); i++) {
        const struct btf_type *variable = btf__type_by_id(btf, variables[i].type);
        if (strcmp(btf__name_by_offset(btf, variable->name_off), name) == 0)
            return (ptrdiff_t)variables[i].offset;
    }
    return -1;
}

/* Before the object is loaded. */
static int set_wake_bytes(const struct bpf_object *object, uint64_t value)
{
    size_t size_bytes;
    struct bpf_map *map = find_section(object, ".rodata");
    const ptrdiff_t offset = find_variable(object, ".rodata", "wake_bytes");
    char *memory = map == NULL ? NULL : (char *)(uintptr_t)bpf_map__initial_value(map, &size_bytes);
    if (memory == NULL || offset < 0)
        return -1;
    memcpy(memory + offset, &value, sizeof value);
    return 0;
}

/* Of a loaded object. */
static volatile uint32_t *map_call_returns(const struct bpf_object *object)
{
    const struct bpf_map *map = find_section(object, ".bss");
    const ptrdiff_t offset = find_variable(object, ".bss", "call_returns");
    char *memory = map == NULL ? MAP_FAILED
                               : mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED,
                                      bpf_map__fd(map), 0);
    return memory == MAP_FAILED || offset < 0 ? NULL : (volatile uint32_t *)(void *)(memory + offset);
}

/* Programs at the kernel's own functions are optional, and not measured. */
static int load(struct bench *bench, enum object which)
{
    struct bpf_program *program;
    struct bpf_object *object = bench->objects[which];
    bpf_object__for_each_program(program, object)
    {
        if (strncmp(bpf_program__section_name(program), "fexit/", 6) == 0)
            bpf_program__set_autoload(program, false);
        else if (bench->multiple && bpf_program__type(program) == BPF_PROG_TYPE_KPROBE)
            bpf_program__set_expected_attach_type(program, ATTACHMENT_MULTIPLE);
    }
    if (which == OBJECT_EMPTY)
        return bpf_object__load(object);
    if (set_wake_bytes(object, 1 << 20) != 0 || bpf_object__load(object) != 0)
        return -1;
    bench->call_returns[which] = map_call_returns(object);
    bench->rings[which] = ring_buffer__new(bpf_object__find_map_fd_by_name(object, "events"), take, bench, NULL);
    return bench->call_returns[which] == NULL || bench->rings[which] == NULL ? -1 : 0;
}

/* The first bytes of the program's file lie where the linker says; its code lies as far from them as in the file. */
static int attach(struct bench *bench, call *target, const struct bpf_program *program, bool at_return)
{
    extern const char __ehdr_start;
    const uint64_t offset = (uint64_t)(uintptr_t)target - (uint64_t)(uintptr_t)&__ehdr_start;
    const struct attachment attachment = {
        .program = bpf_program__fd(program),
        .file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
        .offsets = &offset,
        .offsets_count = 1,
        .at_return = at_return,
    };
    const int link = attachment.file < 0 ? -errno : attachment_open(&attachment, bench->multiple);
    if (attachment.file >= 0)
        close(attachment.file);
    if (link >= 0)
        bench->links[bench->links_count++] = link;
    return link < 0 ? link : 0;
}

static int attach_case(struct bench *bench, const struct bench_case *one)
{
    const char *const names[] = {one->entry, one->at_return};
    for (int i = 0; i < 2; i++) {
        if (names[i] == NULL)
            continue;
        const struct bpf_program *program = bpf_object__find_program_by_name(bench->objects[one->object], names[i]);
        if (program == NULL || attach(bench, one->target, program, i == 1) != 0)
            return log_error_return(-1, "cannot set the probe %s", names[i]);
    }
    return 0;
}

static double measure(call *target)
{
    char buffer[8];
    for (size_t i = 0; i < WARM_CALLS; i++)
        target(buffer, buffer, i, 7, buffer, buffer, buffer);
    const uint64_t from_ns = clock_now_ns();
    for (size_t i = 0; i < CALLS; i++)
        target(buffer, buffer, i, 7, buffer, buffer, buffer);
    return (double)(clock_now_ns() - from_ns) / CALLS;
}

static bool is_there(const struct bench *bench, size_t index)
{
    return bench->objects[cases[index].object] != NULL;
}

static void run_turn(struct bench *bench, size_t turn)
{
    for (size_t i = 0; i < CASES; i++) {
        if (!is_there(bench, i))
            continue;
        if (bench->call_returns[cases[i].object] != NULL)
            *bench->call_returns[cases[i].object] = cases[i].at_return != NULL;
        bench->ns[i][turn] = measure(cases[i].target);
    }
    for (enum object i = 0; i < OBJECTS; i++)
        if (bench->rings[i] != NULL)
            ring_buffer__consume(bench->rings[i]);
}

static int open_bench(struct bench *bench, const char *other)
{
    bench->multiple = attachment_multiple_is_possible();
    struct empty *empty = empty__open();
    struct qpscope *ours = qpscope__open();
    if (empty == NULL || ours == NULL)
        return log_error_return(-1, "cannot open the probes");
    bench->objects[OBJECT_EMPTY] = empty->obj;
    bench->objects[OBJECT_OURS] = ours->obj;
    if (other != NULL && (bench->objects[OBJECT_OTHER] = bpf_object__open_file(other, NULL)) == NULL)
        return log_error_return(-1, "cannot open %s", other);
    for (enum object i = 0; i < OBJECTS; i++)
        if (bench->objects[i] != NULL && load(bench, i) != 0)
            return log_error_return(-1, "cannot load the probes");
    for (size_t i = 0; i < CASES; i++) {
        bench->ns[i] = calloc(bench->turns, sizeof *bench->ns[i]);
        if (bench->ns[i] == NULL || (is_there(bench, i) && attach_case(bench, &cases[i]) != 0))
            return -1;
    }
    return 0;
}

/* Every call of ours and every return, and nothing else. */
static bool all_were_told(const struct bench *bench)
{
    uint64_t wanted = 0;
    for (size_t i = 0; i < CASES; i++)
        if (is_there(bench, i) && cases[i].object != OBJECT_EMPTY)
            wanted += (cases[i].at_return == NULL ? 1 : 2) * (CALLS + WARM_CALLS) * bench->turns;
    return bench->events == wanted;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void report(struct bench *bench)
{
    const size_t turns = bench->turns;
    for (size_t i = 0; i < CASES; i++)
        qsort(bench->ns[i], turns, sizeof bench->ns[i][0], compare);
    printf("{\"row\":\"header\",\"generator\":\"bench_call\",\"turns\":%zu,\"one_link_a_program\":%s}\n", turns,
           bench->multiple ? "true" : "false");
    for (size_t i = 0; i < CASES; i++)
        if (is_there(bench, i))
            printf("{\"row\":\"case\",\"case\":\"%s\",\"best_ns\":%.0f,\"tenth_ns\":%.0f,\"median_ns\":%.0f,"
                   "\"nine_tenths_ns\":%.0f,\"best_over_empty\":%.3f,\"median_over_empty\":%.3f}\n",
                   cases[i].name, bench->ns[i][0], bench->ns[i][turns / 10], bench->ns[i][turns / 2],
                   bench->ns[i][turns * 9 / 10], bench->ns[i][0] / bench->ns[cases[i].floor][0],
                   bench->ns[i][turns / 2] / bench->ns[cases[i].floor][turns / 2]);
    printf("{\"row\":\"ring\",\"events\":%llu,\"bytes_an_event\":%.1f}\n", (unsigned long long)bench->events,
           (double)bench->ring_bytes / (double)bench->events);
}

/* On one processor: every turn that another program takes from it lies above the median. */
static void stay(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)sched_getcpu(), &set);
    sched_setaffinity(0, sizeof set, &set);
}

int main(int argc, char **argv)
{
    static struct bench bench = {.turns = 500};
    log_init("bench_call", LOG_INFO);
    if (argc > 1)
        bench.turns = strtoul(argv[1], NULL, 10);
    if (bench.turns == 0 || bench.turns > TURNS_MAX)
        return 2;
    if (geteuid() != 0 || open_bench(&bench, argc > 2 ? argv[2] : NULL) != 0)
        return 77;
    stay();
    for (size_t turn = 0; turn < bench.turns; turn++)
        run_turn(&bench, turn);
    report(&bench);
    const bool complete = all_were_told(&bench);
    if (!complete)
        log_error("of the calls and returns %llu were told, not all", (unsigned long long)bench.events);
    attachment_close(bench.links, bench.links_count);
    return complete ? 0 : 1;
}
