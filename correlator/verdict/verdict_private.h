/* SPDX-License-Identifier: BSD-2-Clause */
/* Between verdict.c and those that judge: verdict_link.c (links), verdict_slower.c (links slower than usual),
 * verdict_gap.c (lost frames), verdict_rank.c (ranks), verdict_cause.c (why a link was slow), verdict_host.c (why a
 * rank was late), verdict_socket.c (data over sockets), verdict_hang.c (what did not end). */
#pragma once

#include "correlator/job/blame.h"
#include "correlator/verdict/verdict.h"

struct judge {
    struct job *job;
    struct blame *blames; /* as job->rank_operations */
    pair_time_list pairs; /* by step, from, to */
    uint64_t pace;        /* the job's median, picoseconds a byte */
    int64_t share_ns;     /* a part of a step that is not worth a verdict */
};

/* Marks the slow pairs and gives each slow port one verdict a step. */
void judge_links(struct judge *judge);

/* Marks the pairs that are slower than they usually are, where the steps are longer for it. */
void judge_slower(struct judge *judge);

/* Two slow pairs of one port and direction. */
bool judge_same_port(const struct pair_time *a, const struct pair_time *b);

struct port_cost {
    int64_t cost_ns;   /* by how much steps with the slow port are longer than those without any slow link: medians */
    int64_t spread_ns; /* of those without */
    bool known;        /* there are some to compare with */
};
struct port_cost judge_port_cost(const struct judge *judge, const struct pair_time *slow);

/* Gives each link whose sender waited for lost frames one verdict a step; needs the slow links judged. */
void judge_gaps(struct judge *judge);

/* Gives ranks that were late by themselves a verdict; needs the links judged. */
void judge_ranks(struct judge *judge);

/* Gives verdicts the class that what was counted beside them shows. */
void judge_causes(struct judge *judge);

/* Gives late ranks the class that what their hosts told shows; needs the causes judged. */
void judge_hosts(struct judge *judge);

/* Gives steps whose data went over sockets a verdict. */
void judge_sockets(struct judge *judge);

/* Gives what hangs a verdict, for each rank that is the first to be missing. The job may have no step. */
void judge_hangs(struct judge *judge);

/* Adds to a verdict's evidence. */
void judge_say(struct verdict *verdict, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* 0 to 1: rises with what stands out, and halves when the operation was not seen whole. */
double judge_confidence(const struct judge *judge, int64_t size_ns, int64_t limit_ns, int32_t operation);

/* What one rank did in an operation, or NULL. */
const struct rank_operation *judge_rank_in(const struct job *job, int32_t operation, int32_t rank);

static inline double judge_ms(int64_t ns)
{
    return (double)ns / 1e6;
}
