/* SPDX-License-Identifier: BSD-2-Clause */
/* Expected texts follow RFC 8259, and for bytes that are no UTF-8 the Unicode standard's chapter 3.9. */
#include "report/form/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Writes into memory. */
struct sheet {
    struct json json;
    FILE *file;
    char *text;
    size_t length;
};

static void sheet_open(struct sheet *sheet)
{
    sheet->text = NULL;
    sheet->file = open_memstream(&sheet->text, &sheet->length);
    assert_non_null(sheet->file);
    json_init(&sheet->json, sheet->file);
}

static void sheet_expect(struct sheet *sheet, const char *expected)
{
    fclose(sheet->file);
    assert_string_equal(sheet->text, expected);
    free(sheet->text);
}

static void expect_text(const char *value, const char *expected)
{
    struct sheet sheet;
    sheet_open(&sheet);
    json_text(&sheet.json, NULL, value);
    sheet_expect(&sheet, expected);
}

static void escapes_what_must_be(void **state)
{
    (void)state;
    expect_text("plain", "\"plain\"");
    expect_text("", "\"\"");
    expect_text("a\"b\\c", "\"a\\\"b\\\\c\"");
    expect_text("\001\b\t\n\f\r\033\037 \177", "\"\\u0001\\u0008\\u0009\\u000a\\u000c\\u000d\\u001b\\u001f \\u007f\"");
    expect_text(NULL, "null");
}

static void keeps_utf8(void **state)
{
    (void)state;
    expect_text("±", "\"±\"");
    expect_text("\xe2\x82\xac \xf0\x9f\x98\x80 \xed\x9f\xbf \xef\xbf\xbd",
                "\"\xe2\x82\xac \xf0\x9f\x98\x80 \xed\x9f\xbf \xef\xbf\xbd\"");
}

static void replaces_what_is_no_utf8(void **state)
{
    (void)state;
    expect_text("\xff", "\"\\ufffd\"");
    expect_text("a\x80z", "\"a\\ufffdz\"");
    expect_text("\xc3(", "\"\\ufffd(\"");
    expect_text("\xc0\xaf", "\"\\ufffd\\ufffd\"");                       /* overlong slash */
    expect_text("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"");            /* a surrogate */
    expect_text("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""); /* above U+10FFFF */
    expect_text("\xe2\x82", "\"\\ufffd\"");                              /* cut */
    expect_text("\xf0\x9f\x98(\xe2\x82\"", "\"\\ufffd(\\ufffd\\\"\"");   /* cut, then text */
    expect_text("\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64",  /* table 3-8 of the standard */
                "\"a\\ufffd\\ufffd\\ufffdb\\ufffdc\\ufffd\\ufffdd\"");
}

static void writes_numbers(void **state)
{
    (void)state;
    struct sheet sheet;
    sheet_open(&sheet);
    json_object_begin(&sheet.json, NULL);
    json_array_begin(&sheet.json, "a");
    json_array_begin(&sheet.json, NULL);
    json_integer(&sheet.json, NULL, INT64_MIN);
    json_integer(&sheet.json, NULL, INT64_MAX);
    json_real(&sheet.json, NULL, 0.1);
    json_real(&sheet.json, NULL, 1.0 / 3);
    json_real(&sheet.json, NULL, NAN);
    json_real(&sheet.json, NULL, -INFINITY);
    json_boolean(&sheet.json, NULL, true);
    json_array_end(&sheet.json);
    json_array_end(&sheet.json);
    json_object_end(&sheet.json);
    sheet_expect(&sheet, "{\n  \"a\":[\n    [-9223372036854775808,9223372036854775807,0.1,0.3333333333333333,null,null,"
                         "true]\n  ]\n}\n");
}

static void separates_members(void **state)
{
    (void)state;
    struct sheet sheet;
    sheet_open(&sheet);
    json_object_begin(&sheet.json, NULL);
    json_text(&sheet.json, "k\"", "v");
    json_object_begin(&sheet.json, "empty");
    json_object_end(&sheet.json);
    json_array_begin(&sheet.json, "list");
    json_array_end(&sheet.json);
    json_boolean(&sheet.json, "no", false);
    json_null(&sheet.json, "nothing");
    json_object_end(&sheet.json);
    sheet_expect(&sheet,
                 "{\n  \"k\\\"\":\"v\",\n  \"empty\":{},\n  \"list\":[],\n  \"no\":false,\n  \"nothing\":null\n}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_what_must_be),     cmocka_unit_test(keeps_utf8),
        cmocka_unit_test(replaces_what_is_no_utf8), cmocka_unit_test(writes_numbers),
        cmocka_unit_test(separates_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
