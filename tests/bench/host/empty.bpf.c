// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The floor of every probe: programs that do nothing. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

char licence[] SEC("license") = "Dual BSD/GPL";

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
