/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps whose data goes over fewer rails than it should (rail/shortage.h). Invariant: one verdict a step, for the host
 * that lacks a rail; what was slow because it went over the ones that are left is no verdict of its own, and gives the
 * size. Where no steps with more rails are known, the size is that part of the transfers that was waited for by which
 * the ports that are left were too few, if they were busy meanwhile; else it is not known.
 */
#include <stdlib.h>
#include <string.h>

#include "correlator/rail/shortage.h"
#include "correlator/verdict/evidence.h"
#include "correlator/verdict/verdict_private.h"

#define BUSY_PART 2 /* of their rate: ports with less are not what was waited for */

typedef ARRAY(const struct rail_use *) use_list;

struct carrier {  /* a communicator */
    size_t first; /* its uses */
    size_t end;
    uint64_t ranks; /* a hash of them */
    int32_t first_step;
    int32_t last_step;
    bool is_short;
    struct shortage shortage;
};

struct load { /* of a communicator, in a step */
    size_t carrier;
    uint64_t bytes;
};

struct inquiry {
    struct judge *judge;
    const struct rails *rails;
    ARRAY(struct carrier) carriers; /* by identity */
    bool spreads;
    int32_t *carrier_of;           /* by operation; -1 = none */
    ARRAY(struct load) loads;      /* of the step */
    ARRAY(struct load) last_loads; /* of which `last` was found */
    bool last_known, last_short;
    struct shortage last;
    size_t *path_of;   /* by step */
    int32_t *short_of; /* by step: what is wrong with it, in `found`; -1 = nothing */
    ARRAY(struct shortage) found;
};

/* ---- communicators ---- */

static struct shortage_view view_of(const struct inquiry *inquiry, const use_list *uses)
{
    return (struct shortage_view){inquiry->rails, uses->items, uses->count, inquiry->spreads};
}

static void list_uses(const struct inquiry *inquiry, const struct carrier *carrier, use_list *uses)
{
    uses->count = 0;
    for (size_t i = carrier->first; i < carrier->end; i++)
        *(const struct rail_use **)array_add(uses) = &inquiry->rails->uses.items[i];
}

static void list_carriers(struct inquiry *inquiry)
{
    const struct rails *rails = inquiry->rails;

    for (size_t i = 0; i < rails->uses.count; i++) {
        const struct rail_use *use = &rails->uses.items[i];
        bool is_new = i == 0 || memcmp(use->communicator, use[-1].communicator, IDENTITY_BYTES) != 0;
        struct carrier *carrier =
            is_new ? array_add(&inquiry->carriers) : &inquiry->carriers.items[inquiry->carriers.count - 1];
        if (is_new)
            *carrier = (struct carrier){.first = i, .ranks = 5381, .first_step = -1, .last_step = -1};
        carrier->end = i + 1;
        if (use->port == RAIL_NONE)
            carrier->ranks = carrier->ranks * 33 ^ (uint64_t)use->rank;
    }
}

static int32_t find_carrier(const struct inquiry *inquiry, const uint8_t *communicator)
{
    size_t low = 0, high = inquiry->carriers.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct carrier *carrier = &inquiry->carriers.items[middle];
        int order = memcmp(inquiry->rails->uses.items[carrier->first].communicator, communicator, IDENTITY_BYTES);
        if (order == 0)
            return (int32_t)middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

static void find_steps(struct inquiry *inquiry)
{
    const struct job *job = inquiry->judge->job;

    inquiry->carrier_of = array_zeroed((job->operations.count + 1) * sizeof *inquiry->carrier_of);
    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        int32_t index = find_carrier(inquiry, operation->communicator);
        inquiry->carrier_of[i] = index;
        if (index < 0 || operation->step < 0)
            continue;
        struct carrier *carrier = &inquiry->carriers.items[index];
        if (carrier->first_step < 0)
            carrier->first_step = operation->step;
        carrier->last_step = operation->step;
    }
}

static int by_ranks_and_step(const void *a, const void *b)
{
    const struct carrier *left = *(struct carrier *const *)a;
    const struct carrier *right = *(struct carrier *const *)b;

    if (left->ranks != right->ranks)
        return left->ranks < right->ranks ? -1 : 1;
    return (left->first_step > right->first_step) - (left->first_step < right->first_step);
}

/* A communicator that took the place of an earlier one of the same ranks. */
static void compare_with_past(struct inquiry *inquiry)
{
    ARRAY(struct carrier *) order = {0};
    use_list before = {0}, now = {0};

    for (size_t i = 0; i < inquiry->carriers.count; i++)
        if (inquiry->carriers.items[i].first_step >= 0)
            *(struct carrier **)array_add(&order) = &inquiry->carriers.items[i];
    array_sort(&order, by_ranks_and_step);
    for (size_t i = 1; i < order.count; i++) {
        struct carrier *old = order.items[i - 1], *new = order.items[i];
        if (old->ranks != new->ranks || old->last_step >= new->first_step || new->is_short)
            continue;
        list_uses(inquiry, old, &before);
        list_uses(inquiry, new, &now);
        struct shortage_view was = view_of(inquiry, &before), is = view_of(inquiry, &now);
        new->is_short = shortage_since(&was, &is, &new->shortage);
    }
    array_fini(&order);
    array_fini(&before);
    array_fini(&now);
}

static void judge_carriers(struct inquiry *inquiry)
{
    use_list uses = {0};

    for (size_t i = 0; i < inquiry->carriers.count; i++) {
        list_uses(inquiry, &inquiry->carriers.items[i], &uses);
        struct shortage_view view = view_of(inquiry, &uses);
        inquiry->spreads |= shortage_spreads(&view);
    }
    for (size_t i = 0; i < inquiry->carriers.count; i++) {
        struct carrier *carrier = &inquiry->carriers.items[i];
        list_uses(inquiry, carrier, &uses);
        struct shortage_view view = view_of(inquiry, &uses);
        carrier->is_short = shortage_find(&view, &carrier->shortage);
    }
    compare_with_past(inquiry);
    array_fini(&uses);
}

/* ---- steps ---- */

static int by_carrier(const void *a, const void *b)
{
    const struct load *left = a;
    const struct load *right = b;

    return (left->carrier > right->carrier) - (left->carrier < right->carrier);
}

static uint64_t sent_in(const struct job *job, const struct operation *operation)
{
    uint64_t bytes = 0;

    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++)
        bytes += job->rank_operations.items[i].record.observed_bytes;
    return bytes;
}

static void weigh(struct inquiry *inquiry, int32_t step)
{
    const struct job *job = inquiry->judge->job;
    const struct judge_span *span = &inquiry->judge->spans[step];
    size_t kept = 0;

    inquiry->loads.count = 0;
    for (int32_t i = span->first; i < span->end; i++)
        if (job->operations.items[i].step == step && inquiry->carrier_of[i] >= 0)
            *(struct load *)array_add(&inquiry->loads) =
                (struct load){(size_t)inquiry->carrier_of[i], sent_in(job, &job->operations.items[i])};
    array_sort(&inquiry->loads, by_carrier);
    struct load *loads = inquiry->loads.items;
    for (size_t i = 0; i < inquiry->loads.count; i++)
        if (kept > 0 && loads[kept - 1].carrier == loads[i].carrier)
            loads[kept - 1].bytes += loads[i].bytes;
        else
            loads[kept++] = loads[i];
    inquiry->loads.count = kept;
}

static int by_host(const void *a, const void *b)
{
    const struct rail_use *left = *(const struct rail_use *const *)a;
    const struct rail_use *right = *(const struct rail_use *const *)b;

    if (left->host != right->host)
        return left->host < right->host ? -1 : 1;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return (int)left->port - (int)right->port;
}

/* All communicators of the step together: where each has one rank a host, none alone shows it. */
static void judge_together(struct inquiry *inquiry)
{
    use_list uses = {0};

    for (size_t i = 0; i < inquiry->loads.count; i++) {
        const struct carrier *carrier = &inquiry->carriers.items[inquiry->loads.items[i].carrier];
        for (size_t u = carrier->first; u < carrier->end; u++)
            *(const struct rail_use **)array_add(&uses) = &inquiry->rails->uses.items[u];
    }
    array_sort(&uses, by_host);
    struct shortage_view view = view_of(inquiry, &uses);
    inquiry->last_short = inquiry->loads.count > 1 && shortage_find(&view, &inquiry->last);
    array_fini(&uses);
}

static bool are_last_loads(const struct inquiry *inquiry)
{
    if (!inquiry->last_known || inquiry->loads.count != inquiry->last_loads.count)
        return false;
    for (size_t i = 0; i < inquiry->loads.count; i++)
        if (inquiry->loads.items[i].carrier != inquiry->last_loads.items[i].carrier)
            return false;
    return true;
}

static void keep_loads(struct inquiry *inquiry)
{
    inquiry->last_loads.count = 0;
    for (size_t i = 0; i < inquiry->loads.count; i++)
        *(struct load *)array_add(&inquiry->last_loads) = inquiry->loads.items[i];
    inquiry->last_known = true;
}

/* What is wrong with most of what the step sends; NULL: nothing. */
static const struct shortage *find_shortage(struct inquiry *inquiry)
{
    uint64_t all = 0, shorts = 0, most = 0;
    const struct shortage *found = NULL;

    for (size_t i = 0; i < inquiry->loads.count; i++) {
        const struct carrier *carrier = &inquiry->carriers.items[inquiry->loads.items[i].carrier];
        uint64_t bytes = inquiry->loads.items[i].bytes;
        all += bytes;
        shorts += carrier->is_short ? bytes : 0;
        if (!carrier->is_short || bytes <= most)
            continue;
        most = bytes;
        found = &carrier->shortage;
    }
    if (found != NULL && shorts >= all / 2)
        return found;
    if (!are_last_loads(inquiry)) {
        judge_together(inquiry);
        keep_loads(inquiry);
    }
    return inquiry->last_short ? &inquiry->last : NULL;
}

static void find_short_steps(struct inquiry *inquiry)
{
    const struct job *job = inquiry->judge->job;

    inquiry->short_of = array_zeroed((job->steps.count + 1) * sizeof *inquiry->short_of);
    for (size_t step = 0; step < job->steps.count; step++) {
        inquiry->short_of[step] = -1;
        if (job->steps.items[step].kind != STEP_TRAINING)
            continue;
        weigh(inquiry, (int32_t)step);
        const struct shortage *shortage = find_shortage(inquiry);
        if (shortage == NULL)
            continue;
        inquiry->short_of[step] = (int32_t)inquiry->found.count;
        *(struct shortage *)array_add(&inquiry->found) = *shortage;
    }
}

/* ---- what it costs ---- */

/* By how much steps that are short of rails are longer than those that are not, median to median. */
static int64_t step_cost(const struct inquiry *inquiry)
{
    const struct job *job = inquiry->judge->job;
    int64_t *with = array_zeroed((job->steps.count + 1) * sizeof *with);
    int64_t *without = array_zeroed((job->steps.count + 1) * sizeof *without);
    size_t with_count = 0, without_count = 0;

    for (size_t i = 1; i < job->steps.count; i++) {
        int64_t duration = (int64_t)job->steps.items[i].duration_ns;
        if (inquiry->short_of[i] >= 0)
            with[with_count++] = duration;
        else if (job->steps.items[i].kind == STEP_TRAINING)
            without[without_count++] = duration;
    }
    int64_t cost = without_count == 0 ? 0 : array_middle(with, with_count) - array_middle(without, without_count);
    free(with);
    free(without);
    return cost > 0 ? cost : 0;
}

/* Where the path of each step begins in job->path. */
static void index_path(struct inquiry *inquiry)
{
    const struct job *job = inquiry->judge->job;

    inquiry->path_of = array_zeroed((job->steps.count + 1) * sizeof *inquiry->path_of);
    for (size_t i = job->path.count; i-- > 0;)
        inquiry->path_of[job->path.items[i].step] = i;
}

/* The ranks of a host lie together. */
static bool is_of(const struct rails *rails, const struct rail_host *host, int32_t rank)
{
    for (size_t i = host->first_rank; i < host->first_rank + host->ranks; i++)
        if (rails->ranks.items[i].rank == rank)
            return true;
    return false;
}

static bool takes_part(const struct inquiry *inquiry, const struct rail_host *host, int32_t operation)
{
    const struct job *job = inquiry->judge->job;
    const struct operation *of = &job->operations.items[operation];

    for (size_t i = of->first_rank; i < of->first_rank + of->ranks; i++)
        if (is_of(inquiry->rails, host, job->rank_operations.items[i].rank))
            return true;
    return false;
}

/* For how long the step's end waited for transfers that the host takes part in. */
static int64_t waited_for(const struct inquiry *inquiry, int32_t step, const struct shortage *shortage)
{
    const struct job *job = inquiry->judge->job;
    const struct rail_host *host = &inquiry->rails->hosts.items[shortage->host];
    uint64_t sum_ns = 0;

    for (size_t i = inquiry->path_of[step]; i < job->path.count && job->path.items[i].step == step; i++) {
        const struct path_part *part = &job->path.items[i];
        if (part->is_transfer && (shortage->of_all || takes_part(inquiry, host, part->operation)))
            sum_ns += part->to_ns - part->from_ns;
    }
    return (int64_t)sum_ns;
}

struct sending { /* of one rank, in one operation */
    uint64_t from_ns;
    uint64_t to_ns;
};
typedef ARRAY(struct sending) sending_list;

static int by_begin(const void *a, const void *b)
{
    const struct sending *left = a;
    const struct sending *right = b;

    return (left->from_ns > right->from_ns) - (left->from_ns < right->from_ns);
}

/* For how long at least one of them was under way. */
static uint64_t time_together(sending_list *sendings)
{
    uint64_t sum_ns = 0, until_ns = 0;

    array_sort(sendings, by_begin);
    for (size_t i = 0; i < sendings->count; i++) {
        const struct sending *one = &sendings->items[i];
        uint64_t from_ns = one->from_ns > until_ns ? one->from_ns : until_ns;
        sum_ns += one->to_ns > from_ns ? one->to_ns - from_ns : 0;
        until_ns = one->to_ns > until_ns ? one->to_ns : until_ns;
    }
    return sum_ns;
}

/* What the host's ranks sent in the step, and when. */
static uint64_t list_sendings(const struct inquiry *inquiry, int32_t step, const struct rail_host *host,
                              sending_list *sendings)
{
    const struct job *job = inquiry->judge->job;
    const struct judge_span *span = &inquiry->judge->spans[step];
    uint64_t bytes = 0;

    for (int32_t i = span->first; i < span->end; i++) {
        const struct operation *operation = &job->operations.items[i];
        size_t end = operation->step == step ? operation->first_rank + operation->ranks : 0;
        for (size_t r = operation->first_rank; r < end; r++) {
            const struct record_rank_operation *record = &job->rank_operations.items[r].record;
            if (record->first_data_ns == 0 || !is_of(inquiry->rails, host, job->rank_operations.items[r].rank))
                continue;
            bytes += record->observed_bytes;
            *(struct sending *)array_add(sendings) = (struct sending){record->first_data_ns, record->last_data_ns};
        }
    }
    return bytes;
}

/*
 * What the busiest of the ports that are left would be spared of what the host's ranks sent, with all rails; below 0:
 * it was not busy meanwhile.
 */
static int64_t spared(const struct inquiry *inquiry, int32_t step, const struct shortage *shortage)
{
    const struct rail_host *host = &inquiry->rails->hosts.items[shortage->host];
    uint64_t bits_a_second = 0;
    sending_list sendings = {0};

    for (unsigned n = 0; n < RAILS_MAX; n++)
        if ((shortage->used_ports >> n & 1) != 0 && rails_port(inquiry->rails, host, n)->bits_a_second > bits_a_second)
            bits_a_second = rails_port(inquiry->rails, host, n)->bits_a_second;
    uint64_t bytes = list_sendings(inquiry, step, host, &sendings), together_ns = time_together(&sendings);
    array_fini(&sendings);
    if (bits_a_second == 0 || together_ns == 0)
        return -1;
    double needed_ns = (double)bytes * 8e9 / (double)bits_a_second;
    bool is_busy = needed_ns * shortage->most_part >= (double)together_ns / BUSY_PART;
    return is_busy ? (int64_t)(needed_ns * (shortage->most_part - 1 / (double)shortage->wanted)) : -1;
}

/* ---- verdicts ---- */

static void say_reason(struct verdict *verdict, const struct shortage *shortage, const struct rail_host *host)
{
    static const char *const reasons[] = {
        [SHORTAGE_DOWN] = "is there, but its port was not active when the ranks looked for their devices",
        [SHORTAGE_LIST] = "is there, but NCCL_IB_HCA leaves it out",
        [SHORTAGE_ABSENT] = "is not among its devices",
        [SHORTAGE_UNUSED] = "is active and allowed, and used elsewhere, but not here",
        [SHORTAGE_ABANDONED] = "carried its part in an earlier communicator of the same ranks",
    };

    if (shortage->device[0] == '\0')
        judge_say(verdict, "; NCCL_IB_HCA leaves rank %d fewer devices than others have", shortage->rank);
    else
        judge_say(verdict, "; %s %s", shortage->device, reasons[shortage->reason]);
    if (shortage->down_ns > host->created_ns)
        judge_say(verdict, " (it was seen down %.1f ms after that)",
                  judge_ms((int64_t)(shortage->down_ns - host->created_ns)));
    else if (shortage->down_ns != 0)
        judge_say(verdict, " (it went down %.1f ms before that)",
                  judge_ms((int64_t)(host->created_ns - shortage->down_ns)));
}

static void say_measure(struct verdict *verdict, const struct shortage *shortage)
{
    static const char *const measures[] = {
        [SHORTAGE_BY_USE] = "others use",
        [SHORTAGE_BY_OTHERS] = "most others could use",
        [SHORTAGE_BY_NAME] = "NCCL_IB_HCA asks for",
        [SHORTAGE_BY_PAST] = "before they used",
    };

    judge_say(verdict, ", where %s %u: %s carries %.1f times its share", measures[shortage->measure], shortage->wanted,
              shortage->used == 1 ? "it" : "the busiest", shortage->most_part * (double)shortage->wanted);
    if (shortage->of_all)
        judge_say(verdict, "; all other hosts use no more than it");
}

static uint64_t carried_by(const struct rails *rails, int32_t host, unsigned port)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < rails->uses.count; i++)
        if (rails->uses.items[i].host == host && rails->uses.items[i].port == port)
            bytes += rails->uses.items[i].bytes;
    return bytes;
}

/* One number for each port that is used, and one for the missing one: all that it carried in the job. */
static void note_ports(const struct inquiry *inquiry, struct verdict *verdict, const struct shortage *shortage)
{
    const struct rails *rails = inquiry->rails;
    const struct rail_host *host = &rails->hosts.items[shortage->host];
    const struct step *step = &inquiry->judge->job->steps.items[verdict->step];
    uint64_t ports = shortage->used_ports | (shortage->missing < 0 ? 0 : 1ULL << shortage->missing), all_bytes = 0;

    for (unsigned n = 0; n < RAILS_MAX; n++)
        all_bytes += (ports >> n & 1) != 0 ? carried_by(rails, shortage->host, n) : 0;
    for (unsigned n = 0; n < RAILS_MAX; n++) {
        const struct rail_change *state =
            (ports >> n & 1) == 0 ? NULL : rails_state(rails, rails_port(rails, host, n), step->end_ns);
        if (state == NULL)
            continue;
        *(struct verdict_evidence *)array_add(&verdict->numbers) = (struct verdict_evidence){
            .metric = "carried_bytes",
            .source = VERDICT_OF_RAIL,
            .decides = true,
            .priority = PRIORITY_NONE,
            .side = EVIDENCE_SENDER,
            .rank = shortage->rank,
            .from_ns = host->created_ns < step->start_ns ? host->created_ns : step->start_ns,
            .to_ns = step->end_ns,
            .amount = carried_by(rails, shortage->host, n),
            .usual = (double)all_bytes / shortage->wanted,
            .first_row = state->row,
            .last_row = state->row,
        };
    }
}

/* What was slow in the step since it went over what is left: taken away; its size, or 0. */
static int64_t absorb(const struct inquiry *inquiry, int32_t step, const struct shortage *shortage)
{
    struct job *job = inquiry->judge->job;
    const struct rail_host *host = &inquiry->rails->hosts.items[shortage->host];
    int64_t size_ns = 0;
    size_t kept = 0;

    for (size_t i = 0; i < job->verdicts.count; i++) {
        struct verdict *verdict = &job->verdicts.items[i];
        bool is_link = verdict->class == VERDICT_NETWORK_SLOW || verdict->class == VERDICT_NIC_SLOW;
        bool is_here = shortage->of_all || is_of(inquiry->rails, host, verdict->rank) ||
                       (verdict->peer_rank >= 0 && is_of(inquiry->rails, host, verdict->peer_rank));
        if (verdict->step != step || !is_link || !is_here) {
            job->verdicts.items[kept++] = *verdict;
            continue;
        }
        size_ns = (int64_t)verdict->size_ns > size_ns ? (int64_t)verdict->size_ns : size_ns;
        verdict_fini(verdict);
    }
    job->verdicts.count = kept;
    return size_ns;
}

static void say_size(const struct inquiry *inquiry, struct verdict *verdict, const struct shortage *shortage,
                     int64_t cost_ns, int64_t absorbed_ns)
{
    int64_t waited_ns = waited_for(inquiry, verdict->step, shortage);
    int64_t part_ns = (int64_t)((double)waited_ns * (1 - 1 / (shortage->most_part * (double)shortage->wanted)));
    int64_t spared_ns = spared(inquiry, verdict->step, shortage);

    part_ns = part_ns > 0 ? part_ns : 0;
    if (cost_ns > 0) {
        verdict->size_ns = (uint64_t)cost_ns;
        judge_say(verdict, "; steps like this are %.1f ms longer than those with more rails (medians)",
                  judge_ms(cost_ns));
    } else if (absorbed_ns > 0) {
        verdict->size_ns = (uint64_t)absorbed_ns;
        judge_say(verdict, "; what passed them was slow, which costs %.3f ms", judge_ms(absorbed_ns));
    } else if (spared_ns >= 0) {
        verdict->size_ns = (uint64_t)(spared_ns < part_ns ? spared_ns : part_ns);
        judge_say(verdict,
                  "; it was busy, and with %u would have been spared %.3f ms, of the %.3f ms for which the step waited "
                  "for transfers at most %.3f ms",
                  shortage->wanted, judge_ms(spared_ns), judge_ms(waited_ns), judge_ms(part_ns));
    } else {
        judge_say(verdict,
                  "; no steps with more rails are known, so what it costs is not known: at most %.3f ms, if "
                  "its transfers waited for nothing else",
                  judge_ms(part_ns));
    }
}

static int32_t operation_of(const struct inquiry *inquiry, int32_t step)
{
    const struct job *job = inquiry->judge->job;
    const struct judge_span *span = &inquiry->judge->spans[step];
    int32_t found = -1;
    uint64_t most = 0;

    for (int32_t i = span->first; i < span->end; i++) {
        uint64_t bytes = job->operations.items[i].step == step ? sent_in(job, &job->operations.items[i]) : 0;
        if (bytes <= most)
            continue;
        most = bytes;
        found = i;
    }
    return found;
}

static void judge_step(const struct inquiry *inquiry, int32_t step, const struct shortage *shortage, int64_t cost_ns)
{
    struct job *job = inquiry->judge->job;
    const struct rail_host *host = &inquiry->rails->hosts.items[shortage->host];
    int32_t operation = operation_of(inquiry, step);

    if (operation < 0)
        return;
    int64_t absorbed_ns = absorb(inquiry, step, shortage);
    struct verdict *verdict = array_add(&job->verdicts);
    verdict->class = VERDICT_RAIL;
    verdict->step = step;
    verdict->rank = shortage->rank;
    verdict->peer_rank = -1;
    memcpy(verdict->device, shortage->device, sizeof verdict->device);
    verdict->operation = operation;
    verdict->confidence = shortage->reason == SHORTAGE_UNUSED || shortage->measure == SHORTAGE_BY_NAME ? 0.6 : 0.9;
    judge_say(verdict, "rank %d's host (%s) uses %u rail%s", shortage->rank,
              host->machine_name[0] == '\0' ? "its name is not known" : host->machine_name, shortage->used,
              shortage->used == 1 ? "" : "s");
    say_measure(verdict, shortage);
    say_reason(verdict, shortage, host);
    say_size(inquiry, verdict, shortage, cost_ns, absorbed_ns);
    note_ports(inquiry, verdict, shortage);
}

void judge_rails(struct judge *judge)
{
    const struct rails *rails = judge->job->evidence == NULL ? NULL : &judge->job->evidence->rails;
    struct inquiry inquiry = {.judge = judge, .rails = rails};

    if (rails == NULL || rails->uses.count == 0)
        return;
    list_carriers(&inquiry);
    find_steps(&inquiry);
    judge_carriers(&inquiry);
    find_short_steps(&inquiry);
    index_path(&inquiry);
    int64_t cost_ns = inquiry.found.count == 0 ? 0 : step_cost(&inquiry);
    for (size_t step = 0; step < judge->job->steps.count; step++)
        if (inquiry.short_of[step] >= 0)
            judge_step(&inquiry, (int32_t)step, &inquiry.found.items[inquiry.short_of[step]], cost_ns);
    array_fini(&inquiry.carriers);
    array_fini(&inquiry.loads);
    array_fini(&inquiry.last_loads);
    array_fini(&inquiry.found);
    free(inquiry.carrier_of);
    free(inquiry.path_of);
    free(inquiry.short_of);
}
