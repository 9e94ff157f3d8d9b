/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/form/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void durations_have_three_digits_and_a_unit(void **state)
{
    (void)state;
    static const struct {
        int64_t duration_ns;
        const char *text;
    } cases[] = {
        {0, "0 ns"},
        {812, "812 ns"},
        {999, "999 ns"},
        {1000, "1.00 us"},
        {9994, "9.99 us"},
        {9996, "10.0 us"},
        {81240, "81.2 us"},
        {99960, "100 us"},
        {999499, "999 us"},
        {999500, "1.00 ms"},
        {51200000, "51.2 ms"},
        {-51200000, "-51.2 ms"},
        {1204000000, "1.20 s"},
        {3600000000000, "3600 s"},
        {INT64_MAX, "9223372037 s"},
        {INT64_MIN, "-9223372037 s"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[TEXT_NUMBER_BYTES];
        assert_string_equal(text_duration(text, cases[i].duration_ns), cases[i].text);
    }
}

static void sizes_have_three_digits_and_a_unit(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.00 KiB"},
        {1536, "1.50 KiB"},
        {16777216, "16.0 MiB"},
        {1048575, "1.00 MiB"},
        {1099511627776, "1.00 TiB"},
        {INT64_MAX, "8388608 TiB"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[TEXT_NUMBER_BYTES];
        assert_string_equal(text_bytes(text, cases[i].bytes), cases[i].text);
    }
}

static void expect_paragraph(const char *text, size_t indent, size_t width, const char *expected)
{
    char *written = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&written, &length);
    text_paragraph(file, text, indent, width);
    fclose(file);
    assert_string_equal(written, expected);
    free(written);
}

static void paragraphs_are_wrapped(void **state)
{
    (void)state;
    expect_paragraph("one two three", 0, 100, "one two three\n");
    expect_paragraph("one two three", 0, 7, "one two\nthree\n");
    expect_paragraph("one two three", 2, 9, "  one two\n  three\n");
    expect_paragraph("± ± incomprehensible", 0, 3, "± ±\nincomprehensible\n");
    expect_paragraph("a\nb\033[0m", 0, 80, "a?b?[0m\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_have_three_digits_and_a_unit),
        cmocka_unit_test(sizes_have_three_digits_and_a_unit),
        cmocka_unit_test(paragraphs_are_wrapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
