/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The socket of RDMA netlink. The kernel fills the next part of a dump while it hands out the one before, so a part was
 * read between the start of the call before and the end of its own. Invariant: after an answer was left half read the
 * socket is drained by its sequence number before the next question.
 */
#include "wire/rdma/rdma_netlink.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <rdma/rdma_netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "wire/clock.h"
#include "wire/log.h"

#define BUFFER_BYTES 65536u
#define WAIT_S       1

struct rdma_netlink {
    struct mnl_socket *socket;
    uint32_t sequence;
    uint8_t buffer[BUFFER_BYTES];
};

struct answer { /* to one question, while it is read */
    rdma_message_visit visit;
    void *context;
    const char *name; /* of the device that is looked for */
    int device;
    uint8_t *raw;
    size_t raw_capacity;
    size_t raw_bytes;
    int error;
};

struct timed_visit {
    rdma_netlink_visit visit;
    void *context;
    uint64_t from_ns;
    uint64_t to_ns;
};

int rdma_netlink_open(struct rdma_netlink **netlink)
{
    const struct timeval wait = {.tv_sec = WAIT_S};
    struct rdma_netlink *made = calloc(1, sizeof *made);

    if (made == NULL)
        return log_error_return(-ENOMEM, "no memory for the RDMA netlink");
    made->socket = mnl_socket_open2(NETLINK_RDMA, SOCK_CLOEXEC);
    if (made->socket == NULL || mnl_socket_bind(made->socket, 0, MNL_SOCKET_AUTOPID) != 0) {
        int error = -errno;
        rdma_netlink_close(&made);
        return log_error_return(error, "cannot ask the kernel for queue pairs (RDMA netlink: %s): is ib_core loaded?",
                                strerror(-error));
    }
    setsockopt(mnl_socket_get_fd(made->socket), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    *netlink = made;
    return 0;
}

void rdma_netlink_close(struct rdma_netlink **netlink)
{
    if (*netlink == NULL)
        return;
    if ((*netlink)->socket != NULL)
        mnl_socket_close((*netlink)->socket);
    free(*netlink);
    *netlink = NULL;
}

static int ask(struct rdma_netlink *netlink, int command, uint16_t flags, const uint32_t *device, const uint32_t *qpn)
{
    uint8_t bytes[128];
    struct nlmsghdr *header = mnl_nlmsg_put_header(bytes);

    header->nlmsg_type = (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command);
    header->nlmsg_flags = NLM_F_REQUEST | flags;
    header->nlmsg_seq = ++netlink->sequence;
    if (device != NULL)
        mnl_attr_put_u32(header, RDMA_NLDEV_ATTR_DEV_INDEX, *device);
    if (qpn != NULL)
        mnl_attr_put_u32(header, RDMA_NLDEV_ATTR_RES_LQPN, *qpn);
    return mnl_socket_sendto(netlink->socket, header, header->nlmsg_len) < 0 ? -errno : 0;
}

static void keep(struct answer *answer, const struct rdma_message *message)
{
    if (answer->name != NULL && strcmp(message->device_name, answer->name) == 0)
        answer->device = (int)message->device;
    if (answer->raw != NULL && message->raw != NULL && message->raw_bytes <= answer->raw_capacity) {
        memcpy(answer->raw, message->raw, message->raw_bytes);
        answer->raw_bytes = message->raw_bytes;
    }
}

/* Reads the messages of one buffer; true when the answer ends in it. */
static bool read_buffer(struct rdma_netlink *netlink, size_t length_bytes, struct answer *answer)
{
    struct rdma_message message;
    size_t at = 0;
    int taken;

    while ((taken = rdma_message_read(netlink->buffer + at, length_bytes - at, &message, answer->visit,
                                      answer->context)) > 0) {
        const struct nlmsghdr *header = (const void *)(netlink->buffer + at);
        at += (size_t)taken;
        if (header->nlmsg_seq != netlink->sequence)
            continue;
        if (message.is_error || message.is_last) {
            answer->error = -message.error;
            return true;
        }
        keep(answer, &message);
    }
    if (taken < 0)
        answer->error = taken;
    return taken < 0;
}

static int read_answer(struct rdma_netlink *netlink, struct answer *answer, struct timed_visit *timed)
{
    bool is_done = false;

    while (!is_done) {
        uint64_t before_ns = clock_now_ns();
        ssize_t length = mnl_socket_recvfrom(netlink->socket, netlink->buffer, sizeof netlink->buffer);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return -errno;
        if (timed != NULL)
            timed->to_ns = clock_now_ns();
        is_done = read_buffer(netlink, (size_t)length, answer);
        if (timed != NULL)
            timed->from_ns = before_ns;
    }
    return answer->error;
}

int rdma_netlink_device(struct rdma_netlink *netlink, const char *name)
{
    struct answer answer = {.name = name, .device = -ENODEV};
    int error = ask(netlink, RDMA_NLDEV_CMD_GET, NLM_F_ACK | NLM_F_DUMP, NULL, NULL);

    if (error == 0)
        error = read_answer(netlink, &answer, NULL);
    return error != 0 ? error : answer.device;
}

static void visit_timed(void *context, const struct rdma_queue_pair *pair)
{
    const struct timed_visit *timed = context;

    timed->visit(timed->context, pair, timed->from_ns, timed->to_ns);
}

int rdma_netlink_queue_pairs(struct rdma_netlink *netlink, uint32_t device, rdma_netlink_visit visit, void *context)
{
    struct timed_visit timed = {.visit = visit, .context = context, .from_ns = clock_now_ns()};
    struct answer answer = {.visit = visit_timed, .context = &timed};
    int error = ask(netlink, RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_ACK | NLM_F_DUMP, &device, NULL);

    return error != 0 ? error : read_answer(netlink, &answer, &timed);
}

int rdma_netlink_context(struct rdma_netlink *netlink, uint32_t device, uint32_t qpn, uint8_t *bytes, size_t capacity,
                         size_t *length_bytes)
{
    struct answer answer = {.raw = bytes, .raw_capacity = capacity};
    int error = ask(netlink, RDMA_NLDEV_CMD_RES_QP_GET_RAW, NLM_F_ACK, &device, &qpn);

    if (error == 0)
        error = read_answer(netlink, &answer, NULL);
    if (error == 0)
        *length_bytes = answer.raw_bytes;
    return error;
}
