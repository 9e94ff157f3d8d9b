/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Outlets over Unix sockets that keep packets apart. Invariant: listeners[0 .. count) are connected; one with `lost`
 * set has missed a batch since it last took one.
 */
#include "wire/outlet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/log.h"

#define SEND_BYTES  (4 << 20)
#define OWN_FOLDER  "QPSCOPE_RUNTIME_DIRECTORY"
#define ROOT_FOLDER "/run/qpscope"

struct listener {
    int descriptor;
    bool lost;
};

struct outlet {
    int descriptor;
    size_t count;
    struct listener listeners[OUTLET_LISTENERS_MAX];
    char path[OUTLET_PATH_BYTES];
};

static bool put(char path[OUTLET_PATH_BYTES], const char *folder, const char *below)
{
    return folder != NULL &&
           (size_t)snprintf(path, OUTLET_PATH_BYTES, "%s%s", folder, below) < (size_t)OUTLET_PATH_BYTES;
}

bool outlet_folder(char folder[OUTLET_PATH_BYTES], unsigned number)
{
    const char *named = getenv(OWN_FOLDER);

    if (named != NULL)
        return number == 0 && put(folder, named, "");
    if (number == 0)
        return put(folder, ROOT_FOLDER, "");
    return number == 1 && put(folder, getenv("XDG_RUNTIME_DIR"), "/qpscope");
}

static bool own_folder(char folder[OUTLET_PATH_BYTES])
{
    const char *services = getenv("RUNTIME_DIRECTORY");

    if (getenv(OWN_FOLDER) == NULL && services != NULL && strchr(services, ':') == NULL)
        return put(folder, services, "");
    return outlet_folder(folder, getenv(OWN_FOLDER) != NULL || geteuid() == 0 ? 0 : 1);
}

static bool address_of(struct sockaddr_un *address, const char *path)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    return (size_t)snprintf(address->sun_path, sizeof address->sun_path, "%s", path) < sizeof address->sun_path;
}

/* As much room as the system gives: the larger size is for who may have it. */
static void widen(int descriptor)
{
    const int bytes = SEND_BYTES;

    if (setsockopt(descriptor, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) != 0)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

/* It gets its name when it can be connected to: who finds one that cannot takes its agent for dead, and it away. */
static int open_socket(struct outlet *outlet)
{
    struct sockaddr_un address;
    char unheard[OUTLET_PATH_BYTES + 4];

    snprintf(unheard, sizeof unheard, "%s.new", outlet->path);
    if (!address_of(&address, unheard))
        return -ENAMETOOLONG;
    outlet->descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (outlet->descriptor < 0)
        return -errno;
    mode_t before = umask(0177);
    int result = bind(outlet->descriptor, (const struct sockaddr *)&address, sizeof address);
    int error = errno;
    umask(before);
    if (result != 0)
        return -error;
    result = listen(outlet->descriptor, OUTLET_LISTENERS_MAX) == 0 ? link(unheard, outlet->path) : -1;
    error = result == 0 ? 0 : errno == EEXIST ? EADDRINUSE : errno;
    unlink(unheard);
    return -error;
}

int outlet_open(struct outlet **outlet, const char *name, uint64_t boot_id)
{
    char folder[OUTLET_PATH_BYTES] = "(no folder: XDG_RUNTIME_DIR is not set)";
    struct outlet *made = calloc(1, sizeof *made);
    int error = made == NULL ? -ENOMEM : own_folder(folder) ? 0 : -ENOENT;

    if (error == 0)
        error = mkdir(folder, 0700) == 0 || errno == EEXIST ? 0 : -errno;
    if (made != NULL)
        made->descriptor = -1;
    if (error == 0 && (size_t)snprintf(made->path, sizeof made->path, "%s/%s-%016" PRIx64 OUTLET_SUFFIX, folder, name,
                                       boot_id) >= sizeof made->path)
        error = -ENAMETOOLONG;
    if (error == 0)
        error = open_socket(made);
    if (error != 0) {
        if (made != NULL && made->descriptor >= 0)
            close(made->descriptor);
        free(made);
        log_warning("qpscope record cannot ask this agent: no socket in %s: %s", folder, strerror(-error));
        return error;
    }
    *outlet = made;
    return 0;
}

bool outlet_accept(struct outlet *outlet)
{
    bool any = false;
    int descriptor;

    while ((descriptor = accept4(outlet->descriptor, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        if (outlet->count == OUTLET_LISTENERS_MAX) {
            close(descriptor);
            continue;
        }
        widen(descriptor);
        outlet->listeners[outlet->count++] = (struct listener){.descriptor = descriptor};
        any = true;
    }
    return any;
}

bool outlet_is_heard(const struct outlet *outlet)
{
    return outlet->count != 0;
}

unsigned outlet_send(struct outlet *outlet, const void *bytes, size_t length_bytes, bool *caught_up)
{
    unsigned refused = 0;

    for (size_t i = outlet->count; i > 0; i--) {
        struct listener *listener = &outlet->listeners[i - 1];
        if (send(listener->descriptor, bytes, length_bytes, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
            *caught_up |= listener->lost;
            listener->lost = false;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            close(listener->descriptor);
            *listener = outlet->listeners[--outlet->count];
        } else {
            listener->lost = true;
            refused++;
        }
    }
    return refused;
}

void outlet_close(struct outlet **outlet)
{
    if (*outlet == NULL)
        return;
    unlink((*outlet)->path);
    close((*outlet)->descriptor);
    for (size_t i = 0; i < (*outlet)->count; i++)
        close((*outlet)->listeners[i].descriptor);
    free(*outlet);
    *outlet = NULL;
}

int outlet_connect(const char *path)
{
    struct sockaddr_un address;

    if (!address_of(&address, path))
        return -ENAMETOOLONG;
    int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return -errno;
    if (connect(descriptor, (const struct sockaddr *)&address, sizeof address) == 0)
        return descriptor;
    int error = -errno;
    close(descriptor);
    if (error == -ECONNREFUSED)
        unlink(path);
    return error;
}
