/* SPDX-License-Identifier: BSD-2-Clause */
/* The rank that each process was started with, by its launcher's variables. */
#include "correlator/naming/naming_join.h"

/* What a launcher's own rank is called; the earlier in this list, the nearer to the process. */
static const uint16_t launchers[] = {PROCESS_FACT_RANK, PROCESS_FACT_OMPI_COMM_WORLD_RANK, PROCESS_FACT_SLURM_PROCID};

#define LAUNCHERS      (sizeof launchers / sizeof launchers[0])
#define DIGITS_AT_MOST 9 /* of a rank */

/* -1: no number. */
static int32_t number_of(const struct record_process_fact *record)
{
    int32_t number = 0;

    if (record->text_bytes == 0 || record->text_bytes > DIGITS_AT_MOST)
        return -1;
    for (size_t i = 0; i < record->text_bytes; i++) {
        if (record->text[i] < '0' || record->text[i] > '9')
            return -1;
        number = 10 * number + (record->text[i] - '0');
    }
    return number;
}

int32_t *naming_launched(const struct naming *naming)
{
    int32_t *ranks = array_zeroed(naming->processes.count * sizeof *ranks);

    for (size_t i = 0; i < naming->processes.count; i++)
        ranks[i] = -1;
    for (size_t nearest = LAUNCHERS; nearest-- > 0;)
        for (size_t i = 0; i < naming->facts.count; i++) {
            const struct fact *fact = &naming->facts.items[i];
            int32_t rank = fact->record.fact == launchers[nearest] ? number_of(&fact->record) : -1;
            if (rank >= 0)
                ranks[fact->process] = rank;
        }
    return ranks;
}
