/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command lines from a table. Invariant: a field of the caller's struct is written only with a value that passed its
 * checks, and positionals are moved to the front of argv without touching the words still to be read.
 */
#include "wire/option.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELP_COLUMN 30
#define HELP_WIDTH  100

struct unit {
    const char *name;
    uint64_t factor;
};

/* Largest first: that is how a value is printed. */
static const struct unit duration_units[] = {
    {"min", 60000000000u}, {"s", 1000000000u}, {"ms", 1000000u}, {"us", 1000u}, {"ns", 1u}, {NULL, 0},
};
static const struct unit byte_units[] = {
    {"TiB", 1ull << 40}, {"GiB", 1ull << 30}, {"MiB", 1ull << 20}, {"KiB", 1ull << 10}, {"B", 1u}, {"", 1u}, {NULL, 0},
};
static const struct unit plain_units[] = {{"", 1u}, {NULL, 0}};

static const struct unit *kind_units(enum option_kind kind)
{
    switch (kind) {
    case OPTION_DURATION:
        return duration_units;
    case OPTION_BYTES:
        return byte_units;
    case OPTION_UNSIGNED:
        return plain_units;
    default:
        return NULL;
    }
}

/* A parse in progress. */
struct parse {
    const struct option_program *program;
    char **argv;
    int argc;
    int next;
    void *values;
    size_t positionals_count;
};

static int __attribute__((format(printf, 2, 3)))
usage_error(const struct option_program *program, const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "%s: ", program->name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nTry '%s --help'.\n", program->name);
    return -EINVAL;
}

static void *field(const struct parse *parse, const struct option_spec *spec)
{
    return (char *)parse->values + spec->offset;
}

/* How a person would write the value. */
static void format_number(enum option_kind kind, uint64_t value, char *text, size_t capacity_bytes)
{
    const struct unit *unit = kind_units(kind);

    while (unit[1].name != NULL && (value == 0 || value % unit->factor != 0))
        unit++;
    snprintf(text, capacity_bytes, "%llu%s", (unsigned long long)(value / unit->factor), unit->name);
}

/* Digits, then one of the units. 0, -EINVAL (no such number) or -ERANGE (does not fit 64 bits). */
static int parse_number(const struct unit *units, const char *text, uint64_t *value)
{
    char *end;
    int base = units == plain_units && strncasecmp(text, "0x", 2) == 0 ? 16 : 10;

    if (!isdigit((unsigned char)text[0]))
        return -EINVAL;
    errno = 0;
    unsigned long long number = strtoull(text, &end, base);
    if (errno != 0)
        return -errno;
    if (end == text + 1 && base == 16)
        return -EINVAL;
    for (const struct unit *unit = units; unit->name != NULL; unit++)
        if (strcmp(end, unit->name) == 0)
            return __builtin_mul_overflow(number, unit->factor, value) ? -ERANGE : 0;
    return -EINVAL;
}

static const char *number_hint(enum option_kind kind)
{
    switch (kind) {
    case OPTION_DURATION:
        return "a whole number with its unit: ns, us, ms, s or min (\"8us\")";
    case OPTION_BYTES:
        return "a whole number of bytes, or with KiB, MiB, GiB or TiB (\"128MiB\")";
    default:
        return "a whole number";
    }
}

static int set_number(const struct parse *parse, const struct option_spec *spec, const char *text)
{
    char minimum[32], maximum[32];
    uint64_t value;
    int error = parse_number(kind_units(spec->kind), text, &value);

    if (error == -EINVAL)
        return usage_error(parse->program, "--%s: '%s' is not %s", spec->name, text, number_hint(spec->kind));
    format_number(spec->kind, spec->minimum, minimum, sizeof minimum);
    format_number(spec->kind, spec->maximum == 0 ? UINT64_MAX : spec->maximum, maximum, sizeof maximum);
    if (error != 0 || value < spec->minimum || (spec->maximum != 0 && value > spec->maximum))
        return usage_error(parse->program, "--%s: '%s' is out of range; it goes from %s to %s", spec->name, text,
                           minimum, maximum);
    *(uint64_t *)field(parse, spec) = value;
    return 0;
}

static int set_choice(const struct parse *parse, const struct option_spec *spec, const char *text)
{
    char names[256] = "";
    size_t length = 0;

    for (int i = 0; spec->choices[i] != NULL; i++) {
        if (strcmp(spec->choices[i], text) == 0) {
            *(int *)field(parse, spec) = i;
            return 0;
        }
        if (length < sizeof names)
            length +=
                (size_t)snprintf(names + length, sizeof names - length, "%s%s", i == 0 ? "" : ", ", spec->choices[i]);
    }
    return usage_error(parse->program, "--%s: '%s' is none of: %s", spec->name, text, names);
}

static int set_list(const struct parse *parse, const struct option_spec *spec, const char *text)
{
    struct option_list *list = field(parse, spec);

    if (list->count == OPTION_LIST_MAX)
        return usage_error(parse->program, "--%s: given more than %d times", spec->name, OPTION_LIST_MAX);
    list->values[list->count++] = text;
    return 0;
}

static int set_value(const struct parse *parse, const struct option_spec *spec, const char *text)
{
    switch (spec->kind) {
    case OPTION_FLAG:
        *(bool *)field(parse, spec) = true;
        return 0;
    case OPTION_TEXT:
        *(const char **)field(parse, spec) = text;
        return 0;
    case OPTION_TEXT_LIST:
        return set_list(parse, spec, text);
    case OPTION_CHOICE:
        return set_choice(parse, spec, text);
    case OPTION_UNSIGNED:
    case OPTION_DURATION:
    case OPTION_BYTES:
        return set_number(parse, spec, text);
    }
    return -EINVAL;
}

/* The value of an option that needs one: what stands with it, or else the next word. */
static int set_from(struct parse *parse, const struct option_spec *spec, const char *attached)
{
    if (spec->kind == OPTION_FLAG && attached != NULL)
        return usage_error(parse->program, "--%s takes no value", spec->name);
    if (spec->kind != OPTION_FLAG && attached == NULL) {
        if (parse->next == parse->argc)
            return usage_error(parse->program, "--%s needs a value: %s", spec->name, spec->argument);
        attached = parse->argv[parse->next++];
    }
    return set_value(parse, spec, attached);
}

static const struct option_spec *find_long(const struct option_program *program, const char *name, size_t length)
{
    for (size_t i = 0; i < program->options_count; i++)
        if (strncmp(program->options[i].name, name, length) == 0 && program->options[i].name[length] == '\0')
            return &program->options[i];
    return NULL;
}

static const struct option_spec *find_short(const struct option_program *program, char name)
{
    for (size_t i = 0; i < program->options_count; i++)
        if (program->options[i].short_name == name)
            return &program->options[i];
    return NULL;
}

/* Prints words within HELP_WIDTH; `column` is where the line stands, further lines begin at HELP_COLUMN. */
static void print_wrapped(const char *text, int column)
{
    while (*text != '\0') {
        int length = (int)strcspn(text, " ");
        if (column > HELP_COLUMN && column + 1 + length > HELP_WIDTH) {
            printf("\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        }
        if (column > HELP_COLUMN)
            column += printf(" ");
        column += printf("%.*s", length, text);
        text += length;
        text += strspn(text, " ");
    }
    printf("\n");
}

/* "(default 8us)", or "" where there is none. */
static void format_default(const struct option_spec *spec, const void *values, char *text, size_t capacity_bytes)
{
    const void *at = (const char *)values + spec->offset;
    char number[32];

    text[0] = '\0';
    if (spec->kind == OPTION_TEXT && *(const char *const *)at != NULL) {
        snprintf(text, capacity_bytes, " (default %s)", *(const char *const *)at);
    } else if (spec->kind == OPTION_CHOICE) {
        snprintf(text, capacity_bytes, " (default %s)", spec->choices[*(const int *)at]);
    } else if (kind_units(spec->kind) != NULL) {
        format_number(spec->kind, *(const uint64_t *)at, number, sizeof number);
        snprintf(text, capacity_bytes, " (default %s)", number);
    }
}

static void print_option(const struct option_spec *spec, const void *values)
{
    char short_text[8] = "    ", head[64], preset[128], text[1024];

    if (spec->short_name != 0)
        snprintf(short_text, sizeof short_text, "-%c, ", spec->short_name);
    snprintf(head, sizeof head, "  %s--%s%s%s", short_text, spec->name, spec->argument == NULL ? "" : " ",
             spec->argument == NULL ? "" : spec->argument);
    int column = printf("%-*s", HELP_COLUMN, head);
    if (column > HELP_COLUMN)
        column = printf("\n%*s", HELP_COLUMN, "") - 1;
    format_default(spec, values, preset, sizeof preset);
    snprintf(text, sizeof text, "%s%s", spec->help, preset);
    print_wrapped(text, column);
}

static void print_help(const struct option_program *program, const void *values)
{
    static const struct option_spec own[] = {
        {.name = "help", .short_name = 'h', .kind = OPTION_FLAG, .help = "print this and exit"},
        {.name = "version", .short_name = 'V', .kind = OPTION_FLAG, .help = "print the version and exit"},
    };

    printf("Usage: %s %s\n%s\n\nOptions:\n", program->name, program->usage, program->summary);
    for (size_t i = 0; i < program->options_count; i++)
        print_option(&program->options[i], values);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        print_option(&own[i], values);
    if (program->epilogue != NULL)
        printf("\n%s\n", program->epilogue);
}

/* --help and --version, which every program has. */
static bool print_own(const struct parse *parse, const char *name)
{
    if (strcmp(name, "help") == 0)
        print_help(parse->program, parse->values);
    else if (strcmp(name, "version") == 0)
        printf("%s %s\n", parse->program->name, QPSCOPE_VERSION);
    else
        return false;
    return true;
}

static int parse_long(struct parse *parse, const char *word)
{
    size_t length = strcspn(word, "=");
    const struct option_spec *spec = find_long(parse->program, word, length);

    if (spec != NULL)
        return set_from(parse, spec, word[length] == '=' ? word + length + 1 : NULL);
    if (print_own(parse, word))
        return OPTION_RESULT_DONE;
    return usage_error(parse->program, "unknown option --%.*s", (int)length, word);
}

/* "-a", "-ab" (flags), "-w8us" or "-w 8us". */
static int parse_short(struct parse *parse, const char *word)
{
    for (; *word != '\0'; word++) {
        const struct option_spec *spec = find_short(parse->program, *word);
        if (spec == NULL && (*word == 'h' || *word == 'V')) {
            print_own(parse, *word == 'h' ? "help" : "version");
            return OPTION_RESULT_DONE;
        }
        if (spec == NULL)
            return usage_error(parse->program, "unknown option -%c", *word);
        if (spec->kind != OPTION_FLAG)
            return set_from(parse, spec, word[1] == '\0' ? NULL : word + 1);
        set_value(parse, spec, NULL);
    }
    return 0;
}

static int keep_positional(struct parse *parse, char *word)
{
    if (parse->positionals_count == parse->program->positionals_max)
        return usage_error(parse->program, "unexpected argument '%s'", word);
    parse->argv[1 + parse->positionals_count++] = word;
    return 0;
}

static int parse_word(struct parse *parse, char *word, bool *options_ended)
{
    if (*options_ended || word[0] != '-' || word[1] == '\0')
        return keep_positional(parse, word);
    if (strcmp(word, "--") == 0) {
        *options_ended = true;
        return 0;
    }
    return word[1] == '-' ? parse_long(parse, word + 2) : parse_short(parse, word + 1);
}

int option_parse(const struct option_program *program, int argc, char **argv, void *values, char ***positionals,
                 size_t *positionals_count)
{
    struct parse parse = {.program = program, .argv = argv, .argc = argc, .next = 1, .values = values};
    bool options_ended = false;

    while (parse.next < argc) {
        char *word = argv[parse.next++];
        int result = parse_word(&parse, word, &options_ended);
        if (result != 0)
            return result;
    }
    *positionals = argv + 1;
    *positionals_count = parse.positionals_count;
    return OPTION_RESULT_RUN;
}
