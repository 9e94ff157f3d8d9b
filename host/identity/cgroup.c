/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source: cgroups(7) for the lines; the paths as moby, containerd's CRI plug-in, CRI-O, Podman, kubelet (both cgroup
 * drivers) and Slurm's cgroup plug-ins make them. Invariant: an id is taken whole or not at all.
 */
#include "host/identity/cgroup.h"

#include <string.h>

#define CONTAINER_DIGITS 64
#define POD_DIGITS       32
#define POD_LENGTH       36 /* with four dashes */

static const struct {
    const char *prefix; /* of the component that holds the id */
    const char *parent; /* or the component before it */
    const char *runtime;
} runtimes[] = {
    {.prefix = "docker-", .runtime = "docker"},
    {.parent = "docker", .runtime = "docker"},
    {.prefix = "cri-containerd-", .runtime = "containerd"},
    {.parent = "cri-containerd", .runtime = "containerd"},
    {.prefix = "nerdctl-", .runtime = "containerd"},
    {.prefix = "crio-", .runtime = "cri-o"},
    {.prefix = "libpod-", .runtime = "podman"},
};

static const char *runtime_of(struct text parent, struct text component)
{
    for (size_t i = 0; i < sizeof runtimes / sizeof runtimes[0]; i++)
        if (runtimes[i].prefix != NULL ? text_begins(component, runtimes[i].prefix)
                                       : text_is(parent, runtimes[i].parent))
            return runtimes[i].runtime;
    return NULL;
}

/* ID, PREFIX-ID, PREFIX-ID.scope: 64 digits, where no digit is before or behind. */
static bool find_container(struct text component, struct text *id)
{
    if (text_has(component, "conmon")) /* the container's keeper, not the container */
        return false;
    for (struct text rest = component; rest.length >= CONTAINER_DIGITS; rest = text_after(rest, 1)) {
        const size_t digits = text_hexadecimal_length(rest);
        const bool begins = rest.at == component.at || rest.at[-1] == '-';
        const struct text behind = text_after(rest, digits);
        if (begins && digits == CONTAINER_DIGITS && (behind.length == 0 || text_is(behind, ".scope"))) {
            *id = (struct text){rest.at, digits};
            return true;
        }
    }
    return false;
}

/* A UID with dashes (systemd's names have underscores for them), or 32 digits, as a static pod has. */
static bool parse_pod(struct text uid, char pod[CGROUP_POD_BYTES])
{
    const size_t digits = text_hexadecimal_length(uid);
    if (digits == POD_DIGITS) {
        memcpy(pod, uid.at, POD_DIGITS);
        pod[POD_DIGITS] = '\0';
        return true;
    }
    if (uid.length < POD_LENGTH || text_hexadecimal_length(text_after(uid, POD_LENGTH)) != 0)
        return false;
    char copy[CGROUP_POD_BYTES] = "";
    for (size_t i = 0; i < POD_LENGTH; i++) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? uid.at[i] != '-' && uid.at[i] != '_' : !isxdigit((unsigned char)uid.at[i]))
            return false;
        copy[i] = dash ? '-' : uid.at[i];
    }
    memcpy(pod, copy, sizeof copy);
    return true;
}

/* podUID, kubepods-podUID.slice, kubepods-burstable-podUID.slice */
static bool find_pod(struct text component, char pod[CGROUP_POD_BYTES])
{
    for (struct text rest = component; rest.length > 3; rest = text_after(rest, 1))
        if (text_begins(rest, "pod") && (rest.at == component.at || rest.at[-1] == '-') &&
            parse_pod(text_after(rest, 3), pod))
            return true;
    return false;
}

/* Below slurm (version 1) or slurmstepd.scope (version 2): job_ID/step_ID. */
static void find_slurm(struct text component, bool below_slurm, struct cgroup *cgroup)
{
    if (!below_slurm)
        return;
    if (cgroup->slurm_job.length == 0 && text_begins(component, "job_"))
        cgroup->slurm_job = text_after(component, strlen("job_"));
    if (cgroup->slurm_step.length == 0 && text_begins(component, "step_"))
        cgroup->slurm_step = text_after(component, strlen("step_"));
}

static void parse_component(struct text parent, struct text component, struct cgroup *cgroup)
{
    struct text id;
    if (find_container(component, &id)) {
        cgroup->container = id;
        cgroup->runtime = runtime_of(parent, component);
    }
    if (cgroup->pod[0] == '\0')
        find_pod(component, cgroup->pod);
}

/* Components are parted by "/", and by ":" in containerd's names SLICE:PREFIX:ID, whose prefix is a parent. */
static void parse_path(struct text path, struct cgroup *cgroup)
{
    struct cursor cursor;
    struct text parent = {0};
    bool below_slurm = false;
    text_read(&cursor, path);
    while (cursor_left(&cursor) != 0) {
        struct cursor parts;
        const struct text component = text_take(&cursor, '/');
        find_slurm(component, below_slurm, cgroup);
        below_slurm |= text_begins(component, "slurm") || text_has(component, "slurmstepd");
        text_read(&parts, component);
        while (cursor_left(&parts) != 0) {
            const struct text part = text_take(&parts, ':');
            parse_component(parent, part, cgroup);
            parent = part;
        }
    }
}

void cgroup_parse(const void *bytes, size_t length_bytes, struct cgroup *cgroup)
{
    struct cursor cursor;
    bool unified = false;
    *cgroup = (struct cgroup){0};
    cursor_init(&cursor, bytes, length_bytes);
    while (cursor_left(&cursor) != 0) {
        struct cursor line;
        text_read(&line, text_take(&cursor, '\n'));
        const struct text hierarchy = text_take(&line, ':');
        text_take(&line, ':'); /* controllers */
        const struct text path = {(const char *)line.at, cursor_left(&line)};
        if (path.length > 1 && !unified && (text_is(hierarchy, "0") || path.length > cgroup->path.length))
            cgroup->path = path;
        unified |= path.length > 1 && text_is(hierarchy, "0");
        if (cgroup->container.length == 0 || cgroup->slurm_job.length == 0)
            parse_path(path, cgroup);
    }
}
