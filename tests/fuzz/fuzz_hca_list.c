/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as NCCL_IB_HCA. Checked: a device that is asked for by name may be used, unless the list names another port
 * of it; a list and the same one with "^" allow opposites, unless they are empty.
 */
#include "correlator/rail/hca_list.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

static void try_device(struct hca_list list, const char *device)
{
    for (unsigned port = 1; port <= 2; port++)
        if (hca_list_names(list, device, port) && !hca_list_allows(list, device, port))
            abort();
}

static void try_opposite(struct hca_list list, const char *device)
{
    char *text = malloc(list.bytes + 1);

    if (text == NULL)
        abort();
    text[0] = '^';
    memcpy(text + 1, list.text, list.bytes);
    bool both = hca_list_allows(list, device, 1) && hca_list_allows((struct hca_list){text, list.bytes + 1}, device, 1);
    bool is_empty = hca_list_allows(list, "\x01\x02", 1) && hca_list_allows(list, "\x03\x04", 1);
    if (both && !is_empty && list.bytes > 0 && list.text[0] != '^')
        abort();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    struct hca_list list = {(const char *)bytes, length_bytes};
    char name[17];

    try_device(list, "mlx5_0");
    if (length_bytes > 0)
        try_opposite(list, "mlx5_3");
    for (size_t n = 0; hca_list_name(list, n, name, sizeof name); n++)
        if (strlen(name) == 0 && memchr(bytes, '\0', length_bytes) == NULL)
            abort();
    return 0;
}
