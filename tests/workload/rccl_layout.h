/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How RCCL 5.4.3 (NCCL 2.13.4) lays out what its host side hands to its device kernel, on x86-64. Written from the
 * facts in the open source of that version (devcomm.h, collectives.h); another version needs a new check. Sizes and
 * offsets are asserted in rccl_layout.c.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STEPS = 8, CHANNELS_MAX = 64, CONNS = 3, WARP = 64, TREE_ARITY = 2, WORK_SIZE = 256, P2P_ELEMS = 8 };
enum coll { BROADCAST, REDUCE, ALLGATHER, REDUCESCATTER, ALLREDUCE, NCOLLS, SENDRECV };
enum algo { TREE, RING, COLLNET, NALGOS };
enum proto { LL, LL128, SIMPLE, NPROTOS };
enum redop { SUM, PROD, MAX, MIN, PREMULSUM, SUMPOSTDIV, NREDOPS };
enum dtype { I8, U8, I32, U32, I64, U64, F16, F32, F64, BF16, NTYPES };
enum { FUNC_P2P = NTYPES + NCOLLS * NREDOPS * NTYPES * NALGOS * NPROTOS };
enum work_type { WORK_UNUSED, WORK_COLL, WORK_P2P, WORK_REGCOLL };
enum p2p_type { P2P_UNUSED, P2P_SEND, P2P_RECV };

struct conn { /* ncclConnInfo */
    char *buffs[NPROTOS];
    uint64_t *tail, *head;
    int direct, shared;
    void **ptr_exchange;
    uint64_t *redop_exchange;
    int *sizes_fifo, *offs_fifo;
    uint64_t step, ll_last_cleaning;
    uint32_t *next_hdp, *curr_hdp;
};
struct peer { /* ncclDevChannelPeer */
    struct conn send[CONNS], recv[CONNS];
};
struct tree {
    int depth, up, down[3];
};
struct channel { /* ncclDevChannel */
    struct peer *peers;
    struct {
        int prev, next;
        int *user_ranks;
        int index;
    } ring;
    struct tree tree, bin_tree;
    int coll_tree[19];
    uint32_t *work_fifo_done;
} __attribute__((aligned(16)));
struct devcomm { /* ncclDevComm, the part in front of what depends on build options */
    int rank, nranks, buff_sizes[NPROTOS], work_fifo_depth;
    void *work_fifo;
    volatile uint32_t *abort_flag;
    struct channel *channels;
};
struct coll_elem { /* ncclWorkElem */
    uint8_t is_used : 1, redop_arg_is_ptr : 1, reg_used : 1, nwarps : 5;
    uint8_t direct, bid, nchannels;
    uint32_t root : 28, pad : 2, conn_index : 2;
    const char *sendbuff;
    char *recvbuff;
    uint64_t count, last_chunk_size, redop_arg, op_count;
};
struct p2p_elem { /* ncclWorkElemP2p */
    int32_t peer : 30;
    uint32_t conn_index : 2;
    uint16_t type : 4, nwarps : 4, warp_start : 4, ngroups : 4;
    uint16_t op_count;
    uint32_t buff_hi, buff_lo, count_hi, count_lo;
    int chunk_size;
};
struct work { /* ncclWork */
    union {
        int32_t next;       /* where the next work of this channel is, from the first one */
        uint32_t done_acks; /* in the last one: what to tell the host when all are read */
    };
    uint16_t func;
    uint8_t is_last : 1, in_fifo : 1;
    uint8_t type;
    union {
        char size[WORK_SIZE - 8];
        struct coll_elem coll;
        struct p2p_elem p2p[P2P_ELEMS]; /* RCCL uses two and leaves the rest zero; NCCL's work has room for more */
    };
};

/* What a work asks for, unpacked from its function number. */
struct func {
    enum coll coll;
    enum redop redop;
    enum dtype type;
    enum algo algo;
    enum proto proto;
};

struct func func_decode(int index);
int type_size_bytes(enum dtype type);
bool p2p_elem_used(const struct p2p_elem *elem);
int64_t p2p_elem_count(const struct p2p_elem *elem);
char *p2p_elem_buffer(const struct p2p_elem *elem);
