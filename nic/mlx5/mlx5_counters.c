/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots and bulks. Invariants: a counter's value from before its rule was made is known when the rule is made, so that
 * nothing is counted that the queue pair did not do: a fresh bulk is read once, and a slot that was given back rests
 * until it was read once more. A reading's interval begins where the one before was asked for and ends where its own
 * was answered.
 *
 * A bulk is always read from its first counter on: the kernel lets an object be queried only by its own number.
 */
#include "nic/mlx5/mlx5_counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/clock.h"
#include "wire/log.h"

#define BULKS_MAX      1024
#define NO_SLOT        UINT32_MAX
#define READ_ALIGNMENT 4u /* counters that are read at once */

enum slot_state { SLOT_FREE, SLOT_USED, SLOT_RESTING };

struct slot {
    enum slot_state state;
    unsigned place;
    bool has_moved;
    uint64_t counted_ns[2];                       /* when the reading before the last was asked for, answered */
    struct mlx5_traffic counted[MLX5_DIRECTIONS]; /* ... and what it said */
    struct mlx5_rule *rules[MLX5_DIRECTIONS];
};

struct bulk {
    struct mlx5_object *objects[MLX5_DIRECTIONS]; /* one for both with offsets, else one each */
    uint32_t counter_ids[MLX5_DIRECTIONS];
    struct slot *slots;
    unsigned slots_used; /* the highest in use, and one */
    uint64_t asked_ns;   /* of the last reading */
    uint64_t answered_ns;
    const uint8_t *memory; /* where it is dumped; NULL: it comes in the answer */
    uint32_t mkey;
    uint64_t address;
    uint8_t *values[MLX5_DIRECTIONS]; /* as they came, after what the answer begins with */
};

struct mlx5_counters {
    struct mlx5_device *device;
    struct mlx5_abilities abilities;
    unsigned bulk_log; /* counters a bulk, as a power of two; 0: each counter for itself */
    unsigned slots_a_bulk;
    bool is_full; /* the device refused the last bulk; until one is given back */
    bool has_complained;
    uint64_t refused;
    struct bulk bulks[BULKS_MAX];
    unsigned bulks_count;
    uint32_t *slot_of; /* by place: bulk * slots_a_bulk + slot */
    unsigned places;
};

/* ---- bulks ---- */

static bool is_shared(const struct mlx5_counters *counters)
{
    return counters->bulk_log != 0;
}

static void remove_bulk(struct mlx5_counters *counters, struct bulk *bulk)
{
    for (unsigned i = 0; i < MLX5_DIRECTIONS; i++) {
        if (bulk->objects[i] != NULL && (i == 0 || bulk->objects[i] != bulk->objects[0]))
            mlx5_device_remove(counters->device, bulk->objects[i]);
        free(bulk->values[i]);
    }
    free(bulk->slots);
    *bulk = (struct bulk){0};
}

static size_t answer_bytes(const struct mlx5_counters *counters)
{
    return MLX5_ANSWER_BYTES + ((size_t)MLX5_COUNTER_BYTES << counters->bulk_log);
}

static int make_object(struct mlx5_counters *counters, struct bulk *bulk, unsigned direction)
{
    uint8_t command[MLX5_COMMAND_BYTES], answer[MLX5_ANSWER_BYTES];

    mlx5_encode_alloc(command, counters->bulk_log);
    int error = mlx5_device_make(counters->device, command, answer, &bulk->objects[direction]);
    if (error != 0)
        return error;
    bulk->counter_ids[direction] = (uint32_t)mlx5_get(answer, MLX5_ALLOC_FLOW_COUNTER_ANSWER_COUNTER_ID);
    bulk->values[direction] = calloc(1, answer_bytes(counters));
    return bulk->values[direction] == NULL ? -ENOMEM : 0;
}

static int read_object(struct mlx5_counters *counters, struct bulk *bulk, unsigned direction)
{
    uint8_t command[MLX5_COMMAND_BYTES];
    unsigned used = bulk->slots_used * MLX5_DIRECTIONS;
    struct mlx5_query query = {.counter_id = bulk->counter_ids[direction], .counters = 1};

    if (is_shared(counters))
        query.counters = (used + READ_ALIGNMENT - 1) / READ_ALIGNMENT * READ_ALIGNMENT;
    if (query.counters == 0)
        query.counters = READ_ALIGNMENT;
    query.to_memory = bulk->memory != NULL;
    query.mkey = bulk->mkey;
    query.address = bulk->address;
    mlx5_encode_query(command, &query);
    int error = mlx5_device_query(counters->device, bulk->objects[direction], command, bulk->values[direction],
                                  query.to_memory ? MLX5_ANSWER_BYTES : answer_bytes(counters));
    if (error == 0 && query.to_memory)
        memcpy(bulk->values[direction] + MLX5_ANSWER_BYTES, bulk->memory, (size_t)query.counters * MLX5_COUNTER_BYTES);
    return error;
}

static int read_bulk(struct mlx5_counters *counters, struct bulk *bulk)
{
    uint64_t asked_ns = clock_now_ns();
    int error = read_object(counters, bulk, MLX5_SENT);

    if (error == 0 && !is_shared(counters) && bulk->objects[MLX5_RECEIVED] != NULL)
        error = read_object(counters, bulk, MLX5_RECEIVED);
    if (error != 0)
        return error;
    bulk->asked_ns = asked_ns;
    bulk->answered_ns = clock_now_ns();
    return 0;
}

/* Memory only where the device took it the first time: else answers carry the counters. */
static int first_read(struct mlx5_counters *counters, struct bulk *bulk)
{
    if (counters->abilities.has_memory && is_shared(counters))
        bulk->memory = mlx5_device_memory(counters->device, (size_t)MLX5_COUNTER_BYTES << counters->bulk_log,
                                          &bulk->mkey, &bulk->address);
    bulk->slots_used = counters->slots_a_bulk;
    int error = read_bulk(counters, bulk);
    if (error != 0 && bulk->memory != NULL) {
        log_info("mlx5: the device does not dump counters to memory (%s): they come in the command's answer",
                 strerror(-error));
        counters->abilities.has_memory = false;
        bulk->memory = NULL;
        error = read_bulk(counters, bulk);
    }
    bulk->slots_used = 0;
    return error;
}

static int make_bulk(struct mlx5_counters *counters)
{
    struct bulk *bulk = &counters->bulks[counters->bulks_count];

    if (counters->bulks_count == BULKS_MAX)
        return -ENOSPC;
    bulk->slots = calloc(counters->slots_a_bulk, sizeof *bulk->slots);
    int error = bulk->slots == NULL ? -ENOMEM : make_object(counters, bulk, MLX5_SENT);
    if (error == 0 && !is_shared(counters) && counters->abilities.counts[MLX5_RECEIVED])
        error = make_object(counters, bulk, MLX5_RECEIVED);
    if (error == 0)
        error = first_read(counters, bulk);
    if (error == 0)
        counters->bulks_count++;
    else
        remove_bulk(counters, bulk);
    return error;
}

/* The largest bulk that the device gives; a device that gives none has counters one by one. */
static int make_first_bulk(struct mlx5_counters *counters)
{
    int error = -ENOSPC;

    counters->bulk_log = counters->abilities.has_offsets ? counters->abilities.bulk_log_max : 0;
    while (true) {
        counters->slots_a_bulk = is_shared(counters) ? 1u << (counters->bulk_log - 1) : 1;
        error = make_bulk(counters);
        if (error == 0 || error == -ENOMEM || counters->bulk_log == 0)
            return error;
        counters->bulk_log = counters->bulk_log > 2 ? counters->bulk_log - 1 : 0;
    }
}

/* ---- what a counter says ---- */

static void decode(const struct mlx5_counters *counters, const struct bulk *bulk, unsigned slot, unsigned direction,
                   struct mlx5_traffic *traffic)
{
    size_t number = is_shared(counters) ? slot * MLX5_DIRECTIONS + direction : 0;
    const uint8_t *values = bulk->values[is_shared(counters) ? MLX5_SENT : direction];

    *traffic = (struct mlx5_traffic){0};
    if (values != NULL)
        mlx5_decode_counter(values + MLX5_ANSWER_BYTES + number * MLX5_COUNTER_BYTES, traffic);
}

static void begin_at(const struct mlx5_counters *counters, const struct bulk *bulk, unsigned index)
{
    struct slot *slot = &bulk->slots[index];

    slot->counted_ns[0] = bulk->asked_ns;
    slot->counted_ns[1] = bulk->answered_ns;
    for (unsigned i = 0; i < MLX5_DIRECTIONS; i++)
        decode(counters, bulk, index, i, &slot->counted[i]);
}

/* ---- slots ---- */

static struct slot *slot_at(const struct mlx5_counters *counters, uint32_t number, struct bulk **bulk)
{
    *bulk = (struct bulk *)&counters->bulks[number / counters->slots_a_bulk];
    return &(*bulk)->slots[number % counters->slots_a_bulk];
}

static uint32_t find_slot(const struct mlx5_counters *counters, enum slot_state state)
{
    uint32_t count = counters->bulks_count * counters->slots_a_bulk;
    struct bulk *bulk;

    for (uint32_t number = 0; number < count; number++)
        if (slot_at(counters, number, &bulk)->state == state)
            return number;
    return NO_SLOT;
}

static void remove_rules(struct mlx5_counters *counters, struct slot *slot)
{
    for (unsigned i = 0; i < MLX5_DIRECTIONS; i++) {
        if (slot->rules[i] != NULL)
            mlx5_device_uncount(counters->device, slot->rules[i]);
        slot->rules[i] = NULL;
    }
}

static int make_rules(struct mlx5_counters *counters, struct bulk *bulk, unsigned index, uint32_t qpn)
{
    struct slot *slot = &bulk->slots[index];
    uint8_t match[MLX5_MATCH_BYTES];
    int error = 0;

    for (unsigned i = 0; i < MLX5_DIRECTIONS && error == 0; i++) {
        if (!counters->abilities.counts[i])
            continue;
        mlx5_encode_match(match, i, qpn);
        error = mlx5_device_count(counters->device, i, match, bulk->objects[is_shared(counters) ? MLX5_SENT : i],
                                  is_shared(counters) ? index * MLX5_DIRECTIONS + i : 0, &slot->rules[i]);
    }
    if (error != 0)
        remove_rules(counters, slot);
    return error;
}

static int refuse(struct mlx5_counters *counters, uint32_t qpn, const char *what, int error)
{
    counters->refused++;
    if (!counters->has_complained)
        log_warning(
            "mlx5: the device gives no more %s (%s): queue pair 0x%x is not counted, nor are others until some go",
            what, strerror(-error), qpn);
    counters->has_complained = true;
    return -ENOSPC;
}

int mlx5_counters_add(struct mlx5_counters *counters, unsigned place, uint32_t qpn)
{
    struct bulk *bulk;
    uint32_t number = find_slot(counters, SLOT_FREE);
    int error = 0;

    if (number == NO_SLOT && !counters->is_full) {
        error = make_bulk(counters);
        number = find_slot(counters, SLOT_FREE);
    }
    if (number == NO_SLOT && find_slot(counters, SLOT_RESTING) != NO_SLOT)
        return -EAGAIN;
    if (number == NO_SLOT) {
        counters->is_full = true;
        return refuse(counters, qpn, "counters", error == 0 ? -ENOSPC : error);
    }
    struct slot *slot = slot_at(counters, number, &bulk);
    unsigned index = number % counters->slots_a_bulk;
    begin_at(counters, bulk, index);
    slot->counted_ns[0] = clock_now_ns();
    error = make_rules(counters, bulk, index, qpn);
    slot->counted_ns[1] = clock_now_ns();
    if (error != 0)
        return refuse(counters, qpn, "rules", error);
    slot->state = SLOT_USED;
    slot->place = place;
    slot->has_moved = false;
    counters->slot_of[place] = number;
    if (bulk->slots_used <= index)
        bulk->slots_used = index + 1;
    return 0;
}

void mlx5_counters_remove(struct mlx5_counters *counters, unsigned place)
{
    struct bulk *bulk;

    if (!mlx5_counters_has(counters, place))
        return;
    struct slot *slot = slot_at(counters, counters->slot_of[place], &bulk);
    remove_rules(counters, slot);
    slot->state = SLOT_RESTING;
    counters->slot_of[place] = NO_SLOT;
    counters->is_full = false;
    counters->has_complained = false;
}

bool mlx5_counters_has(const struct mlx5_counters *counters, unsigned place)
{
    return counters->slot_of[place] != NO_SLOT;
}

/* ---- reading ---- */

static void wake_resting(struct bulk *bulk, unsigned slots_a_bulk)
{
    unsigned used = 0;

    for (unsigned i = 0; i < slots_a_bulk; i++) {
        if (bulk->slots[i].state == SLOT_RESTING)
            bulk->slots[i].state = SLOT_FREE;
        if (bulk->slots[i].state == SLOT_USED) {
            bulk->slots[i].has_moved = true;
            used = i + 1;
        }
    }
    bulk->slots_used = used;
}

int mlx5_counters_read(struct mlx5_counters *counters)
{
    int first_error = 0;

    for (unsigned i = 0; i < counters->bulks_count; i++) {
        struct bulk *bulk = &counters->bulks[i];
        int error = bulk->slots_used == 0 ? 0 : read_bulk(counters, bulk);
        if (error == 0 && bulk->slots_used != 0)
            wake_resting(bulk, counters->slots_a_bulk);
        first_error = first_error == 0 ? error : first_error;
    }
    return first_error;
}

/* What a counter rose by; one that stands below where it was, was set back. */
static bool step(const struct mlx5_traffic *from, const struct mlx5_traffic *to, uint64_t *packets, uint64_t *bytes,
                 uint32_t *flags)
{
    if (to->packets < from->packets || to->octets < from->octets) {
        *flags |= READING_RESET;
        return true;
    }
    *packets = to->packets - from->packets;
    *bytes = to->octets - from->octets;
    return *packets != 0 || *bytes != 0;
}

bool mlx5_counters_take(struct mlx5_counters *counters, unsigned place, struct record_reading *reading)
{
    struct mlx5_traffic now[MLX5_DIRECTIONS];
    struct bulk *bulk;

    if (!mlx5_counters_has(counters, place))
        return false;
    struct slot *slot = slot_at(counters, counters->slot_of[place], &bulk);
    if (!slot->has_moved || bulk->asked_ns <= slot->counted_ns[0])
        return false;
    slot->has_moved = false;
    *reading = (struct record_reading){.from_ns = slot->counted_ns[0],
                                       .to_ns = bulk->answered_ns,
                                       .from_bound_ns = (uint32_t)(slot->counted_ns[1] - slot->counted_ns[0]),
                                       .to_bound_ns = (uint32_t)(bulk->answered_ns - bulk->asked_ns),
                                       .fields = SOURCE_PACKETS | SOURCE_WIRE_BYTES};
    for (unsigned i = 0; i < MLX5_DIRECTIONS; i++)
        decode(counters, bulk, counters->slot_of[place] % counters->slots_a_bulk, i, &now[i]);
    bool has_sent = step(&slot->counted[MLX5_SENT], &now[MLX5_SENT], &reading->sent_packets, &reading->sent_bytes_most,
                         &reading->flags);
    bool has_received = step(&slot->counted[MLX5_RECEIVED], &now[MLX5_RECEIVED], &reading->received_packets,
                             &reading->received_bytes_most, &reading->flags);
    reading->sent_bytes_least = reading->sent_bytes_most;
    reading->received_bytes_least = reading->received_bytes_most;
    reading->flags |= counters->abilities.counts[MLX5_RECEIVED] ? 0 : READING_SENT_ONLY;
    reading->flags |= counters->abilities.counts[MLX5_SENT] ? 0 : READING_RECEIVED_ONLY;
    memcpy(slot->counted, now, sizeof now);
    slot->counted_ns[0] = bulk->asked_ns;
    slot->counted_ns[1] = bulk->answered_ns;
    return has_sent || has_received;
}

/* ---- the contract ---- */

static int open_parts(struct mlx5_counters *counters)
{
    uint8_t command[MLX5_TABLE_COMMAND_BYTES];
    struct mlx5_abilities *abilities = &counters->abilities;

    mlx5_device_abilities(counters->device, abilities);
    if (abilities->counts[MLX5_RECEIVED]) {
        mlx5_encode_table(command, &abilities->domain);
        int error = mlx5_device_make_table(counters->device, command);
        if (error != 0)
            log_warning("mlx5: no table for received packets to go on in (%s): only what is sent is counted",
                        strerror(-error));
        abilities->counts[MLX5_RECEIVED] = error == 0;
    }
    if (!abilities->counts[MLX5_SENT] && !abilities->counts[MLX5_RECEIVED])
        return log_error_return(-EOPNOTSUPP, "mlx5: neither sent nor received packets of a queue pair can be counted");
    int error = make_first_bulk(counters);
    return error == 0 ? 0 : log_error_return(error, "mlx5: the device gives no flow counter: %s", strerror(-error));
}

int mlx5_counters_open(struct mlx5_counters **counters, struct mlx5_device *device, unsigned places)
{
    struct mlx5_counters *made = calloc(1, sizeof *made);

    if (made == NULL)
        return log_error_return(-ENOMEM, "no memory for counters");
    made->device = device;
    made->places = places;
    made->slot_of = malloc(places * sizeof *made->slot_of);
    if (made->slot_of != NULL)
        memset(made->slot_of, 0xff, places * sizeof *made->slot_of);
    int error = made->slot_of == NULL ? -ENOMEM : open_parts(made);
    if (error != 0)
        mlx5_counters_close(&made);
    else
        *counters = made;
    return error;
}

void mlx5_counters_close(struct mlx5_counters **counters)
{
    struct mlx5_counters *closed = *counters;

    if (closed == NULL)
        return;
    for (unsigned place = 0; closed->slot_of != NULL && place < closed->places; place++)
        mlx5_counters_remove(closed, place);
    for (unsigned i = 0; i < closed->bulks_count; i++)
        remove_bulk(closed, &closed->bulks[i]);
    free(closed->slot_of);
    free(closed);
    *counters = NULL;
}

uint64_t mlx5_counters_refused(const struct mlx5_counters *counters)
{
    return counters->refused;
}
