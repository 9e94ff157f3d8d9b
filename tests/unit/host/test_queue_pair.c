/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: what ibv_modify_qp's mask lets count, flush queue pairs, numbers used again. And where the probes read.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/tracker/queue_pair.h"

/* The probes' offsets are those of the installed libibverbs' header. */
#define LAYOUT(structure, member, offset)                                                                              \
    _Static_assert(offsetof(struct structure, member) == (offset), #structure "." #member);
#include "bpf/layout.def"
#undef LAYOUT

#define OWN                                                                                                            \
    {                                                                                                                  \
        [10] = 0xff, 0xff, 10, 0, 0, 1                                                                                 \
    }
#define PEER                                                                                                           \
    {                                                                                                                  \
        [10] = 0xff, 0xff, 10, 0, 0, 2                                                                                 \
    }
static const uint8_t own[ADDRESS_BYTES] = OWN;
static const uint8_t peer[ADDRESS_BYTES] = PEER;

static int read_own(void *context, const char *device, unsigned port, unsigned index, uint8_t gid[ADDRESS_BYTES])
{
    (void)context;
    if (strcmp(device, "rxe0") != 0 || port != 1 || index != 3)
        return -ENOENT;
    memcpy(gid, own, sizeof own);
    return 0;
}

static int setup(void **state)
{
    return queue_pair_table_create((struct queue_pair_table **)state, 4);
}

static int teardown(void **state)
{
    queue_pair_table_destroy((struct queue_pair_table **)state);
    return 0;
}

static struct record_queue_pair *add(struct queue_pair_table *table, uint32_t process, uint64_t pointer, uint32_t qpn)
{
    const struct event_queue_pair_create event = {.header = {.tid = 9, .at_ns = 50},
                                                  .pointer = pointer,
                                                  .send_queue = 0xc0,
                                                  .qpn = qpn,
                                                  .type = 2,
                                                  .device = "rxe0"};
    struct record_queue_pair *queue_pair = NULL;
    struct record_queue_pair older;
    assert_int_equal(queue_pair_add(table, process, &event, &queue_pair, &older), 0);
    assert_int_equal(older.queue_pair, 0);
    return queue_pair;
}

static struct event_queue_pair_modify to_peer(const uint8_t address[ADDRESS_BYTES], uint32_t qpn)
{
    struct event_queue_pair_modify event = {.header.at_ns = 60,
                                            .mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN,
                                            .remote_qpn = qpn,
                                            .state = IBV_QPS_RTR,
                                            .address_port = 1,
                                            .address_index = 3,
                                            .traffic_class = 104,
                                            .global = 1};
    memcpy(event.remote_address, address, ADDRESS_BYTES);
    return event;
}

static void life(void **state)
{
    struct record_queue_pair *queue_pair = add(*state, 1, 0x1000, 17);
    const struct event_queue_pair_modify init = {
        .mask = IBV_QP_STATE | IBV_QP_PORT, .state = IBV_QPS_INIT, .port = 1, .remote_qpn = 99};
    assert_int_equal(queue_pair_modify(queue_pair, &init, read_own, NULL), 0);
    assert_int_equal(queue_pair->remote_qpn, 0);
    assert_int_equal(queue_pair->port, 1);
    const struct event_queue_pair_modify connect = to_peer(peer, 18);
    assert_int_equal(queue_pair_modify(queue_pair, &connect, read_own, NULL), 0);
    assert_int_equal(queue_pair->remote_qpn, 18);
    assert_memory_equal(queue_pair->address, own, sizeof own);
    assert_memory_equal(queue_pair->remote_address, peer, sizeof peer);
    assert_int_equal(queue_pair->traffic_class, 104);
    assert_int_equal(queue_pair->ready_ns, 0);
    const struct event_queue_pair_modify ready = {.header.at_ns = 70, .mask = IBV_QP_STATE, .state = IBV_QPS_RTS};
    assert_int_equal(queue_pair_modify(queue_pair, &ready, read_own, NULL), 0);
    const struct event_queue_pair_modify again = {.header.at_ns = 80, .mask = IBV_QP_STATE, .state = IBV_QPS_RTS};
    assert_int_equal(queue_pair_modify(queue_pair, &again, read_own, NULL), 0);
    assert_int_equal(queue_pair->ready_ns, 70);
    assert_int_equal(queue_pair->flags, 0);
    assert_int_equal(queue_pair->created_ns, 50);
    assert_int_equal(queue_pair->creator_tid, 9);
}

static void flush_is_own_number_at_own_address(void **state)
{
    struct record_queue_pair *to_itself = add(*state, 1, 0x1000, 17);
    struct record_queue_pair *to_namesake = add(*state, 1, 0x2000, 18);
    struct record_queue_pair *to_neighbour = add(*state, 1, 0x3000, 19);
    const struct event_queue_pair_modify events[] = {to_peer(own, 17), to_peer(peer, 18), to_peer(own, 18)};
    assert_int_equal(queue_pair_modify(to_itself, &events[0], read_own, NULL), 0);
    assert_int_equal(queue_pair_modify(to_namesake, &events[1], read_own, NULL), 0);
    assert_int_equal(queue_pair_modify(to_neighbour, &events[2], read_own, NULL), 0);
    assert_int_equal(to_itself->flags, QUEUE_PAIR_FLUSH);
    assert_int_equal(to_namesake->flags, 0);
    assert_int_equal(to_neighbour->flags, 0);
}

static void own_address_unknown(void **state)
{
    struct record_queue_pair *queue_pair = add(*state, 1, 0x1000, 17);
    struct event_queue_pair_modify event = to_peer(own, 17);
    event.address_index = 4;
    assert_int_equal(queue_pair_modify(queue_pair, &event, read_own, NULL), -ENOENT);
    assert_int_equal(queue_pair->remote_qpn, 17);
    assert_int_equal(queue_pair->flags, 0);
}

/* Each attribute counts with its bit and no other: the bits are ibv_modify_qp(3)'s. */
static void attributes_count_with_their_bit(void **state)
{
    static const struct {
        int mask;
        size_t offset;
        size_t size_bytes;
        uint32_t value;
    } attributes[] = {
#define ATTRIBUTE(mask, member, value)                                                                                 \
    {mask, offsetof(struct record_queue_pair, member), sizeof(((struct record_queue_pair *)0)->member), value}
        ATTRIBUTE(IBV_QP_ACCESS_FLAGS, access_flags, 14), ATTRIBUTE(IBV_QP_PATH_MTU, path_mtu_bytes, 4096),
        ATTRIBUTE(IBV_QP_TIMEOUT, timeout, 20),           ATTRIBUTE(IBV_QP_RETRY_CNT, retry_count, 6),
        ATTRIBUTE(IBV_QP_RNR_RETRY, rnr_retry, 5),        ATTRIBUTE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer, 12),
        ATTRIBUTE(IBV_QP_AV, service_level, 3),           ATTRIBUTE(IBV_QP_PORT, port, 2),
    };
    const size_t count = sizeof attributes / sizeof attributes[0];
    for (size_t i = 0; i < count; i++) {
        const struct event_queue_pair_modify event = {.mask = (uint32_t)attributes[i].mask,
                                                      .access_flags = 14,
                                                      .path_mtu = IBV_MTU_4096,
                                                      .timeout = 20,
                                                      .retry_count = 6,
                                                      .rnr_retry = 5,
                                                      .min_rnr_timer = 12,
                                                      .service_level = 3,
                                                      .port = 2};
        struct record_queue_pair *queue_pair = add(*state, 1, 0x1000, 17);
        assert_int_equal(queue_pair_modify(queue_pair, &event, read_own, NULL), 0);
        for (size_t j = 0; j < count; j++) {
            uint32_t value = 0;
            memcpy(&value, (const char *)queue_pair + attributes[j].offset, attributes[j].size_bytes);
            assert_int_equal(value, i == j ? attributes[j].value : 0);
        }
        assert_int_equal(queue_pair->attributes, (uint32_t)attributes[i].mask);
        queue_pair_remove(*state, queue_pair);
    }
}

static void impossible_mtu(void **state)
{
    struct record_queue_pair *queue_pair = add(*state, 1, 0x1000, 17);
    const struct event_queue_pair_modify event = {.mask = IBV_QP_PATH_MTU, .path_mtu = 6};
    assert_int_equal(queue_pair_modify(queue_pair, &event, read_own, NULL), 0);
    assert_int_equal(queue_pair->path_mtu_bytes, 0);
}

static void first_error_is_kept(void **state)
{
    struct record_queue_pair *queue_pair = add(*state, 1, 0x1000, 17);
    static const uint8_t states[] = {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE, IBV_QPS_ERR, IBV_QPS_RESET, IBV_QPS_ERR};
    static const uint64_t errors_ns[] = {0, 0, 0, 13, 13, 13};
    for (uint64_t i = 0; i < sizeof states; i++) {
        const struct event_queue_pair_modify event = {.header.at_ns = 10 + i, .mask = IBV_QP_STATE, .state = states[i]};
        assert_int_equal(queue_pair_modify(queue_pair, &event, read_own, NULL), 0);
        assert_int_equal(queue_pair->state, states[i]);
        assert_int_equal(queue_pair->error_ns, errors_ns[i]);
    }
}

static void used_again(void **state)
{
    const struct event_queue_pair_create event = {.pointer = 0x1000, .qpn = 17, .device = "rxe0"};
    struct record_queue_pair *fresh = NULL;
    struct record_queue_pair older;
    const uint32_t first = add(*state, 1, 0x1000, 17)->queue_pair;
    add(*state, 2, 0x1000, 17);
    assert_int_equal(queue_pair_add(*state, 1, &event, &fresh, &older), 0);
    assert_int_equal(older.queue_pair, first);
    assert_int_not_equal(fresh->queue_pair, first);
    assert_int_equal(fresh->generation, 3); /* the number's third one: of the same device, whoever made it */
    assert_int_equal(queue_pair_count(*state), 2);
    assert_ptr_equal(queue_pair_find(*state, 1, 0x1000), fresh);
    queue_pair_remove(*state, fresh);
    assert_null(queue_pair_find(*state, 1, 0x1000));
    assert_non_null(queue_pair_find(*state, 2, 0x1000));
}

static void full_table(void **state)
{
    const struct event_queue_pair_create event = {.pointer = 0x9000};
    struct record_queue_pair *fresh = NULL;
    struct record_queue_pair older;
    for (uint64_t i = 0; i < 4; i++)
        add(*state, 1, 0x1000 + i, (uint32_t)i);
    assert_int_equal(queue_pair_add(*state, 1, &event, &fresh, &older), -ENOSPC);
    assert_null(fresh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(life, setup, teardown),
        cmocka_unit_test_setup_teardown(flush_is_own_number_at_own_address, setup, teardown),
        cmocka_unit_test_setup_teardown(own_address_unknown, setup, teardown),
        cmocka_unit_test_setup_teardown(attributes_count_with_their_bit, setup, teardown),
        cmocka_unit_test_setup_teardown(impossible_mtu, setup, teardown),
        cmocka_unit_test_setup_teardown(first_error_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(used_again, setup, teardown),
        cmocka_unit_test_setup_teardown(full_table, setup, teardown),
    };
    return cmocka_run_group_tests_name("queue_pair", tests, NULL, NULL);
}
