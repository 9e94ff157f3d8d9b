/* SPDX-License-Identifier: BSD-2-Clause */
/* send_job URL FROM TO: sends that share (in per cent) of a made-up job's batches to a correlator's intake, of both
 * emitters. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/correlator/made_job.h"
#include "tests/unit/scratch.h"
#include "wire/link.h"
#include "wire/log.h"

static int send_share(struct link *link, const struct feed *feed, size_t from, size_t to)
{
    for (size_t i = feed->count * from / 100; i < feed->count * to / 100; i++) {
        unsigned tries = 0;
        while (link_send(link, feed->batches[i].bytes, feed->batches[i].length_bytes) != 0) {
            if (++tries == 1000)
                return -1;
            scratch_pause_ms(10);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct made_options options = {.ranks = 4,
                                         .channels = 2,
                                         .steps = 12,
                                         .seed = 5,
                                         .groups = true,
                                         .fault = MADE_GPU,
                                         .fault_rank = 2,
                                         .fault_first_step = 4,
                                         .fault_ns = 60 * MADE_MS};
    struct link *link;

    log_init("send_job", LOG_ERROR);
    if (argc != 4 || link_open(&link, &(struct link_options){.role = LINK_SEND, .url = argv[1]}) != 0)
        return 2;
    struct made_job *job = made_create(&options);
    size_t from = (size_t)atoi(argv[2]), to = (size_t)atoi(argv[3]);
    int failed = send_share(link, &job->nic, from, to) != 0 || send_share(link, &job->host, from, to) != 0;
    printf("%llu\n", (unsigned long long)job->sent_bytes);
    made_destroy(job);
    link_close(&link, 2000);
    return failed;
}
