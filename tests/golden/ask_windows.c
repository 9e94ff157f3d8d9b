/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ask_windows CONTROL-URL [FROM-NS TO-NS [TIER [LIMIT]]]: asks a qpscope-nic for the windows of an interval (without
 * one: of the last hour), as the correlator does for a slow step. They come on its link and in its capture file. TIER
 * and LIMIT as in wire/record.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "wire/clock.h"
#include "wire/emitter.h"
#include "wire/log.h"

#define HOUR_NS 3600000000000u

int main(int argc, char **argv)
{
    struct emitter *emitter;

    log_init("ask_windows", LOG_INFO);
    if (argc != 2 && (argc < 4 || argc > 6))
        return 2;
    const struct emitter_options options = {.kind = EMITTER_COMMAND, .instance = "ask_windows", .link_url = argv[1]};
    uint64_t now_ns = clock_now_ns();
    struct record_trigger trigger = {
        .header.source = 1, .from_ns = now_ns < HOUR_NS ? 1 : now_ns - HOUR_NS, .to_ns = now_ns};
    if (argc > 4)
        trigger.tier = (uint32_t)strtoul(argv[4], NULL, 10);
    if (argc > 5)
        trigger.limit = (uint32_t)strtoul(argv[5], NULL, 10);
    if (argc >= 4) {
        trigger.from_ns = strtoull(argv[2], NULL, 10);
        trigger.to_ns = strtoull(argv[3], NULL, 10);
    }
    if (emitter_open(&emitter, &options) != 0)
        return 1;
    emitter_add(emitter, RECORD_TRIGGER, &trigger);
    emitter_flush(emitter);
    return emitter_close(&emitter) == 0 ? 0 : 1;
}
