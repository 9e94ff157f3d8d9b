/* SPDX-License-Identifier: BSD-2-Clause */
/* The store's tables and views as files, a file each. Also says what it wrote. One thread. */
#pragma once

#include "report/form/rows.h"
#include "report/report.h"
#include "wire/option.h"

struct table_export_options {
    enum rows_format format;
    const char *ending;               /* of the files' names */
    const struct option_list *tables; /* none: all tables and views */
    const char *output;               /* of one table its file, else a folder; NULL: standard output, or the default */
};

/* Logs, and leaves no file of a table that is not whole. -ENOENT for a table that is not there; another -errno. */
int table_export(struct report *report, const struct table_export_options *options);
