/* SPDX-License-Identifier: BSD-2-Clause */
/* Captures made here, batch by batch, and what is in the one that is made of them. */
#include "cli/gather/merger.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/scratch.h"
#include "wire/capture.h"

struct made {
    struct batch_header header;
    struct record_hello hello;
};

struct agent {
    uint64_t emitter_id;
    uint64_t boot_id;
    uint8_t machine; /* its kernel's boot */
    const char *host;
};

static struct made batch_of(const struct agent *agent, uint64_t sequence, uint64_t started_ns)
{
    struct made made = {
        .header = {BATCH_MAGIC, BATCH_VERSION, EMITTER_NIC, agent->emitter_id, agent->boot_id, sequence,
                   1000 + sequence, 1, sizeof(struct record_hello)},
        .hello = {.header = {RECORD_HELLO, sizeof(struct record_hello), 0}, .started_ns = started_ns},
    };
    memset(made.hello.kernel_boot, agent->machine, sizeof(made.hello.kernel_boot));
    snprintf(made.hello.host, sizeof(made.hello.host), "%s", agent->host);
    snprintf(made.hello.instance, sizeof(made.hello.instance), "eth0");
    return made;
}

/* Batches first..last-1 of an agent. */
static const char *write_capture(void **state, const char *name, const struct agent *agent, uint64_t first,
                                 uint64_t last, uint64_t started_ns)
{
    const char *path = scratch_path(state, "", name);
    struct capture_writer *writer;
    assert_int_equal(capture_writer_open(&writer, path, 0), 0);
    for (uint64_t i = first; i < last; i++) {
        struct made made = batch_of(agent, i, started_ns);
        assert_int_equal(capture_write(writer, &made, sizeof(made)), 0);
        assert_int_equal(capture_flush(writer), 0);
    }
    assert_int_equal(capture_writer_close(&writer), 0);
    return path;
}

#define INPUTS_MAX 4

static struct merger_counts merge(const char *output, const char *const *inputs)
{
    uint64_t batches[INPUTS_MAX];
    struct merger *merger;
    assert_int_equal(merger_create(&merger, output), 0);
    for (size_t i = 0; inputs[i] != NULL; i++) {
        assert_int_equal(merger_survey(merger, inputs[i], &batches[i]), 0);
    }
    for (size_t i = 0; inputs[i] != NULL; i++) {
        assert_int_equal(merger_add(merger, inputs[i], batches[i]), 0);
    }
    struct merger_counts counts = merger_counts(merger);
    assert_int_equal(merger_close(&merger, true), 0);
    return counts;
}

/* What the n-th batch is; false behind the last one. */
static bool read_nth(const char *path, size_t n, struct made *made)
{
    struct capture_reader *reader;
    const void *bytes;
    size_t length;
    int result = 0;
    assert_int_equal(capture_reader_open(&reader, path), 0);
    for (size_t i = 0; i <= n; i++) {
        result = capture_read(reader, &bytes, &length);
        assert_true(result >= 0);
        if (result == 1 && i == n) {
            assert_int_equal(length, sizeof(*made));
            memcpy(made, bytes, length);
        }
    }
    capture_reader_close(&reader);
    return result == 1;
}

static const struct agent first = {7, 100, 1, "node-a"};
static const struct agent second = {8, 200, 2, "node-b"};

static void all_is_there_once(void **state)
{
    struct made made;
    const char *inputs[] = {write_capture(state, "a", &first, 0, 5, 1), write_capture(state, "b", &first, 3, 9, 1),
                            write_capture(state, "c", &second, 0, 4, 2), NULL};
    const char *output = scratch_path(state, "", "all");
    struct merger_counts counts = merge(output, inputs);
    assert_int_equal(counts.written, 9 + 4);
    assert_int_equal(counts.duplicates, 2);
    assert_int_equal(counts.contradicting, 0);
    assert_int_equal(counts.renamed, 0);
    for (size_t i = 0; i < 13; i++) {
        const struct agent *agent = i < 9 ? &first : &second;
        struct made expected = batch_of(agent, i < 9 ? i : i - 9, i < 9 ? 1 : 2);
        assert_true(read_nth(output, i, &made));
        assert_memory_equal(&made, &expected, sizeof(made));
    }
    assert_false(read_nth(output, 13, &made));
}

static void many_batches(void **state)
{
    const char *inputs[] = {write_capture(state, "many", &first, 0, 9000, 1), NULL, NULL};
    inputs[1] = inputs[0];
    struct merger_counts counts = merge(scratch_path(state, "", "out"), inputs);
    assert_int_equal(counts.written, 9000);
    assert_int_equal(counts.duplicates, 9000);
}

static void what_contradicts_is_left_out_and_counted(void **state)
{
    struct made made;
    const char *inputs[] = {write_capture(state, "a", &first, 0, 3, 1), write_capture(state, "b", &first, 1, 5, 9),
                            NULL};
    const char *output = scratch_path(state, "", "all");
    struct merger_counts counts = merge(output, inputs);
    assert_int_equal(counts.written, 5);
    assert_int_equal(counts.contradicting, 2);
    assert_int_equal(counts.duplicates, 0);
    assert_true(read_nth(output, 1, &made));
    assert_int_equal(made.hello.started_ns, 1);
    assert_true(read_nth(output, 3, &made));
    assert_int_equal(made.hello.started_ns, 9);
}

/* The same emitter id on two machines: a clone. On one machine, started again, it stays what it is. */
static void machines_of_one_name_are_kept_apart(void **state)
{
    static const struct agent again = {7, 101, 1, "node-a"};
    static const struct agent clone = {7, 300, 3, "node-a"};
    struct made made;
    const char *inputs[] = {write_capture(state, "a", &first, 0, 2, 1), write_capture(state, "b", &again, 0, 2, 1),
                            write_capture(state, "c", &clone, 0, 2, 1), NULL};
    const char *output = scratch_path(state, "", "all");
    struct merger_counts counts = merge(output, inputs);
    assert_int_equal(counts.written, 6);
    assert_int_equal(counts.renamed, 1);
    for (size_t i = 0; i < 4; i++) {
        assert_true(read_nth(output, i, &made));
        assert_int_equal(made.header.emitter_id, 7);
    }
    assert_true(read_nth(output, 4, &made));
    uint64_t renamed = made.header.emitter_id;
    assert_int_not_equal(renamed, 7);
    assert_int_equal(made.header.boot_id, 300);
    assert_true(read_nth(output, 5, &made));
    assert_int_equal(made.header.emitter_id, renamed);
    /* Merged again, with more of it, it is the same. */
    const char *more[] = {output, inputs[2], NULL};
    counts = merge(scratch_path(state, "", "again"), more);
    assert_int_equal(counts.written, 6);
}

static void up_to_a_cut(void **state)
{
    size_t length;
    const char *whole = write_capture(state, "whole", &first, 0, 4, 1);
    uint8_t *bytes = scratch_read(whole, &length);
    const char *inputs[] = {scratch_path(state, "", "cut"), NULL};
    scratch_write(inputs[0], bytes, length - 5, 0600);
    free(bytes);
    struct merger_counts counts = merge(scratch_path(state, "", "all"), inputs);
    assert_int_equal(counts.written, 3);
}

static void what_comes_after_the_survey_is_not_taken(void **state)
{
    uint64_t batches;
    struct merger *merger;
    const char *growing = write_capture(state, "growing", &first, 0, 3, 1);
    assert_int_equal(merger_create(&merger, scratch_path(state, "", "all")), 0);
    assert_int_equal(merger_survey(merger, growing, &batches), 0);
    assert_int_equal(batches, 3);
    write_capture(state, "growing", &first, 0, 5, 1);
    assert_int_equal(merger_add(merger, growing, batches), 0);
    assert_int_equal(merger_counts(merger).written, 3);
    assert_int_equal(merger_close(&merger, true), 0);
}

static void what_is_no_capture_is_refused(void **state)
{
    struct merger *merger;
    uint64_t batches;
    const char *output = scratch_path(state, "", "none");
    const char *text = scratch_path(state, "", "text");
    scratch_write(text, "this is no capture at all", 25, 0600);
    assert_int_equal(merger_create(&merger, output), 0);
    assert_true(merger_survey(merger, text, &batches) < 0);
    assert_int_equal(merger_survey(merger, scratch_path(state, "", "nothing"), &batches), -ENOENT);
    assert_int_equal(merger_close(&merger, false), 0);
    assert_null(merger);
    assert_int_not_equal(access(output, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_is_there_once, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(many_batches, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(what_contradicts_is_left_out_and_counted, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(machines_of_one_name_are_kept_apart, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(up_to_a_cut, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(what_comes_after_the_survey_is_not_taken, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(what_is_no_capture_is_refused, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
