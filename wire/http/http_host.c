/* SPDX-License-Identifier: BSD-2-Clause */
/* The Host header, as RFC 9110 (7.2) and RFC 3986 (3.2.2) have it. Invariant: what is not understood is not own. */
#include "wire/http/http_host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#define HOST_BYTES_MAX 256

static bool is_port(const char *text)
{
    return *text == '\0' || (*text == ':' && text[1 + strspn(text + 1, "0123456789")] == '\0');
}

/* Without brackets and port. */
static bool cut(const char *host, char *bare)
{
    bool in_brackets = host[0] == '[';
    const char *begin = host + in_brackets;
    size_t length = strcspn(begin, in_brackets ? "]" : ":");
    const char *end = begin + length;

    if (length == 0 || length >= HOST_BYTES_MAX || (in_brackets && *end != ']') || !is_port(end + in_brackets))
        return false;
    memcpy(bare, begin, length);
    bare[length] = '\0';
    return true;
}

/* IPv4 in its form within IPv6, so that both ways of writing it are alike. */
static bool read_address(const char *text, struct in6_addr *address)
{
    struct in_addr four;

    if (inet_pton(AF_INET6, text, address) == 1)
        return true;
    if (inet_pton(AF_INET, text, &four) != 1)
        return false;
    memset(address, 0, sizeof *address);
    memset(&address->s6_addr[10], 0xff, 2);
    memcpy(&address->s6_addr[12], &four, sizeof four);
    return true;
}

static bool is_same_address(const char *a, const char *b)
{
    struct in6_addr left, right;

    return read_address(a, &left) && read_address(b, &right) && memcmp(&left, &right, sizeof left) == 0;
}

bool http_host_is_own(const char *host, const char *reached, const char *const *names, size_t names_count)
{
    char bare[HOST_BYTES_MAX];

    if (!cut(host, bare))
        return false;
    bool own = strcasecmp(bare, "localhost") == 0 || is_same_address(bare, reached);
    for (size_t i = 0; i < names_count && !own; i++)
        own = strcasecmp(bare, names[i]) == 0;
    return own;
}
