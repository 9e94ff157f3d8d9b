/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as answers of the kernel's RDMA netlink. Checked: a message takes no more bytes than there are, sequence
 * numbers have 24 bits, and a raw context lies within its message.
 */
#include "wire/rdma/rdma_message.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

static void check(void *context, const struct rdma_queue_pair *pair)
{
    (void)context;
    if (pair->qpn == 0 || pair->send_psn > 0xffffff || pair->receive_psn > 0xffffff)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    struct rdma_message message;
    size_t at = 0;
    int taken;

    while ((taken = rdma_message_read(bytes + at, length_bytes - at, &message, check, NULL)) > 0) {
        at += (size_t)taken;
        if (at > length_bytes || (message.raw != NULL && message.raw + message.raw_bytes > bytes + length_bytes))
            abort();
    }
    return 0;
}
