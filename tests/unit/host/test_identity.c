/* SPDX-License-Identifier: BSD-2-Clause */
/* Who a process is, on trees made by hand, and of this very process. */
#include "host/identity/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { PID = 4242, FACTS_MAX = 256 };

static struct {
    uint16_t fact;
    unsigned index;
    char text[256];
    size_t length;
} told[FACTS_MAX];
static size_t told_count;

static char root[64];

static void note(void *context, enum process_fact fact, unsigned index, struct text text)
{
    (void)context;
    assert_true(told_count < FACTS_MAX);
    assert_true(text.length > 0);
    told[told_count].fact = (uint16_t)fact;
    told[told_count].index = index;
    told[told_count].length = text.length;
    snprintf(told[told_count++].text, sizeof told[0].text, "%.*s", (int)text.length, text.at);
}

/* The text of a fact, "" = it was not told. Told twice is an error. */
static const char *fact(enum process_fact wanted, unsigned index)
{
    const char *text = NULL;
    for (size_t i = 0; i < told_count; i++) {
        if (told[i].fact != wanted || told[i].index != index)
            continue;
        assert_null(text);
        text = told[i].text;
    }
    return text == NULL ? "" : text;
}

static void make_folders(const char *path)
{
    char part[512];
    for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        mkdir(part, 0755);
    }
}

static void put(const char *name, const void *bytes, size_t length)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s", root, name);
    make_folders(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

#define PUT(name, text) put(name, text, sizeof(text) - 1)

static void put_link(const char *name, const char *target)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s", root, name);
    make_folders(path);
    assert_int_equal(symlink(target, path), 0);
}

static int setup(void **state)
{
    (void)state;
    strcpy(root, "/tmp/qpscope-identity-XXXXXX");
    told_count = 0;
    return mkdtemp(root) == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static void whole_process(void **state)
{
    (void)state;
    PUT("/proc/4242/cmdline", "python3\0train.py\0--size\0"
                              "7B\0");
    PUT("/proc/4242/status", "Name:\tpython3\nPid:\t4242\nUid:\t1000\t1001\t1000\t1000\nNSpid:\t4242\t17\t5\n");
    PUT("/proc/4242/cgroup", "0::/system.slice/slurmstepd.scope/job_4711/step_2/user/task_0\n");
    PUT("/proc/4242/environ", "PATH=/bin\0RANK=12\0LOCAL_RANK=4\0WORLD_SIZE=64\0MASTER_ADDR=node0\0MASTER_PORT=29500\0"
                              "NCCL_DEBUG=WARN\0XRANK=1\0RANKS=2\0NCCL_IB_HCA==mlx5_0:1,mlx5_1\0SLURM_JOB_ID=1\0");
    identity_read(root, PID, note, NULL);
    assert_string_equal(fact(PROCESS_FACT_COMMAND_LINE, 0), "python3 train.py --size 7B");
    assert_string_equal(fact(PROCESS_FACT_USER, 0), "1001");
    assert_string_equal(fact(PROCESS_FACT_PID, 0), "5");
    assert_string_equal(fact(PROCESS_FACT_CGROUP, 0), "/system.slice/slurmstepd.scope/job_4711/step_2/user/task_0");
    assert_string_equal(fact(PROCESS_FACT_SLURM_JOB, 0), "4711"); /* the control group, not what was inherited */
    assert_string_equal(fact(PROCESS_FACT_SLURM_STEP, 0), "2");
    assert_string_equal(fact(PROCESS_FACT_RANK, 0), "12");
    assert_string_equal(fact(PROCESS_FACT_LOCAL_RANK, 0), "4");
    assert_string_equal(fact(PROCESS_FACT_WORLD_SIZE, 0), "64");
    assert_string_equal(fact(PROCESS_FACT_MASTER_ADDR, 0), "node0");
    assert_string_equal(fact(PROCESS_FACT_MASTER_PORT, 0), "29500");
    assert_string_equal(fact(PROCESS_FACT_NCCL_VARIABLE, 0), "NCCL_DEBUG=WARN");
    assert_string_equal(fact(PROCESS_FACT_NCCL_VARIABLE, 1), "NCCL_IB_HCA==mlx5_0:1,mlx5_1");
    assert_int_equal(told_count, 13);
}

static void process_that_is_gone(void **state)
{
    (void)state;
    identity_read(root, PID, note, NULL);
    assert_int_equal(told_count, 0);
}

/* What Slurm put into the environment serves where no control group tells. */
static void job_without_a_control_group(void **state)
{
    (void)state;
    PUT("/proc/4242/cgroup", "0::/\n");
    PUT("/proc/4242/environ", "SLURM_JOB_ID=815\0SLURM_STEP_ID=0\0SLURM_PROCID=3");
    identity_read(root, PID, note, NULL);
    assert_string_equal(fact(PROCESS_FACT_SLURM_JOB, 0), "815");
    assert_string_equal(fact(PROCESS_FACT_SLURM_STEP, 0), "0");
    assert_string_equal(fact(PROCESS_FACT_SLURM_PROCID, 0), "3");
    assert_int_equal(told_count, 3);
}

static void variables_are_bounded(void **state)
{
    (void)state;
    static char environment[200000];
    size_t length = 0;
    for (int i = 0; i < 1000; i++)
        length += 1 + (size_t)sprintf(environment + length, "NCCL_%d=%0100d", i, i);
    length += 1 + (size_t)sprintf(environment + length, "RANK=9");
    put("/proc/4242/environ", environment, length);
    identity_read(root, PID, note, NULL);
    assert_int_equal(told_count, IDENTITY_VARIABLES_MAX + 1);
    assert_string_equal(fact(PROCESS_FACT_RANK, 0), "9");
}

static void put_gpus(void)
{
    PUT("/proc/driver/nvidia/gpus/0000:3b:00.0/information",
        "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 511\nGPU UUID: \t GPU-aaaa1111-0000-0000-0000-000000000000\n"
        "Bus Location: \t 0000:3b:00.0\nDevice Minor: \t 1\n");
    PUT("/proc/driver/nvidia/gpus/0000:19:00.0/information",
        "Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-aaaa2222-0000-0000-0000-000000000000\nDevice Minor: \t "
        "0\n");
    PUT("/proc/driver/nvidia/gpus/0000:ca:00.0/information", "Model: \t\t NVIDIA H100 80GB HBM3\n"); /* cut */
}

static void open_devices(void **state)
{
    (void)state;
    put_gpus();
    PUT("/sys/devices/0000:c1:00.0/vendor", "0x1002\n");
    PUT("/sys/devices/0000:00:02.0/vendor", "0x8086\n");
    put_link("/sys/class/drm/renderD129/device", "../../../devices/0000:c1:00.0");
    put_link("/sys/class/drm/renderD128/device", "../../../devices/0000:00:02.0");
    put_link("/proc/4242/fd/3", "/dev/nvidiactl");
    put_link("/proc/4242/fd/4", "/dev/nvidia1");
    put_link("/proc/4242/fd/5", "/dev/nvidia1");
    put_link("/proc/4242/fd/6", "/dev/nvidia-uvm");
    put_link("/proc/4242/fd/7", "/dev/nvidia99");
    put_link("/proc/4242/fd/8", "/dev/dri/renderD129");
    put_link("/proc/4242/fd/9", "/dev/dri/renderD128"); /* a GPU, but none that computes here */
    put_link("/proc/4242/fd/10", "socket:[1234]");
    identity_read(root, PID, note, NULL);
    assert_int_equal(told_count, 2);
    const bool first = strcmp(fact(PROCESS_FACT_GPU, 0), "0000:3b:00.0") == 0; /* in the folder's order */
    assert_string_equal(fact(PROCESS_FACT_GPU, first ? 0 : 1), "0000:3b:00.0");
    assert_string_equal(fact(PROCESS_FACT_GPU, first ? 1 : 0), "0000:c1:00.0");
}

struct visible {
    const char *environment;
    size_t length;
    const char *device[2];
};

static void visible_devices(void **state)
{
    (void)state;
#define VISIBLE(text, first, second)                                                                                   \
    {                                                                                                                  \
        text, sizeof(text),                                                                                            \
        {                                                                                                              \
            first, second                                                                                              \
        }                                                                                                              \
    }
    static const struct visible cases[] = {
        VISIBLE("CUDA_VISIBLE_DEVICES=GPU-aaaa1111-0000-0000-0000-000000000000,GPU-aaaa2222", "0000:3b:00.0",
                "0000:19:00.0"),
        VISIBLE("CUDA_VISIBLE_DEVICES=GPU-aaaa", "", ""), /* fits two */
        VISIBLE("CUDA_VISIBLE_DEVICES=1,0", "", ""),      /* the fastest first */
        VISIBLE("CUDA_DEVICE_ORDER=PCI_BUS_ID\0CUDA_VISIBLE_DEVICES=1,0", "0000:3b:00.0", "0000:19:00.0"),
        VISIBLE("CUDA_VISIBLE_DEVICES=7,1\0CUDA_DEVICE_ORDER=PCI_BUS_ID", "", "0000:3b:00.0"),
        VISIBLE("CUDA_DEVICE_ORDER=PCI_BUS_ID\0CUDA_VISIBLE_DEVICES=1\0NVIDIA_VISIBLE_DEVICES=GPU-x", "", ""),
        VISIBLE("CUDA_DEVICE_ORDER=PCI_BUS_ID\0CUDA_VISIBLE_DEVICES=MIG-1,,-1,1x", "", ""),
    };
    put_gpus();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        told_count = 0;
        put("/proc/4242/environ", cases[i].environment, cases[i].length);
        identity_read(root, PID, note, NULL);
        assert_string_equal(fact(PROCESS_FACT_CUDA_DEVICE, 0), cases[i].device[0]);
        assert_string_equal(fact(PROCESS_FACT_CUDA_DEVICE, 1), cases[i].device[1]);
    }
}

static void this_process(void **state)
{
    (void)state;
    char pid[16];
    char host[64];
    char user[16];
    told_count = 0;
    identity_read("", getpid(), note, NULL);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    snprintf(user, sizeof user, "%d", (int)geteuid());
    gethostname(host, sizeof host);
    assert_string_equal(fact(PROCESS_FACT_PID, 0), pid);
    assert_string_equal(fact(PROCESS_FACT_USER, 0), user);
    assert_string_equal(fact(PROCESS_FACT_HOST_NAME, 0), host);
    assert_non_null(strstr(fact(PROCESS_FACT_COMMAND_LINE, 0), "test_host_identity"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whole_process, setup, teardown),
        cmocka_unit_test_setup_teardown(process_that_is_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(job_without_a_control_group, setup, teardown),
        cmocka_unit_test_setup_teardown(variables_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(open_devices, setup, teardown),
        cmocka_unit_test_setup_teardown(visible_devices, setup, teardown),
        cmocka_unit_test(this_process),
    };
    return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
