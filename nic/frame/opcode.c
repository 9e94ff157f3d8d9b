/* SPDX-License-Identifier: BSD-2-Clause */
/* The opcode table, indexed by opcode. Invariant: extension_bytes is the sum of the sizes of the extensions. */
#include "nic/frame/opcode.h"

enum {
    NONE = OPCODE_NONE,
    RDETH = OPCODE_RDETH,
    DETH = OPCODE_DETH,
    XRCETH = OPCODE_XRCETH,
    FETH = OPCODE_FETH,
    RETH = OPCODE_RETH,
    ATOMICETH = OPCODE_ATOMICETH,
    AETH = OPCODE_AETH,
    ATOMICACKETH = OPCODE_ATOMICACKETH,
    IMMDT = OPCODE_IMMDT,
    IETH = OPCODE_IETH,
};

#define HAS(extensions, extension, bytes) (((extensions) & (extension)) != 0 ? (bytes) : 0)
#define EXTENSION_BYTES(x)                                                                                             \
    (HAS(x, RDETH, 4) + HAS(x, DETH, 8) + HAS(x, XRCETH, 4) + HAS(x, FETH, 4) + HAS(x, RETH, 16) +                     \
     HAS(x, ATOMICETH, 28) + HAS(x, AETH, 4) + HAS(x, ATOMICACKETH, 8) + HAS(x, IMMDT, 4) + HAS(x, IETH, 4))

const struct opcode opcode_table[256] = {
#define OPCODE(number, name, extensions, position, kind)                                                               \
    [number] = {#name, extensions, EXTENSION_BYTES(extensions), OPCODE_##position, OPCODE_##kind},
#include "nic/frame/opcode.def"
#undef OPCODE
};

unsigned opcode_extension_bytes(enum opcode_extension extension)
{
    return EXTENSION_BYTES((unsigned)extension);
}
