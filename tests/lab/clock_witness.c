// SPDX-License-Identifier: BSD-2-Clause
// Lays the clocks of guests beside the machine's own, through memory that both see (QEMU's ivshmem): the truth that
// qpscope's clocks are held against. Asked for its time, a guest writes it and answers; what it wrote was the time at
// some instant between the question and the answer, whatever waits in between. Of a burst of questions the one answered
// soonest is kept. The machine's own clock is CLOCK_MONOTONIC_RAW, which nobody slews.
//
//   clock_witness answer BOARD            in the guest, until it is ended
//   clock_witness ask NAME=BOARD...       on the machine, until it is ended; a line of JSON each half second and guest
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BOARD_BYTES = 4096, BOARDS_MAX = 8, QUESTIONS = 200 };
#define NS_PER_S 1000000000LL
static const int64_t burst_ns = 60000000, patience_ns = 20000000, spin_ns = 30000000, look_ns = 2000000,
                     pause_ns = 500000000;

struct board {
    _Atomic uint64_t asked, answered;
    int64_t monotonic_ns, realtime_ns;
};

struct reading {
    int64_t before_ns, after_ns, monotonic_ns, realtime_ns;
};

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
    (void)number;
    ended = 1;
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static struct board *board_open(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC);
    void *memory = file < 0 ? MAP_FAILED : mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    if (memory == MAP_FAILED)
        fprintf(stderr, "clock_witness: cannot map %s: %s\n", path, strerror(errno));
    if (file >= 0)
        close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

static int answer(struct board *board)
{
    int64_t last_ns = 0;

    while (!ended) {
        uint64_t asked = atomic_load(&board->asked);
        if (asked != atomic_load(&board->answered)) {
            board->monotonic_ns = last_ns = clock_ns(CLOCK_MONOTONIC);
            board->realtime_ns = clock_ns(CLOCK_REALTIME);
            atomic_store(&board->answered, asked);
        } else if (clock_ns(CLOCK_MONOTONIC) - last_ns > spin_ns) {
            nanosleep(&(struct timespec){.tv_nsec = look_ns}, NULL);
        }
    }
    return 0;
}

static bool question(struct board *board, struct reading *reading)
{
    uint64_t number = atomic_load(&board->asked) + 1;
    int64_t before_ns = clock_ns(CLOCK_MONOTONIC_RAW);

    atomic_store(&board->asked, number);
    while (atomic_load(&board->answered) != number) {
        if (clock_ns(CLOCK_MONOTONIC_RAW) - before_ns > patience_ns)
            return false;
    }
    *reading = (struct reading){before_ns, clock_ns(CLOCK_MONOTONIC_RAW), board->monotonic_ns, board->realtime_ns};
    return true;
}

static void ask(const char *name, int name_bytes, struct board *board)
{
    struct reading best = {.after_ns = INT64_MAX}, reading;
    int64_t begun_ns = clock_ns(CLOCK_MONOTONIC_RAW);

    for (int i = 0; i < QUESTIONS && clock_ns(CLOCK_MONOTONIC_RAW) - begun_ns < burst_ns; i++) {
        if (question(board, &reading) && reading.after_ns - reading.before_ns < best.after_ns - best.before_ns)
            best = reading;
    }
    if (best.after_ns == INT64_MAX)
        return;
    printf("{\"guest\":\"%.*s\",\"before_ns\":%" PRId64 ",\"after_ns\":%" PRId64 ",\"monotonic_ns\":%" PRId64
           ",\"realtime_ns\":%" PRId64 "}\n",
           name_bytes, name, best.before_ns, best.after_ns, best.monotonic_ns, best.realtime_ns);
    fflush(stdout);
}

static int ask_all(char **names, int count)
{
    struct board *boards[BOARDS_MAX];

    for (int i = 0; i < count; i++) {
        const char *path = strchr(names[i], '=');
        if (!path || !(boards[i] = board_open(path + 1)))
            return 1;
    }
    while (!ended) {
        for (int i = 0; i < count; i++)
            ask(names[i], (int)strcspn(names[i], "="), boards[i]);
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct board *board;

    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_signal}, NULL);
    if (argc == 3 && !strcmp(argv[1], "answer"))
        return (board = board_open(argv[2])) ? answer(board) : 1;
    if (argc >= 3 && argc - 2 <= BOARDS_MAX && !strcmp(argv[1], "ask"))
        return ask_all(argv + 2, argc - 2);
    fprintf(stderr, "usage: clock_witness answer BOARD | ask NAME=BOARD...\n");
    return 2;
}
