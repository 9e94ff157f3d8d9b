/* SPDX-License-Identifier: BSD-2-Clause */
/* Who may hear a running agent beside its link, what each listener gets and loses, and that a dead agent leaves no
 * socket. */
#include "wire/outlet.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/scratch.h"
#include "wire/batch.h"
#include "wire/emitter.h"
#include "wire/log.h"

#define BOOT 0x1122334455667788ull
#define NAME "nic-1122334455667788.outlet"

static struct outlet *open_here(void **state)
{
    struct outlet *outlet = NULL;

    setenv("QPSCOPE_RUNTIME_DIRECTORY", scratch_path(state, "", "run"), 1);
    assert_int_equal(outlet_open(&outlet, "nic", BOOT), 0);
    return outlet;
}

static int connect_here(void **state)
{
    return outlet_connect(scratch_path(state, "", "run/" NAME));
}

static void only_its_user_may_listen(void **state)
{
    struct outlet *outlet = open_here(state);
    struct stat status;

    assert_int_equal(stat(scratch_path(state, "", "run"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(stat(scratch_path(state, "", "run/" NAME), &status), 0);
    assert_true(S_ISSOCK(status.st_mode));
    assert_int_equal(status.st_mode & 0777, 0600);
    outlet_close(&outlet);
    assert_int_equal(stat(scratch_path(state, "", "run/" NAME), &status), -1);
}

static void each_listener_gets_each_batch(void **state)
{
    struct outlet *outlet = open_here(state);
    int listeners[2] = {connect_here(state), -1};
    char got[16];
    bool caught_up = false;

    assert_true(listeners[0] >= 0);
    assert_false(outlet_is_heard(outlet));
    assert_true(outlet_accept(outlet));
    assert_int_equal(outlet_send(outlet, "one", 3, &caught_up), 0);
    listeners[1] = connect_here(state);
    assert_true(outlet_accept(outlet));
    assert_false(outlet_accept(outlet));
    assert_int_equal(outlet_send(outlet, "second", 6, &caught_up), 0);
    assert_int_equal(recv(listeners[0], got, sizeof got, 0), 3);
    assert_int_equal(recv(listeners[0], got, sizeof got, 0), 6);
    assert_memory_equal(got, "second", 6);
    assert_int_equal(recv(listeners[1], got, sizeof got, 0), 6);
    close(listeners[0]);
    assert_int_equal(outlet_send(outlet, "3", 1, &caught_up), 0);
    assert_int_equal(recv(listeners[1], got, sizeof got, 0), 1);
    assert_true(outlet_is_heard(outlet));
    assert_int_equal(outlet_send(outlet, "4", 1, &caught_up), 0);
    outlet_close(&outlet);
    assert_int_equal(recv(listeners[1], got, sizeof got, 0), 1);
    assert_int_equal(recv(listeners[1], got, sizeof got, 0), 0);
    close(listeners[1]);
    assert_false(caught_up);
}

static void who_does_not_take_loses_and_it_is_counted(void **state)
{
    static uint8_t batch[BATCH_BYTES_MAX];
    struct outlet *outlet = open_here(state);
    int listener = connect_here(state);
    unsigned sent = 0, read = 0;
    bool caught_up = false;

    assert_true(outlet_accept(outlet));
    while (outlet_send(outlet, batch, sizeof batch, &caught_up) == 0)
        assert_true(++sent < 1000);
    assert_true(sent >= 1);
    assert_int_equal(outlet_send(outlet, batch, sizeof batch, &caught_up), 1);
    assert_false(caught_up);
    while (recv(listener, batch, sizeof batch, MSG_DONTWAIT) == (ssize_t)sizeof batch)
        read++;
    assert_int_equal(read, sent);
    assert_int_equal(outlet_send(outlet, batch, sizeof batch, &caught_up), 0);
    assert_true(caught_up);
    caught_up = false;
    assert_int_equal(outlet_send(outlet, batch, 8, &caught_up), 0);
    assert_false(caught_up);
    outlet_close(&outlet);
    close(listener);
}

static void more_listeners_than_it_has_room_for_are_turned_away(void **state)
{
    struct outlet *outlet = open_here(state);
    int listeners[OUTLET_LISTENERS_MAX + 1];
    char got[16];
    bool caught_up = false;

    for (size_t i = 0; i <= OUTLET_LISTENERS_MAX; i++) {
        listeners[i] = connect_here(state);
        assert_true(listeners[i] >= 0);
        assert_int_equal(outlet_accept(outlet), i < OUTLET_LISTENERS_MAX);
    }
    assert_int_equal(outlet_send(outlet, "x", 1, &caught_up), 0);
    for (size_t i = 0; i <= OUTLET_LISTENERS_MAX; i++) {
        assert_int_equal(recv(listeners[i], got, sizeof got, 0), i < OUTLET_LISTENERS_MAX);
        close(listeners[i]);
    }
    outlet_close(&outlet);
}

static void a_dead_agents_outlet_is_removed(void **state)
{
    const char *path = scratch_path(state, "", "run/" NAME);
    struct outlet *outlet = open_here(state);
    struct outlet *second = NULL;

    log_init("test", LOG_NONE);
    assert_int_equal(outlet_open(&second, "nic", BOOT), -EADDRINUSE);
    assert_null(second);
    char *kept = strdup(scratch_path(state, "", "run/kept"));
    assert_int_equal(rename(path, kept), 0); /* so that it is left when it ends */
    outlet_close(&outlet);
    assert_int_equal(rename(kept, path), 0);
    assert_int_equal(outlet_connect(path), -ECONNREFUSED);
    assert_int_equal(outlet_connect(path), -ENOENT);
    free(kept);
}

static void folders_are_where_programs_run(void **state)
{
    char folder[OUTLET_PATH_BYTES];

    (void)state;
    setenv("QPSCOPE_RUNTIME_DIRECTORY", "/there", 1);
    assert_true(outlet_folder(folder, 0));
    assert_string_equal(folder, "/there");
    assert_false(outlet_folder(folder, 1));
    unsetenv("QPSCOPE_RUNTIME_DIRECTORY");
    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
    assert_true(outlet_folder(folder, 0));
    assert_string_equal(folder, "/run/qpscope");
    assert_true(outlet_folder(folder, 1));
    assert_string_equal(folder, "/run/user/7/qpscope");
    assert_false(outlet_folder(folder, 2));
    unsetenv("XDG_RUNTIME_DIR");
    assert_false(outlet_folder(folder, 1));
}

/* The first batches that a listener gets say who the emitter is, though it said so before. */
static void an_emitter_describes_itself_to_who_comes(void **state)
{
    const struct emitter_options options = {.kind = EMITTER_HOST, .instance = "test", .outlet = "host"};
    static uint8_t bytes[BATCH_BYTES_MAX];
    struct emitter *emitter = NULL;
    char path[OUTLET_PATH_BYTES];
    unsigned hellos = 0;

    setenv("QPSCOPE_RUNTIME_DIRECTORY", scratch_path(state, "", "run"), 1);
    assert_int_equal(emitter_open(&emitter, &options), 0);
    emitter_flush(emitter);
    uint64_t epoch = emitter_epoch(emitter);
    snprintf(path, sizeof path, "%s/host-%016llx" OUTLET_SUFFIX, scratch_path(state, "", "run"),
             (unsigned long long)emitter_boot_id(emitter));
    int listener = outlet_connect(path);
    assert_true(listener >= 0);
    for (int i = 0; i < 400 && hellos == 0; i++) {
        struct batch batch;
        union record record;
        uint64_t unknown = 0;
        emitter_tick(emitter);
        ssize_t length = recv(listener, bytes, sizeof bytes, MSG_DONTWAIT);
        scratch_pause_ms(5);
        if (length <= 0)
            continue;
        assert_int_equal(batch_read(&batch, bytes, (size_t)length), 0);
        assert_int_equal(batch.header.boot_id, emitter_boot_id(emitter));
        while (batch_next(&batch, &record, &unknown) == 1)
            hellos += record.header.kind == RECORD_HELLO;
    }
    assert_int_equal(hellos, 1);
    assert_int_equal(emitter_epoch(emitter), epoch + 1);
    assert_int_equal(emitter_close(&emitter), 0);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_its_user_may_listen, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(each_listener_gets_each_batch, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(who_does_not_take_loses_and_it_is_counted, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(more_listeners_than_it_has_room_for_are_turned_away, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(a_dead_agents_outlet_is_removed, scratch_setup, scratch_teardown),
        cmocka_unit_test(folders_are_where_programs_run),
        cmocka_unit_test_setup_teardown(an_emitter_describes_itself_to_who_comes, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
