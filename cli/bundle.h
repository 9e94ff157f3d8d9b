/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trace with other tools' traces beside it, for one time line: a tar archive with a manifest that says how their
 * clocks relate (Perfetto's "trace manifest", version 1). One thread.
 */
#pragma once

#include "report/read/store_reader.h"
#include "wire/option.h"

/*
 * Writes the archive `path` of the trace at `trace_path` and of `added`, each "HOST=FILE": a trace that was recorded on
 * that host of the job, in its time of day. -errno after logging; then there is no archive.
 */
int bundle_write(struct store_reader *store, const char *path, const char *trace_path, const struct option_list *added);
