/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses as people write them: a GID, an IPv6 or an IPv4 address. Any thread. */
#pragma once

#include <stdint.h>

#include "wire/record.h"

/* -EINVAL after logging that the option `--option`'s text is none. */
int address_read(const char *option, const char *text, uint8_t address[ADDRESS_BYTES]);
