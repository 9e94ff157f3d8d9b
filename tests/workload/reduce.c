/* SPDX-License-Identifier: BSD-2-Clause */
/* One loop for each type, made by a macro; bfloat16 goes through float, rounded to nearest, ties to even. */
#include "reduce.h"

#include <string.h>

__extension__ typedef _Float16 half;

#define APPLY(type, expr)                                                                                              \
    do {                                                                                                               \
        type *d = to;                                                                                                  \
        const type *p = a, *q = b;                                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            type x = p[i], y = q[i];                                                                                   \
            d[i] = (type)(expr);                                                                                       \
        }                                                                                                              \
    } while (0)
#define REDUCER(name, type)                                                                                            \
    static void reduce_##name(void *to, const void *a, const void *b, int64_t n, enum redop redop)                     \
    {                                                                                                                  \
        if (redop == PROD)                                                                                             \
            APPLY(type, x *y);                                                                                         \
        else if (redop == MAX)                                                                                         \
            APPLY(type, x > y ? x : y);                                                                                \
        else if (redop == MIN)                                                                                         \
            APPLY(type, x < y ? x : y);                                                                                \
        else                                                                                                           \
            APPLY(type, x + y);                                                                                        \
    }
REDUCER(i8, int8_t)
REDUCER(u8, uint8_t)
REDUCER(u32, uint32_t)
REDUCER(i32, int32_t)
REDUCER(u64, uint64_t)
REDUCER(i64, int64_t)
REDUCER(f16, half)
REDUCER(f32, float)
REDUCER(f64, double)

static float from_bf16(uint16_t x)
{
    uint32_t u = (uint32_t)x << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}
static uint16_t to_bf16(float f)
{ // to nearest, ties to even
    uint32_t u;
    memcpy(&u, &f, 4);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static void reduce_bf16(void *to, const void *a, const void *b, int64_t n, enum redop redop)
{
    for (int64_t i = 0; i < n; i++) {
        float x = from_bf16(((const uint16_t *)a)[i]), y = from_bf16(((const uint16_t *)b)[i]), r;
        reduce_f32(&r, &x, &y, 1, redop);
        ((uint16_t *)to)[i] = to_bf16(r);
    }
}

void reduce_apply(void *to, const void *a, const void *b, int64_t n, enum dtype type, enum redop redop)
{
    typedef void reducer(void *, const void *, const void *, int64_t, enum redop);
    static reducer *const by_type[NTYPES] = {reduce_i8,  reduce_u8,  reduce_i32, reduce_u32, reduce_i64,
                                             reduce_u64, reduce_f16, reduce_f32, reduce_f64, reduce_bf16};
    by_type[type](to, a, b, n, redop);
}
