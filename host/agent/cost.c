/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source: dl_iterate_phdr(3). The fastest of several rounds counts: what a hit takes when nothing disturbs it.
 * Invariant: nothing is left set.
 */
#include "host/agent/cost.h"

#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <unistd.h>

#include "host/probe/attachment.h"
#include "wire/clock.h"
#include "wire/log.h"

#define ROUNDS 5
#define CALLS  100

/*
 * What is probed: begins as the functions of a collective library do, by saving a register. The kernel does that by
 * itself where it can; other instructions it runs step by step, which takes far longer (9 us, seen on a virtual
 * machine).
 */
#if defined(__x86_64__)
__asm__(".text\n.balign 64\n.type cost_target, @function\ncost_target:\n"
        "push %r15\npop %r15\nret\n.size cost_target, . - cost_target\n");
#else
__asm__(".text\n.balign 64\n.type cost_target, @function\ncost_target:\n"
        "stp x29, x30, [sp, #-16]!\nldp x29, x30, [sp], #16\nret\n.size cost_target, . - cost_target\n");
#endif
__attribute__((visibility("hidden"))) void cost_target(void);

struct search {
    uint64_t address;
    uint64_t offset; /* in the file; 0 = not found */
};

/* The first object is the program. */
static int find_segment(struct dl_phdr_info *object, size_t size_bytes, void *context)
{
    struct search *search = context;
    (void)size_bytes;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        const uint64_t start = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && search->address >= start && search->address < start + segment->p_filesz)
            search->offset = search->address - start + segment->p_offset;
    }
    return 1;
}

static uint64_t time_call(void)
{
    uint64_t best_ns = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t from_ns = clock_now_ns();
        for (int i = 0; i < CALLS; i++)
            cost_target();
        const uint64_t spent_ns = (clock_now_ns() - from_ns) / CALLS;
        best_ns = spent_ns < best_ns ? spent_ns : best_ns;
    }
    return best_ns;
}

/* On a noisy machine what does more may seem to take less. */
static uint64_t beyond(uint64_t ns, uint64_t less_ns)
{
    return ns > less_ns ? ns - less_ns : 0;
}

void cost_measure(int entry_program, int return_program, bool multiple, struct cost *cost)
{
    struct search search = {.address = (uint64_t)(uintptr_t)cost_target};
    int links[2];
    size_t count = 0;
    *cost = (struct cost){COST_USUAL_NS, COST_USUAL_NS};
    dl_iterate_phdr(find_segment, &search);
    struct attachment attachment = {.program = entry_program,
                                    .file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
                                    .offsets = &search.offset,
                                    .offsets_count = 1};
    const uint64_t plain_ns = time_call();
    if (search.offset != 0 && attachment.file >= 0 && (links[0] = attachment_open(&attachment, multiple)) >= 0) {
        const uint64_t entry_ns = time_call();
        count++;
        attachment.program = return_program;
        attachment.at_return = true;
        cost->entry_ns = beyond(entry_ns, plain_ns);
        links[1] = attachment_open(&attachment, multiple);
        count += links[1] >= 0;
        if (links[1] >= 0)
            cost->return_ns = beyond(time_call(), entry_ns);
    }
    attachment_close(links, count);
    if (attachment.file >= 0)
        close(attachment.file);
    log_info("a hit of a probe costs %llu ns here, at a return as well %llu ns more",
             (unsigned long long)cost->entry_ns, (unsigned long long)cost->return_ns);
}
