/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tar. Source: POSIX pax, "ustar Interchange Format": a header of 512 bytes with octal numbers, the file padded to 512
 * bytes, two empty blocks at the end.
 */
#include "cli/archive.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "wire/log.h"

#define BLOCK_BYTES    512
#define SIZE_BYTES_MAX (8ll << 30)
#define CHECKSUM_BYTES 8

struct header { /* of ustar, all text */
    char name[100];
    char mode[8];
    char owner[8];
    char group[8];
    char size[12];
    char time[12];
    char checksum[CHECKSUM_BYTES];
    char type;
    char link[100];
    char magic[6];
    char version[2];
    char rest[BLOCK_BYTES - 265];
};

void archive_begin(struct archive *archive, FILE *out)
{
    *archive = (struct archive){out, 0};
}

static void put(struct archive *archive, const void *bytes, size_t length)
{
    if (archive->error == 0 && fwrite(bytes, 1, length, archive->out) != length) {
        archive->error = -errno;
    }
}

static void pad(struct archive *archive, long long length)
{
    static const char zeros[BLOCK_BYTES];
    size_t over = (size_t)(length % BLOCK_BYTES);
    if (over != 0) {
        put(archive, zeros, BLOCK_BYTES - over);
    }
}

static void put_header(struct archive *archive, const char *name, long long length)
{
    struct header header = {.type = '0', .magic = "ustar", .version = {'0', '0'}};
    unsigned sum = 0;
    if (strlen(name) >= sizeof(header.name) || length >= SIZE_BYTES_MAX) {
        archive->error = archive->error != 0 ? archive->error : -EINVAL;
        return;
    }
    strcpy(header.name, name);
    snprintf(header.mode, sizeof(header.mode), "%07o", 0644);
    snprintf(header.owner, sizeof(header.owner), "%07o", 0);
    snprintf(header.group, sizeof(header.group), "%07o", 0);
    snprintf(header.size, sizeof(header.size), "%011llo", (unsigned long long)length);
    snprintf(header.time, sizeof(header.time), "%011o", 0);
    memset(header.checksum, ' ', sizeof(header.checksum));
    for (size_t i = 0; i < sizeof(header); i++) {
        sum += ((const unsigned char *)&header)[i];
    }
    snprintf(header.checksum, sizeof(header.checksum), "%06o", sum);
    put(archive, &header, sizeof(header));
}

void archive_add_bytes(struct archive *archive, const char *name, const void *bytes, size_t length)
{
    put_header(archive, name, (long long)length);
    put(archive, bytes, length);
    pad(archive, (long long)length);
}

/* Exactly as many bytes as the header says, also of a file that is being written. */
static void copy(struct archive *archive, FILE *file, long long length)
{
    char bytes[65536];
    while (archive->error == 0 && length > 0) {
        size_t wanted = length < (long long)sizeof(bytes) ? (size_t)length : sizeof(bytes);
        size_t got = fread(bytes, 1, wanted, file);
        if (got == 0) {
            archive->error = ferror(file) ? -errno : -EIO;
        }
        put(archive, bytes, got);
        length -= (long long)got;
    }
}

void archive_add_file(struct archive *archive, const char *name, const char *path)
{
    FILE *file = fopen(path, "rbe");
    struct stat status;
    if (file == NULL || fstat(fileno(file), &status) != 0) {
        archive->error = archive->error != 0 ? archive->error : -errno;
    } else {
        put_header(archive, name, status.st_size);
        copy(archive, file, status.st_size);
        pad(archive, status.st_size);
    }
    if (file != NULL) {
        fclose(file);
    }
}

int archive_end(struct archive *archive)
{
    static const char zeros[2 * BLOCK_BYTES];
    put(archive, zeros, sizeof(zeros));
    if (archive->error != 0) {
        log_error("cannot write the archive: %s", strerror(-archive->error));
    }
    return archive->error;
}
