/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole terminal for a program that draws it again and again: alternate screen, keys without Enter. Nothing else
 * here knows of terminal modes. What was there comes back at the end, also after SIGINT, SIGTERM and SIGHUP. One a
 * process, one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum screen_key {
    SCREEN_KEY_NONE, /* the time is over, or the size changed */
    SCREEN_KEY_QUIT, /* q, or a signal that ends the program */
    SCREEN_KEY_PAUSE,
    SCREEN_KEY_NEXT,
    SCREEN_KEY_UP,
    SCREEN_KEY_DOWN,
    SCREEN_KEY_HELP,
};

struct screen_size {
    size_t rows;
    size_t columns;
};

/* -errno after logging when there is no terminal to take. */
int screen_open(void);
void screen_close(void);

void screen_size(struct screen_size *size);

/* Shows the lines of `text` from the top, each cut at the right edge; lines that do not fit are left out. */
void screen_draw(const char *text);

/* Waits for a key, at most so long. */
enum screen_key screen_wait(uint64_t timeout_ns);
