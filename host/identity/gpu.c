/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source: NVIDIA driver README, /proc/driver/nvidia/gpus/ADDRESS/information; CUDA programming guide, environment
 * variables; the kernel's DRM documentation (/dev/dri/renderD*). Invariant: what is visited was read from the kernel's
 * own list of devices, never made up from a number.
 */
#include "host/identity/gpu.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UUID_BYTES      64
#define DESCRIPTORS_MAX 65536

struct nvidia_gpu {
    char address[GPU_ADDRESS_BYTES];
    char uuid[UUID_BYTES]; /* GPU-01234567-... */
    int minor;             /* /dev/nvidiaN */
};

struct nvidia {
    struct nvidia_gpu gpus[GPUS_MAX]; /* in the order of their addresses */
    size_t count;
};

/* "GPU UUID: \t GPU-...": the value of a line that begins with `key`. */
static bool line_value(struct text line, const char *key, char *value, size_t value_bytes)
{
    if (!text_begins(line, key))
        return false;
    struct text rest = text_after(line, strlen(key));
    while (rest.length != 0 && isspace((unsigned char)rest.at[0]))
        rest = text_after(rest, 1);
    snprintf(value, value_bytes, "%.*s", (int)rest.length, rest.at);
    return true;
}

static size_t read_file(const char *path, char *bytes, size_t capacity)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = descriptor < 0 ? -1 : read(descriptor, bytes, capacity);
    if (descriptor >= 0)
        close(descriptor);
    return length < 0 ? 0 : (size_t)length;
}

static bool read_nvidia_gpu(const char *root, const char *address, struct nvidia_gpu *gpu)
{
    char path[PATH_MAX];
    char bytes[4096];
    char minor[16];
    struct cursor cursor;
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus/%s/information", root, address);
    cursor_init(&cursor, bytes, read_file(path, bytes, sizeof bytes));
    *gpu = (struct nvidia_gpu){.minor = -1};
    snprintf(gpu->address, sizeof gpu->address, "%.*s", GPU_ADDRESS_BYTES - 1, address);
    while (cursor_left(&cursor) != 0) {
        const struct text line = text_take(&cursor, '\n');
        line_value(line, "GPU UUID:", gpu->uuid, sizeof gpu->uuid);
        if (line_value(line, "Device Minor:", minor, sizeof minor) && isdigit((unsigned char)minor[0]))
            gpu->minor = atoi(minor);
    }
    return gpu->minor >= 0;
}

static int compare_addresses(const void *left, const void *right)
{
    const struct nvidia_gpu *a = left;
    const struct nvidia_gpu *b = right;
    return strcmp(a->address, b->address);
}

static void read_nvidia(const char *root, struct nvidia *nvidia)
{
    char path[PATH_MAX];
    nvidia->count = 0;
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus", root);
    DIR *directory = opendir(path);
    if (directory == NULL)
        return;
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL && nvidia->count < GPUS_MAX)
        if (entry->d_name[0] != '.' && read_nvidia_gpu(root, entry->d_name, &nvidia->gpus[nvidia->count]))
            nvidia->count++;
    closedir(directory);
    qsort(nvidia->gpus, nvidia->count, sizeof nvidia->gpus[0], compare_addresses);
}

/* The number behind a prefix, or -1: "/dev/nvidia3", not "/dev/nvidiactl". */
static int number_after(const char *text, const char *prefix)
{
    const size_t length = strlen(prefix);
    char *end;
    if (strncmp(text, prefix, length) != 0 || !isdigit((unsigned char)text[length]))
        return -1;
    const long number = strtol(text + length, &end, 10);
    return *end == '\0' && number <= INT_MAX ? (int)number : -1;
}

/* The PCI address of an AMD GPU by its render node. */
static bool amd_address(const char *root, int node, char address[GPU_ADDRESS_BYTES])
{
    char path[PATH_MAX];
    char target[PATH_MAX];
    char vendor[16] = "";
    snprintf(path, sizeof path, "%s/sys/class/drm/renderD%d/device/vendor", root, node);
    read_file(path, vendor, sizeof vendor - 1);
    snprintf(path, sizeof path, "%s/sys/class/drm/renderD%d/device", root, node);
    const ssize_t length = readlink(path, target, sizeof target - 1);
    if (strncmp(vendor, "0x1002", 6) != 0 || length <= 0)
        return false;
    target[length] = '\0';
    const char *slash = strrchr(target, '/');
    snprintf(address, GPU_ADDRESS_BYTES, "%.*s", GPU_ADDRESS_BYTES - 1, slash == NULL ? target : slash + 1);
    return true;
}

struct open_search {
    const char *root;
    const struct nvidia *nvidia;
    char found[GPUS_MAX][GPU_ADDRESS_BYTES];
    unsigned count;
    gpu_visit *visit;
    void *context;
};

static void found_gpu(struct open_search *search, const char *address)
{
    for (unsigned i = 0; i < search->count; i++)
        if (strcmp(search->found[i], address) == 0)
            return;
    if (search->count == GPUS_MAX)
        return;
    snprintf(search->found[search->count], GPU_ADDRESS_BYTES, "%s", address);
    search->visit(search->context, search->count++, address);
}

static void look_at_descriptor(struct open_search *search, const char *target)
{
    char address[GPU_ADDRESS_BYTES];
    const int minor = number_after(target, "/dev/nvidia");
    const int node = number_after(target, "/dev/dri/renderD");
    for (size_t i = 0; minor >= 0 && i < search->nvidia->count; i++)
        if (search->nvidia->gpus[i].minor == minor)
            found_gpu(search, search->nvidia->gpus[i].address);
    if (node >= 0 && amd_address(search->root, node, address))
        found_gpu(search, address);
}

void gpu_each_open(const char *root, pid_t pid, gpu_visit *visit, void *context)
{
    char path[PATH_MAX];
    struct nvidia nvidia;
    struct open_search search = {.root = root, .nvidia = &nvidia, .visit = visit, .context = context};
    read_nvidia(root, &nvidia);
    snprintf(path, sizeof path, "%s/proc/%d/fd", root, (int)pid);
    DIR *directory = opendir(path);
    if (directory == NULL)
        return;
    const struct dirent *entry;
    for (int i = 0; i < DESCRIPTORS_MAX && (entry = readdir(directory)) != NULL; i++) {
        char target[64];
        const ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
        if (length <= 0)
            continue;
        target[length] = '\0';
        look_at_descriptor(&search, target);
    }
    closedir(directory);
}

/* CUDA takes a UUID's beginning, too, when it fits one device. */
static const char *by_uuid(const struct nvidia *nvidia, struct text uuid)
{
    const char *address = NULL;
    for (size_t i = 0; i < nvidia->count; i++) {
        if (strncmp(nvidia->gpus[i].uuid, uuid.at, uuid.length) != 0)
            continue;
        if (address != NULL)
            return NULL;
        address = nvidia->gpus[i].address;
    }
    return address;
}

static const char *by_number(const struct nvidia *nvidia, struct text number)
{
    size_t value = 0;
    if (number.length == 0 || number.length > 4)
        return NULL;
    for (size_t i = 0; i < number.length; i++) {
        if (!isdigit((unsigned char)number.at[i]))
            return NULL;
        value = 10 * value + (size_t)(number.at[i] - '0');
    }
    return value < nvidia->count ? nvidia->gpus[value].address : NULL;
}

void gpu_each_visible(const char *root, struct text visible, bool by_address, gpu_visit *visit, void *context)
{
    struct nvidia nvidia;
    struct cursor cursor;
    read_nvidia(root, &nvidia);
    text_read(&cursor, visible);
    for (unsigned number = 0; cursor_left(&cursor) != 0 && number < GPUS_MAX; number++) {
        const struct text device = text_take(&cursor, ',');
        const char *address = text_begins(device, "GPU-") ? by_uuid(&nvidia, device)
                              : by_address                ? by_number(&nvidia, device)
                                                          : NULL;
        if (address != NULL)
            visit(context, number, address);
    }
}
