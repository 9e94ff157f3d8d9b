/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stand-in for the part of librocm_smi64 that RCCL imports: as many devices as the stand-in HIP runtime has, at the
 * same PCI addresses, with no link between any two.
 */
#include "setting.h"

#include <stdint.h>

enum { OK = 0, INVALID_ARGS = 1, NOT_SUPPORTED = 2 };

struct version {
    uint32_t major, minor, patch;
    const char *build;
};

int rsmi_init(uint64_t flags);
int rsmi_version_get(struct version *v);
int rsmi_num_monitor_devices(uint32_t *n);
int rsmi_dev_pci_id_get(uint32_t device, uint64_t *id);
int rsmi_topo_get_link_type(uint32_t from, uint32_t to, uint64_t *hops, int *type);
int rsmi_topo_get_link_weight(uint32_t from, uint32_t to, uint64_t *weight);
int rsmi_minmax_bandwidth_get(uint32_t from, uint32_t to, uint64_t *least, uint64_t *most);
int rsmi_status_string(int status, const char **text);

static uint32_t devices(void)
{
    return (uint32_t)setting_read("STANDIN_DEVICES", 1);
}

int rsmi_init(uint64_t flags)
{
    (void)flags;
    return OK;
}

int rsmi_version_get(struct version *v)
{
    *v = (struct version){5, 0, 0, "standin"};
    return OK;
}

int rsmi_num_monitor_devices(uint32_t *n)
{
    *n = devices();
    return OK;
}

int rsmi_dev_pci_id_get(uint32_t device, uint64_t *id)
{ /* domain 63:32, bus 15:8, device 7:3, function 2:0 */
    if (device >= devices())
        return INVALID_ARGS;
    *id = ((uint64_t)(setting_read("STANDIN_BUS", 0xc1) & 0xff) + device) << 8;
    return OK;
}

int rsmi_topo_get_link_type(uint32_t from, uint32_t to, uint64_t *hops, int *type)
{
    (void)from, (void)to;
    *hops = 2;
    *type = 1; /* PCI Express */
    return OK;
}

int rsmi_topo_get_link_weight(uint32_t from, uint32_t to, uint64_t *weight)
{
    (void)from, (void)to;
    *weight = 40;
    return OK;
}

int rsmi_minmax_bandwidth_get(uint32_t from, uint32_t to, uint64_t *least, uint64_t *most)
{
    (void)from, (void)to;
    *least = *most = 0;
    return NOT_SUPPORTED;
}

int rsmi_status_string(int status, const char **text)
{
    *text = status ? "error of the stand-in" : "success";
    return OK;
}
