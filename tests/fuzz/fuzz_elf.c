/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a library file: whatever is found in it lies in it. */
#include "host/library/library.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    struct library_places places;
    const int descriptor = memfd_create("library", MFD_CLOEXEC);
    if (descriptor < 0 || write(descriptor, bytes, length_bytes) != (ssize_t)length_bytes)
        abort();
    if (library_find(descriptor, &places) == 0)
        for (size_t i = 0; i < places.count; i++)
            if (places.places[i].spec >= probe_specs_count || places.places[i].file_offset >= length_bytes)
                abort();
    close(descriptor);
    return 0;
}
