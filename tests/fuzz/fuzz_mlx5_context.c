/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as the kernel's dump of a queue pair; the first 8 are the numbers that are looked for. Checked: what is
 * found names the remote queue pair that was asked for, and nothing has more than 24 bits.
 */
#include "nic/mlx5/mlx5_layout.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    struct mlx5_context context;
    uint32_t numbers[2];

    if (length_bytes < sizeof numbers)
        return 0;
    memcpy(numbers, bytes, sizeof numbers);
    if (mlx5_find_context(bytes + sizeof numbers, length_bytes - sizeof numbers, numbers[0], numbers[1], &context) != 0)
        return 0;
    if (context.remote_qpn != numbers[1] ||
        (context.next_send_psn | context.last_acked_psn | context.next_receive_psn) > 0xffffff)
        abort();
    return 0;
}
