/* SPDX-License-Identifier: BSD-2-Clause */
/* The job's command line, from one table; faults may come from a file that only the job reads. */
#include "job.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum field_kind { FIELD_NUMBER, FIELD_TEXT, FIELD_FLAG, FIELD_FAULT, FIELD_FAULT_FILE };

struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;
    const char *help;
};

const char *const fault_kind_names[FAULT_KINDS] = {
#define FAULT(NAME, name) name,
#include "fault.def"
#undef FAULT
};

static const struct field fields[] = {
    {"rank", FIELD_NUMBER, offsetof(struct job, rank), "N        first rank of this process"},
    {"ranks-here", FIELD_NUMBER, offsetof(struct job, ranks_here), "N  ranks in this process, a thread each (1)"},
    {"ranks", FIELD_NUMBER, offsetof(struct job, ranks), "N       ranks of the job (1)"},
    {"steps", FIELD_NUMBER, offsetof(struct job, steps), "N       steps to train (12)"},
    {"worlds", FIELD_NUMBER, offsetof(struct job, worlds), "N      communicators of all ranks (3)"},
    {"compute-us", FIELD_NUMBER, offsetof(struct job, compute_us), "US  computing in a step (60000)"},
    {"elements", FIELD_NUMBER, offsetof(struct job, elements), "N    unit of the operations' sizes, in floats (16384)"},
    {"seed", FIELD_NUMBER, offsetof(struct job, seed), "N        orders and pairs come from it (1)"},
    {"spin", FIELD_FLAG, offsetof(struct job, spin), "         compute on the CPU instead of sleeping"},
    {"library", FIELD_TEXT, offsetof(struct job, library), "FILE  the collective library (librccl.so.1)"},
    {"settle-ms", FIELD_NUMBER, offsetof(struct job, settle_ms),
     "MS  between loading the library and its first call (0)"},
    {"meet", FIELD_TEXT, offsetof(struct job, meet), "DIR      directory that all ranks share (.)"},
    {"link-fifo", FIELD_TEXT, offsetof(struct job, link_fifo), "FIFO where commands for tc go"},
    {"link-name", FIELD_TEXT, offsetof(struct job, link_name), "NAME network interface to slow"},
    {"wait-release", FIELD_FLAG, offsetof(struct job, wait_release), "  keep everything until DIR/release is there"},
    {"fault", FIELD_FAULT, offsetof(struct job, fault), "KIND    none, or one that fault.def lists"},
    {"fault-rank", FIELD_NUMBER, offsetof(struct job, fault_rank), "N  the rank that it hits; -1: all"},
    {"fault-delay-ms", FIELD_NUMBER, offsetof(struct job, fault_delay_ms), "MS"},
    {"fault-first-step", FIELD_NUMBER, offsetof(struct job, fault_first_step), "N"},
    {"fault-last-step", FIELD_NUMBER, offsetof(struct job, fault_last_step), "N (the job's last)"},
    {"fault-every", FIELD_NUMBER, offsetof(struct job, fault_every), "N of so many steps, one has it (1)"},
    {"fault-command", FIELD_TEXT, offsetof(struct job, fault_command), "COMMAND  of the fault 'wire', for tc"},
    {"fault-file", FIELD_FAULT_FILE, 0, "FILE: one line: KIND RANK DELAY_MS FIRST_STEP"},
};

enum { FIELDS = sizeof fields / sizeof fields[0] };

static int number_parse(int64_t *to, const char *name, const char *text)
{
    char *end;

    errno = 0;
    long long value = strtoll(text, &end, 0);
    if (errno || end == text || *end) {
        fprintf(stderr, "train: --%s wants a number, not '%s'\n", name, text);
        return -EINVAL;
    }
    *to = value;
    return 0;
}

static int fault_parse(enum fault_kind *to, const char *text)
{
    for (int kind = 0; kind < FAULT_KINDS; kind++) {
        if (strcmp(fault_kind_names[kind], text))
            continue;
        *to = kind;
        return 0;
    }
    fprintf(stderr, "train: unknown fault '%s'; there are", text);
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        fprintf(stderr, " %s", fault_kind_names[kind]);
    fputc('\n', stderr);
    return -EINVAL;
}

static int fault_file_read(struct job *job, const char *path)
{
    char kind[16] = "";
    FILE *file = fopen(path, "re");

    if (!file) {
        fprintf(stderr, "train: cannot open the fault file %s: %s\n", path, strerror(errno));
        return -EINVAL;
    }
    int found = fscanf(file, "%15s %ld %ld %ld", kind, &job->fault_rank, &job->fault_delay_ms, &job->fault_first_step);
    fclose(file);
    if (found == 4)
        return fault_parse(&job->fault, kind);
    fprintf(stderr, "train: the fault file %s must hold KIND RANK DELAY_MS FIRST_STEP\n", path);
    return -EINVAL;
}

static int field_set(struct job *job, const struct field *field, const char *text)
{
    void *to = (char *)job + field->offset;

    switch (field->kind) {
    case FIELD_NUMBER:
        return number_parse(to, field->name, text);
    case FIELD_FAULT:
        return fault_parse(to, text);
    case FIELD_FAULT_FILE:
        return fault_file_read(job, text);
    case FIELD_TEXT:
        *(const char **)to = text;
        return 0;
    case FIELD_FLAG:
        *(bool *)to = true;
        return 0;
    }
    return -EINVAL;
}

static void usage_print(void)
{
    puts("usage: train [OPTIONS]\nA rank, or several, of a training job on a collective library. LAB_TRUTH=FILE: what "
         "really happened goes there.");
    for (int i = 0; i < FIELDS; i++)
        printf("  --%s %s\n", fields[i].name, fields[i].help);
}

static int job_check(const struct job *job)
{
    if (job->ranks < 1 || job->ranks > RANKS_MAX || job->rank < 0 || job->ranks_here < 1 ||
        job->rank + job->ranks_here > job->ranks || job->steps < 1 || job->worlds < 1 || job->elements < 1 ||
        job->fault_every < 1) {
        fprintf(stderr, "train: ranks (1 to %d), steps, worlds, elements and fault-every must make sense together\n",
                RANKS_MAX);
        return -EINVAL;
    }
    if ((job->fault == FAULT_LINK || job->fault == FAULT_TCP) && (!job->link_fifo || !job->link_name)) {
        fprintf(stderr, "train: the faults 'link' and 'tcp' need --link-fifo and --link-name\n");
        return -EINVAL;
    }
    if (job->fault == FAULT_WIRE && (!job->link_fifo || !job->fault_command)) {
        fprintf(stderr, "train: the fault 'wire' needs --link-fifo and --fault-command\n");
        return -EINVAL;
    }
    return 0;
}

int job_parse(struct job *job, int argc, char **argv)
{
    struct option options[FIELDS + 2] = {{0}};
    int index;

    for (int i = 0; i < FIELDS; i++)
        options[i] =
            (struct option){fields[i].name, fields[i].kind == FIELD_FLAG ? no_argument : required_argument, NULL, 1};
    options[FIELDS] = (struct option){"help", no_argument, NULL, 2};
    for (;;) {
        int found = getopt_long(argc, argv, "", options, &index);
        if (found == -1)
            break;
        if (found == 2) {
            usage_print();
            return 1;
        }
        if (found != 1 || field_set(job, &fields[index], optarg))
            return -EINVAL;
    }
    return job_check(job);
}

uint64_t job_random(const struct job *job, uint64_t salt)
{
    uint64_t mixed = job->seed * 0x9e3779b97f4a7c15u + (salt + 1) * 0xd1342543de82ef95u;

    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return mixed ^ mixed >> 31;
}
