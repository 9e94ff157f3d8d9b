/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/emitter.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/scratch.h"
#include "wire/batch.h"
#include "wire/capture.h"
#include "wire/clock.h"
#include "wire/link.h"

#define BACKLOG_BYTES (4u * 1024u * 1024u)

/* What was found in a stream. */
struct tally {
    uint64_t batches;
    uint64_t first_sequence;
    uint64_t next_sequence;
    uint64_t gaps; /* sequence numbers that did not come */
    uint64_t lost; /* what LOSS records say */
    uint64_t loss_from_ns;
    uint64_t loss_to_ns;
    uint64_t messages;
    uint64_t next_message; /* messages are numbered in first_ns */
    bool messages_in_order;
    uint64_t hellos;
    uint64_t heartbeats;
    uint64_t last_flags;
    uint64_t last_heartbeat_ns;
    uint64_t vouched_ns; /* the latest heartbeat but the last */
    uint64_t pairs;
    uint64_t samples;
    struct record_hello hello;
    struct record_clock_sample sample;
    struct record_clock_pair pair;
    uint64_t frames_total; /* of the counter "frames_total" */
    uint64_t frames_reports;
};

static void tally_record(struct tally *tally, const union record *record)
{
    switch (record->header.kind) {
    case RECORD_HELLO:
        tally->hello = record->hello;
        tally->hellos++;
        break;
    case RECORD_HEARTBEAT:
        tally->heartbeats++;
        tally->last_flags = record->heartbeat.flags;
        tally->vouched_ns = tally->last_heartbeat_ns;
        tally->last_heartbeat_ns = record->heartbeat.at_ns;
        break;
    case RECORD_CLOCK_PAIR:
        tally->pairs++;
        tally->pair = record->clock_pair;
        break;
    case RECORD_CLOCK_SAMPLE:
        tally->samples++;
        tally->sample = record->clock_sample;
        break;
    case RECORD_LOSS:
        assert_int_equal(record->loss.cause, LOSS_LINK_FULL);
        tally->lost += record->loss.lost;
        tally->loss_from_ns = record->loss.from_ns;
        tally->loss_to_ns = record->loss.to_ns;
        break;
    case RECORD_MESSAGE:
        tally->messages++;
        tally->messages_in_order = tally->messages_in_order && record->message.first_ns >= tally->next_message;
        tally->next_message = record->message.first_ns + 1;
        break;
    case RECORD_COUNTER:
        if (strcmp(record->counter.name, "frames_total") == 0) {
            tally->frames_total = record->counter.total;
            tally->frames_reports++;
        }
        break;
    default:
        fail_msg("record kind %u", record->header.kind);
    }
}

static void tally_batch(struct tally *tally, const void *bytes, size_t length)
{
    struct batch batch;
    union record record;
    uint64_t unknown = 0;
    int result;

    assert_int_equal(batch_read(&batch, bytes, length), 0);
    if (tally->batches == 0) {
        tally->first_sequence = batch.header.sequence;
        tally->next_sequence = batch.header.sequence;
        tally->messages_in_order = true;
    }
    assert_true(batch.header.sequence >= tally->next_sequence);
    tally->gaps += batch.header.sequence - tally->next_sequence;
    tally->next_sequence = batch.header.sequence + 1;
    tally->batches++;
    while ((result = batch_next(&batch, &record, &unknown)) == 1)
        tally_record(tally, &record);
    assert_int_equal(result, 0);
    assert_int_equal(unknown, 0);
}

static void tally_capture(struct tally *tally, const char *path)
{
    struct capture_reader *reader;
    const void *bytes;
    size_t length;
    int result;

    assert_int_equal(capture_reader_open(&reader, path), 0);
    while ((result = capture_read(reader, &bytes, &length)) == 1)
        tally_batch(tally, bytes, length);
    assert_int_equal(result, 0);
    capture_reader_close(&reader);
}

static void tally_link(struct tally *tally, struct link *link)
{
    static uint8_t bytes[LINK_MESSAGE_BYTES_MAX];
    size_t length;

    while (link_receive(link, bytes, sizeof bytes, &length) == 0)
        tally_batch(tally, bytes, length);
}

static struct link *open_receiver(const char *url)
{
    const struct link_options options = {LINK_RECEIVE, url, NULL, 1, 2};
    struct link *link;

    assert_int_equal(link_open(&link, &options), 0);
    return link;
}

static void add_message(struct emitter *emitter, uint64_t number)
{
    struct record_message message = {.first_ns = number, .frames = 1};

    emitter_add(emitter, RECORD_MESSAGE, &message);
}

/* The kernel's boot id with its dashes, as it would be written from these bytes. */
static void assert_is_this_kernel(const uint8_t boot[16])
{
    char text[64] = "", expected[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");

    assert_non_null(file);
    assert_non_null(fgets(expected, sizeof expected, file));
    fclose(file);
    for (int i = 0; i < 16; i++)
        sprintf(text + strlen(text), i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", boot[i]);
    assert_string_equal(strcat(text, "\n"), expected);
}

static void describes_itself_in_the_capture(void **state)
{
    const char *path = scratch_path(state, "", "a.qps");
    uint64_t values[1] = {3};
    const struct counter_spec specs[1] = {{"frames_total", "frames"}};
    const struct counter_table counters = {specs, values, 1};
    const struct emitter_options options = {
        .kind = EMITTER_NIC, .instance = "port 0", .record_path = path, .window_ns = 8000, .counters = &counters};
    struct emitter *emitter;
    struct tally tally = {0};
    char host[64];

    assert_int_equal(emitter_open(&emitter, &options), 0);
    add_message(emitter, 1);
    counter_add(values, 0, 39);
    assert_int_equal(emitter_close(&emitter), 0);
    assert_null(emitter);
    tally_capture(&tally, path);
    assert_int_equal(tally.first_sequence, 0);
    assert_int_equal(tally.gaps, 0);
    assert_int_equal(tally.messages, 1);
    assert_int_equal(tally.hello.pid, getpid());
    assert_is_this_kernel(tally.hello.kernel_boot);
    assert_int_equal(gethostname(host, sizeof host), 0);
    assert_string_equal(tally.hello.host, host);
    assert_int_equal(tally.hello.window_ns, 8000);
    assert_string_equal(tally.hello.instance, "port 0");
    assert_string_equal(tally.hello.version, QPSCOPE_VERSION);
    assert_int_equal(tally.pairs, 1);
    assert_int_equal(tally.frames_reports, 2);
    assert_int_equal(tally.frames_total, 42);
    assert_int_equal(tally.last_flags, HEARTBEAT_LAST);
}

static void two_runs_share_the_emitter_but_not_the_boot(void **state)
{
    struct batch_header headers[3];

    for (int run = 0; run < 3; run++) {
        const char *path = scratch_path(state, "", "b.qps");
        const struct emitter_options options = {
            .kind = EMITTER_HOST, .instance = run < 2 ? "one" : "two", .record_path = path};
        struct emitter *emitter;
        struct capture_reader *reader;
        const void *bytes;
        size_t length;
        assert_int_equal(emitter_open(&emitter, &options), 0);
        assert_int_equal(emitter_close(&emitter), 0);
        assert_int_equal(capture_reader_open(&reader, path), 0);
        assert_int_equal(capture_read(reader, &bytes, &length), 1);
        memcpy(&headers[run], bytes, sizeof headers[run]);
        capture_reader_close(&reader);
    }
    assert_true(headers[0].emitter_id == headers[1].emitter_id);
    assert_true(headers[0].emitter_id != headers[2].emitter_id);
    assert_true(headers[0].boot_id != headers[1].boot_id);
}

static void shifts_all_times_to_its_own_clock(void **state)
{
    const int64_t seven_s = 7000000000;
    const char *path = scratch_path(state, "", "c.qps");
    const struct emitter_options options = {.kind = EMITTER_NIC, .record_path = path, .clock_offset_ns = seven_s};
    struct emitter *emitter;
    struct tally tally = {0};
    uint64_t before_ns = clock_now_ns() + seven_s;

    assert_int_equal(emitter_open(&emitter, &options), 0);
    assert_in_range(emitter_now_ns(emitter), before_ns, before_ns + 5000000000u);
    assert_int_equal(emitter_close(&emitter), 0);
    tally_capture(&tally, path);
    assert_in_range(tally.hello.started_ns, before_ns, before_ns + 5000000000u);
    assert_in_range(tally.pair.monotonic_ns, before_ns, before_ns + 5000000000u);
}

static void vouches_for_no_more_than_it_covers(void **state)
{
    const char *path = scratch_path(state, "", "cover.qps");
    const struct emitter_options options = {.kind = EMITTER_HOST, .record_path = path};
    struct emitter *emitter;
    struct tally tally = {0};

    assert_int_equal(emitter_open(&emitter, &options), 0);
    emitter_cover(emitter, 4711);
    scratch_pause_ms(120);
    emitter_tick(emitter);
    const uint64_t before_ns = clock_now_ns();
    assert_int_equal(emitter_close(&emitter), 0);
    tally_capture(&tally, path);
    assert_int_equal(tally.vouched_ns, 4711);
    assert_true(tally.last_heartbeat_ns >= before_ns);
}

static void *close_emitter(void *argument)
{
    emitter_close(argument);
    return NULL;
}

static void close_while_reading(struct emitter **emitter, struct link *link, struct tally *tally)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, close_emitter, emitter), 0);
    for (int i = 0; i < 400 && tally->last_flags != HEARTBEAT_LAST; i++) {
        tally_link(tally, link);
        scratch_pause_ms(5);
    }
    pthread_join(thread, NULL);
}

static void a_late_receiver_misses_nothing(void **state)
{
    const char *url = scratch_path(state, "ipc://", "late.sock");
    const struct emitter_options options = {.kind = EMITTER_NIC, .link_url = url};
    struct emitter *emitter;
    struct tally tally = {0};

    assert_int_equal(emitter_open(&emitter, &options), 0);
    for (uint64_t i = 0; i < 20000; i++) /* 800 kB */
        add_message(emitter, i);
    emitter_flush(emitter);
    struct link *link = open_receiver(url);
    for (int i = 0; i < 400 && (tally.messages < 20000 || emitter_epoch(emitter) == 0); i++) {
        emitter_tick(emitter);
        scratch_pause_ms(10);
        tally_link(&tally, link);
    }
    assert_int_equal(tally.first_sequence, 0);
    assert_int_equal(tally.gaps, 0);
    assert_int_equal(tally.messages, 20000);
    assert_true(tally.messages_in_order);
    assert_true(tally.hellos >= 1);
    assert_true(emitter_epoch(emitter) >= 1);
    close_while_reading(&emitter, link, &tally);
    assert_int_equal(tally.gaps, 0);
    assert_int_equal(tally.last_flags, HEARTBEAT_LAST);
    link_close(&link, 0);
}

static void what_is_beyond_the_backlog_is_reported(void **state)
{
    const char *url = scratch_path(state, "ipc://", "full.sock");
    const char *path = scratch_path(state, "", "full.qps");
    const struct emitter_options options = {.kind = EMITTER_NIC, .link_url = url, .record_path = path};
    const uint64_t count = 4 * BACKLOG_BYTES / sizeof(struct record_message);
    struct emitter *emitter;
    struct tally tally = {0}, recorded = {0};

    assert_int_equal(emitter_open(&emitter, &options), 0);
    uint64_t before_ns = emitter_now_ns(emitter);
    for (uint64_t i = 0; i < count; i++)
        add_message(emitter, i);
    emitter_flush(emitter);
    struct link *link = open_receiver(url);
    for (int i = 0; i < 400 && tally.lost == 0; i++) {
        emitter_tick(emitter);
        scratch_pause_ms(10);
        tally_link(&tally, link);
    }
    assert_true(tally.gaps > 0);
    assert_int_equal(tally.lost, tally.gaps);
    assert_true(tally.loss_from_ns < tally.loss_to_ns);
    assert_in_range(tally.loss_to_ns, before_ns, emitter_now_ns(emitter));
    assert_true(tally.messages >= BACKLOG_BYTES / sizeof(struct record_message) * 9 / 10);
    assert_true(tally.messages < count);
    assert_true(tally.messages_in_order);
    emitter_close(&emitter);
    link_close(&link, 0);
    tally_capture(&recorded, path);
    assert_int_equal(recorded.gaps, 0);
    assert_int_equal(recorded.messages, count);
}

static void never_waits_without_a_receiver(void **state)
{
    const struct emitter_options options = {.kind = EMITTER_NIC, .link_url = scratch_path(state, "ipc://", "no.sock")};
    struct emitter *emitter;

    assert_int_equal(emitter_open(&emitter, &options), 0);
    uint64_t began_ns = clock_now_ns();
    for (uint64_t i = 0; i < 1000000; i++)
        add_message(emitter, i);
    for (int i = 0; i < 1000; i++)
        emitter_tick(emitter);
    assert_in_range(clock_now_ns() - began_ns, 0, 3000000000u);
    began_ns = clock_now_ns();
    emitter_close(&emitter);
    assert_in_range(clock_now_ns() - began_ns, 400000000u, 2000000000u);
}

static void takes_clock_samples_into_its_stream(void **state)
{
    const char *path = scratch_path(state, "", "clock.qps");
    const char *url = scratch_path(state, "ipc://", "clock.sock");
    const int64_t offset_ns = -3000000000;
    const struct clock_options server_options = {.url = url, .emitter_id = 5, .boot_id = 77};
    const struct emitter_options options = {
        .kind = EMITTER_NIC, .clock_url = url, .record_path = path, .clock_offset_ns = offset_ns};
    struct clock_server *server;
    struct emitter *emitter;
    struct tally tally = {0};

    assert_int_equal(clock_server_open(&server, &server_options), 0);
    assert_int_equal(emitter_open(&emitter, &options), 0);
    for (int i = 0; i < 60; i++) {
        emitter_tick(emitter);
        scratch_pause_ms(10);
    }
    assert_int_equal(emitter_close(&emitter), 0);
    clock_server_close(&server);
    tally_capture(&tally, path);
    assert_in_range(tally.samples, 5, 70);
    assert_int_equal(tally.sample.reference_boot, 77);
    /* Both clocks are this machine's: the true offset is known, and must lie within half the round trip. */
    int64_t ahead_ns = (int64_t)(tally.sample.received_ns - tally.sample.sent_ns);
    int64_t behind_ns = (int64_t)(tally.sample.replied_ns - tally.sample.returned_ns);
    assert_true(behind_ns <= -offset_ns && -offset_ns <= ahead_ns);
}

static void a_new_receiver_is_told_again(void **state)
{
    const char *url = scratch_path(state, "ipc://", "again.sock");
    const struct emitter_options options = {.kind = EMITTER_NIC, .link_url = url};
    struct emitter *emitter;
    struct tally first = {0}, second = {0};

    assert_int_equal(emitter_open(&emitter, &options), 0);
    struct link *link = open_receiver(url);
    for (int i = 0; i < 300 && first.hellos == 0; i++) {
        emitter_tick(emitter);
        scratch_pause_ms(10);
        tally_link(&first, link);
    }
    uint64_t epoch = emitter_epoch(emitter);
    link_close(&link, 0);
    scratch_pause_ms(20);
    link = open_receiver(url);
    for (int i = 0; i < 400 && (second.hellos == 0 || emitter_epoch(emitter) == epoch); i++) {
        emitter_tick(emitter);
        scratch_pause_ms(10);
        tally_link(&second, link);
    }
    assert_true(second.hellos >= 1);
    assert_int_equal(emitter_epoch(emitter), epoch + 1);
    emitter_close(&emitter);
    link_close(&link, 0);
}

/*
 * A receiver in a process of its own, stopped until it gets SIGCONT; what it counts is in shared memory. To be made
 * while this process has no link open: nanomsg does not outlive a fork.
 */
static pid_t make_receiver(const char *url, struct tally *shared)
{
    pid_t child = fork();

    if (child != 0) {
        waitpid(child, NULL, WUNTRACED);
        return child;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    raise(SIGSTOP);
    struct link *link = open_receiver(url);
    for (;;) {
        tally_link(shared, link);
        scratch_pause_ms(1);
    }
}

static void run_emitter_for(struct emitter *emitter, unsigned time_ms, uint64_t *number)
{
    for (uint64_t end_ns = clock_now_ns() + time_ms * 1000000ull; clock_now_ns() < end_ns; scratch_pause_ms(1)) {
        for (int i = 0; i < 100; i++)
            add_message(emitter, (*number)++);
        emitter_flush(emitter);
        emitter_tick(emitter);
    }
}

/* Sequence numbers go on, none comes twice, and what died with the receiver is a gap of a few batches, not more. */
static void a_killed_receiver_leaves_a_visible_gap(void **state)
{
    const char *url = scratch_path(state, "ipc://", "kill.sock");
    struct tally *tallies = mmap(NULL, 2 * sizeof *tallies, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct tally *first = &tallies[0], *second = &tallies[1];
    const struct emitter_options options = {.kind = EMITTER_NIC, .link_url = url};
    struct emitter *emitter;
    uint64_t number = 0;

    assert_true(tallies != MAP_FAILED);
    pid_t child = make_receiver(url, first), next_child = make_receiver(url, second);
    kill(child, SIGCONT);
    assert_int_equal(emitter_open(&emitter, &options), 0);
    run_emitter_for(emitter, 300, &number);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    uint64_t epoch = emitter_epoch(emitter);
    run_emitter_for(emitter, 100, &number);
    kill(next_child, SIGCONT);
    run_emitter_for(emitter, 1500, &number);
    assert_int_equal(emitter_close(&emitter), 0);
    for (int i = 0; i < 200 && second->last_flags != HEARTBEAT_LAST; i++)
        scratch_pause_ms(5);
    kill(next_child, SIGKILL);
    waitpid(next_child, NULL, 0);
    assert_true(epoch >= 1);
    assert_true(first->batches > 10 && second->batches > 10);
    assert_int_equal(first->gaps, 0);
    assert_int_equal(second->gaps, 0);
    assert_int_equal(second->lost, 0);
    assert_in_range(second->first_sequence, first->next_sequence, first->next_sequence + 100);
    assert_true(second->hellos >= 1);
    assert_int_equal(second->last_flags, HEARTBEAT_LAST);
    assert_int_equal(second->next_message, number);
    munmap(tallies, 2 * sizeof *tallies);
}

static void records_anew_or_appends(void **state)
{
    const char *path = scratch_path(state, "", "runs.qps");
    struct emitter_options options = {.kind = EMITTER_HOST, .record_path = path};
    const bool append[3] = {false, true, false};
    const uint64_t batches[3] = {1, 2, 1};

    for (int run = 0; run < 3; run++) {
        struct emitter *emitter;
        struct capture_reader *reader;
        const void *bytes;
        size_t length;
        uint64_t count = 0;
        options.record_append = append[run];
        assert_int_equal(emitter_open(&emitter, &options), 0);
        assert_int_equal(emitter_close(&emitter), 0);
        assert_int_equal(capture_reader_open(&reader, path), 0);
        while (capture_read(reader, &bytes, &length) == 1)
            count++;
        capture_reader_close(&reader);
        assert_int_equal(count, batches[run]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(describes_itself_in_the_capture),
        cmocka_unit_test(two_runs_share_the_emitter_but_not_the_boot),
        cmocka_unit_test(shifts_all_times_to_its_own_clock),
        cmocka_unit_test(vouches_for_no_more_than_it_covers),
        cmocka_unit_test(a_late_receiver_misses_nothing),
        cmocka_unit_test(what_is_beyond_the_backlog_is_reported),
        cmocka_unit_test(never_waits_without_a_receiver),
        cmocka_unit_test(takes_clock_samples_into_its_stream),
        cmocka_unit_test(a_new_receiver_is_told_again),
        cmocka_unit_test(a_killed_receiver_leaves_a_visible_gap),
        cmocka_unit_test(records_anew_or_appends),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
