/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies from a store. Invariant: a reply is made of one snapshot; what is asked for all the time, the overview, is
 * made once for each write of the store, however many look.
 */
#include "report/page/live_page.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report/page/page.h"
#include "report/subject/queue_pair_report.h"
#include "report/subject/step_list.h"
#include "report/subject/timeline_report.h"
#include "report/subject/why_report.h"
#include "wire/log.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define API          "/api/v1/"
#define API_STEPS    API "steps/"
#define MS_PER_S     1000
#define NS_PER_MS    1000000

/* What several replies may share. */
struct text {
    atomic_uint users;
    uint64_t revision;
    uint64_t writes;
    char *bytes;
    size_t length_bytes;
};

struct live_page {
    char *store;
    const char *name; /* within `store` */
    bool has_page;
    atomic_uint_fast64_t revision;
    atomic_uint_fast64_t writes; /* more of them than revisions: times are made better by nanoseconds */
    pthread_mutex_t lock;        /* held while the overview is made */
    struct text *overview;       /* under lock; NULL: none was asked for yet */
};

static void text_leave(void *owner)
{
    struct text *text = owner;
    if (text != NULL && atomic_fetch_sub(&text->users, 1) == 1) {
        free(text->bytes);
        free(text);
    }
}

/* Rises over restarts too, so that a page that stayed open takes in what is new. */
static uint64_t first_revision(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * MS_PER_S + (uint64_t)now.tv_nsec / NS_PER_MS;
}

struct live_page *live_page_create(const char *store)
{
    struct live_page *page = calloc(1, sizeof(*page));
    if (page == NULL || (page->store = strdup(store)) == NULL) {
        abort();
    }
    const char *slash = strrchr(page->store, '/');
    page->name = slash != NULL ? slash + 1 : page->store;
    pthread_mutex_init(&page->lock, NULL);
    page->has_page = page_is_built();
    atomic_init(&page->revision, first_revision());
    return page;
}

void live_page_destroy(struct live_page **page)
{
    if (*page == NULL) {
        return;
    }
    text_leave((*page)->overview);
    pthread_mutex_destroy(&(*page)->lock);
    free((*page)->store);
    free(*page);
    *page = NULL;
}

void live_page_note(struct live_page *page)
{
    if (page != NULL) {
        atomic_fetch_add(&page->writes, 1);
    }
}

void live_page_tell(struct live_page *page, struct http_server *server)
{
    char words[24];
    if (page != NULL) {
        snprintf(words, sizeof(words), "%" PRIu64, (uint64_t)atomic_fetch_add(&page->revision, 1) + 1);
        http_server_tell(server, words);
    }
}

/* What is written: one of the things below, of an open report. */
struct wanted {
    int (*write)(struct report *report, FILE *out, const struct page_source *source, const struct wanted *wanted);
    int (*print)(struct report *report, const struct store_value *step); /* of a subcommand's JSON */
    struct store_value step;
};

static int write_whole(struct report *report, FILE *out, const struct page_source *source, const struct wanted *wanted)
{
    struct page_counts counts;
    (void)wanted;
    return page_write(report, out, source, NULL, &counts);
}

static int write_overview(struct report *report, FILE *out, const struct page_source *source,
                          const struct wanted *wanted)
{
    (void)wanted;
    return page_write_overview(report, out, source);
}

static int write_step(struct report *report, FILE *out, const struct page_source *source, const struct wanted *wanted)
{
    return page_write_step(report, out, source, wanted->step.integer);
}

static int write_hang(struct report *report, FILE *out, const struct page_source *source, const struct wanted *wanted)
{
    (void)wanted;
    return page_write_hang(report, out, source);
}

static int write_printed(struct report *report, FILE *out, const struct page_source *source,
                         const struct wanted *wanted)
{
    (void)source;
    json_init(&report->json, out);
    report->as_json = true;
    report_json_begin(&report->json);
    int result = wanted->print(report, &wanted->step);
    json_object_end(&report->json);
    report->as_json = false;
    return result;
}

/* In memory; -errno after logging, -ENOENT without. */
static int make_text(struct live_page *page, const struct wanted *wanted, struct text **text)
{
    struct page_source source = {.name = page->name, .live = true, .revision = atomic_load(&page->revision)};
    struct report_options options = {.store = page->store};
    struct report report;
    struct text *made = calloc(1, sizeof(*made));
    FILE *out = made == NULL ? NULL : open_memstream(&made->bytes, &made->length_bytes);
    if (out == NULL) {
        free(made);
        return log_error_return(-ENOMEM, "out of memory for a page");
    }
    atomic_init(&made->users, 1);
    made->revision = source.revision;
    made->writes = atomic_load(&page->writes);
    int result = report_open(&report, &options);
    if (result == 0) {
        result = wanted->write(&report, out, &source, wanted);
        report_close(&report);
    }
    if (fclose(out) != 0 && result == 0) {
        result = log_error_return(-ENOMEM, "out of memory for a page");
    }
    if (result != 0) {
        text_leave(made);
        return result;
    }
    *text = made;
    return 0;
}

static void reply_failure(struct http_reply *reply, int result)
{
    if (result == -ENOENT) {
        http_reply_text(reply, 404, "there is no such step, or nothing that hangs");
    } else {
        http_reply_text(reply, 503, "the store cannot be read now: the correlator's log says why");
    }
}

/* The reply takes over one user of `text`. */
static void reply_with(struct http_reply *reply, struct text *text, const char *type)
{
    reply->type = type;
    reply->bytes = text->bytes;
    reply->length_bytes = text->length_bytes;
    reply->release = text_leave;
    reply->owner = text;
}

static void answer_made(struct live_page *page, const struct wanted *wanted, struct http_reply *reply, const char *type)
{
    struct text *text = NULL;
    int result = make_text(page, wanted, &text);
    if (result != 0) {
        reply_failure(reply, result);
    } else {
        reply_with(reply, text, type);
    }
}

static const char json_type[] = "application/json";

/* Under the lock: the present one, or -errno. */
static int renew_overview(struct live_page *page)
{
    static const struct wanted overview = {.write = write_overview};
    struct text *text = NULL;
    if (page->overview != NULL && page->overview->revision == atomic_load(&page->revision) &&
        page->overview->writes == atomic_load(&page->writes)) {
        return 0;
    }
    int result = make_text(page, &overview, &text);
    if (result == 0) {
        text_leave(page->overview);
        page->overview = text;
    }
    return result;
}

static void answer_overview(struct live_page *page, struct http_reply *reply)
{
    pthread_mutex_lock(&page->lock);
    int result = renew_overview(page);
    struct text *text = page->overview;
    if (result == 0) {
        atomic_fetch_add(&text->users, 1);
    }
    pthread_mutex_unlock(&page->lock);
    if (result != 0) {
        reply_failure(reply, result);
    } else {
        reply_with(reply, text, json_type);
    }
}

void live_page_answer(void *context, const struct http_request *request, struct http_reply *reply)
{
    static const struct wanted whole = {.write = write_whole};
    struct live_page *page = context;
    (void)request;
    if (page->has_page) {
        answer_made(page, &whole, reply, "text/html; charset=utf-8");
    } else {
        http_reply_text(reply, 503,
                        "this build has no page (it was made without npm): see " API "overview for its JSON");
    }
}

static int print_steps(struct report *report, const struct store_value *step)
{
    (void)step;
    return step_list_print(report);
}

static int print_queue_pairs(struct report *report, const struct store_value *step)
{
    static const struct queue_pair_filter everything = {.all = true};
    (void)step;
    return queue_pair_report_print(report, &everything);
}

/* The same JSON as of a subcommand. */
static const struct {
    const char *path;
    int (*print)(struct report *report, const struct store_value *step);
} printed[] = {
    {API "steps", print_steps},
    {API "why", why_report_print},
    {API "timeline", timeline_report_print},
    {API "queue-pairs", print_queue_pairs},
};

/* "step" of the query: of why and timeline. */
static bool step_of_query(const struct http_request *request, struct store_value *step)
{
    uint64_t number = 0;
    bool is_given = http_request_query(request, "step") != NULL;
    *step = (struct store_value){.kind = is_given ? STORE_INTEGER : STORE_NULL};
    if (!http_request_number(request, "step", 0, &number) || number > INT64_MAX) {
        return false;
    }
    step->integer = (int64_t)number;
    return true;
}

static void answer_printed(struct live_page *page, const struct http_request *request, struct http_reply *reply)
{
    const char *path = http_request_path(request);
    struct wanted wanted = {.write = write_printed};
    for (size_t i = 0; i < COUNT(printed); i++) {
        if (strcmp(path, printed[i].path) == 0) {
            wanted.print = printed[i].print;
        }
    }
    if (wanted.print == NULL) {
        http_reply_text(reply, 404, "there is no such path: doc/http.md has all");
    } else if (!step_of_query(request, &wanted.step)) {
        http_reply_text(reply, 400, "step is not a number");
    } else {
        answer_made(page, &wanted, reply, json_type);
    }
}

static bool step_of_path(const char *path, int64_t *step)
{
    char *end;
    const char *digits = path + strlen(API_STEPS);
    if (strncmp(path, API_STEPS, strlen(API_STEPS)) != 0 || *digits < '0' || *digits > '9') {
        return false;
    }
    errno = 0;
    *step = strtoll(digits, &end, 10);
    return *end == '\0' && errno == 0;
}

void live_page_answer_json(void *context, const struct http_request *request, struct http_reply *reply)
{
    struct live_page *page = context;
    const char *path = http_request_path(request);
    static const struct wanted hang = {.write = write_hang};
    struct wanted step = {.write = write_step, .step = {.kind = STORE_INTEGER}};
    if (strcmp(path, API "overview") == 0) {
        answer_overview(page, reply);
    } else if (strcmp(path, API "hang") == 0) {
        answer_made(page, &hang, reply, json_type);
    } else if (step_of_path(path, &step.step.integer)) {
        answer_made(page, &step, reply, json_type);
    } else {
        answer_printed(page, request, reply);
    }
}
