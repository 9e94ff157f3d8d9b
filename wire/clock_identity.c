/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's boot id, and the inode of the process's time namespace (time_namespaces(7)). Invariant: two processes
 * with the same of both read the same clock. A process that sees its kernel's boot id in /proc sees its namespace
 * there.
 */
#include "wire/clock_identity.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* "8c1d6c5e-....": 32 hexadecimal digits with dashes, as 16 bytes. */
static bool parse_boot(const char *text, uint8_t boot[16])
{
    size_t digits = 0;

    for (const char *c = text; *c != '\0' && digits < 32; c++) {
        unsigned digit;
        if (sscanf(c, "%1x", &digit) != 1)
            continue;
        boot[digits / 2] = (uint8_t)(boot[digits / 2] << 4 | digit);
        digits++;
    }
    return digits == 32;
}

static bool read_boot(uint8_t boot[16])
{
    char text[64] = "";
    FILE *file = fopen(BOOT_ID, "re");

    if (file == NULL)
        return false;
    bool read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    return read && parse_boot(text, boot);
}

void clock_identity_read(struct clock_identity *identity)
{
    struct stat status;

    *identity = (struct clock_identity){.time_namespace = 0};
    if (!read_boot(identity->kernel_boot))
        memset(identity->kernel_boot, 0, sizeof identity->kernel_boot);
    if (stat("/proc/self/ns/time", &status) == 0)
        identity->time_namespace = status.st_ino;
}

bool clock_identity_same(const struct clock_identity *a, const struct clock_identity *b)
{
    static const uint8_t unknown[sizeof a->kernel_boot];

    return memcmp(a->kernel_boot, unknown, sizeof unknown) != 0 &&
           memcmp(a->kernel_boot, b->kernel_boot, sizeof unknown) == 0 && a->time_namespace == b->time_namespace;
}
