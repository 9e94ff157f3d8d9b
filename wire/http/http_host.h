/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a request's Host is this server: a page of elsewhere can have its own name lead to this machine (DNS
 * rebinding), and would else be told everything by the browser of who looks at it. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * `host` is the header's value: a name or an address, in brackets or not, with or without a port, which is not
 * compared, since it may be that of a forwarded one. Own are localhost, the numeric address `reached`, and the names;
 * their case is of no matter.
 */
bool http_host_is_own(const char *host, const char *reached, const char *const *names, size_t names_count);
