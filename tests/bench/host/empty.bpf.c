// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The floors of every probe: programs that do nothing, and one that only learns what any record of a data call must
 * hold: when it was, and on which stream, which lies on the stack.
 */
#include "bpf/argument.h"

char licence[] SEC("license") = "Dual BSD/GPL";

__u64 read[2];

SEC("uprobe")
int empty_entry(void *registers)
{
    return 0;
}

SEC("uretprobe")
int empty_return(void *registers)
{
    return 0;
}

SEC("uprobe")
int reading_entry(registers_t *registers)
{
    read[0] = bpf_ktime_get_ns();
    read[1] = argument_any(registers, ARGUMENT_REGISTERS);
    return 0;
}
