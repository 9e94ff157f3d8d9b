/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any text as a request's Host. Checked: what is taken for this server begins with a name that it has, or is made of
 * the characters of a numeric address alone; no text is taken once a letter of a foreign name stands before it.
 */
#include "wire/http/http_host.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

static const char *const names[] = {"node1"};

static bool is_own(const char *host)
{
    return http_host_is_own(host, "192.0.2.7", names, 1);
}

static void check_own(const char *host)
{
    const char *bare = host[0] == '[' ? host + 1 : host;
    bool named = strncasecmp(bare, "localhost", 9) == 0 || strncasecmp(bare, names[0], strlen(names[0])) == 0;

    if (!named && host[strspn(host, "0123456789abcdefABCDEF:.[]")] != '\0')
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    char *host = calloc(1, length_bytes + 2);

    if (host == NULL)
        abort();
    host[0] = 'z';
    memcpy(host + 1, bytes, length_bytes);
    if (is_own(host))
        abort();
    if (is_own(host + 1))
        check_own(host + 1);
    free(host);
    return 0;
}
