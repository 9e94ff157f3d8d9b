/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where each rank of the job runs, in SQL: a table of `rank`, `host`, `gpu` (its PCI address where that is known, else
 * its number as its process counts) and `name`: host and GPU, or, where several ranks of a host have the same, as when
 * each counts its own from 0, host and pid. Where no host side told of a rank its name is the address of its NIC.
 */
#pragma once

#define RANK_PLACES                                                                                                    \
    "(SELECT rank, host, gpu, CASE WHEN kind = 'nic' THEN command WHEN gpu IS NULL OR count(*) OVER (PARTITION BY "    \
    "host, gpu) > 1 THEN host || ', pid ' || pid ELSE host || ', GPU ' || gpu END AS name FROM "                       \
    "(SELECT min(member.id), member.rank AS rank, emitter.kind AS kind, emitter.host AS host, process.command AS "     \
    "command, process.pid AS pid, coalesce(iif(substr(address.value, 1, 5) = '0000:', substr(address.value, 6), "      \
    "address.value), CAST(member.cuda_device AS TEXT)) AS gpu FROM member JOIN process ON process.id = "               \
    "member.process JOIN emitter ON emitter.id = process.emitter LEFT JOIN process_fact AS address ON "                \
    "address.process = process.id AND address.name = 'cuda_device' AND address.number = member.cuda_device "           \
    "WHERE member.rank IS NOT NULL GROUP BY member.rank)) "

/* "rank 2 (node1, GPU 0)", of a column with its table's name before it; NULL of none. */
#define RANK_NAMED(rank)                                                                                               \
    "('rank ' || " rank " || coalesce(' (' || (SELECT name FROM " RANK_PLACES "AS of WHERE of.rank = " rank            \
    ") || ')', ''))"
