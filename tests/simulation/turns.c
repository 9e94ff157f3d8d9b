/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turns: hears capture files little by little, as a correlator hears a job, and compares each so many turns everything
 * that it says with what one analysis of the same batches at once says, last ones first: they are to be equal. The job
 * is cut into small windows (segment.h); how far its verdicts are those of one window over all is told, or asked for.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "correlator/analysis.h"
#include "correlator/relay/relay.h"
#include "correlator/store/store.h"
#include "wire/capture.h"
#include "wire/log.h"
#include "wire/option.h"

struct settings {
    uint64_t records;
    uint64_t turns;
    uint64_t every;
    const char *stores;
    bool apart;
    bool alike;
};

#define AT(member) offsetof(struct settings, member)
static const struct option_spec options[] = {
    {"records", 'r', OPTION_UNSIGNED, AT(records), "N", "records of a window (400)", 1, 1 << 30, NULL},
    {"turns", 't', OPTION_UNSIGNED, AT(turns), "N", "in how many parts it is heard (60)", 1, 1 << 20, NULL},
    {"every", 'e', OPTION_UNSIGNED, AT(every), "N", "after each N turns it is compared (7)", 1, 1 << 20, NULL},
    {"stores", 's', OPTION_TEXT, AT(stores), "FOLDER",
     "write live.db after each turn, and at the end once.db, in this folder", 0, 0, NULL},
    {"apart", 'a', OPTION_FLAG, AT(apart), NULL, "a node stage tells a job stage", 0, 0, NULL},
    {"alike", 'l', OPTION_FLAG, AT(alike), NULL, "fail where one window over all says something else", 0, 0, NULL},
};

static const struct option_program program = {
    .name = "turns",
    .summary = "compare what is said while a job runs with what is said of it at once",
    .usage = "[OPTIONS] CAPTURE...",
    .options = options,
    .options_count = sizeof options / sizeof *options,
    .positionals_max = SIZE_MAX,
    .epilogue = "Exit codes: 0 the same, 1 not, 2 usage.\n",
};

struct heard {
    uint8_t *bytes;
    size_t length_bytes;
};
typedef ARRAY(struct heard) heard_list;

static void keep(void *context, const void *bytes, size_t length_bytes)
{
    struct heard *heard = array_add((heard_list *)context);

    heard->bytes = array_zeroed(length_bytes);
    heard->length_bytes = length_bytes;
    memcpy(heard->bytes, bytes, length_bytes);
}

static void forget(heard_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].bytes);
    array_fini(list);
}

static int load(heard_list *list, const char *path)
{
    struct capture_reader *reader;
    const void *batch;
    size_t length_bytes;
    int error = capture_reader_open(&reader, path);

    if (error != 0)
        return error;
    while (capture_read(reader, &batch, &length_bytes) > 0)
        keep(list, batch, length_bytes);
    capture_reader_close(&reader);
    return 0;
}

/* ---- equal ---- */

static bool differ(const char *what, size_t index)
{
    fprintf(stderr, "%s %zu differs\n", what, index);
    return false;
}

static bool same_verdict(const struct verdict *a, const struct verdict *b)
{
    bool same = a->step == b->step && a->class == b->class && a->rank == b->rank && a->peer_rank == b->peer_rank &&
                a->operation == b->operation && a->size_ns == b->size_ns && a->bound_ns == b->bound_ns &&
                a->confidence == b->confidence && strcmp(a->evidence, b->evidence) == 0 &&
                strcmp(a->device, b->device) == 0 && a->numbers.count == b->numbers.count &&
                a->candidates.count == b->candidates.count;

    for (size_t i = 0; same && i < a->numbers.count; i++)
        same = a->numbers.items[i].first_row == b->numbers.items[i].first_row &&
               a->numbers.items[i].last_row == b->numbers.items[i].last_row &&
               a->numbers.items[i].owner == b->numbers.items[i].owner &&
               a->numbers.items[i].amount == b->numbers.items[i].amount;
    return same;
}

static bool same_rank_operation(const struct rank_operation *a, const struct rank_operation *b)
{
    return memcmp(&a->record, &b->record, sizeof a->record) == 0 && a->operation == b->operation &&
           a->rank == b->rank && a->arrival_ns == b->arrival_ns && a->late_known == b->late_known &&
           a->late_ns == b->late_ns && a->before_ns == b->before_ns && a->role == b->role;
}

static bool same_operation(const struct operation *a, const struct operation *b)
{
    return memcmp(a->communicator, b->communicator, IDENTITY_BYTES) == 0 && a->sequence == b->sequence &&
           a->step == b->step && a->place == b->place && a->ranks == b->ranks && a->first_rank == b->first_rank &&
           a->end_ns == b->end_ns && a->flags == b->flags;
}

static bool same_step(const struct step *a, const struct step *b)
{
    return a->kind == b->kind && a->start_ns == b->start_ns && a->end_ns == b->end_ns &&
           a->duration_ns == b->duration_ns && a->operations == b->operations && a->partial == b->partial &&
           a->slowest_rank == b->slowest_rank && a->late_operation == b->late_operation &&
           a->first_rank == b->first_rank && a->ranks == b->ranks;
}

static bool same_part(const struct path_part *a, const struct path_part *b)
{
    return a->step == b->step && a->rank == b->rank && a->operation == b->operation && a->from_ns == b->from_ns;
}

static bool same_rank_step(const struct rank_step *a, const struct rank_step *b)
{
    return a->step == b->step && a->rank == b->rank && a->duration_ns == b->duration_ns && a->cost_ns == b->cost_ns;
}

static bool same_transport(const struct transport *a, const struct transport *b)
{
    return a->rank == b->rank && a->step == b->step && a->asked_bytes == b->asked_bytes && a->kind == b->kind;
}

static bool same_number(const int32_t *a, const int32_t *b)
{
    return *a == *b;
}

#define COMPARE(live, once, table, same)                                                                               \
    do {                                                                                                               \
        if ((live)->table.count != (once)->table.count)                                                                \
            return differ("the number of " #table ", of which", (live)->table.count);                                  \
        for (size_t i = 0; i < (live)->table.count; i++)                                                               \
            if (!same(&(live)->table.items[i], &(once)->table.items[i]))                                               \
                return differ(#table, i);                                                                              \
    } while (0)

static bool same_job(const struct job *live, const struct job *once)
{
    COMPARE(live, once, steps, same_step);
    COMPARE(live, once, operations, same_operation);
    COMPARE(live, once, rank_operations, same_rank_operation);
    COMPARE(live, once, rank_operation_of, same_number);
    COMPARE(live, once, rank_steps, same_rank_step);
    COMPARE(live, once, path, same_part);
    COMPARE(live, once, transports, same_transport);
    COMPARE(live, once, verdicts, same_verdict);
    return true;
}

/* ---- a run ---- */

struct player {
    const struct settings *settings;
    struct analysis *live;
    struct analysis *node; /* of two stages */
    struct relay *relay;
    struct store *store;
    heard_list told; /* all that `live` heard */
};

static struct analysis *create(const struct settings *settings, uint64_t records)
{
    struct analysis *analysis = analysis_create(SIZE_MAX / 2);

    analysis_judge_in_windows(analysis, records);
    analysis->stage = settings->apart ? ANALYSIS_JOB : ANALYSIS_BOTH;
    return analysis;
}

/* What one analysis of all that was heard says, the last batch first. */
static struct analysis *at_once(const struct player *player, uint64_t records)
{
    struct analysis *analysis = create(player->settings, records);

    for (size_t i = player->told.count; i-- > 0;)
        analysis_add_batch(analysis, player->told.items[i].bytes, player->told.items[i].length_bytes);
    analysis_run(analysis);
    return analysis;
}

static void name_store(const struct player *player, const char *name, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s/%s.db", player->settings->stores, name);
}

static void write_once(const struct player *player, const struct analysis *once)
{
    char path[4096];

    name_store(player, "once", path, sizeof path);
    analysis_write(once, path);
}

static bool compare(const struct player *player)
{
    struct analysis *once = at_once(player, player->settings->records);
    bool same = same_job(&player->live->job, &once->job);

    if (player->settings->stores != NULL)
        write_once(player, once);
    analysis_destroy(&once);
    return same;
}

static void play_turn(struct player *player, const heard_list *lists, size_t count, uint64_t turn)
{
    const struct settings *settings = player->settings;
    heard_list *told = &player->told;
    size_t before = told->count;

    for (size_t i = 0; i < count; i++)
        for (size_t at = lists[i].count * turn / settings->turns; at < lists[i].count * (turn + 1) / settings->turns;
             at++) {
            const struct heard *heard = &lists[i].items[at];
            if (settings->apart)
                analysis_add_batch(player->node, heard->bytes, heard->length_bytes);
            if (settings->apart)
                relay_batch(player->relay, heard->bytes, heard->length_bytes);
            else
                keep(told, heard->bytes, heard->length_bytes);
        }
    if (settings->apart) {
        analysis_run(player->node);
        relay_operations(player->relay, player->node, turn + 1 == settings->turns);
    }
    for (size_t i = before; i < told->count; i++)
        analysis_add_batch(player->live, told->items[i].bytes, told->items[i].length_bytes);
    analysis_run(player->live);
    if (player->store != NULL)
        store_write(player->store, player->live);
}

static bool is_said(const struct job *job, const struct verdict *verdict)
{
    for (size_t i = 0; i < job->verdicts.count; i++) {
        const struct verdict *other = &job->verdicts.items[i];
        if (other->step == verdict->step && other->class == verdict->class && other->rank == verdict->rank &&
            other->peer_rank == verdict->peer_rank)
            return true;
    }
    return false;
}

static size_t count_unsaid(const struct job *job, const struct job *other, const char *where)
{
    size_t unsaid = 0;

    for (size_t i = 0; i < job->verdicts.count; i++) {
        const struct verdict *verdict = &job->verdicts.items[i];
        if (is_said(other, verdict))
            continue;
        printf("only %s: step %d, %s, rank %d to %d, %.3f ms\n", where, verdict->step,
               verdict_class_name(verdict->class), verdict->rank, verdict->peer_rank, (double)verdict->size_ns / 1e6);
        unsaid++;
    }
    return unsaid;
}

/* How far the verdicts of windows are those of one over all. */
static bool look_whole(const struct player *player)
{
    struct analysis *whole = at_once(player, SIZE_MAX / 2);
    const struct job *live = &player->live->job;
    size_t unsaid = count_unsaid(live, &whole->job, "in windows") + count_unsaid(&whole->job, live, "in one");

    printf("%zu rank operations, %zu steps (one window: %zu), %zu verdicts (%zu), %zu windows judged at once\n",
           live->rank_operations.count, live->steps.count, whole->job.steps.count, live->verdicts.count,
           whole->job.verdicts.count, segments_judged(whole->segments));
    bool alike = unsaid == 0 && live->steps.count == whole->job.steps.count;
    analysis_destroy(&whole);
    return alike || !player->settings->alike;
}

static bool play(struct player *player, const heard_list *lists, size_t count)
{
    const struct settings *settings = player->settings;
    bool same = true;
    size_t judged = 0;

    for (uint64_t turn = 0; turn < settings->turns && same; turn++) {
        play_turn(player, lists, count, turn);
        judged += segments_judged(player->live->segments);
        if ((turn + 1) % settings->every == 0 || turn + 1 == settings->turns)
            same = compare(player);
        if (!same)
            fprintf(stderr, "in turn %" PRIu64 " of %" PRIu64 "\n", turn + 1, settings->turns);
    }
    printf("%zu windows judged in %" PRIu64 " turns\n", judged, settings->turns);
    return same && look_whole(player);
}

int main(int argc, char **argv)
{
    struct settings settings = {.records = 400, .turns = 60, .every = 7};
    struct player player = {.settings = &settings};
    char **positionals;
    size_t count;
    int parsed = option_parse(&program, argc, argv, &settings, &positionals, &count);

    if (parsed != OPTION_RESULT_RUN)
        return parsed == OPTION_RESULT_DONE ? 0 : 2;
    log_init("turns", LOG_WARNING);
    heard_list *lists = array_zeroed((count + 1) * sizeof *lists);
    bool good = count > 0;
    for (size_t i = 0; i < count; i++)
        good = load(&lists[i], positionals[i]) == 0 && good;
    player.live = create(&settings, settings.records);
    player.node = analysis_create(SIZE_MAX / 2);
    player.node->stage = ANALYSIS_NODE;
    player.relay =
        relay_create(&(struct relay_options){.emitter_id = 7, .boot_id = 3, .send = keep, .context = &player.told});
    if (settings.stores != NULL) {
        char path[4096];
        name_store(&player, "live", path, sizeof path);
        good = store_open(&player.store, path) == 0 && good;
    }
    good = good && play(&player, lists, count);
    store_close(&player.store);
    relay_destroy(&player.relay);
    analysis_destroy(&player.node);
    analysis_destroy(&player.live);
    forget(&player.told);
    for (size_t i = 0; i < count; i++)
        forget(&lists[i]);
    free(lists);
    return good ? 0 : 1;
}
