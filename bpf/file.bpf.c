// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which inode really holds the code of a mapping of the running process. An overlay file system shows an inode of its
 * own for the same file in every mount (each container's), while a probe sits in the one inode below.
 */
#include "bpf/ring.h"

__u64 file_address = 0; /* asked: an address within the mapping */
__u64 file_inode = 0;   /* answered */
__u32 file_device = 0;  /* dev_t as the kernel has it: major << 20 | minor */

static long read_mapping(struct task_struct *task, struct vm_area_struct *mapping, void *context)
{
    file_inode = BPF_CORE_READ(mapping, vm_file, f_inode, i_ino);
    file_device = BPF_CORE_READ(mapping, vm_file, f_inode, i_sb, s_dev);
    return 0;
}

SEC("syscall")
int file_read(void *context)
{
    struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
    return (int)bpf_find_vma(task, file_address, read_mapping, NULL, 0);
}
