/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts beside completions and messages. A completion means its request and all before it on the queue pair (an RC send
 * queue completes in order). Invariant: a post has a message only when the next messages of its flow, as many as it has
 * requests, hold exactly its bytes, and none began before it was posted, within the clocks' bounds.
 */
#include "correlator/detail/posted.h"

#include <stdlib.h>
#include <string.h>

#define RECEIVES_FROM 128 /* enum ibv_wc_opcode: IBV_WC_RECV and on are of the receive queue */

/* A queue pair by its number in its stream, and its posts. */
struct place {
    size_t stream;
    uint32_t number;
    int32_t queue_pair;
    int32_t first;
    int32_t last;
    int32_t uncompleted; /* the first one */
};

struct builder {
    struct posting *posting;
    const struct naming *naming;
    const struct timeline *timeline;
    ARRAY(struct place) places; /* by stream and number */
};

static int compare_places(const void *a, const void *b)
{
    const struct place *one = a;
    const struct place *other = b;

    if (one->stream != other->stream)
        return one->stream < other->stream ? -1 : 1;
    return one->number < other->number ? -1 : one->number > other->number;
}

static void index_queue_pairs(struct builder *builder)
{
    const struct naming *naming = builder->naming;

    for (size_t i = 0; i < naming->queue_pairs.count; i++) {
        const struct queue_pair *queue_pair = &naming->queue_pairs.items[i];
        *(struct place *)array_add(&builder->places) =
            (struct place){queue_pair->stream, queue_pair->record.queue_pair, (int32_t)i, -1, -1, -1};
    }
    array_sort(&builder->places, compare_places);
}

static struct place *find_place(const struct builder *builder, size_t stream, uint32_t number)
{
    const struct place wanted = {.stream = stream, .number = number};

    if (builder->places.count == 0)
        return NULL;
    return bsearch(&wanted, builder->places.items, builder->places.count, sizeof wanted, compare_places);
}

static void take_post(struct builder *builder, struct place *place, const struct record_work *record)
{
    struct timeline_time at = timeline_map(builder->timeline, place->stream, record->at_ns);
    int32_t index = (int32_t)builder->posting->posts.count;
    struct posted *post = array_add(&builder->posting->posts);

    *post = (struct posted){.queue_pair = place->queue_pair,
                            .posted_ns = at.ns,
                            .bound_ns = at.bound_ns,
                            .message = -1,
                            .next = -1,
                            .record = *record};
    if (place->last >= 0)
        builder->posting->posts.items[place->last].next = index;
    else
        place->first = index;
    place->last = index;
    if (place->uncompleted < 0)
        place->uncompleted = index;
}

/* Of a request that was posted before anybody followed there is no post. */
static void take_completion(struct builder *builder, struct place *place, const struct record_work *record)
{
    struct posted *posts = builder->posting->posts.items;
    int32_t found = place->uncompleted;

    if (record->opcode >= RECEIVES_FROM)
        return;
    while (found >= 0 && posts[found].record.request != record->request)
        found = posts[found].next;
    if (found < 0)
        return;
    uint64_t at_ns = timeline_map(builder->timeline, place->stream, record->at_ns).ns;
    int32_t end = posts[found].next;
    for (int32_t i = place->uncompleted; i != end; i = posts[i].next) {
        posts[i].completed_ns = at_ns;
        posts[i].status = i == found ? record->status : 0;
    }
    place->uncompleted = end;
}

static void take_followed(struct builder *builder, size_t stream, const struct record_followed *record)
{
    struct followed *followed = array_add(&builder->posting->followed);

    followed->stream = stream;
    followed->from_ns = timeline_map(builder->timeline, stream, record->from_ns).ns;
    followed->to_ns = timeline_map(builder->timeline, stream, record->to_ns).ns;
    followed->record = *record;
}

static void take_work(struct builder *builder, size_t stream, const struct record_work *record)
{
    struct place *place = find_place(builder, stream, record->header.source);

    if (place == NULL)
        builder->posting->orphans_count++;
    else if (record->what == WORK_POSTED)
        take_post(builder, place, record);
    else
        take_completion(builder, place, record);
}

/* ---- beside the wire ---- */

typedef ARRAY(int32_t) index_list;

static int compare_messages(const void *a, const void *b, void *context)
{
    const struct naming *naming = context;
    uint64_t one = naming->messages.items[*(const int32_t *)a].first_ns;
    uint64_t other = naming->messages.items[*(const int32_t *)b].first_ns;

    return one < other ? -1 : one > other;
}

/* The messages that the queue pair sent, in the order in which they began. */
static void list_messages(index_list *list, const struct naming *naming, const struct queue_pair *queue_pair)
{
    int32_t flow = naming_view(naming, queue_pair->flows_out.items, queue_pair->flows_out.count, VANTAGE_TX);

    list->count = 0;
    if (flow < 0)
        return;
    for (size_t i = 0; i < naming->flows.items[flow].messages.count; i++)
        *(int32_t *)array_add(list) = naming->flows.items[flow].messages.items[i];
    if (list->count != 0)
        qsort_r(list->items, list->count, sizeof list->items[0], compare_messages, (void *)naming);
}

static bool fits(const struct naming *naming, const struct posted *post, const int32_t *messages, size_t count)
{
    uint64_t bytes = 0;

    if (count < post->record.requests || post->record.requests == 0 || (post->record.flags & WORK_CUT) != 0)
        return false;
    for (size_t i = 0; i < post->record.requests; i++) {
        const struct message *message = &naming->messages.items[messages[i]];
        if ((message->flags & MESSAGE_MERGED) != 0)
            return false;
        bytes += message->payload_bytes;
    }
    return bytes == post->record.bytes;
}

static void lay_beside(struct builder *builder, const struct place *place, index_list *list)
{
    const struct naming *naming = builder->naming;
    size_t next = 0;

    list_messages(list, naming, &naming->queue_pairs.items[place->queue_pair]);
    for (int32_t i = place->first; i >= 0 && next < list->count; i = builder->posting->posts.items[i].next) {
        struct posted *post = &builder->posting->posts.items[i];
        while (next < list->count &&
               naming->messages.items[list->items[next]].first_ns + naming->bound_ns < post->posted_ns)
            next++;
        if (!fits(naming, post, list->items + next, list->count - next))
            continue;
        post->message = list->items[next];
        next += post->record.requests;
    }
}

void posting_build(struct posting *posting, const struct naming *naming, const struct intake *intake,
                   const struct timeline *timeline)
{
    struct builder builder = {.posting = posting, .naming = naming, .timeline = timeline};
    struct intake_walk walk = {.intake = intake, .skips_runs = true};
    union record record;
    index_list list = {0};

    memset(posting, 0, sizeof *posting);
    index_queue_pairs(&builder);
    while (intake_next(&walk, &record)) {
        if (record.header.kind == RECORD_WORK)
            take_work(&builder, walk.stream, &record.work);
        if (record.header.kind == RECORD_FOLLOWED)
            take_followed(&builder, walk.stream, &record.followed);
    }
    for (size_t i = 0; i < builder.places.count; i++)
        if (builder.places.items[i].first >= 0)
            lay_beside(&builder, &builder.places.items[i], &list);
    array_fini(&list);
    array_fini(&builder.places);
}

void posting_fini(struct posting *posting)
{
    array_fini(&posting->posts);
    array_fini(&posting->followed);
}
