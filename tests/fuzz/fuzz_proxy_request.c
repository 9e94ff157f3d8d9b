/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to a proxy, of the length that the first byte gives; its highest bit: of a library that splits. Checked:
 * what is accepted is what can be. */
#include "host/tracker/proxy_request.h"

#include <stdlib.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    struct proxy_request request;
    struct proxy_address address;

    if (length_bytes == 0)
        return 0;
    if (proxy_request_decode(bytes + 1, length_bytes - 1, bytes[0] & 127, bytes[0] >> 7, &request) == 0 &&
        (request.origin_rank < 0 || request.far_rank < 0 || request.channel < 0 ||
         length_bytes - 1 < (bytes[0] & 127u)))
        abort();
    if (proxy_address_decode(bytes + 1, length_bytes - 1, &address) == 0 &&
        (address.port == 0 || (address.family != AF_INET && address.family != AF_INET6)))
        abort();
    return 0;
}
