/* SPDX-License-Identifier: BSD-2-Clause */
/* The names are looked up with dlvsym: the library exports several of them twice. */
#include "net/verbs.h"

#include "setting.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GIDS_MAX = 16 };

struct verbs verbs;
struct verbs_device verbs_devices[VERBS_DEVICES_MAX];

static int library_load(void)
{
    const char *named = getenv("NCCL_IBVERBS_LIB");
    void *handle = dlopen(named ? named : "libibverbs.so", RTLD_NOW);
    bool is_whole = true;

    if (!handle && !named)
        handle = dlopen("libibverbs.so.1", RTLD_NOW);
    if (!handle)
        return -ENOENT;
#define VERB(result, name, arguments)                                                                                  \
    verbs.name = (result(*) arguments)dlvsym(handle, "ibv_" #name, "IBVERBS_1.1");                                     \
    is_whole = is_whole && verbs.name;
#include "net/verbs.def"
#undef VERB
    return is_whole ? 0 : -ENOSYS;
}

/* NCCL_IB_HCA: names with commas between, whole ones after '=', else beginnings; without it every device. */
static bool device_is_wanted(const char *name)
{
    const char *wanted = getenv("NCCL_IB_HCA");
    bool whole = wanted && *wanted == '=';

    if (!wanted || !*wanted)
        return true;
    for (wanted += whole; *wanted; wanted += *wanted == ',') {
        size_t length = strcspn(wanted, ",");
        size_t name_length = strcspn(wanted, ",:");
        if (!strncmp(wanted, name, name_length) && (!whole || !name[name_length]))
            return true;
        wanted += length;
    }
    return false;
}

static bool gid_is_fit(const struct verbs_device *device, int index)
{
    static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};
    char path[160], type[32] = "";
    union ibv_gid gid;

    snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d", device->name, VERBS_PORT,
             index);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool is_v2 = fgets(type, sizeof type, file) && !strncmp(type, "RoCE v2", 7);
    fclose(file);
    return is_v2 && !verbs.query_gid(device->context, VERBS_PORT, index, &gid) &&
           !memcmp(gid.raw, v4_mapped, sizeof v4_mapped);
}

static int gid_choose(const struct verbs_device *device)
{
    int asked = setting_read("NCCL_IB_GID_INDEX", -1);

    for (int index = 0; asked < 0 && index < GIDS_MAX; index++)
        if (gid_is_fit(device, index))
            asked = index;
    return asked < 0 ? 0 : asked;
}

static int device_open(struct ibv_device *candidate, struct verbs_device *device)
{
    struct ibv_port_attr port = {0};

    *device = (struct verbs_device){.name = verbs.get_device_name(candidate)};
    if (!device_is_wanted(device->name))
        return -ENODEV;
    device->context = verbs.open_device(candidate);
    if (!device->context || verbs.query_port(device->context, VERBS_PORT, &port) || port.state != IBV_PORT_ACTIVE)
        return -ENODEV;
    device->pd = verbs.alloc_pd(device->context);
    device->gid_index = gid_choose(device);
    device->mtu = port.active_mtu;
    return device->pd ? 0 : -EIO;
}

int verbs_open(void)
{
    int count = 0, opened = 0, error = library_load();

    if (error)
        return error;
    struct ibv_device **list = verbs.get_device_list(&count);
    for (int i = 0; list && i < count && opened < VERBS_DEVICES_MAX; i++)
        if (!device_open(list[i], &verbs_devices[opened]))
            opened++;
    if (list && !opened)
        verbs.free_device_list(list);
    return opened;
}
