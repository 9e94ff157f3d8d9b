/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Times as UTC, in SQL: the reference clock's by the first clock pair, which one machine's CLOCK_REALTIME is beside it.
 * The bound covers all pairs of that machine's agent, so also what its CLOCK_REALTIME was set or slewed by since.
 */
#pragma once

#define UTC_OFFSET "(SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'realtime_minus_reference_ns')"

/* "2026-11-30T20:15:00.123456Z"; NULL where no pair is known. */
#define UTC_TEXT(ns)                                                                                                   \
    "(strftime('%Y-%m-%dT%H:%M:%S', (" ns " + " UTC_OFFSET ") / 1000000000, 'unixepoch') || "                          \
    "printf('.%06dZ', (" ns " + " UTC_OFFSET ") % 1000000000 / 1000))"

/* Whose clock it is, and the bound: one row, or none. */
#define UTC_SOURCE                                                                                                     \
    "(SELECT emitter.host AS host, max(abs(pair.realtime_ns - pair.at_ns - " UTC_OFFSET ") + pair.bound_ns + "         \
    "emitter.clock_bound_ns) AS bound_ns FROM clock_pair AS pair JOIN emitter ON emitter.id = pair.emitter "           \
    "WHERE pair.emitter = (SELECT emitter FROM clock_pair ORDER BY abs(realtime_ns - at_ns - " UTC_OFFSET              \
    "), emitter LIMIT 1) HAVING count(*) > 0) "
