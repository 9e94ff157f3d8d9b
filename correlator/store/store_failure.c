/* SPDX-License-Identifier: BSD-2-Clause */
/* The first signs of failures, as the host sides told them, in the order of their times. */
#include <stdlib.h>
#include <string.h>

#include "correlator/store/store_private.h"

typedef int64_t i64; /* what the formats take */

static int compare_failures(const void *left, const void *right)
{
    const struct failure *a = *(const struct failure *const *)left;
    const struct failure *b = *(const struct failure *const *)right;
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    return (a > b) - (a < b);
}

static void put_failure(struct store *store, const struct naming *naming, size_t number, const struct failure *failure)
{
    const struct record_failure *record = &failure->record;
    char text[sizeof record->text + 1] = {0};
    memcpy(text, record->text, sizeof record->text);
    store_put(store, STORE_failure, "insrrrrks", (i64)number + 1, failure->at_ns, failure_name(record->cause),
              failure->process < 0 ? (i64)-1 : (i64)failure->process + 1,
              failure->member < 0 ? (i64)-1 : (i64)failure->member + 1,
              failure->queue_pair < 0 ? (i64)-1 : (i64)failure->queue_pair + 1,
              failure->member < 0 ? (i64)-1 : (i64)naming->members.items[failure->member].rank, record->result != 0,
              (i64)record->result, text[0] == '\0' ? NULL : text);
}

void store_failure_rows(struct store *store, const struct naming *naming)
{
    const size_t count = naming->failures.count;
    const struct failure **ordered = calloc(count + 1, sizeof(const struct failure *));
    if (ordered == NULL)
        abort();
    for (size_t i = 0; i < count; i++)
        ordered[i] = &naming->failures.items[i];
    qsort(ordered, count, sizeof(const struct failure *), compare_failures);
    for (size_t i = 0; i < count; i++)
        put_failure(store, naming, i, ordered[i]);
    free(ordered);
}
