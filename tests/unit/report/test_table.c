/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/form/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct table_heading plain[] = {{"rank", true, false}, {"name", false, false}, {"late ms", true, false}};
static const struct table_heading spare[] = {{"rank", true, false}, {"name", false, true}, {"late ms", true, false}};

static void expect_of(const struct table_heading *headings, size_t width, bool colour, const char *const *cells,
                      size_t cells_count, const char *expected)
{
    struct table *table = NULL;
    struct terminal terminal = {.width = width, .colour = colour};
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    assert_int_equal(table_create(&table, headings, 3), 0);
    for (size_t i = 0; i < cells_count; i++) {
        assert_int_equal(table_add(table, cells[i]), 0);
    }
    table_print(table, file, &terminal);
    fclose(file);
    assert_string_equal(text, expected);
    free(text);
    table_destroy(&table);
    assert_null(table);
}

static void expect(size_t width, bool colour, const char *const *cells, size_t cells_count, const char *expected)
{
    expect_of(plain, width, colour, cells, cells_count, expected);
}

static void aligns(void **state)
{
    (void)state;
    static const char *const cells[] = {"0", "a", "1.5", "12345", "longer ±", "20.25"};
    expect(80, false, cells, 6,
           " rank  name      late ms\n"
           "    0  a             1.5\n"
           "12345  longer ±    20.25\n");
}

static void prints_headings_alone(void **state)
{
    (void)state;
    expect(80, false, NULL, 0, "rank  name  late ms\n");
}

static void colours_only_headings(void **state)
{
    (void)state;
    static const char *const cells[] = {"0", "a", "1"};
    expect(80, true, cells, 3, "\033[1mrank  name  late ms\033[0m\n   0  a           1\n");
}

/* 4 + 2 + 20 + 2 + 7 columns are 35; at 27 the name gives 8 of its 20. */
static void narrows_text_first(void **state)
{
    (void)state;
    static const char *const cells[] = {"0", "abcdefghijklmnopqrst", "1"};
    expect(27, false, cells, 3,
           "rank  name          late ms\n"
           "   0  abcdefghijk…        1\n");
}

/* With the name at its least, 8, the table takes 23; at 20 the last column goes, and the name has 14. */
static void leaves_columns_out_and_says_so(void **state)
{
    (void)state;
    static const char *const cells[] = {"0", "abcdefghijklmnopqrst", "1"};
    expect(20, false, cells, 3,
           "rank  name\n"
           "   0  abcdefghijklm…\n"
           "(1 column left out; --json has all)\n");
    expect(4, false, cells, 3,
           "rank\n"
           "   0\n"
           "(2 columns left out; --json has all)\n");
}

/* Of 35 columns: what is spare goes whole before text is narrowed, and stays where there is room. */
static void leaves_out_first_what_is_spare(void **state)
{
    (void)state;
    static const char *const cells[] = {"0", "abcdefghijklmnopqrst", "1"};
    expect_of(spare, 34, false, cells, 3,
              "rank  late ms\n"
              "   0        1\n"
              "(1 column left out; --json has all)\n");
    expect_of(spare, 35, false, cells, 3,
              "rank  name                  late ms\n"
              "   0  abcdefghijklmnopqrst        1\n");
}

static void cleans_what_comes_from_outside(void **state)
{
    (void)state;
    static const char *const cells[] = {"0", "\033[31mred\r\n\xc2\x9b\xff", "1"};
    expect(80, false, cells, 3,
           "rank  name          late ms\n"
           "   0  ?[31mred????        1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aligns),
        cmocka_unit_test(prints_headings_alone),
        cmocka_unit_test(colours_only_headings),
        cmocka_unit_test(narrows_text_first),
        cmocka_unit_test(leaves_columns_out_and_says_so),
        cmocka_unit_test(leaves_out_first_what_is_spare),
        cmocka_unit_test(cleans_what_comes_from_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
