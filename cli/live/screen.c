/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The terminal: termios(3) and the control sequences of ECMA-48 and xterm that every terminal of today has. Invariant:
 * between screen_open and screen_close `before` is what the terminal was set to.
 */
#include "cli/live/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "report/form/text.h"
#include "wire/log.h"

#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"

static struct {
    int keys; /* /dev/tty */
    struct termios before;
    char typed[64]; /* and not yet taken */
    volatile sig_atomic_t ended;
} screen = {.keys = -1};

static const struct {
    const char *bytes;
    enum screen_key key;
} keys[] = {
    {"q", SCREEN_KEY_QUIT},  {"Q", SCREEN_KEY_QUIT},      {" ", SCREEN_KEY_PAUSE},     {"p", SCREEN_KEY_PAUSE},
    {"\t", SCREEN_KEY_NEXT}, {"\033[A", SCREEN_KEY_UP},   {"\033OA", SCREEN_KEY_UP},   {"k", SCREEN_KEY_UP},
    {"j", SCREEN_KEY_DOWN},  {"\033[B", SCREEN_KEY_DOWN}, {"\033OB", SCREEN_KEY_DOWN}, {"?", SCREEN_KEY_HELP},
    {"h", SCREEN_KEY_HELP},
};

static void end(int signal_number)
{
    (void)signal_number;
    screen.ended = 1;
}

/* Only interrupts the wait. */
static void resized(int signal_number)
{
    (void)signal_number;
}

static void take_signals(void)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = end};
    for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
        sigaction(ending[i], &action, NULL);
    }
    action.sa_handler = resized;
    sigaction(SIGWINCH, &action, NULL);
}

int screen_open(void)
{
    screen.keys = open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (screen.keys < 0 || tcgetattr(screen.keys, &screen.before) != 0) {
        int error = -errno;
        screen_close();
        return log_error_return(error, "cannot take the terminal: %s", strerror(-error));
    }
    struct termios raw = screen.before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* stopped, it would leave the terminal as it is now */
    take_signals();
    tcsetattr(screen.keys, TCSAFLUSH, &raw);
    fputs(ENTER, stdout);
    fflush(stdout);
    return 0;
}

void screen_close(void)
{
    if (screen.keys < 0) {
        return;
    }
    fputs(LEAVE, stdout);
    fflush(stdout);
    tcsetattr(screen.keys, TCSAFLUSH, &screen.before);
    close(screen.keys);
    screen.keys = -1;
}

void screen_size(struct screen_size *size)
{
    struct winsize found;
    *size = (struct screen_size){24, 80};
    if (ioctl(screen.keys, TIOCGWINSZ, &found) == 0 && found.ws_row > 0 && found.ws_col > 0) {
        *size = (struct screen_size){found.ws_row, found.ws_col};
    }
}

/* The end of the control sequence at `text` ("\033[1m"), or `text` where there is none. */
static const char *skip_sequence(const char *text)
{
    if (text[0] != '\033' || text[1] != '[') {
        return text;
    }
    const char *last = text + 2 + strspn(text + 2, "0123456789;");
    return *last == '\0' ? last : last + 1;
}

/* One line, at most so many columns of it; returns where it ends. */
static const char *draw_line(const char *text, size_t columns)
{
    size_t column = 0;
    while (*text != '\0' && *text != '\n') {
        const char *rest = skip_sequence(text);
        bool valid;
        bool shown = rest != text || column++ < columns;
        rest = rest != text ? rest : text + text_character(text, &valid);
        if (shown) {
            fwrite(text, 1, (size_t)(rest - text), stdout);
        }
        text = rest;
    }
    return text;
}

void screen_draw(const char *text)
{
    struct screen_size size;
    screen_size(&size);
    fputs("\033[H", stdout);
    for (size_t row = 0; row < size.rows && *text != '\0'; row++) {
        fputs(row == 0 ? "" : "\r\n", stdout);
        text = draw_line(text, size.columns);
        text += *text == '\n';
        fputs("\033[0m\033[K", stdout);
    }
    fputs("\033[J", stdout);
    fflush(stdout);
}

/* The first key of what was typed, which goes; with what is none goes all behind it: it may be a part of that. */
static enum screen_key take_key(void)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        size_t length = strlen(keys[i].bytes);
        if (strncmp(screen.typed, keys[i].bytes, length) == 0) {
            memmove(screen.typed, screen.typed + length, strlen(screen.typed + length) + 1);
            return keys[i].key;
        }
    }
    screen.typed[0] = '\0';
    return SCREEN_KEY_NONE;
}

static enum screen_key read_key(void)
{
    ssize_t length = read(screen.keys, screen.typed, sizeof(screen.typed) - 1);
    screen.typed[length < 0 ? 0 : length] = '\0';
    return take_key();
}

enum screen_key screen_wait(uint64_t timeout_ns)
{
    struct pollfd poller = {.fd = screen.keys, .events = POLLIN};
    const struct timespec timeout = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
    if (screen.ended) {
        return SCREEN_KEY_QUIT;
    }
    enum screen_key typed = take_key();
    if (typed != SCREEN_KEY_NONE) {
        return typed;
    }
    int ready = ppoll(&poller, 1, &timeout, NULL);
    if (screen.ended || (ready == 1 && (poller.revents & (POLLHUP | POLLERR)) != 0)) {
        return SCREEN_KEY_QUIT;
    }
    return ready == 1 ? read_key() : SCREEN_KEY_NONE;
}
