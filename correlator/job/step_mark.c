/* SPDX-License-Identifier: BSD-2-Clause */
/* Marks. Invariant: a mark that was read names an operation that the library has. */
#include "correlator/job/step_mark.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "wire/log.h"
#include "wire/record.h"

static const struct {
    uint8_t kind;
    const char *text;
} operations[] = {
#define OPERATION(name, number, text, point_to_point) {number, text},
#include "wire/operation.def"
#undef OPERATION
};

static uint8_t find_kind(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (strlen(operations[i].text) == length && strncasecmp(operations[i].text, text, length) == 0)
            return operations[i].kind;
    return 0;
}

int step_mark_read(struct step_mark *mark, const char *text)
{
    size_t length = strcspn(text, ":");
    struct step_mark read = {.kind = find_kind(text, length)};
    char *end = NULL;

    if (text[length] == ':')
        read.bytes = strtoull(&text[length + 1], &end, 10);
    if (read.kind == 0 || (end != NULL && (*end != '\0' || read.bytes == 0)))
        return log_error_return(
            -EINVAL, "no operation is called '%s': name one as in AllReduce or AllReduce:4096 (bytes)", text);
    *mark = read;
    return 0;
}
