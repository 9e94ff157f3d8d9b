/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading the kernel's clocks, and the exchange of four time stamps (as in RFC 5905: sent, received, replied,
 * returned).
 * Invariants: a pair's bound covers all three readings, so each clock was at its value at some moment within bound_ns
 * of monotonic_ns; a sample's four times are in the order of cause and effect, so the offset that it gives is off by at
 * most half its round trip, which is 0 where both sides have one clock.
 */
#include "wire/clock.h"

#include "wire/cursor.h"
#include "wire/link.h"
#include "wire/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define PAIR_TRIES          5
#define ANSWER_WAIT_NS      50000000u
#define START_NS            1000000000u
#define START_INTERVAL_NS   10000000u
#define INTERVAL_NS         100000000u
#define SETTLED_INTERVAL_NS 1000000000u
#define SETTLED_SAMPLES     64
#define RING_SAMPLES        256u

static uint64_t read_ns(clockid_t id)
{
    struct timespec time;

    clock_gettime(id, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t clock_now_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

void clock_read_pair(struct record_clock_pair *pair, int64_t offset_ns)
{
    pair->bound_ns = UINT64_MAX;
    for (int try = 0; try < PAIR_TRIES; try++) {
        uint64_t before_ns = read_ns(CLOCK_MONOTONIC);
        uint64_t realtime_ns = read_ns(CLOCK_REALTIME);
        uint64_t tai_ns = read_ns(CLOCK_TAI);
        uint64_t after_ns = read_ns(CLOCK_MONOTONIC);
        if (after_ns - before_ns >= pair->bound_ns)
            continue;
        pair->monotonic_ns = before_ns + (uint64_t)offset_ns;
        pair->realtime_ns = realtime_ns;
        pair->tai_ns = tai_ns;
        pair->bound_ns = after_ns - before_ns;
    }
}

int clock_answer(const void *question, size_t length_bytes, struct clock_answer *answer)
{
    struct cursor cursor;
    struct clock_question read;

    cursor_init(&cursor, question, length_bytes);
    cursor_copy(&cursor, &read, sizeof read);
    if (cursor.failed || cursor_left(&cursor) != 0 || read.magic != CLOCK_MAGIC)
        return -EBADMSG;
    answer->question = read;
    answer->replied_ns = clock_now_ns();
    return 0;
}

/* A thread with a link of its own and a descriptor that tells it to stop. */
struct worker {
    pthread_t thread;
    struct link *link;
    int stop_descriptor;
};

/* Signals are for the program's own threads. */
static int start_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

static int worker_init(struct worker *worker, const struct clock_options *options, enum link_role role,
                       void *(*run)(void *), void *argument)
{
    const struct link_options link = {role, options->url, options->key_file, options->emitter_id, options->boot_id};
    int error = link_open(&worker->link, &link);

    if (error != 0)
        return error;
    worker->stop_descriptor = eventfd(0, EFD_CLOEXEC);
    error = worker->stop_descriptor < 0 ? -errno : start_thread(&worker->thread, run, argument);
    if (error == 0)
        return 0;
    if (worker->stop_descriptor >= 0)
        close(worker->stop_descriptor);
    link_close(&worker->link, 0);
    return log_error_return(error, "clock link %s: no thread for it: %s", options->url, strerror(-error));
}

static void worker_fini(struct worker *worker)
{
    const uint64_t one = 1;
    ssize_t written = write(worker->stop_descriptor, &one, sizeof one);

    (void)written;
    pthread_join(worker->thread, NULL);
    close(worker->stop_descriptor);
    link_close(&worker->link, 0);
}

/* Waits until something comes, the time is over or the worker has to stop; false = stop. */
static bool worker_wait(const struct worker *worker, bool for_message, uint64_t timeout_ns)
{
    struct pollfd pollers[2] = {{.fd = worker->stop_descriptor, .events = POLLIN},
                                {.fd = for_message ? link_descriptor(worker->link) : -1, .events = POLLIN}};
    struct timespec timeout = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};

    ppoll(pollers, 2, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL);
    return pollers[0].revents == 0;
}

static struct clock_identity identity_of(const struct clock_options *options)
{
    struct clock_identity identity;

    if (options->identity != NULL)
        return *options->identity;
    clock_identity_read(&identity);
    return identity;
}

struct clock_server {
    struct worker worker;
    uint64_t boot_id;
    struct clock_identity identity;
};

static void *serve(void *argument)
{
    struct clock_server *server = argument;
    struct clock_question question;
    struct clock_answer answer = {.reference_boot = server->boot_id, .identity = server->identity};
    size_t length;

    while (worker_wait(&server->worker, true, UINT64_MAX))
        while (link_receive(server->worker.link, &question, sizeof question, &length) == 0) {
            answer.received_ns = clock_now_ns();
            if (clock_answer(&question, length, &answer) == 0)
                link_send(server->worker.link, &answer, sizeof answer);
        }
    return NULL;
}

int clock_server_open(struct clock_server **server, const struct clock_options *options)
{
    struct clock_server *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->boot_id = options->boot_id;
    made->identity = identity_of(options);
    int error = worker_init(&made->worker, options, LINK_ANSWER, serve, made);
    if (error != 0) {
        free(made);
        return error;
    }
    *server = made;
    return 0;
}

void clock_server_close(struct clock_server **server)
{
    if (*server == NULL)
        return;
    worker_fini(&(*server)->worker);
    free(*server);
    *server = NULL;
}

/* The samples go to the caller's thread through a ring: `put` is the worker's, `taken` the caller's. */
struct clock_client {
    struct worker worker;
    int64_t offset_ns;
    struct clock_identity identity;
    uint32_t number;
    uint64_t started_ns;
    uint64_t smallest_ns;
    uint32_t good_count;
    uint64_t missed;
    uint64_t put;
    uint64_t taken;
    struct record_clock_sample ring[RING_SAMPLES];
};

static void count_missed(struct clock_client *client)
{
    __atomic_store_n(&client->missed, client->missed + 1, __ATOMIC_RELAXED);
}

static void put_sample(struct clock_client *client, const struct record_clock_sample *sample)
{
    uint64_t taken = __atomic_load_n(&client->taken, __ATOMIC_ACQUIRE);

    if (client->put - taken == RING_SAMPLES) {
        count_missed(client);
        return;
    }
    client->ring[client->put % RING_SAMPLES] = *sample;
    __atomic_store_n(&client->put, client->put + 1, __ATOMIC_RELEASE);
}

bool clock_client_take(struct clock_client *client, struct record_clock_sample *sample)
{
    if (__atomic_load_n(&client->put, __ATOMIC_ACQUIRE) == client->taken)
        return false;
    struct record_header header = sample->header;
    *sample = client->ring[client->taken % RING_SAMPLES];
    sample->header = header;
    __atomic_store_n(&client->taken, client->taken + 1, __ATOMIC_RELEASE);
    return true;
}

uint64_t clock_client_missed(const struct clock_client *client)
{
    return __atomic_load_n(&client->missed, __ATOMIC_RELAXED);
}

static void count_good(struct clock_client *client, uint64_t round_trip_ns)
{
    if (round_trip_ns < client->smallest_ns)
        client->smallest_ns = round_trip_ns;
    if (round_trip_ns <= 2 * client->smallest_ns)
        client->good_count++;
}

/* What the answer that came at `returned_ns` tells: four times in order, or one moment when both have one clock. */
static struct record_clock_sample sample_of(const struct clock_client *client, const struct clock_answer *answer,
                                            uint64_t returned_ns)
{
    bool same = clock_identity_same(&client->identity, &answer->identity);
    uint64_t sent_ns = same ? answer->received_ns : answer->question.sent_ns;
    uint64_t replied_ns = same ? answer->received_ns : answer->replied_ns;

    return (struct record_clock_sample){
        .reference_boot = answer->reference_boot,
        .sent_ns = sent_ns + (uint64_t)client->offset_ns,
        .received_ns = answer->received_ns,
        .replied_ns = replied_ns,
        .returned_ns = (same ? answer->received_ns : returned_ns) + (uint64_t)client->offset_ns,
    };
}

/* Reads answers until one to the last question is there; others came too late. */
static bool read_answer(struct clock_client *client, uint64_t sent_ns)
{
    struct clock_answer answer;
    size_t length;

    while (link_receive(client->worker.link, &answer, sizeof answer, &length) == 0) {
        uint64_t returned_ns = clock_now_ns();
        if (length != sizeof answer || answer.question.magic != CLOCK_MAGIC ||
            answer.question.number != client->number || answer.question.sent_ns != sent_ns)
            continue;
        const struct record_clock_sample sample = sample_of(client, &answer, returned_ns);
        count_good(client, returned_ns - sent_ns - (answer.replied_ns - answer.received_ns));
        put_sample(client, &sample);
        return true;
    }
    return false;
}

/* Asks once and waits for the answer; false = stop. */
static bool ask(struct clock_client *client)
{
    struct clock_question question = {CLOCK_MAGIC, ++client->number, clock_now_ns()};

    if (link_send(client->worker.link, &question, sizeof question) == 0) {
        for (uint64_t now_ns = question.sent_ns; now_ns - question.sent_ns < ANSWER_WAIT_NS; now_ns = clock_now_ns()) {
            if (!worker_wait(&client->worker, true, ANSWER_WAIT_NS - (now_ns - question.sent_ns)))
                return false;
            if (read_answer(client, question.sent_ns))
                return true;
        }
    }
    count_missed(client);
    return true;
}

static uint64_t interval_ns(const struct clock_client *client)
{
    if (client->good_count >= SETTLED_SAMPLES)
        return SETTLED_INTERVAL_NS;
    return clock_now_ns() - client->started_ns < START_NS ? START_INTERVAL_NS : INTERVAL_NS;
}

static void *ask_on(void *argument)
{
    struct clock_client *client = argument;

    while (ask(client) && worker_wait(&client->worker, false, interval_ns(client)))
        ;
    return NULL;
}

int clock_client_open(struct clock_client **client, const struct clock_options *options)
{
    struct clock_client *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->offset_ns = options->offset_ns;
    made->identity = identity_of(options);
    made->started_ns = clock_now_ns();
    made->smallest_ns = UINT64_MAX / 2;
    int error = worker_init(&made->worker, options, LINK_ASK, ask_on, made);
    if (error != 0) {
        free(made);
        return error;
    }
    *client = made;
    return 0;
}

void clock_client_close(struct clock_client **client)
{
    if (*client == NULL)
        return;
    worker_fini(&(*client)->worker);
    free(*client);
    *client = NULL;
}
