/* SPDX-License-Identifier: BSD-2-Clause */
/* The first signs of failures, as the host sides told them, in the order of their times. */
#include <stdlib.h>
#include <string.h>

#include "correlator/store/store_private.h"
#include "correlator/verdict/host_evidence_find.h"

typedef int64_t i64; /* what the formats take */

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
    const struct failure **ordered = host_failures_by_time(naming);

    for (size_t i = 0; i < naming->failures.count; i++)
        put_failure(store, naming, i, ordered[i]);
    free(ordered);
}
