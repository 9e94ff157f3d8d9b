/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tell_pairs INTAKE-URL {ADDRESS QPN REMOTE-ADDRESS REMOTE-QPN}...: tells a correlator of connected queue pairs, as a
 * host side does, and goes on beating until it is stopped.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/clock.h"
#include "wire/emitter.h"
#include "wire/log.h"

static volatile sig_atomic_t is_over;

static void stop(int signal_number)
{
    (void)signal_number;
    is_over = 1;
}

static bool read_address(const char *text, uint8_t address[ADDRESS_BYTES])
{
    memset(address, 0, ADDRESS_BYTES);
    address[10] = address[11] = 0xff;
    return inet_pton(AF_INET6, text, address) == 1 || inet_pton(AF_INET, text, address + 12) == 1;
}

static void tell(struct emitter *emitter, int count, char **words)
{
    struct record_process process = {.process = 1, .pid = 1};

    emitter_add(emitter, RECORD_PROCESS, &process);
    for (int i = 0; i + 4 <= count; i += 4) {
        struct record_queue_pair pair = {.queue_pair = (uint32_t)i / 4 + 1,
                                         .process = 1,
                                         .qpn = (uint32_t)strtoul(words[i + 1], NULL, 0),
                                         .remote_qpn = (uint32_t)strtoul(words[i + 3], NULL, 0),
                                         .device = "made0",
                                         .port = 1,
                                         .state = QUEUE_PAIR_RTS,
                                         .type = 2,
                                         .created_ns = clock_now_ns()};
        if (read_address(words[i], pair.address) && read_address(words[i + 2], pair.remote_address))
            emitter_add(emitter, RECORD_QUEUE_PAIR, &pair);
    }
}

int main(int argc, char **argv)
{
    struct emitter *emitter;

    log_init("tell_pairs", LOG_INFO);
    if (argc < 6 || argc % 4 != 2)
        return 2;
    const struct emitter_options options = {.kind = EMITTER_HOST, .instance = "tell_pairs", .link_url = argv[1]};
    if (emitter_open(&emitter, &options) != 0)
        return 1;
    signal(SIGTERM, stop);
    tell(emitter, argc - 2, argv + 2);
    while (!is_over) {
        emitter_tick(emitter);
        usleep(10000);
    }
    return emitter_close(&emitter) == 0 ? 0 : 1;
}
