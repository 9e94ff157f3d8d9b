/* SPDX-License-Identifier: BSD-2-Clause */
/* A verdict in a few words of SQL: its class and where it is. `v` names the row of the table verdict. */
#pragma once

#include "report/subject/rank_place.h"

#define VERDICT_WORDS(v)                                                                                               \
    v ".class || CASE WHEN " v ".candidates IS NOT NULL THEN ', one of ranks ' || " v ".candidates WHEN " v            \
      ".rank IS NOT NULL AND " v ".peer_rank IS NOT NULL THEN ', ' || " v ".rank || '->' || " v ".peer_rank WHEN " v   \
      ".rank IS NOT NULL THEN ', rank ' || " v ".rank WHEN " v ".step IS NULL THEN '' ELSE ', all ranks' END"

/* The same with where the ranks run, in words of one or two lines. */
#define VERDICT_NAMED(v)                                                                                               \
    v ".class || CASE WHEN " v ".candidates IS NOT NULL THEN ', one of ranks ' || " v ".candidates WHEN " v            \
      ".rank IS NOT NULL AND " v                                                                                       \
      ".peer_rank IS NOT NULL THEN ', ' || " RANK_NAMED(v ".rank") " || ' to ' || " RANK_NAMED(                        \
          v ".peer_rank") " WHEN " v                                                                                   \
                          ".rank IS NOT NULL THEN ', ' || " RANK_NAMED(                                                \
                              v ".rank") " WHEN " v ".step IS NULL THEN '' ELSE ', all ranks' END"
