/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: every place that was ordered is heard of once; a library is told of when none of its orders is open. The
 * number of an order says what it is for: its library (from 1) and row of probe_specs, or, for what is followed, 0 and
 * the number of the following (from 1), since an older one may still be heard of; or 0 for a place of the kernel's.
 */
#include "host/probe/placement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/event.h"
#include "wire/log.h"

#define GROUP_FOLLOWED ((unsigned)DUTIES)
#define OWN_MAX        8

_Static_assert(DUTIES < ATTACHER_GROUPS, "duties are groups, and one more");

/* What names a job, then what a person waits for, then what the budget gives up last. */
static const unsigned urgencies[DUTIES + 1] = {
    [DUTY_ALWAYS] = 0, [GROUP_FOLLOWED] = 1, [DUTY_DETAIL] = 2, [DUTY_MARKER] = 3, [DUTY_DELAY] = 4, [DUTY_RETURN] = 5,
};

/* A library with probes, kept for those that come and go. */
struct probed {
    uint64_t library;
    int descriptor;
    struct library_place *places;
    size_t places_count;
    size_t open; /* places that were ordered and not heard of */
    bool told;
    struct placement_attached attached;
};

struct placement {
    struct placement_options options;
    struct attacher *attacher;
    bool on[DUTIES];
    size_t set[DUTIES]; /* places, as heard */
    struct probed *probed;
    size_t probed_count;
    int own[OWN_MAX];
    size_t own_count;
    uint32_t following;
    size_t followed_set;
    int followed_error;
    uint64_t failed;
};

int placement_create(struct placement **placement, const struct placement_options *options)
{
    struct placement *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return log_error_return(-ENOMEM, "no memory for the table of probes");
    fresh->options = *options;
    fresh->following = 1;
    for (enum probe_duty duty = 0; duty < DUTIES; duty++)
        fresh->on[duty] = duty != DUTY_DETAIL && duty != DUTY_DELAY;
    const int error = attacher_create(&fresh->attacher, &options->attacher);
    if (error != 0) {
        free(fresh);
        return error;
    }
    *placement = fresh;
    return 0;
}

void placement_destroy(struct placement **placement)
{
    struct placement *gone = *placement;
    if (gone == NULL)
        return;
    attacher_destroy(&gone->attacher);
    for (size_t i = 0; i < gone->probed_count; i++) {
        close(gone->probed[i].descriptor);
        free(gone->probed[i].places);
    }
    free(gone->probed);
    free(gone);
    *placement = NULL;
}

/* ---- ordering ---- */

static uint64_t number_of(size_t library, size_t row)
{
    return (uint64_t)library << 32 | row;
}

static void report_place(size_t row, int error)
{
    const struct probe_spec *spec = &probe_specs[row];
    log_warning("cannot set the probe at the %s of %s: %s; not known: %s", spec->at_return ? "return" : "entry",
                spec->symbol, strerror(-error), spec->reads);
}

static void fail(struct placement *placement, struct probed *probed, size_t row, size_t places, int error)
{
    placement->failed += places;
    probed->attached.failed += places;
    report_place(row, error);
}

/* What the kernel takes at once: all places of a row, which lie side by side, or one. */
static void order_row(struct placement *placement, struct probed *probed, const struct library_place *places,
                      size_t count)
{
    uint64_t offsets[LIBRARY_PLACES_MAX];
    const size_t row = places[0].spec;
    const struct probe_spec *spec = &probe_specs[row];
    const size_t step = placement->options.attacher.multiple ? count : 1;
    for (size_t i = 0; i < count; i++)
        offsets[i] = places[i].file_offset;
    struct attacher_order order = {
        .group = spec->duty,
        .urgency = urgencies[spec->duty] << 16 | (unsigned)row,
        .number = number_of((size_t)(probed - placement->probed) + 1, row),
        .attachment = {.program = placement->options.programs[row],
                       .file = probed->descriptor,
                       .offsets_count = step,
                       .cookie = probed->library | (uint64_t)spec->variant << EVENT_VARIANT_SHIFT,
                       .at_return = spec->at_return},
    };
    for (size_t i = 0; i < count; i += step) {
        order.attachment.offsets = offsets + i;
        const int error = attacher_add(placement->attacher, &order);
        if (error == 0)
            probed->open += step;
        else
            fail(placement, probed, row, step, error);
    }
}

static void order_duty(struct placement *placement, struct probed *probed, enum probe_duty duty)
{
    for (size_t from = 0; from < probed->places_count;) {
        size_t to = from + 1;
        while (to < probed->places_count && probed->places[to].spec == probed->places[from].spec)
            to++;
        if (probe_specs[probed->places[from].spec].duty == duty)
            order_row(placement, probed, probed->places + from, to - from);
        from = to;
    }
}

static int keep_probed(struct placement *placement, uint64_t library, int descriptor,
                       const struct library_places *places)
{
    struct probed *all = realloc(placement->probed, (placement->probed_count + 1) * sizeof *all);
    if (all == NULL)
        return -ENOMEM;
    placement->probed = all;
    struct probed *probed = &all[placement->probed_count];
    *probed = (struct probed){.library = library, .places_count = places->count, .attached.library = library};
    probed->places = malloc(places->count * sizeof *probed->places);
    probed->descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (probed->places == NULL || probed->descriptor < 0) {
        const int error = -errno;
        free(probed->places);
        return error;
    }
    memcpy(probed->places, places->places, places->count * sizeof *probed->places);
    placement->probed_count++;
    return 0;
}

int placement_attach(struct placement *placement, uint64_t library, int descriptor, const struct library_places *places)
{
    const int error = keep_probed(placement, library, descriptor, places);
    if (error != 0)
        return log_error_return(error, "cannot keep a library open to probe it: %s", strerror(-error));
    for (enum probe_duty duty = 0; duty < DUTIES; duty++)
        if (placement->on[duty])
            order_duty(placement, &placement->probed[placement->probed_count - 1], duty);
    return 0;
}

int placement_add_own(struct placement *placement, int program)
{
    if (placement->own_count == OWN_MAX)
        return log_error_return(-ENOSPC, "more programs at places of the kernel than there is room for");
    placement->own[placement->own_count++] = program;
    return 0;
}

static void order_own(struct placement *placement)
{
    for (size_t i = 0; i < placement->own_count; i++) {
        const struct attacher_order order = {
            .group = DUTY_DELAY,
            .urgency = urgencies[DUTY_DELAY] << 16,
            .number = number_of(0, 0),
            .attachment = {.program = placement->own[i], .file = -1},
        };
        const int error = attacher_add(placement->attacher, &order);
        if (error != 0)
            log_warning("cannot follow what keeps threads from running: %s", strerror(-error));
    }
}

void placement_set_duty(struct placement *placement, enum probe_duty duty, bool on)
{
    if (placement->on[duty] == on || duty == DUTY_ALWAYS)
        return;
    placement->on[duty] = on;
    if (!on) {
        attacher_clear(placement->attacher, duty);
        placement->set[duty] = 0;
        return;
    }
    if (duty == DUTY_DELAY)
        order_own(placement);
    for (size_t i = 0; i < placement->probed_count; i++)
        order_duty(placement, &placement->probed[i], duty);
}

bool placement_duty(const struct placement *placement, enum probe_duty duty)
{
    return placement->on[duty];
}

int placement_follow(struct placement *placement, const struct attachment *attachment)
{
    const struct attacher_order order = {
        .group = GROUP_FOLLOWED,
        .urgency = urgencies[GROUP_FOLLOWED] << 16,
        .number = number_of(0, placement->following),
        .attachment = *attachment,
    };
    return attacher_add(placement->attacher, &order);
}

void placement_end_following(struct placement *placement)
{
    attacher_clear(placement->attacher, GROUP_FOLLOWED);
    placement->following++;
    placement->followed_set = 0;
    placement->followed_error = 0;
}

/* ---- hearing ---- */

static void tell_attached(struct placement *placement, struct probed *probed)
{
    if (probed->open != 0 || probed->told)
        return;
    probed->told = true;
    probed->attached.probes = probed->places_count - probed->attached.failed;
    placement->options.attached(placement->options.context, &probed->attached);
}

static void hear_library(struct placement *placement, struct probed *probed, size_t row,
                         const struct attacher_result *result)
{
    probed->open -= result->places;
    if (result->error == 0) {
        placement->set[probe_specs[row].duty] += result->places;
        probed->attached.at_ns = result->at_ns;
    } else if (result->error != -ECANCELED) {
        fail(placement, probed, row, result->places, result->error);
    }
}

static void hear_followed(struct placement *placement, const struct attacher_result *result)
{
    placement->followed_set += result->error == 0;
    if (result->error == 0 || result->error == -ECANCELED)
        return;
    placement->failed++;
    placement->followed_error = result->error;
    log_warning("cannot follow all that is posted: %s", strerror(-result->error));
}

static void hear_own(struct placement *placement, const struct attacher_result *result)
{
    placement->set[DUTY_DELAY] += result->error == 0;
    if (result->error == 0 || result->error == -ECANCELED)
        return;
    placement->failed++;
    log_warning("cannot follow all that keeps threads from running: %s", strerror(-result->error));
}

static void hear(void *context, const struct attacher_result *result)
{
    struct placement *placement = context;
    const size_t library = result->number >> 32;
    const uint32_t row = (uint32_t)result->number;
    if (library != 0)
        hear_library(placement, &placement->probed[library - 1], row, result);
    else if (row == 0)
        hear_own(placement, result);
    else if (row == placement->following)
        hear_followed(placement, result);
}

void placement_tick(struct placement *placement)
{
    attacher_read(placement->attacher, hear, placement);
    for (size_t i = 0; i < placement->probed_count; i++)
        tell_attached(placement, &placement->probed[i]);
}

size_t placement_waiting(const struct placement *placement, enum probe_duty duty)
{
    return attacher_waiting(placement->attacher, duty);
}

bool placement_is_complete(const struct placement *placement, enum probe_duty duty)
{
    return placement->on[duty] && placement->set[duty] != 0 && placement_waiting(placement, duty) == 0;
}

int placement_followed(struct placement *placement)
{
    if (attacher_waiting(placement->attacher, GROUP_FOLLOWED) != 0)
        return 1;
    attacher_read(placement->attacher, hear, placement);
    return placement->followed_set != 0 ? 0 : placement->followed_error;
}

void placement_count(const struct placement *placement, struct placement_counts *counts)
{
    *counts = (struct placement_counts){
        .failed = placement->failed,
        .leaving = attacher_leaving(placement->attacher),
    };
    for (unsigned group = 0; group < ATTACHER_GROUPS; group++)
        counts->waiting += attacher_waiting(placement->attacher, group);
}
