/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope top: what the store holds now, again and again: on a terminal drawn in place, else frame by frame or as
 * NDJSON. */
#include "cli/doctor.h"
#include "cli/live/panel.h"
#include "cli/live/screen.h"
#include "cli/live/step_stream.h"
#include "cli/state.h"
#include "cli/subcommand.h"
#include "report/form/text.h"
#include "report/report.h"
#include "report/subject/loss.h"
#include "wire/clock.h"
#include "wire/log.h"
#include "wire/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct top_options {
    struct report_options report;
    uint64_t interval_ns;
    uint64_t duration_ns;
};

static const struct option_spec option_specs[] = {
    REPORT_OPTION_STORE(struct top_options, report),
    {
        .name = "json",
        .short_name = 'j',
        .kind = OPTION_FLAG,
        .offset = offsetof(struct top_options, report.json),
        .help = "print a JSON object a look, on a line of its own (NDJSON)",
    },
    {
        .name = "interval",
        .short_name = 'i',
        .kind = OPTION_DURATION,
        .offset = offsetof(struct top_options, interval_ns),
        .argument = "TIME",
        .help = "between two looks",
        .minimum = 100000000,
        .maximum = 3600000000000,
    },
    {
        .name = "for",
        .short_name = 'f',
        .kind = OPTION_DURATION,
        .offset = offsetof(struct top_options, duration_ns),
        .argument = "TIME",
        .help = "end after this time; 0s: when asked to",
    },
};

#define KEYS "q quit   space hold still   tab one list alone   up, down scroll   ? keys"

const struct option_program subcommand_top_program = {
    .name = "qpscope top",
    .summary = "Live: steps as they end, ranks by lateness, flows by rate, what was lost.",
    .usage = "[OPTIONS]",
    .options = option_specs,
    .options_count = sizeof(option_specs) / sizeof(option_specs[0]),
    .epilogue = "Keys: " KEYS "\n"
                "Not on a terminal each look is printed below the one before.\n"
                "Examples:\n"
                "  qpscope top --store job.db\n"
                "  qpscope top --json --for 10min | jq -c '.steps[] | select(.verdict)'\n"
                "Exit codes: 0 done, 1 failed, 2 used wrongly.",
};

struct top {
    const struct top_options *options;
    struct step_stream stream;
    enum panel_kind alone; /* PANELS: all of them */
    int64_t skip;
    bool is_held;
    bool shows_keys;
    bool is_on_screen;
};

/* Ends `text` behind its n-th line, or where it ends before; returns how many lines are left. */
static size_t cut_lines(char *text, size_t lines)
{
    size_t count = 0;
    while (count < lines && (text = strchr(text, '\n')) != NULL) {
        text++;
        count++;
    }
    if (text != NULL) {
        *text = '\0';
    }
    return count;
}

struct part {
    int (*print)(struct report *report, const struct top *top, const struct part *part);
    enum panel_kind panel;
    size_t lines; /* at most so many; then how many there were */
};

static int print_job(struct report *report, const struct top *top, const struct part *part)
{
    (void)top;
    (void)part;
    return state_print_job(report);
}

static int print_panel(struct report *report, const struct top *top, const struct part *part)
{
    return panel_print(report, part->panel, (int64_t)part->lines - 1, top->alone == part->panel ? top->skip : 0);
}

static int add_part(struct report *report, const struct top *top, FILE *frame, struct part *part)
{
    char *text = NULL;
    size_t length = 0;
    report->out = open_memstream(&text, &length);
    if (report->out == NULL) {
        return log_error_return(-ENOMEM, "out of memory for the screen");
    }
    int result = part->print(report, top, part);
    bool is_whole = fclose(report->out) == 0;
    report->out = NULL;
    if (is_whole && result == 0) {
        part->lines = cut_lines(text, part->lines);
        fputs(text, frame);
    }
    free(text);
    return result;
}

static void add_title(const struct report *report, FILE *frame, const char *text)
{
    fprintf(frame, "%s%s%s\n", report->terminal.colour ? "\033[7m" : "", text,
            report->terminal.colour ? "\033[0m" : "");
}

#define JOB_LINES_MAX 12

/* Lines of a list with its headings, when `rows` lines are left for all and their titles. */
static size_t lines_of(const struct top *top, enum panel_kind panel, size_t rows)
{
    static const size_t shares[PANELS] = {[PANEL_STEPS] = 5, [PANEL_RANKS] = 4, [PANEL_FLOWS] = 3};
    size_t left = top->alone == PANELS ? PANELS : 1;
    if (top->alone != PANELS && top->alone != panel) {
        return 0;
    }
    left = rows > left ? rows - left : 0;
    return top->alone == panel ? left : left * shares[panel] / 12;
}

static int add_panels(struct report *report, const struct top *top, FILE *frame, size_t rows)
{
    int result = 0;
    for (enum panel_kind panel = 0; panel < PANELS && result == 0; panel++) {
        struct part part = {print_panel, panel, lines_of(top, panel, rows)};
        if (part.lines >= 2) {
            add_title(report, frame, panel_title(panel));
            result = add_part(report, top, frame, &part);
        }
    }
    return result;
}

static void add_first_line(const struct report *report, const struct top *top, FILE *frame)
{
    const char *store = report_store_path(top->options->report.store);
    char age[TEXT_NUMBER_BYTES];
    char line[4200];
    snprintf(line, sizeof(line), "qpscope top  %s, written %s ago%s", store,
             text_duration(age, doctor_store_age_ns(store)), top->is_held ? "  (held still)" : "");
    add_title(report, frame, line);
}

/* The first line, those of the job, the lists in what is left, and the last line. */
static int add_all(struct report *report, const struct top *top, FILE *frame, const struct screen_size *size)
{
    struct part job = {print_job, PANELS, JOB_LINES_MAX};
    add_first_line(report, top, frame);
    int result = add_part(report, top, frame, &job);
    size_t taken = job.lines + 2;
    if (result == 0) {
        result = add_panels(report, top, frame, size->rows > taken ? size->rows - taken : 0);
    }
    if (top->shows_keys) {
        fputs(KEYS, frame);
    } else if (top->is_on_screen) {
        fputs("q quit, ? keys", frame);
    }
    return result;
}

/* All that is shown, to be freed; NULL after logging. */
static char *make_frame(const struct top *top, const struct screen_size *size, bool colour)
{
    struct report report = {.terminal = {.width = size->columns, .colour = colour}};
    char *text = NULL;
    size_t length = 0;
    if (store_reader_open(&report.store, report_store_path(top->options->report.store)) != 0) {
        return NULL;
    }
    FILE *frame = open_memstream(&text, &length);
    if (frame == NULL) {
        store_reader_close(&report.store);
        log_error("out of memory for the screen");
        return NULL;
    }
    int result = add_all(&report, top, frame, size);
    store_reader_close(&report.store);
    if (fclose(frame) != 0 || result != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static void take_key(struct top *top, enum screen_key key)
{
    switch (key) {
    case SCREEN_KEY_PAUSE:
        top->is_held = !top->is_held;
        break;
    case SCREEN_KEY_NEXT:
        top->alone = (top->alone + 1) % (PANELS + 1);
        top->skip = 0;
        break;
    case SCREEN_KEY_UP:
        top->skip -= top->skip > 0;
        break;
    case SCREEN_KEY_DOWN:
        top->skip += top->alone != PANELS;
        break;
    case SCREEN_KEY_HELP:
        top->shows_keys = !top->shows_keys;
        break;
    case SCREEN_KEY_NONE:
    case SCREEN_KEY_QUIT:
        break;
    }
}

static bool is_over(const struct top *top, uint64_t began_ns)
{
    return top->options->duration_ns != 0 && clock_now_ns() - began_ns >= top->options->duration_ns;
}

static int draw(const struct top *top)
{
    struct terminal terminal;
    struct screen_size size;
    terminal_init(&terminal, STDOUT_FILENO);
    screen_size(&size);
    char *frame = make_frame(top, &size, terminal.colour);
    if (frame == NULL) {
        return -EIO;
    }
    screen_draw(frame);
    free(frame);
    return 0;
}

static int watch_on_screen(struct top *top)
{
    uint64_t began_ns = clock_now_ns();
    int result = screen_open();
    if (result != 0) {
        return result;
    }
    enum screen_key key = SCREEN_KEY_NONE;
    while (key != SCREEN_KEY_QUIT && !is_over(top, began_ns)) {
        if (!top->is_held || key != SCREEN_KEY_NONE) {
            result = draw(top);
        }
        if (result != 0) {
            break;
        }
        key = screen_wait(top->options->interval_ns);
        take_key(top, key);
    }
    screen_close();
    if (result != 0) { /* what was said on the other screen is gone: say it here */
        draw(top);
    }
    return result;
}

static void sleep_ns(uint64_t duration_ns)
{
    const struct timespec pause = {(time_t)(duration_ns / 1000000000u), (long)(duration_ns % 1000000000u)};
    nanosleep(&pause, NULL);
}

#define TEXT_ROWS 40

static int print_text(struct top *top)
{
    struct terminal terminal;
    terminal_init(&terminal, STDOUT_FILENO);
    const struct screen_size size = {TEXT_ROWS, terminal.width};
    char *frame = make_frame(top, &size, false);
    if (frame == NULL) {
        return -EIO;
    }
    puts(frame);
    free(frame);
    return 0;
}

static int write_object(struct report *report, struct top *top)
{
    struct record_clock_pair now;
    clock_read_pair(&now, 0);
    report_json_begin(&report->json);
    json_integer(&report->json, "realtime_ns", (int64_t)now.realtime_ns);
    json_integer(&report->json, "store_age_ns", doctor_store_age_ns(report_store_path(top->options->report.store)));
    json_array_begin(&report->json, "steps");
    int result = step_stream_json(&top->stream, report);
    json_array_end(&report->json);
    for (enum panel_kind panel = PANEL_RANKS; panel < PANELS && result == 0; panel++) {
        result = panel_print(report, panel, -1, 0);
    }
    if (result == 0) {
        result = loss_report(report);
    }
    json_object_end(&report->json);
    return result;
}

static int print_json(struct top *top)
{
    struct report report = {.as_json = true};
    int result = store_reader_open(&report.store, report_store_path(top->options->report.store));
    if (result != 0) {
        return result;
    }
    json_init(&report.json, stdout);
    report.json.on_one_line = true;
    result = write_object(&report, top);
    store_reader_close(&report.store);
    return result;
}

static int watch_in_lines(struct top *top)
{
    uint64_t began_ns = clock_now_ns();
    int result;
    while ((result = top->options->report.json ? print_json(top) : print_text(top)) == 0 && fflush(stdout) == 0 &&
           !is_over(top, began_ns)) {
        sleep_ns(top->options->interval_ns);
    }
    return result;
}

int subcommand_top(int argc, char **argv)
{
    struct top_options options = {.interval_ns = 1000000000};
    struct top top = {.options = &options, .alone = PANELS};
    struct store_reader *store = NULL;
    int exit_code;
    if (!subcommand_parse(&subcommand_top_program, argc, argv, &options, &exit_code)) {
        return exit_code;
    }
    if (store_reader_open(&store, report_store_path(options.report.store)) != 0) {
        return EXIT_CODE_FAILURE;
    }
    store_reader_close(&store);
    step_stream_init(&top.stream);
    top.is_on_screen = !options.report.json && isatty(STDOUT_FILENO) && terminal_can_draw();
    return subcommand_exit(top.is_on_screen ? watch_on_screen(&top) : watch_in_lines(&top));
}
