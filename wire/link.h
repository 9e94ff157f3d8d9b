/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link carries messages between programs (nanomsg inside; nowhere else). A sender never blocks. Links stay on the
 * machine (ipc://, inproc://, tcp:// to a loopback address) unless a key file is given; with one, every message is
 * sealed (seal.h). One thread a link.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link;

enum link_role {
    LINK_SEND,    /* connects, pushes: emitters */
    LINK_RECEIVE, /* binds, pulls: the correlator's intake, the NIC side's control */
    LINK_ASK,     /* connects, asks and waits for an answer: clock exchanges */
    LINK_ANSWER,  /* binds, answers */
};

struct link_options {
    enum link_role role;
    const char *url;
    const char *key_file; /* NULL = none */
    uint64_t emitter_id;  /* of this side, for the seal's nonce */
    uint64_t boot_id;
};

struct link_counts {
    uint64_t sent;
    uint64_t refused; /* sends that found no room */
    uint64_t received;
    uint64_t rejected;    /* did not open, had been heard before, or did not fit */
    uint64_t connections; /* made so far: rises when a receiver (or, on its side, a sender) comes or comes back */
};

#define LINK_MESSAGE_BYTES_MAX (512u * 1024u)

/* -EPERM (logged) when the URL leaves the machine and no key file is given; -errno otherwise. */
int link_open(struct link **link, const struct link_options *options);

/* 0, or -EAGAIN when there is no room or no peer (counted, not logged), or another -errno. */
int link_send(struct link *link, const void *bytes, size_t length_bytes);

/* 0 with *length_bytes set; -EAGAIN when nothing is there; -EMSGSIZE when it does not fit (it is dropped, counted). */
int link_receive(struct link *link, void *bytes, size_t capacity_bytes, size_t *length_bytes);

/* A descriptor that polls readable when link_receive has something; -1 for LINK_SEND. */
int link_descriptor(const struct link *link);

void link_counts(const struct link *link, struct link_counts *counts);

/*
 * Waits up to linger_ms for what was sent to leave, then up to 200 ms (at most linger_ms) for the receiver to read it;
 * closes, sets *link to NULL; a no-op on NULL. 0 = at once: what was just sent may be lost.
 */
void link_close(struct link **link, int linger_ms);
