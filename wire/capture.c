/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The capture file; libzstd is touched here only. Layout: a header of 16 bytes (CAPTURE_MAGIC, version, zero), then
 * frames: a 32-bit little-endian length and one zstd frame (RFC 8878) of that length, with content size and checksum.
 * Its content is whole batches, one behind the other.
 * Invariants: the writer's file ends, after every call, with a whole frame, also when the disk is full; the reader
 * hands out nothing of a frame whose checksum was wrong.
 */
#include "wire/capture.h"

#include "wire/cursor.h"
#include "wire/log.h"
#include "wire/record.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define CAPTURE_MAGIC         "QPSCAPT\n"
#define FRAME_FILL_BYTES      (128u * 1024u) /* a frame is written when this much is there: small stalls */
#define FRAME_CLEAR_BYTES_MAX (FRAME_FILL_BYTES + BATCH_BYTES_MAX)
#define FRAME_FILE_BYTES_MAX  ZSTD_COMPRESSBOUND(FRAME_CLEAR_BYTES_MAX)
#define COMPRESSION_LEVEL     1
#define LOCK_TRIES            60
#define LOCK_PAUSE_US         100000

struct file_header {
    char magic[8];
    uint32_t version;
    uint32_t reserved;
};

struct capture_writer {
    int descriptor;
    char *path;
    ZSTD_CCtx *context;
    uint64_t end_bytes; /* of the last whole frame */
    size_t used_bytes;
    uint64_t batches_buffered;
    uint64_t batches_lost; /* since the last frame that was written */
    uint64_t batches_lost_total;
    int first_error;
    uint8_t clear[FRAME_CLEAR_BYTES_MAX];
    uint8_t frame[sizeof(uint32_t) + FRAME_FILE_BYTES_MAX];
};

struct capture_reader {
    int descriptor;
    char *path;
    ZSTD_DCtx *context;
    uint64_t offset_bytes; /* of the frame that is being read */
    struct cursor batches;
    bool has_given; /* a batch */
    int ended;      /* the error that ended the reading */
    uint8_t clear[FRAME_CLEAR_BYTES_MAX];
    uint8_t frame[FRAME_FILE_BYTES_MAX];
};

/* As many bytes as there are, up to `length_bytes`; or -errno. */
static ssize_t read_at(int descriptor, void *bytes, size_t length_bytes, uint64_t offset_bytes)
{
    size_t done = 0;

    while (done < length_bytes) {
        ssize_t got = pread(descriptor, (uint8_t *)bytes + done, length_bytes - done, (off_t)(offset_bytes + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static int write_at(int descriptor, const void *bytes, size_t length_bytes, uint64_t offset_bytes)
{
    size_t done = 0;

    while (done < length_bytes) {
        ssize_t put =
            pwrite(descriptor, (const uint8_t *)bytes + done, length_bytes - done, (off_t)(offset_bytes + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        done += (size_t)put;
    }
    return 0;
}

static int check_header(int descriptor, const char *path)
{
    struct file_header header;
    ssize_t got = read_at(descriptor, &header, sizeof header, 0);

    if (got < 0)
        return log_error_return((int)got, "cannot read %s: %s", path, strerror((int)-got));
    if (got != sizeof header || memcmp(header.magic, CAPTURE_MAGIC, sizeof header.magic) != 0 || header.reserved != 0)
        return log_error_return(-EBADMSG, "%s is not a capture file of qpscope", path);
    if (header.version != CAPTURE_VERSION)
        return log_error_return(-EBADMSG, "%s has capture version %u; this program reads version %u", path,
                                header.version, CAPTURE_VERSION);
    return 0;
}

/*
 * The file bytes of the frame at `offset_bytes`, its length field included; 0 at the end of the file; -EBADMSG where
 * no whole frame is.
 */
static int64_t frame_extent(int descriptor, uint64_t offset_bytes, uint64_t file_bytes)
{
    uint32_t length;
    ssize_t got = read_at(descriptor, &length, sizeof length, offset_bytes);

    if (got <= 0)
        return got;
    if (got != sizeof length || length == 0 || length > FRAME_FILE_BYTES_MAX)
        return -EBADMSG;
    return offset_bytes + sizeof length + length <= file_bytes ? (int64_t)(sizeof length + length) : -EBADMSG;
}

static int64_t file_size(int descriptor)
{
    struct stat status;

    return fstat(descriptor, &status) == 0 ? (int64_t)status.st_size : -errno;
}

static int write_header(struct capture_writer *writer)
{
    const struct file_header header = {CAPTURE_MAGIC, CAPTURE_VERSION, 0};

    if (ftruncate(writer->descriptor, 0) != 0)
        return log_error_return(-errno, "cannot empty %s: %m", writer->path);
    int error = write_at(writer->descriptor, &header, sizeof header, 0);
    if (error != 0)
        return log_error_return(error, "cannot write %s: %s", writer->path, strerror(-error));
    writer->end_bytes = sizeof header;
    return 0;
}

/*
 * Finds the end of the last whole frame and cuts what is behind it. A cut frame is shorter than a frame can be; more
 * than that is damage in the middle, and cutting there would throw good frames away.
 */
static int find_end(struct capture_writer *writer)
{
    int error = check_header(writer->descriptor, writer->path);
    int64_t size = file_size(writer->descriptor), extent = 0;
    uint64_t end = sizeof(struct file_header);

    if (error != 0)
        return error;
    while ((extent = frame_extent(writer->descriptor, end, (uint64_t)size)) > 0)
        end += (uint64_t)extent;
    if (extent < 0 && (extent != -EBADMSG || (uint64_t)size - end > sizeof(uint32_t) + FRAME_FILE_BYTES_MAX))
        return log_error_return((int)extent, "%s is damaged at byte %llu; record to another file", writer->path,
                                (unsigned long long)end);
    if (ftruncate(writer->descriptor, (off_t)end) != 0)
        return log_error_return(-errno, "cannot cut the unfinished end of %s: %m", writer->path);
    writer->end_bytes = end;
    return 0;
}

/* A recorder that was killed still holds its file while the kernel takes it apart; with many probes that takes seconds.
 */
static int lock_file(const struct capture_writer *writer)
{
    for (int tries = 0; tries < LOCK_TRIES; tries++) {
        if (flock(writer->descriptor, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (tries == 0)
            log_info("%s is held by another recorder; waiting for its end", writer->path);
        usleep(LOCK_PAUSE_US);
    }
    return log_error_return(-EBUSY, "%s is being recorded to by another program; choose another file", writer->path);
}

static int open_file(struct capture_writer *writer, int append)
{
    writer->descriptor = open(writer->path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (writer->descriptor < 0)
        return log_error_return(-errno, "cannot open %s for recording: %m", writer->path);
    int error = lock_file(writer);
    if (error != 0)
        return error;
    return append && file_size(writer->descriptor) > 0 ? find_end(writer) : write_header(writer);
}

static int prepare_context(ZSTD_CCtx *context)
{
    bool failed = ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, COMPRESSION_LEVEL)) ||
                  ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1));

    return failed ? -EIO : 0;
}

/* A file-size limit must be an error that we report, not a signal that kills a daemon. */
static void ignore_size_signal(void)
{
    struct sigaction action;

    if (sigaction(SIGXFSZ, NULL, &action) == 0 && action.sa_handler == SIG_DFL)
        signal(SIGXFSZ, SIG_IGN);
}

static void free_writer(struct capture_writer *writer)
{
    if (writer->descriptor >= 0)
        close(writer->descriptor);
    ZSTD_freeCCtx(writer->context);
    free(writer->path);
    free(writer);
}

int capture_writer_open(struct capture_writer **writer, const char *path, int append)
{
    struct capture_writer *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    ignore_size_signal();
    made->descriptor = -1;
    made->path = strdup(path);
    made->context = ZSTD_createCCtx();
    int error = made->path == NULL || made->context == NULL ? -ENOMEM : prepare_context(made->context);
    if (error == 0)
        error = open_file(made, append);
    if (error != 0) {
        free_writer(made);
        return error;
    }
    *writer = made;
    return 0;
}

static int lose_frame(struct capture_writer *writer, int error)
{
    /* Best effort: on a full disk the part that was written is cut off again; the next frame overwrites it anyway. */
    int cut = ftruncate(writer->descriptor, (off_t)writer->end_bytes);

    (void)cut;
    if (writer->batches_lost == 0)
        log_error("cannot record to %s: %s; what comes is lost to it until there is room", writer->path,
                  strerror(-error));
    if (writer->first_error == 0)
        writer->first_error = error;
    writer->batches_lost += writer->batches_buffered;
    writer->batches_lost_total += writer->batches_buffered;
    return error;
}

static int write_frame(struct capture_writer *writer)
{
    size_t length = ZSTD_compress2(writer->context, writer->frame + sizeof(uint32_t), FRAME_FILE_BYTES_MAX,
                                   writer->clear, writer->used_bytes);
    if (ZSTD_isError(length))
        return lose_frame(writer, -EIO);
    uint32_t length_field = (uint32_t)length;
    memcpy(writer->frame, &length_field, sizeof length_field);
    int error = write_at(writer->descriptor, writer->frame, sizeof length_field + length, writer->end_bytes);
    if (error != 0)
        return lose_frame(writer, error);
    writer->end_bytes += sizeof length_field + length;
    if (writer->batches_lost > 0)
        log_info("recording to %s again; %llu batches are missing from it", writer->path,
                 (unsigned long long)writer->batches_lost);
    writer->batches_lost = 0;
    return 0;
}

int capture_flush(struct capture_writer *writer)
{
    if (writer->used_bytes == 0)
        return 0;
    int error = write_frame(writer);
    writer->used_bytes = 0;
    writer->batches_buffered = 0;
    return error;
}

int capture_write(struct capture_writer *writer, const void *batch, size_t length_bytes)
{
    if (length_bytes < sizeof(struct batch_header) || length_bytes > BATCH_BYTES_MAX)
        return log_error_return(-EINVAL, "a batch of %zu bytes cannot be recorded to %s", length_bytes, writer->path);
    memcpy(writer->clear + writer->used_bytes, batch, length_bytes);
    writer->used_bytes += length_bytes;
    writer->batches_buffered++;
    return writer->used_bytes >= FRAME_FILL_BYTES ? capture_flush(writer) : 0;
}

uint64_t capture_lost_batches(const struct capture_writer *writer)
{
    return writer->batches_lost_total;
}

int capture_writer_close(struct capture_writer **writer)
{
    if (*writer == NULL)
        return 0;
    capture_flush(*writer);
    int error = (*writer)->first_error;
    free_writer(*writer);
    *writer = NULL;
    return error;
}

/* A pipe is not waited for: it cannot be read from a place in it. */
static int open_to_read(const char *path)
{
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (descriptor < 0)
        return log_error_return(-errno, "cannot open %s: %m", path);
    if (fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode)) {
        close(descriptor);
        return log_error_return(-ESPIPE, "%s is a pipe: a capture is read from a file", path);
    }
    return descriptor;
}

int capture_reader_open(struct capture_reader **reader, const char *path)
{
    struct capture_reader *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->descriptor = open_to_read(path);
    int error = made->descriptor < 0 ? made->descriptor : check_header(made->descriptor, path);
    made->path = strdup(path);
    made->context = ZSTD_createDCtx();
    if (error == 0 && (made->path == NULL || made->context == NULL))
        error = -ENOMEM;
    if (error != 0) {
        capture_reader_close(&made);
        return error;
    }
    made->offset_bytes = sizeof(struct file_header);
    *reader = made;
    return 0;
}

static int refuse(struct capture_reader *reader, const char *what)
{
    unsigned long long offset = reader->offset_bytes;

    reader->ended = -EBADMSG;
    if (!reader->has_given)
        return log_error_return(-EBADMSG, "%s: %s at byte %llu, and nothing comes before it", reader->path, what,
                                offset);
    log_warning("%s: %s at byte %llu; what came before it stands", reader->path, what, offset);
    return -EBADMSG;
}

static int unpack_frame(struct capture_reader *reader, size_t length_bytes)
{
    size_t clear =
        ZSTD_decompressDCtx(reader->context, reader->clear, sizeof reader->clear, reader->frame, length_bytes);

    if (ZSTD_isError(clear) || clear == 0)
        return refuse(reader, "a damaged frame");
    cursor_init(&reader->batches, reader->clear, clear);
    reader->offset_bytes += sizeof(uint32_t) + length_bytes;
    return 1;
}

/* 1 with a frame unpacked, 0 at the end, or -errno. */
static int next_frame(struct capture_reader *reader)
{
    uint32_t length = 0;
    ssize_t got = read_at(reader->descriptor, &length, sizeof length, reader->offset_bytes);

    if (got == 0)
        return 0;
    if (got == sizeof length && (length == 0 || length > FRAME_FILE_BYTES_MAX))
        return refuse(reader, "a damaged frame length");
    if (got == sizeof length)
        got = read_at(reader->descriptor, reader->frame, length, reader->offset_bytes + sizeof length);
    if (got < 0) {
        reader->ended = (int)got;
        return log_error_return((int)got, "cannot read %s: %s", reader->path, strerror((int)-got));
    }
    if (length == 0 || got != (ssize_t)length)
        return refuse(reader, "the file was cut");
    return unpack_frame(reader, length);
}

/* The whole batch at the cursor, or NULL when there is none. */
static const uint8_t *take_batch(struct cursor *batches, size_t *length_bytes)
{
    const uint8_t *start = batches->at;
    struct batch_header header;

    if (!cursor_copy(batches, &header, sizeof header) || header.magic != BATCH_MAGIC ||
        !cursor_skip(batches, header.records_bytes))
        return NULL;
    *length_bytes = sizeof header + header.records_bytes;
    return start;
}

int capture_read(struct capture_reader *reader, const void **batch, size_t *length_bytes)
{
    if (reader->ended != 0)
        return reader->ended;
    if (cursor_left(&reader->batches) == 0) {
        int result = next_frame(reader);
        if (result != 1)
            return result;
    }
    const uint8_t *bytes = take_batch(&reader->batches, length_bytes);
    if (bytes == NULL)
        return refuse(reader, "a frame without whole batches");
    *batch = bytes;
    reader->has_given = true;
    return 1;
}

void capture_reader_close(struct capture_reader **reader)
{
    if (*reader == NULL)
        return;
    if ((*reader)->descriptor >= 0)
        close((*reader)->descriptor);
    ZSTD_freeDCtx((*reader)->context);
    free((*reader)->path);
    free(*reader);
    *reader = NULL;
}
