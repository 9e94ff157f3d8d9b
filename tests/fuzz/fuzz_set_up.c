/* SPDX-License-Identifier: BSD-2-Clause */
/* Management datagrams, one behind the other, to and fro. Checked: what a connection is known by leads back to itself.
 */
#include "nic/flow/set_up.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    struct frame there = {.key = {.source = {1}, .destination = {2}}};
    struct frame back = {.key = {.source = {2}, .destination = {1}}};
    struct set_ups *set_ups;

    if (set_ups_create(&set_ups) != 0)
        return 0;
    for (unsigned i = 0; length_bytes != 0; i++) {
        size_t take_bytes = length_bytes < SET_UP_MAD_BYTES ? length_bytes : SET_UP_MAD_BYTES;
        set_ups_note(set_ups, i % 2 == 0 ? &there : &back, bytes, take_bytes);
        bytes += take_bytes;
        length_bytes -= take_bytes;
    }
    for (uint32_t qpn = 0; qpn < 300; qpn++) {
        struct flow_key key = there.key, reverse, again;
        key.destination_qpn = qpn;
        if (!set_ups_reverse(set_ups, &key, &reverse))
            continue;
        if (set_ups_reverse(set_ups, &reverse, &again) && memcmp(again.source, key.source, sizeof key.source) != 0)
            abort();
    }
    set_ups_destroy(&set_ups);
    return 0;
}
