/* SPDX-License-Identifier: BSD-2-Clause */
/* Control group files as they are found on machines, by the documentation and by what people paste into threads. */
#include "host/identity/cgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ID     "3e1f5c0d2b7a49688f00112233445566778899aabbccddeeff00112233445566"
#define INNER  "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"
#define POD    "12ab34cd-0f1e-4d2c-8b3a-9f8e7d6c5b4a"
#define POD_   "12ab34cd_0f1e_4d2c_8b3a_9f8e7d6c5b4a"
#define MIRROR "0123456789abcdef0123456789abcdef"

struct sample {
    const char *file;
    const char *container;
    const char *runtime;
    const char *pod;
    const char *job;
    const char *step;
};

static const struct sample samples[] = {
    /* none */
    {.file = "0::/\n"},
    {.file = "0::/user.slice/user-1000.slice/session-3.scope\n"},
    {.file = "0::/system.slice/pod-manager.service\n"},
    {.file = ""},
    /* Docker: systemd driver, cgroupfs driver, version 1, one within another */
    {.file = "0::/system.slice/docker-" ID ".scope\n", .container = ID, .runtime = "docker"},
    {.file = "0::/docker/" ID "\n", .container = ID, .runtime = "docker"},
    {.file = "12:cpuset:/docker/" ID "\n11:memory:/docker/" ID "\n1:name=systemd:/docker/" ID
             "\n0::/system.slice/containerd.service\n",
     .container = ID,
     .runtime = "docker"},
    {.file = "0::/docker/" ID "/docker/" INNER "\n", .container = INNER, .runtime = "docker"},
    {.file = "0::/../docker-" ID ".scope\n", .container = ID, .runtime = "docker"},
    /* containerd below Kubernetes: systemd driver, cgroupfs driver, the name with colons, kind's root */
    {.file = "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_ ".slice/cri-containerd-" ID
             ".scope\n",
     .container = ID,
     .runtime = "containerd",
     .pod = POD},
    {.file = "0::/kubepods.slice/kubepods-pod" POD_ ".slice/cri-containerd-" ID ".scope\n",
     .container = ID,
     .runtime = "containerd",
     .pod = POD},
    {.file = "0::/kubepods/burstable/pod" POD "/" ID "\n", .container = ID, .pod = POD},
    {.file = "11:memory:/kubepods/besteffort/pod" POD "/" ID "\n0::/\n", .container = ID, .pod = POD},
    {.file = "9:cpuset:/system.slice/containerd.service/kubepods-burstable-pod" POD_ ".slice:cri-containerd:" ID "\n",
     .container = ID,
     .runtime = "containerd",
     .pod = POD},
    {.file = "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
             "kubelet-kubepods-besteffort-pod" POD_ ".slice/cri-containerd-" ID ".scope\n",
     .container = ID,
     .runtime = "containerd",
     .pod = POD},
    {.file = "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" MIRROR ".slice/cri-containerd-" ID
             ".scope\n",
     .container = ID,
     .runtime = "containerd",
     .pod = MIRROR},
    {.file = "0::/system.slice/nerdctl-" ID ".scope\n", .container = ID, .runtime = "containerd"},
    /* CRI-O, and its keeper beside the container */
    {.file = "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" POD_ ".slice/crio-" ID ".scope\n",
     .container = ID,
     .runtime = "cri-o",
     .pod = POD},
    {.file = "0::/kubepods.slice/kubepods-pod" POD_ ".slice/crio-" ID ".scope/container\n",
     .container = ID,
     .runtime = "cri-o",
     .pod = POD},
    {.file = "0::/kubepods.slice/kubepods-pod" POD_ ".slice/crio-conmon-" ID ".scope\n", .pod = POD},
    /* Docker below Kubernetes (cri-dockerd) */
    {.file = "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_ ".slice/docker-" ID ".scope\n",
     .container = ID,
     .runtime = "docker",
     .pod = POD},
    /* Podman: root's, a user's, in a pod of its own, its keeper */
    {.file = "0::/machine.slice/libpod-" ID ".scope\n", .container = ID, .runtime = "podman"},
    {.file = "0::/machine.slice/libpod-" ID ".scope/container\n", .container = ID, .runtime = "podman"},
    {.file = "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container\n",
     .container = ID,
     .runtime = "podman"},
    {.file = "0::/machine.slice/machine-libpod_pod_" INNER ".slice/libpod-" ID ".scope\n",
     .container = ID,
     .runtime = "podman"},
    {.file = "0::/machine.slice/libpod-conmon-" ID ".scope\n"},
    {.file = "0::/libpod_parent/libpod-" ID "\n", .container = ID, .runtime = "podman"},
    /* Amazon ECS */
    {.file = "0::/ecs/" MIRROR "/" ID "\n", .container = ID},
    /* Slurm: version 1, several slurmd, version 2, batch and extern steps, a container within a job */
    {.file = "11:memory:/slurm/uid_1000/job_4711/step_0/task_3\n1:name=systemd:/system.slice/slurmd.service\n",
     .job = "4711",
     .step = "0"},
    {.file = "4:cpuset:/slurm_node1/uid_0/job_12/step_batch\n", .job = "12", .step = "batch"},
    {.file = "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n", .job = "4711", .step = "0"},
    {.file = "0::/system.slice/node7_slurmstepd.scope/job_99/step_extern/user/task_special\n",
     .job = "99",
     .step = "extern"},
    {.file = "0::/system.slice/slurmstepd.scope/job_5/step_1/user/task_0/libpod-" ID ".scope\n",
     .container = ID,
     .runtime = "podman",
     .job = "5",
     .step = "1"},
    {.file = "0::/home.slice/job_77/step_1\n"}, /* somebody else's names */
    /* no ids: too short, too long, other letters, a UID that is none */
    {.file = "0::/docker/3e1f5c0d2b7a\n"},
    {.file = "0::/docker/" ID "0\n"},
    {.file = "0::/docker/g" ID "\n"},
    {.file = "0::/kubepods/pod12ab34cd-0f1e-4d2c-8b3a-9f8e7d6c5b4\n"},
    {.file = "0::/kubepods/pod" POD "00\n"},
    {.file = "0::/kubepods/pod12ab34cd-0f1e-4d2c-8b3a_9f8e7d6c5bxx\n"},
};

static void assert_text(const char *file, const char *what, struct text text, const char *expected)
{
    if (!text_is(text, expected == NULL ? "" : expected))
        fail_msg("%s: %s is '%.*s', not '%s'", file, what, (int)text.length, text.at == NULL ? "" : text.at,
                 expected == NULL ? "" : expected);
}

static void samples_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        const struct sample *sample = &samples[i];
        struct cgroup cgroup;
        cgroup_parse(sample->file, strlen(sample->file), &cgroup);
        assert_text(sample->file, "container", cgroup.container, sample->container);
        assert_text(sample->file, "job", cgroup.slurm_job, sample->job);
        assert_text(sample->file, "step", cgroup.slurm_step, sample->step);
        assert_string_equal(cgroup.pod, sample->pod == NULL ? "" : sample->pod);
        if (sample->runtime == NULL)
            assert_null(cgroup.runtime);
        else
            assert_string_equal(cgroup.runtime, sample->runtime);
    }
}

static void path_is_the_telling_one(void **state)
{
    (void)state;
    static const char both[] = "9:memory:/kubepods/pod/longer/than/the/other\n0::/system.slice/a.service\n";
    static const char first[] = "0::/system.slice/a.service\n9:memory:/kubepods/pod/longer/than/the/other\n";
    static const char old[] = "9:memory:/short\n8:cpuset:/longer/path\n0::/\n";
    struct cgroup cgroup;
    cgroup_parse(both, strlen(both), &cgroup);
    assert_text(both, "path", cgroup.path, "/system.slice/a.service");
    cgroup_parse(first, strlen(first), &cgroup);
    assert_text(first, "path", cgroup.path, "/system.slice/a.service");
    cgroup_parse(old, strlen(old), &cgroup);
    assert_text(old, "path", cgroup.path, "/longer/path");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_read),
        cmocka_unit_test(path_is_the_telling_one),
    };
    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
