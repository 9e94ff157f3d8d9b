/* SPDX-License-Identifier: BSD-2-Clause */
/* Between verdict.c and those that judge: verdict_link.c (links), verdict_slower.c (links slower than usual),
 * verdict_rate.c (what they should have had), verdict_gap.c (lost frames), verdict_rank.c (ranks), verdict_counted.c
 * (links that only counted), verdict_cause.c (why a link was slow), verdict_host.c (why a rank was late),
 * verdict_dense.c (when its threads were delayed), verdict_shared.c (ranks that wait for each other over NVLink),
 * verdict_socket.c (data over sockets), verdict_rail.c (data over too few devices), verdict_unseen.c (what no source
 * sees), verdict_hang.c (what did not end),
 * verdict_silent.c (whom that waits for), verdict_stalled.c (in which machine). */
#pragma once

#include "correlator/job/blame.h"
#include "correlator/job/pair_time.h"
#include "correlator/turn.h"
#include "correlator/verdict/verdict.h"

/* Times what is worth a verdict, where a step's length alone, or that of a link's messages alone, speaks for it. */
#define SHARES_ALONE 3

struct judge_span { /* of operations */
    int32_t first;
    int32_t end;
};

struct judge {
    struct job *job;
    struct blame *blames;     /* as job->rank_operations */
    struct judge_span *spans; /* by step: all of its operations lie in it, and some of others may */
    pair_time_list pairs;     /* by step, from, to */
    uint64_t pace;            /* the job's median, picoseconds a byte */
    int64_t share_ns;         /* a part of a step that is not worth a verdict */
    int64_t spreads;          /* times the spread of a place that every step of a streak must exceed */
};

/* Marks the slow pairs and gives each slow port one verdict a step. */
void judge_links(struct judge *judge);

/* Marks the pairs that are slower than they usually are, where the steps are longer for it. */
void judge_slower(struct judge *judge);

/* Two slow pairs of one port and direction. */
bool judge_same_port(const struct pair_time *a, const struct pair_time *b);

/* Adds what rate the link should have had: its own, else its peers'. */
void judge_say_rate(const struct judge *judge, struct verdict *verdict, const struct pair_time *slow);

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

/* Gives steps that are longer while something was counted at a link a verdict, where they have none. */
void judge_counted(struct judge *judge);

/* By step: it has a verdict, or is no training step. To be freed. */
bool *judge_taken(const struct job *job);

/* Gives long steps in which nobody is to blame who is seen a verdict that says what is not seen. */
void judge_unseen(struct judge *judge);

/* Gives verdicts the class that what was counted beside them shows. */
void judge_causes(struct judge *judge);

/* Gives late ranks the class that what their hosts told shows; needs the causes judged. */
void judge_hosts(struct judge *judge);

/* Makes of the verdicts of ranks that waited for each other where no NIC sees it one; needs the hosts judged. */
void judge_shared(struct judge *judge);

/* Gives steps whose data went over sockets a verdict. */
void judge_sockets(struct judge *judge);

/* Gives steps whose data went over fewer rails than it should a verdict; needs the links judged. */
void judge_rails(struct judge *judge);

/* Gives what hangs a verdict, for each rank that is the first to be missing. The job may have no step. */
void judge_hangs(struct judge *judge);

/* Of an operation that has not ended: the rank sent nothing though it should have. */
bool judge_sent_nothing(const struct record_rank_operation *record);

/*
 * The only rank that has sent nothing, though all have given the operation and it held credit, or data came to it: had
 * the next one not given it credit, that one would not send either. Who has nothing to send over the wire does not
 * count where whoever has sends a part of its own first. -1: there is none, or there are several.
 */
int32_t judge_only_silent(const struct job *job, const struct operation *operation);

struct silence {
    int32_t operation;
    int32_t rank;
};

/* Whom an operation that hangs waits for in the end, and in which operation; false: nothing tells. */
bool judge_find_silent(const struct job *job, int32_t operation, struct silence *silence);

struct stalled {
    size_t machine; /* as of host_member */
    uint64_t sent_bytes;
};

/* In which machine is who does not go on with an operation in which everybody who sends has begun; false: nothing
 * tells. */
bool judge_find_stalled(const struct job *job, int32_t operation, struct stalled *stalled);

/* Lays what sums of delays have beyond the usual into the latenesses of their ranks (verdict_dense.c). */
struct dense;
struct host_sum;
struct dense *dense_create(const struct judge *judge);
void dense_destroy(struct dense *dense);

/* How much of a kind of the thread of `sum` lies in [from_ns, to_ns), in which its rank was late by size_ns; 0:
 * unknown. */
uint64_t dense_ns(struct dense *dense, size_t kind, const struct host_sum *sum, int32_t rank, uint64_t from_ns,
                  uint64_t to_ns, uint64_t size_ns);

/* The most by which a rank's GPU made it late in a step, of what it added itself. */
int64_t judge_late_ns(const struct judge *judge, int32_t step, int32_t rank);

/* Adds to a verdict's evidence. */
void judge_say(struct verdict *verdict, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Another rank that it may be as well as verdict->rank. */
void judge_add_candidate(struct verdict *verdict, int32_t rank);

/* Puts candidates in order, of whom there are some; verdict->rank is the first. */
void judge_sort_candidates(struct verdict *verdict);

/* Puts candidates in order and into words, where there are any: what they did alike ("were late alike"). */
void judge_say_candidates(struct verdict *verdict, const char *alike);

/* 0 to 1: rises with what stands out, and halves when the operation was not seen whole, or fits no algorithm. */
double judge_confidence(const struct judge *judge, int64_t size_ns, int64_t limit_ns, int32_t operation);

/* What one rank did in an operation, or NULL. */
const struct rank_operation *judge_rank_in(const struct job *job, int32_t operation, int32_t rank);

static inline double judge_ms(int64_t ns)
{
    return (double)ns / 1e6;
}
