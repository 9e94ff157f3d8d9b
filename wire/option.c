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

#include "wire/log.h"
#include "wire/option_file.h"

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
    const char *where; /* of a configuration file: "FILE:LINE"; NULL on the command line */
    unsigned file;     /* the n-th of them */
    uint64_t given;    /* in it: a bit an option */
    bool only_checks;
    bool is_again;
    bool has_read; /* a configuration */
};

static int __attribute__((format(printf, 2, 3))) usage_error(const struct parse *parse, const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "%s: %s%s", parse->program->name, parse->where == NULL ? "" : parse->where,
            parse->where == NULL ? "" : ": ");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (parse->where == NULL)
        fprintf(stderr, "\nTry '%s --help'.", parse->program->name);
    fputc('\n', stderr);
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

static int range_error(const struct parse *parse, const struct option_spec *spec, const char *text, bool is_too_big)
{
    char minimum[32], maximum[32];

    format_number(spec->kind, spec->minimum, minimum, sizeof minimum);
    format_number(spec->kind, spec->maximum, maximum, sizeof maximum);
    if (spec->maximum != 0)
        return usage_error(parse, "--%s: '%s' is out of range; it goes from %s to %s", spec->name, text, minimum,
                           maximum);
    return is_too_big ? usage_error(parse, "--%s: '%s' is too big a number", spec->name, text)
                      : usage_error(parse, "--%s: '%s' is out of range; it is at least %s", spec->name, text, minimum);
}

static int set_number(const struct parse *parse, const struct option_spec *spec, const char *text)
{
    uint64_t value;
    int error = parse_number(kind_units(spec->kind), text, &value);

    if (error == -EINVAL)
        return usage_error(parse, "--%s: '%s' is not %s", spec->name, text, number_hint(spec->kind));
    if (error != 0 || value < spec->minimum || (spec->maximum != 0 && value > spec->maximum))
        return range_error(parse, spec, text, error != 0);
    *(uint64_t *)field(parse, spec) = value;
    return 0;
}

static int find_word(const char *const *words, const char *text)
{
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], text) == 0)
            return i;
    return -1;
}

static const char *join_words(const char *const *words, char *joined, size_t capacity_bytes)
{
    size_t length = 0;

    joined[0] = '\0';
    for (int i = 0; words[i] != NULL && length < capacity_bytes; i++)
        length += (size_t)snprintf(joined + length, capacity_bytes - length, "%s%s", i == 0 ? "" : ", ", words[i]);
    return joined;
}

static int set_choice(const struct parse *parse, const struct option_spec *spec, const char *text)
{
    char names[256];
    int choice = find_word(spec->choices, text);

    if (choice < 0)
        return usage_error(parse, "--%s: '%s' is none of: %s", spec->name, text,
                           join_words(spec->choices, names, sizeof names));
    *(int *)field(parse, spec) = choice;
    return 0;
}

static int set_list(const struct parse *parse, const struct option_spec *spec, const char *text)
{
    struct option_list *list = field(parse, spec);

    if (list->count == OPTION_LIST_MAX)
        return usage_error(parse, "--%s: given more than %d times", spec->name, OPTION_LIST_MAX);
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
        return usage_error(parse, "--%s takes no value", spec->name);
    if (spec->kind != OPTION_FLAG && attached == NULL) {
        if (parse->next == parse->argc)
            return usage_error(parse, "--%s needs a value: %s", spec->name, spec->argument);
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

static const struct option_spec own_specs[] = {
    {.name = "config",
     .kind = OPTION_TEXT_LIST,
     .argument = "FILE",
     .help = "read options from FILE: lines 'name = value', with the long names; the command line overrides them"},
    {.name = "check-config", .kind = OPTION_FLAG, .help = "say what is wrong with that file, and exit"},
    {.name = "help", .short_name = 'h', .kind = OPTION_FLAG, .help = "print this and exit"},
    {.name = "version", .short_name = 'V', .kind = OPTION_FLAG, .help = "print the version and exit"},
};

#define CONFIG_SPECS 2 /* of them: only where there is a configuration */

static void print_help(const struct option_program *program, const void *values)
{
    printf("Usage: %s %s\n%s\n\nOptions:\n", program->name, program->usage, program->summary);
    for (size_t i = 0; i < program->options_count; i++)
        print_option(&program->options[i], values);
    for (size_t i = program->has_config ? 0 : CONFIG_SPECS; i < sizeof own_specs / sizeof own_specs[0]; i++)
        print_option(&own_specs[i], values);
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

/* How many letters have to be changed, added or left out (Levenshtein). */
static size_t distance(const char *a, const char *b)
{
    size_t row[64];
    size_t length = strlen(b);

    if (length >= sizeof row / sizeof row[0])
        return SIZE_MAX;
    for (size_t i = 0; i <= length; i++)
        row[i] = i;
    for (size_t i = 1; *a != '\0'; a++, i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t best = diagonal + (*a != b[j - 1]);
            diagonal = row[j];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
        }
    }
    return row[length];
}

#define NEAR 3

static int unknown_key(const struct parse *parse, const char *key)
{
    const char *nearest = NULL;
    size_t least = NEAR + 1;

    for (size_t i = 0; i < parse->program->options_count; i++) {
        size_t found = distance(key, parse->program->options[i].name);
        if (found < least) {
            least = found;
            nearest = parse->program->options[i].name;
        }
    }
    return nearest != NULL ? usage_error(parse, "unknown key '%s': is '%s' meant?", key, nearest)
                           : usage_error(parse, "unknown key '%s': %s --help lists them", key, parse->program->name);
}

static int take_flag(const struct parse *parse, const struct option_spec *spec, const char *value)
{
    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return usage_error(parse, "%s: '%s' is neither yes nor no", spec->name, value);
    *(bool *)field(parse, spec) = *value == 'y';
    return 0;
}

static int take_key(void *context, unsigned file, const char *where, const char *key, const char *value)
{
    struct parse *parse = context;
    const struct option_spec *spec = find_long(parse->program, key, strlen(key));
    int error;

    parse->where = where;
    parse->given = file == parse->file ? parse->given : 0;
    parse->file = file;
    if (spec == NULL) {
        error = unknown_key(parse, key);
    } else {
        uint64_t bit = 1ull << (size_t)(spec - parse->program->options) % 64;
        if ((parse->given & bit) != 0 && spec->kind != OPTION_TEXT_LIST)
            error = usage_error(parse, "%s is given twice", key);
        else
            error = spec->kind == OPTION_FLAG ? take_flag(parse, spec, value) : set_value(parse, spec, value);
        parse->given |= bit;
    }
    parse->where = NULL;
    return error;
}

/* The file that "--config FILE" or "--config=FILE" names; NULL for another word. */
static const char *config_of(const struct parse *parse, const char *word, const char *next)
{
    static const char name[] = "--config";
    size_t length = sizeof name - 1;

    if (!parse->program->has_config || strncmp(word, name, length) != 0)
        return NULL;
    return word[length] == '=' ? word + length + 1 : word[length] == '\0' ? next : NULL;
}

/* The configuration comes before the command line, wherever it is named there. */
static int read_config(struct parse *parse)
{
    for (int i = 1; i < parse->argc && strcmp(parse->argv[i], "--") != 0; i++) {
        const char *path = config_of(parse, parse->argv[i], i + 1 < parse->argc ? parse->argv[i + 1] : NULL);
        if (path != NULL && !parse->is_again)
            log_init(parse->program->name, LOG_INFO);
        parse->has_read |= path != NULL;
        int error = path == NULL ? 0 : option_file_read(path, parse->program->name, take_key, parse);
        if (error != 0)
            return error;
    }
    return 0;
}

/* --config, which was read before, and --check-config. False for another word. */
static int parse_own(struct parse *parse, const char *word, bool *is_own)
{
    *is_own = false;
    if (!parse->program->has_config)
        return 0;
    *is_own = strncmp(word, "config=", 7) == 0 || strcmp(word, "config") == 0 || strcmp(word, "check-config") == 0;
    parse->only_checks |= strcmp(word, "check-config") == 0;
    if (strcmp(word, "config") != 0)
        return 0;
    if (parse->next == parse->argc)
        return usage_error(parse, "--config needs a value: FILE");
    parse->next++;
    return 0;
}

static int parse_long(struct parse *parse, const char *word)
{
    size_t length = strcspn(word, "=");
    const struct option_spec *spec = find_long(parse->program, word, length);

    bool is_own;

    if (spec != NULL)
        return set_from(parse, spec, word[length] == '=' ? word + length + 1 : NULL);
    int error = parse_own(parse, word, &is_own);
    if (is_own || error != 0)
        return error;
    if (print_own(parse, word))
        return OPTION_RESULT_DONE;
    return usage_error(parse, "unknown option --%.*s", (int)length, word);
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
            return usage_error(parse, "unknown option -%c", *word);
        if (spec->kind != OPTION_FLAG)
            return set_from(parse, spec, word[1] == '\0' ? NULL : word + 1);
        set_value(parse, spec, NULL);
    }
    return 0;
}

int option_word(const struct option_program *program, const char *text)
{
    return find_word(program->words, text);
}

static int keep_positional(struct parse *parse, char *word)
{
    const char *const *words = parse->program->words;
    char names[256];

    if (words != NULL && find_word(words, word) < 0)
        return usage_error(parse, "'%s' is none of: %s", word, join_words(words, names, sizeof names));
    if (parse->positionals_count == parse->program->positionals_max)
        return usage_error(parse, "unexpected argument '%s'", word);
    if (!parse->is_again)
        parse->argv[1 + parse->positionals_count] = word;
    parse->positionals_count++;
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

static int parse_all(struct parse *parse)
{
    bool options_ended = false;

    if (read_config(parse) != 0)
        return -EINVAL;
    while (parse->next < parse->argc) {
        char *word = parse->argv[parse->next++];
        int result = parse_word(parse, word, &options_ended);
        if (result != 0)
            return result;
    }
    return parse->only_checks ? OPTION_RESULT_DONE : OPTION_RESULT_RUN;
}

int option_parse(const struct option_program *program, int argc, char **argv, void *values, char ***positionals,
                 size_t *positionals_count)
{
    struct parse parse = {.program = program, .argv = argv, .argc = argc, .next = 1, .values = values};
    int result = parse_all(&parse);

    if (result != OPTION_RESULT_RUN)
        return result;
    *positionals = argv + 1;
    *positionals_count = parse.positionals_count;
    return OPTION_RESULT_RUN;
}

int option_parse_again(const struct option_program *program, int argc, char **argv, void *values)
{
    struct parse parse = {
        .program = program, .argv = argv, .argc = argc, .next = 1, .values = values, .is_again = true};
    int result = parse_all(&parse);

    return result != OPTION_RESULT_RUN ? -EINVAL : parse.has_read;
}
