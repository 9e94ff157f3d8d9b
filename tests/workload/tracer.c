/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts itself between the collective library and libibverbs: the library asks dlvsym() for the verbs, and gets
 * functions from here that call the real ones, so probes on those still fire. Posting goes through the operations of
 * the context, which are replaced when a device is opened.
 */
#include "tracer.h"

#include "mark.h"
#include "queue.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define API __attribute__((visibility("default")))

typedef void *dlvsym_fn(void *handle, const char *name, const char *version);
typedef int connect_fn(int fd, const struct sockaddr *address, socklen_t length);
typedef int pthread_create_fn(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                              void *argument);
typedef int post_send_fn(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad);

static struct {
    struct ibv_context *(*open_device)(struct ibv_device *device);
    struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes);
    int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask);
    int (*destroy_qp)(struct ibv_qp *qp);
    int (*query_gid)(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
    post_send_fn *post_send;
} real;

struct thread_start {
    void *(*run)(void *);
    void *argument;
    struct mark mark;
};

API void tracer_expect(const void *id, size_t length_bytes)
{
    mark_expect(id, length_bytes);
}

API void tracer_rank(int rank)
{
    mark_set((struct mark){MARK_NONE, rank});
}

API int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    static connect_fn *next;

    if (!next)
        next = (connect_fn *)dlsym(RTLD_NEXT, "connect");
    mark_connect(address);
    return next(fd, address, length);
}

static void *thread_run(void *argument)
{
    struct thread_start start = *(struct thread_start *)argument;

    free(argument);
    mark_set(start.mark);
    return start.run(start.argument);
}

API int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    static pthread_create_fn *next;
    struct thread_start *start = malloc(sizeof *start);

    if (!next)
        next = (pthread_create_fn *)dlsym(RTLD_NEXT, "pthread_create");
    *start = (struct thread_start){run, argument, mark_get()};
    int result = next(thread, attributes, thread_run, start);
    if (result)
        free(start);
    return result;
}

/* All devices of the job are of one provider, so there is one real function behind all contexts. */
static int post_send_traced(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad)
{
    queue_posted(qp, request);
    return real.post_send(qp, request, bad);
}

static struct ibv_context *open_device_traced(struct ibv_device *device)
{
    struct ibv_context *context = real.open_device(device);

    if (context && context->ops.post_send != post_send_traced) {
        real.post_send = context->ops.post_send;
        context->ops.post_send = post_send_traced;
    }
    return context;
}

static struct ibv_qp *create_qp_traced(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes)
{
    struct ibv_qp *qp = real.create_qp(pd, attributes);

    if (qp)
        queue_created(qp);
    return qp;
}

static int modify_qp_traced(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask)
{
    union ibv_gid local;
    int result = real.modify_qp(qp, attributes, mask), has_gid = 0;

    if (result)
        return result;
    if (mask & IBV_QP_AV)
        has_gid =
            !real.query_gid(qp->context, attributes->ah_attr.port_num, attributes->ah_attr.grh.sgid_index, &local);
    queue_modified(qp, attributes, mask, has_gid ? &local : NULL);
    return 0;
}

static int destroy_qp_traced(struct ibv_qp *qp)
{
    queue_destroyed(qp);
    return real.destroy_qp(qp);
}

API void *dlvsym(void *restrict handle, const char *restrict name, const char *restrict version)
{
    static dlvsym_fn *next;
    static const struct {
        const char *name;
        void *traced, *real;
    } verbs[] = {
        {"ibv_open_device", (void *)open_device_traced, &real.open_device},
        {"ibv_create_qp", (void *)create_qp_traced, &real.create_qp},
        {"ibv_modify_qp", (void *)modify_qp_traced, &real.modify_qp},
        {"ibv_destroy_qp", (void *)destroy_qp_traced, &real.destroy_qp},
    };

    if (!next)
        next = (dlvsym_fn *)dlsym(RTLD_NEXT, "dlvsym");
    void *found = next(handle, name, version);
    for (size_t i = 0; found && i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].name, name))
            continue;
        memcpy(verbs[i].real, &found, sizeof found);
        if (i == 0)
            real.query_gid = dlsym(handle, "ibv_query_gid");
        return verbs[i].traced;
    }
    return found;
}

__attribute__((destructor)) static void tracer_end(void)
{
    queue_end();
}
