/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/log.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Runs with stderr in a file, so that what is written can be read back. */
struct capture {
    FILE *file;
    int saved_stderr;
    char text[8192];
};

static int setup(void **state)
{
    static struct capture capture;

    capture.file = tmpfile();
    assert_non_null(capture.file);
    capture.saved_stderr = dup(STDERR_FILENO);
    dup2(fileno(capture.file), STDERR_FILENO);
    unsetenv("JOURNAL_STREAM");
    *state = &capture;
    return 0;
}

static int teardown(void **state)
{
    struct capture *capture = *state;

    dup2(capture->saved_stderr, STDERR_FILENO);
    close(capture->saved_stderr);
    fclose(capture->file);
    return 0;
}

static const char *written(struct capture *capture)
{
    ssize_t length = pread(fileno(capture->file), capture->text, sizeof capture->text - 1, 0);

    capture->text[length < 0 ? 0 : length] = '\0';
    return capture->text;
}

static void names_program_and_level(void **state)
{
    log_init("qpscope-nic", LOG_INFO);
    log_error("port %d is gone", 3);
    log_warning("late");
    assert_string_equal(written(*state), "qpscope-nic: error: port 3 is gone\nqpscope-nic: warning: late\n");
}

static void hides_what_is_too_detailed(void **state)
{
    log_init("qpscope-nic", LOG_WARNING);
    log_info("not shown");
    log_debug("not shown");
    assert_string_equal(written(*state), "");
}

static void shows_nothing_when_told_so(void **state)
{
    log_init("p", LOG_NONE);
    log_error("not shown");
    assert_int_equal(log_error_return(-EIO, "not shown"), -EIO);
    assert_string_equal(written(*state), "");
}

static void keeps_one_line_whatever_the_text(void **state)
{
    log_init("p", LOG_INFO);
    log_info("%s", "a\nerror: forged\tb");
    assert_string_equal(written(*state), "p: info: a error: forged b\n");
}

static void cuts_a_long_line_and_still_ends_it(void **state)
{
    char text[4000];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    log_init("p", LOG_INFO);
    log_info("%s", text);
    const char *line = written(*state);
    assert_true(strlen(line) < 2100);
    assert_int_equal(line[strlen(line) - 1], '\n');
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

static void returns_the_error_and_keeps_errno(void **state)
{
    log_init("p", LOG_INFO);
    errno = EBUSY;
    log_warning("x");
    assert_int_equal(errno, EBUSY);
    assert_int_equal(log_error_return(-ENOENT, "no %s", "file"), -ENOENT);
    assert_string_equal(written(*state), "p: warning: x\np: error: no file\n");
}

static void uses_the_journals_prefix(void **state)
{
    struct capture *capture = *state;
    struct stat status;
    char stream[64];

    assert_int_equal(fstat(fileno(capture->file), &status), 0);
    snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)status.st_dev, (unsigned long long)status.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_init("p", LOG_INFO);
    log_error("bad");
    log_info("good");
    assert_string_equal(written(capture), "<3>bad\n<6>good\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_program_and_level, setup, teardown),
        cmocka_unit_test_setup_teardown(hides_what_is_too_detailed, setup, teardown),
        cmocka_unit_test_setup_teardown(shows_nothing_when_told_so, setup, teardown),
        cmocka_unit_test_setup_teardown(keeps_one_line_whatever_the_text, setup, teardown),
        cmocka_unit_test_setup_teardown(cuts_a_long_line_and_still_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(returns_the_error_and_keeps_errno, setup, teardown),
        cmocka_unit_test_setup_teardown(uses_the_journals_prefix, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
