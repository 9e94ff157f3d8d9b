/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a fuzz target over every file of a corpus directory, where libFuzzer is not linked, and prints TAP. Invariant:
 * each input lies in memory of its own, exactly as long as it is, so that a sanitizer sees any step beyond it.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

static int run_file(const char *directory, const char *name)
{
    char path[4096];
    struct stat status;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &status) != 0)
        return -1;
    size_t length = (size_t)status.st_size;
    uint8_t *bytes = malloc(length == 0 ? 1 : length);
    int result = bytes != NULL && fread(bytes, 1, length, file) == length ? LLVMFuzzerTestOneInput(bytes, length) : -1;
    free(bytes);
    fclose(file);
    return result;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    struct dirent **entries;
    int failed = 0;
    int count = argc == 2 ? scandir(argv[1], &entries, is_visible, alphasort) : -1;

    if (count <= 0) {
        fprintf(stderr, "usage: %s CORPUS_DIRECTORY (with at least one file)\n", argv[0]);
        return 2;
    }
    printf("1..%d\n", count);
    for (int i = 0; i < count; i++) {
        int result = run_file(argv[1], entries[i]->d_name);
        printf("%s %d - %s\n", result == 0 ? "ok" : "not ok", i + 1, entries[i]->d_name);
        fflush(stdout);
        failed += result != 0;
        free(entries[i]);
    }
    free(entries);
    return failed == 0 ? 0 : 1;
}
