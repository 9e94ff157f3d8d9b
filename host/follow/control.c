/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant: what is handed on was opened with the key, where there is one, and is a whole record. */
#include "host/follow/control.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/batch.h"
#include "wire/link.h"
#include "wire/log.h"

struct control {
    struct link *link;
    uint8_t message[LINK_MESSAGE_BYTES_MAX];
};

int control_open(struct control **control, const char *url, const char *key_file)
{
    const struct link_options options = {.role = LINK_RECEIVE, .url = url, .key_file = key_file};
    struct control *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return log_error_return(-ENOMEM, "no memory for the control link");
    const int error = link_open(&fresh->link, &options);
    if (error != 0) {
        free(fresh);
        return error;
    }
    *control = fresh;
    return 0;
}

void control_close(struct control **control)
{
    if (*control == NULL)
        return;
    link_close(&(*control)->link, 0);
    free(*control);
    *control = NULL;
}

int control_descriptor(const struct control *control)
{
    return link_descriptor(control->link);
}

/* Returns how much of it was passed over. */
static uint64_t read_batch(const struct control *control, size_t length_bytes, control_take *take, void *context)
{
    struct batch batch;
    union record record;
    uint64_t passed_over = 0;
    int more = batch_read(&batch, control->message, length_bytes);
    if (more != 0)
        return 1;
    while ((more = batch_next(&batch, &record, &passed_over)) == 1) {
        if (record.header.kind == RECORD_FOLLOW)
            take(context, &record.follow);
    }
    return passed_over + (more < 0);
}

uint64_t control_read(struct control *control, control_take *take, void *context)
{
    uint64_t passed_over = 0;
    size_t length_bytes;
    for (;;) {
        const int error = link_receive(control->link, control->message, sizeof control->message, &length_bytes);
        if (error == -EAGAIN)
            return passed_over;
        if (error == 0)
            passed_over += read_batch(control, length_bytes, take, context);
        else if (error == -EMSGSIZE)
            passed_over++;
        else
            return passed_over + 1;
    }
}
