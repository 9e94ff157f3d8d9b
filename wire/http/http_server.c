/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server over libmicrohttpd, and nothing else touches it. Its loop is ours, so that the library, the quick handlers
 * and the streams of events run on one thread; slow handlers run on those of a pool. Invariants: all that this thread
 * shares with others is `event_id`, `event`, `stop` and `answered`, under the lock; a stream of events is suspended in
 * the library exactly while it has nothing to send, a request exactly while the pool has it. Clients stand in the order
 * of their last request, the oldest first, but for those that follow events or that the pool works for: these are
 * bounded, and no other holds a place against a new one.
 */
#include "wire/http/http_server.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "wire/http/http_address.h"
#include "wire/http/http_client.h"
#include "wire/http/http_host.h"
#include "wire/http/http_pool.h"
#include "wire/log.h"

#define CONNECTIONS_MAX      32
#define SPARE_CONNECTIONS    8 /* above the limit: until those that make room are gone */
#define WORKERS              2
#define SILENCE_S            10
#define REQUEST_BYTES_MAX    (16u * 1024u)
#define CONNECTION_BYTES     (REQUEST_BYTES_MAX + 8u * 1024u)
#define KEEP_MS              15000
#define CROWDED_MS           100
#define CONTENT_POLICY       "default-src 'self' 'unsafe-inline' data:; frame-ancestors 'none'"
#define TEXT_TYPE            "text/plain; charset=utf-8"
#define EVENT_TEXT_BYTES_MAX (HTTP_EVENT_BYTES_MAX + 64)
#define STREAM_BUFFER_BYTES  2048

struct stream { /* one client that follows events */
    struct http_server *server;
    struct stream *next;
    struct MHD_Connection *connection;
    bool suspended;
    bool keep; /* a comment is due */
    uint64_t told_id;
    char text[EVENT_TEXT_BYTES_MAX];
    size_t length_bytes;
    size_t sent_bytes;
};

struct http_server {
    struct MHD_Daemon *daemon;
    struct http_route *routes;
    size_t routes_count;
    const char **names; /* that it is called by; each lives as long as its caller keeps it */
    size_t names_count;
    struct http_clients clients;
    unsigned working; /* requests that the pool has */
    struct http_pool *pool;
    struct http_address address;
    unsigned connections_max;
    bool crowded; /* all connections were in use when last looked at */
    unsigned streams_count;
    struct stream *streams;
    bool ending; /* streams end */
    int poll;    /* the library's descriptor */
    int wake;
    pthread_t thread;
    pthread_mutex_t lock;
    uint64_t event_id;                    /* under lock; 0 = none yet */
    char event[HTTP_EVENT_BYTES_MAX + 1]; /* under lock */
    bool stop;                            /* under lock */
    struct http_request *answered;        /* by the pool; under lock */
};

struct http_request {
    struct http_job job;
    struct http_server *server;
    struct MHD_Connection *connection;
    char *path;
    const struct http_route *route;
    struct http_reply reply;
    bool done;                 /* the reply was made by the pool, and is not sent yet */
    struct http_request *next; /* of those that were answered */
};

/* ---- requests and replies ---- */

const char *http_request_path(const struct http_request *request)
{
    return request->path;
}

struct query_search {
    const char *name;
    const char *value;
};

static enum MHD_Result find_query(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct query_search *search = context;

    (void)kind;
    if (strcmp(name, search->name) != 0)
        return MHD_YES;
    search->value = value == NULL ? "" : value;
    return MHD_NO;
}

const char *http_request_query(const struct http_request *request, const char *name)
{
    struct query_search search = {name, NULL};

    MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, find_query, &search);
    return search.value;
}

bool http_request_number(const struct http_request *request, const char *name, uint64_t otherwise, uint64_t *number)
{
    const char *text = http_request_query(request, name);
    char *end;

    *number = otherwise;
    if (text == NULL)
        return true;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

const char *http_request_header(const struct http_request *request, const char *name)
{
    const char *value = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);

    return value == NULL ? "" : value;
}

void http_reply_text(struct http_reply *reply, int status, const char *text)
{
    reply->status = status;
    reply->type = TEXT_TYPE;
    reply->bytes = text;
    reply->length_bytes = strlen(text);
    reply->release = NULL;
}

static void free_nothing(void *owner)
{
    (void)owner;
}

static enum MHD_Result queue(struct MHD_Connection *connection, struct MHD_Response *response, int status,
                             const char *type)
{
    if (response == NULL)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Content-Security-Policy", CONTENT_POLICY);
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, (unsigned)status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result send_reply(struct MHD_Connection *connection, const struct http_reply *reply)
{
    void (*release)(void *) = reply->release == NULL ? free_nothing : reply->release;
    struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
        reply->length_bytes, (void *)reply->bytes, release, reply->owner);

    if (response == NULL)
        release(reply->owner);
    return queue(connection, response, reply->status, reply->type);
}

static enum MHD_Result send_text(struct MHD_Connection *connection, int status, const char *text)
{
    struct http_reply reply;

    http_reply_text(&reply, status, text);
    return send_reply(connection, &reply);
}

/* ---- clients ---- */

static struct http_client *client_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void take_client(void *context, struct MHD_Connection *connection, void **socket_context,
                        enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = context;

    if (code != MHD_CONNECTION_NOTIFY_STARTED) {
        http_client_destroy(&server->clients, *socket_context);
        return;
    }
    if (server->clients.count >= server->connections_max)
        http_clients_cut_oldest(&server->clients);
    *socket_context = http_client_create(
        &server->clients, MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
}

static bool is_for_us(const struct http_server *server, struct MHD_Connection *connection)
{
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    char reached[INET6_ADDRSTRLEN];

    http_client_reached(client_of(connection), reached);
    return host != NULL && http_host_is_own(host, reached, server->names, server->names_count);
}

/* ---- events ---- */

/* What the stream is to send next; false when there is nothing. */
static bool next_text(struct stream *stream)
{
    struct http_server *server = stream->server;
    int length = 0;

    pthread_mutex_lock(&server->lock);
    if (server->event_id != stream->told_id)
        length = snprintf(stream->text, sizeof stream->text, "id: %llu\ndata: %s\n\n",
                          (unsigned long long)server->event_id, server->event);
    stream->told_id = server->event_id;
    pthread_mutex_unlock(&server->lock);
    if (length == 0 && stream->keep)
        length = snprintf(stream->text, sizeof stream->text, ":\n\n");
    stream->keep = false;
    stream->length_bytes = (size_t)length;
    stream->sent_bytes = 0;
    return length > 0;
}

static ssize_t read_stream(void *context, uint64_t position, char *buffer, size_t capacity_bytes)
{
    struct stream *stream = context;

    (void)position;
    if (stream->server->ending)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (stream->sent_bytes == stream->length_bytes && !next_text(stream)) {
        MHD_suspend_connection(stream->connection);
        stream->suspended = true;
        return 0;
    }
    size_t length = stream->length_bytes - stream->sent_bytes;
    length = length < capacity_bytes ? length : capacity_bytes;
    memcpy(buffer, stream->text + stream->sent_bytes, length);
    stream->sent_bytes += length;
    return (ssize_t)length;
}

static void free_stream(void *context)
{
    struct stream *stream = context;
    struct stream **place = &stream->server->streams;

    while (*place != stream)
        place = &(*place)->next;
    *place = stream->next;
    stream->server->streams_count--;
    free(stream);
}

static enum MHD_Result follow(struct http_server *server, struct MHD_Connection *connection)
{
    struct stream *stream = server->streams_count < server->connections_max / 2 ? calloc(1, sizeof *stream) : NULL;

    if (stream == NULL)
        return send_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many follow events already\n");
    stream->server = server;
    stream->connection = connection;
    stream->keep = true; /* so that the client learns at once that it is connected */
    stream->next = server->streams;
    server->streams = stream;
    server->streams_count++;
    http_client_keep(client_of(connection));
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BUFFER_BYTES, read_stream, stream, free_stream);
    if (response == NULL)
        free_stream(stream);
    return queue(connection, response, MHD_HTTP_OK, "text/event-stream");
}

static void resume_streams(struct http_server *server, bool keep)
{
    for (struct stream *stream = server->streams; stream != NULL; stream = stream->next) {
        stream->keep |= keep;
        if (stream->suspended)
            MHD_resume_connection(stream->connection);
        stream->suspended = false;
    }
}

void http_server_tell(struct http_server *server, const char *text)
{
    const uint64_t one = 1;

    if (server == NULL)
        return;
    pthread_mutex_lock(&server->lock);
    server->event_id++;
    snprintf(server->event, sizeof server->event, "%.*s", (int)strcspn(text, "\r\n"), text);
    pthread_mutex_unlock(&server->lock);
    ssize_t written = write(server->wake, &one, sizeof one);
    (void)written;
}

/* ---- slow answers ---- */

/* On a thread of the pool, or, cancelled, on the server's. */
static void work(struct http_job *job, bool cancelled)
{
    struct http_request *request = (struct http_request *)job;
    struct http_server *server = request->server;
    const uint64_t one = 1;

    if (cancelled)
        http_reply_text(&request->reply, MHD_HTTP_SERVICE_UNAVAILABLE, "it ends\n");
    else
        request->route->answer(request->route->context, request, &request->reply);
    pthread_mutex_lock(&server->lock);
    request->next = server->answered;
    server->answered = request;
    pthread_mutex_unlock(&server->lock);
    ssize_t written = write(server->wake, &one, sizeof one);
    (void)written;
}

static enum MHD_Result put_to_work(struct http_server *server, struct http_request *request)
{
    if (server->working >= server->connections_max / 2)
        return send_text(request->connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many wait for an answer already\n");
    server->working++;
    http_client_keep(client_of(request->connection));
    MHD_suspend_connection(request->connection);
    request->job.run = work;
    http_pool_put(server->pool, &request->job);
    return MHD_YES;
}

/* What the pool has made is sent: the library asks again for each. */
static void resume_answered(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    struct http_request *request = server->answered;
    server->answered = NULL;
    pthread_mutex_unlock(&server->lock);
    while (request != NULL) {
        struct http_request *next = request->next;
        request->done = true;
        server->working--;
        http_client_renew(&server->clients, client_of(request->connection));
        MHD_resume_connection(request->connection);
        request = next;
    }
}

/* ---- the library's calls ---- */

static bool fits(const struct http_route *route, const char *path)
{
    size_t length = strlen(route->path);

    if (length > 0 && route->path[length - 1] == '*')
        return strncmp(route->path, path, length - 1) == 0;
    return strcmp(route->path, path) == 0;
}

static enum MHD_Result answer(struct http_server *server, struct http_request *request)
{
    size_t i = 0;

    while (i < server->routes_count && !fits(&server->routes[i], request->path))
        i++;
    if (i == server->routes_count)
        return send_text(request->connection, MHD_HTTP_NOT_FOUND, "there is nothing here\n");
    request->route = &server->routes[i];
    if (request->route->events)
        return follow(server, request->connection);
    if (request->route->slow)
        return put_to_work(server, request);
    request->route->answer(request->route->context, request, &request->reply);
    return send_reply(request->connection, &request->reply);
}

static struct http_request *make_request(struct http_server *server, struct MHD_Connection *connection,
                                         const char *path)
{
    struct http_request *request = calloc(1, sizeof *request);

    if (request == NULL || (request->path = strdup(path)) == NULL)
        abort();
    request->server = server;
    request->connection = connection;
    request->reply = (struct http_reply){.status = MHD_HTTP_OK, .type = TEXT_TYPE};
    return request;
}

static enum MHD_Result refuse(const struct http_server *server, struct MHD_Connection *connection, const char *method)
{
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are answered\n");
    if (!is_for_us(server, connection))
        return send_text(connection, MHD_HTTP_MISDIRECTED_REQUEST,
                         "this server does not go by the name that was asked for (Host): ask for it by its address or "
                         "as localhost, or start it with --http-name NAME\n");
    return MHD_YES;
}

/* Called first when the headers are there, then, for what is to be answered, when the request is whole, and again when
 * the pool has answered it. */
static enum MHD_Result take_request(void *context, struct MHD_Connection *connection, const char *path,
                                    const char *method, const char *version, const char *upload, size_t *upload_bytes,
                                    void **mark)
{
    struct http_server *server = context;
    struct http_request *request = *mark;

    (void)version;
    (void)upload;
    if (request == NULL) {
        *mark = make_request(server, connection, path);
        http_client_renew(&server->clients, client_of(connection));
        return refuse(server, connection, method);
    }
    if (*upload_bytes != 0) { /* a body is read over */
        *upload_bytes = 0;
        return MHD_YES;
    }
    if (!request->done)
        return answer(server, request);
    request->done = false;
    return send_reply(connection, &request->reply);
}

static void end_request(void *context, struct MHD_Connection *connection, void **mark,
                        enum MHD_RequestTerminationCode code)
{
    struct http_request *request = *mark;

    (void)context;
    (void)connection;
    (void)code;
    if (request != NULL && request->done && request->reply.release != NULL) /* its client left before it was sent */
        request->reply.release(request->reply.owner);
    if (request != NULL)
        free(request->path);
    free(request);
    *mark = NULL;
}

static void take_log(void *context, const char *format, va_list arguments)
{
    char text[256];

    (void)context;
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\n")] = '\0';
    log_debug("HTTP: %s", text);
}

/* ---- the thread ---- */

/* The library takes up listening again, after all connections were in use, in the second run after one ended. */
static int timeout_ms(struct http_server *server)
{
    MHD_UNSIGNED_LONG_LONG timeout = KEEP_MS, longest = server->crowded ? CROWDED_MS : KEEP_MS;
    unsigned count = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections;

    server->crowded = count >= server->connections_max + SPARE_CONNECTIONS;
    if (MHD_get_timeout(server->daemon, &timeout) != MHD_YES || timeout > longest)
        return (int)longest;
    return (int)timeout;
}

static bool stop_asked(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    bool stop = server->stop;
    pthread_mutex_unlock(&server->lock);
    return stop;
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void *serve(void *context)
{
    struct http_server *server = context;
    struct pollfd pollers[] = {{.fd = server->wake, .events = POLLIN}, {.fd = server->poll, .events = POLLIN}};
    uint64_t kept_ms = now_ms(), count;

    while (!stop_asked(server)) {
        poll(pollers, 2, timeout_ms(server));
        bool woken = pollers[0].revents != 0 && read(server->wake, &count, sizeof count) > 0;
        bool keep = now_ms() >= kept_ms + KEEP_MS;
        if (keep)
            kept_ms = now_ms();
        resume_answered(server);
        if (woken || keep)
            resume_streams(server, keep);
        MHD_run(server->daemon);
    }
    server->ending = true;
    http_pool_close(&server->pool);
    resume_answered(server);
    resume_streams(server, false);
    MHD_run(server->daemon);
    MHD_stop_daemon(server->daemon);
    return NULL;
}

static int start_daemon(struct http_server *server, const struct http_options *options)
{
    unsigned silence_s = options->silence_s == 0 ? SILENCE_S : options->silence_s;
    int descriptor = http_address_listen(&server->address);

    if (descriptor < 0)
        return descriptor;
    server->connections_max = options->connections_max == 0 ? CONNECTIONS_MAX : options->connections_max;
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, take_request, server,
        MHD_OPTION_EXTERNAL_LOGGER, take_log, NULL, MHD_OPTION_LISTEN_SOCKET, descriptor, MHD_OPTION_CONNECTION_LIMIT,
        server->connections_max + SPARE_CONNECTIONS, MHD_OPTION_NOTIFY_CONNECTION, take_client, server,
        MHD_OPTION_NOTIFY_COMPLETED, end_request, NULL, MHD_OPTION_CONNECTION_TIMEOUT, silence_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END);
    if (server->daemon == NULL) {
        close(descriptor);
        return log_error_return(-EIO, "cannot serve at %s port %u", server->address.host, server->address.port);
    }
    server->poll = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    return 0;
}

static int start_threads(struct http_server *server)
{
    bool slow = false;

    for (size_t i = 0; i < server->routes_count; i++)
        slow |= server->routes[i].slow;
    int error = slow ? http_pool_open(&server->pool, WORKERS) : 0;
    if (error != 0)
        return error;
    error = -pthread_create(&server->thread, NULL, serve, server);
    if (error == 0)
        return 0;
    http_pool_close(&server->pool);
    return log_error_return(error, "no thread for HTTP: %s", strerror(-error));
}

static int start(struct http_server *server, const struct http_options *options)
{
    sigset_t all, before;

    server->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int error = server->wake < 0 ? log_error_return(-errno, "cannot make an event: %s", strerror(errno))
                                 : start_daemon(server, options);
    if (error != 0)
        return error;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = start_threads(server);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        MHD_stop_daemon(server->daemon);
    return error;
}

static void destroy(struct http_server *server)
{
    if (server->wake >= 0)
        close(server->wake);
    pthread_mutex_destroy(&server->lock);
    free(server->routes);
    free(server->names);
    free(server);
}

int http_server_open(struct http_server **result, const struct http_options *options)
{
    struct http_address address;
    int error = http_address_read(&address, options->address);

    if (error != 0)
        return error;
    struct http_server *server = calloc(1, sizeof *server);
    struct http_route *routes = calloc(options->routes_count, sizeof *routes);
    const char **names = calloc(options->names_count + 1, sizeof *names);
    if (server == NULL || routes == NULL || names == NULL) {
        free(server);
        free(routes);
        free(names);
        return log_error_return(-ENOMEM, "no memory for HTTP");
    }
    memcpy(routes, options->routes, options->routes_count * sizeof *routes);
    for (size_t i = 0; i < options->names_count; i++)
        names[i] = options->names[i];
    *server = (struct http_server){.address = address,
                                   .routes = routes,
                                   .routes_count = options->routes_count,
                                   .names = names,
                                   .names_count = options->names_count};
    http_clients_init(&server->clients);
    pthread_mutex_init(&server->lock, NULL);
    error = start(server, options);
    if (error != 0) {
        destroy(server);
        return error;
    }
    if (address.open_to_others)
        log_warning("whoever reaches %s port %u can read what is served there", server->address.host,
                    server->address.port);
    *result = server;
    return 0;
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->address.port;
}

void http_server_close(struct http_server **server)
{
    const uint64_t one = 1;

    if (*server == NULL)
        return;
    pthread_mutex_lock(&(*server)->lock);
    (*server)->stop = true;
    pthread_mutex_unlock(&(*server)->lock);
    ssize_t written = write((*server)->wake, &one, sizeof one);
    (void)written;
    pthread_join((*server)->thread, NULL);
    destroy(*server);
    *server = NULL;
}
