/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant: IPv4 is written as ::ffff:a.b.c.d, as in records. */
#include "nic/port/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "wire/log.h"

int address_read(const char *option, const char *text, uint8_t address[ADDRESS_BYTES])
{
    uint8_t mapped[ADDRESS_BYTES] = {[10] = 0xff, [11] = 0xff};

    if (inet_pton(AF_INET6, text, address) == 1)
        return 0;
    if (inet_pton(AF_INET, text, mapped + 12) != 1)
        return log_error_return(-EINVAL, "--%s: '%s' is no GID, IPv6 or IPv4 address", option, text);
    memcpy(address, mapped, ADDRESS_BYTES);
    return 0;
}
