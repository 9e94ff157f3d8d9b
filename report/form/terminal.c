/* SPDX-License-Identifier: BSD-2-Clause */
/* Width and colour. NO_COLOR as no-color.org has it: present and not empty. */
#include "report/form/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_MIN 20
#define WIDTH_MAX 1000

static size_t width_of(int descriptor, bool *is_assumed)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    long width = 0;
    if (columns != NULL) {
        width = strtol(columns, NULL, 10);
    }
    if (width <= 0 && ioctl(descriptor, TIOCGWINSZ, &size) == 0) {
        width = size.ws_col;
    }
    *is_assumed = width <= 0;
    if (width <= 0) {
        width = TERMINAL_WIDTH_DEFAULT;
    }
    return width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : (size_t)width;
}

bool terminal_can_draw(void)
{
    const char *kind = getenv("TERM");
    return kind != NULL && *kind != '\0' && strcmp(kind, "dumb") != 0;
}

void terminal_init(struct terminal *terminal, int descriptor)
{
    const char *no_color = getenv("NO_COLOR");
    terminal->width = width_of(descriptor, &terminal->is_assumed);
    terminal->colour = isatty(descriptor) && (no_color == NULL || *no_color == '\0') && terminal_can_draw();
}
