/* SPDX-License-Identifier: BSD-2-Clause */
/* Hears what is asked of the host side: FOLLOW records on a control link. One thread. */
#pragma once

#include "wire/record.h"

struct control;

/* -errno, logged. */
int control_open(struct control **control, const char *url, const char *key_file);
void control_close(struct control **control);

/* Polls readable when something was asked. */
int control_descriptor(const struct control *control);

typedef void control_take(void *context, const struct record_follow *request);

/* Takes all that has come. What is no batch of ours, or asks for something else, is passed over; returns how often. */
uint64_t control_read(struct control *control, control_take *take, void *context);
