/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages to several workers. Invariant: what a worker gets was opened with the key here, and is sealed anew
 * with the same key; what a worker's link has no room for is lost as on any link (the asker waits in vain, and asks
 * again).
 */
#include "nic/relay.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "nic/source/source.h"
#include "wire/link.h"
#include "wire/log.h"

struct relay {
    struct link *from;
    struct link *to[SOURCE_QUEUES_MAX];
    unsigned count;
    uint8_t message[LINK_MESSAGE_BYTES_MAX];
};

void relay_url(char url[RELAY_URL_BYTES], unsigned index)
{
    snprintf(url, RELAY_URL_BYTES, "inproc://qpscope-nic/control/%u", index);
}

static int open_links(struct relay *relay, const char *control_url, const char *key_file, unsigned workers_count)
{
    const struct link_options from = {.role = LINK_RECEIVE, .url = control_url, .key_file = key_file};
    char url[RELAY_URL_BYTES];
    struct link_options to = {.role = LINK_SEND, .url = url, .key_file = key_file, .emitter_id = (uint64_t)getpid()};
    int error = link_open(&relay->from, &from);

    if (error == 0 && getrandom(&to.boot_id, sizeof to.boot_id, 0) != sizeof to.boot_id)
        error = log_error_return(-EIO, "the system gives no random numbers");
    for (; relay->count < workers_count && error == 0; relay->count++) {
        relay_url(url, relay->count);
        error = link_open(&relay->to[relay->count], &to);
    }
    return error;
}

int relay_open(struct relay **relay, const char *control_url, const char *key_file, unsigned workers_count)
{
    struct relay *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    int error = open_links(made, control_url, key_file, workers_count);
    if (error != 0) {
        relay_close(&made);
        return error;
    }
    *relay = made;
    return 0;
}

void relay_tick(struct relay *relay)
{
    size_t length_bytes;

    while (link_receive(relay->from, relay->message, sizeof relay->message, &length_bytes) == 0) {
        for (unsigned i = 0; i < relay->count; i++)
            (void)link_send(relay->to[i], relay->message, length_bytes);
    }
}

void relay_close(struct relay **relay)
{
    if (*relay == NULL)
        return;
    link_close(&(*relay)->from, 0);
    for (unsigned i = 0; i < (*relay)->count; i++)
        link_close(&(*relay)->to[i], 0);
    free(*relay);
    *relay = NULL;
}
