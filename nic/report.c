/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows by the table in column.def: one printer for JSON and one for text. Invariant: a row's columns are its key's and
 * then its own, in the order of column.def; text that came from outside is escaped.
 */
#include "nic/report.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>

enum table {
    TABLE_KEY = 1,
    TABLE_FLOW,
    TABLE_TOTAL,
    TABLE_MESSAGE,
    TABLE_WINDOW,
    TABLE_SOURCE,
    TABLE_ENDPOINT,
    TABLE_READING,
    TABLE_PORT_COUNTER,
};
enum type {
    TYPE_UNSIGNED8,
    TYPE_UNSIGNED16,
    TYPE_UNSIGNED32,
    TYPE_UNSIGNED64,
    TYPE_QPN,
    TYPE_ADDRESS,
    TYPE_VANTAGE,
    TYPE_ROLE,
    TYPE_FLAGS,
    TYPE_TUNNEL, /* of a whole record_flow */
    TYPE_READING_FLAGS,
    TYPE_COUNTER_FLAGS,
    TYPE_SOURCE_FIELDS,
    TYPE_SOURCE_KIND,
    TYPE_STATE,
    TYPE_QP_TYPE,
    TYPE_METRIC,
    TYPE_PRIORITY,
};

struct column {
    enum table table;
    const char *name;
    enum type type;
    size_t offset;
    int width;
};

static const struct column columns[] = {
#define COLUMN(table, name, type, record, field, width)                                                                \
    {TABLE_##table, name, TYPE_##type, offsetof(struct record, field), width},
#include "nic/column.def"
#undef COLUMN
};
#define COLUMNS_COUNT (sizeof columns / sizeof columns[0])

/* Sets of bits, each with its name. */
static const struct {
    enum type type;
    uint32_t flag;
    const char *name;
} flags[] = {
    {TYPE_FLAGS, MESSAGE_IMMEDIATE, "immediate"},
    {TYPE_FLAGS, MESSAGE_INCOMPLETE, "incomplete"},
    {TYPE_FLAGS, MESSAGE_RETRANSMITTED, "retransmitted"},
    {TYPE_FLAGS, MESSAGE_MERGED, "merged"},
    {TYPE_FLAGS, MESSAGE_PLACED, "placed"},
    {TYPE_READING_FLAGS, READING_RESET, "reset"},
    {TYPE_READING_FLAGS, READING_REWOUND, "rewound"},
    {TYPE_READING_FLAGS, READING_AMBIGUOUS, "ambiguous"},
    {TYPE_READING_FLAGS, READING_SENT_ONLY, "sent_only"},
    {TYPE_READING_FLAGS, READING_RECEIVED_ONLY, "received_only"},
    {TYPE_COUNTER_FLAGS, PORT_COUNTER_RESET, "reset"},
#define SOURCE_FIELD(name, bit, text, help) {TYPE_SOURCE_FIELDS, SOURCE_##name, text},
#include "wire/source_field.def"
#undef SOURCE_FIELD
};

static uint64_t read_number(const struct column *column, const uint8_t *at)
{
    uint64_t number = 0;
    static const uint8_t bytes[] = {
        [TYPE_UNSIGNED8] = 1,     [TYPE_UNSIGNED16] = 2,    [TYPE_UNSIGNED32] = 4,    [TYPE_UNSIGNED64] = 8,
        [TYPE_QPN] = 4,           [TYPE_VANTAGE] = 1,       [TYPE_ROLE] = 1,          [TYPE_FLAGS] = 2,
        [TYPE_READING_FLAGS] = 4, [TYPE_COUNTER_FLAGS] = 4, [TYPE_SOURCE_FIELDS] = 4, [TYPE_SOURCE_KIND] = 4,
        [TYPE_STATE] = 1,         [TYPE_QP_TYPE] = 1,       [TYPE_METRIC] = 2,        [TYPE_PRIORITY] = 1};

    memcpy(&number, at, bytes[column->type]);
    return number;
}

static const char *name_of(const char *const *names, size_t count, uint64_t number)
{
    return number < count && names[number] != NULL ? names[number] : "unknown";
}

static const char *vantage_name(uint64_t vantage)
{
    static const char *const names[] = {[VANTAGE_MIDDLE] = "middle", [VANTAGE_TX] = "tx", [VANTAGE_RX] = "rx"};
    return name_of(names, sizeof names / sizeof names[0], vantage);
}

static const char *role_name(uint64_t role)
{
    static const char *const names[] = {[ROLE_DATA] = "data",
                                        [ROLE_CREDIT] = "credit",
                                        [ROLE_SIZE] = "size",
                                        [ROLE_FLUSH] = "flush",
                                        [ROLE_OTHER] = "other"};
    return name_of(names, sizeof names / sizeof names[0], role);
}

/* enum ibv_qp_state and enum ibv_qp_type */
static const char *state_name(uint64_t state)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    return name_of(names, sizeof names / sizeof names[0], state);
}

static const char *qp_type_name(uint64_t type)
{
    static const char *const names[] = {
        [0] = "SMI", [1] = "GSI", [2] = "RC", [3] = "UC", [4] = "UD", [8] = "RAW", [9] = "XRC_INI", [10] = "XRC_TGT"};
    return name_of(names, sizeof names / sizeof names[0], type);
}

/* The name that a number of this type stands for, or NULL where it stands for itself. */
static const char *word_of(enum type type, uint64_t number)
{
    const char *name;

    switch (type) {
    case TYPE_VANTAGE:
        return vantage_name(number);
    case TYPE_ROLE:
        return role_name(number);
    case TYPE_STATE:
        return state_name(number);
    case TYPE_QP_TYPE:
        return qp_type_name(number);
    case TYPE_SOURCE_KIND:
        name = traffic_source_name((uint32_t)number);
        return name == NULL ? "unknown" : name;
    case TYPE_METRIC:
        name = port_metric_name((uint16_t)number);
        return name == NULL ? "unknown" : name;
    default:
        return NULL;
    }
}

static void format_address(const uint8_t *address, char text[INET6_ADDRSTRLEN])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    if (memcmp(address, mapped, sizeof mapped) == 0)
        inet_ntop(AF_INET, address + 12, text, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET6, address, text, INET6_ADDRSTRLEN);
}

/* "erspan2:10.0.0.9/5 vxlan:5001 vlan:10.11", what there is of it: the mirror, the tunnel, the frame's own VLANs. */
static void print_tunnel(FILE *to, const struct record_flow *flow)
{
    static const char *const kinds[] = {
        [TUNNEL_VXLAN] = "vxlan", [TUNNEL_GRE] = "gre", [TUNNEL_GRE_KEY] = "gre", [TUNNEL_MPLS] = "mpls"};
    const char *separator = "";
    unsigned mirror = flow->mirror_kind & ~(unsigned)MIRROR_V6, address = flow->mirror_address;

    if (mirror != 0) {
        fprintf(to, "erspan%u:", mirror);
        if ((flow->mirror_kind & MIRROR_V6) != 0)
            fprintf(to, "v6-%08x", address);
        else
            fprintf(to, "%u.%u.%u.%u", address >> 24, address >> 16 & 0xff, address >> 8 & 0xff, address & 0xff);
        if (mirror != MIRROR_ERSPAN1)
            fprintf(to, "/%u", flow->mirror_session);
        separator = " ";
    }
    if (flow->tunnel_kind != TUNNEL_NONE) {
        fprintf(to, "%s%s", separator, name_of(kinds, sizeof kinds / sizeof kinds[0], flow->tunnel_kind));
        if (flow->tunnel_kind != TUNNEL_GRE)
            fprintf(to, ":%u", flow->tunnel);
        separator = " ";
    }
    if (flow->vlans != 0)
        fprintf(to, "%svlan:%u", separator, flow->vlans & 0xfff);
    if (flow->vlans >> 12 != 0)
        fprintf(to, ".%u", flow->vlans >> 12);
}

static void print_string(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(to, "\\u%04x", c);
        else
            fputc(c, to);
    }
    fputc('"', to);
}

static bool is_number(enum type type)
{
    return type != TYPE_ADDRESS && type != TYPE_TUNNEL;
}

static bool is_set(enum type type)
{
    return type == TYPE_FLAGS || type == TYPE_READING_FLAGS || type == TYPE_COUNTER_FLAGS || type == TYPE_SOURCE_FIELDS;
}

static void print_set(FILE *to, enum type type, uint64_t set, const char *quote)
{
    const char *separator = "";

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (flags[i].type != type || (set & flags[i].flag) == 0)
            continue;
        fprintf(to, "%s%s%s%s", separator, quote, flags[i].name, quote);
        separator = ",";
    }
}

static void print_json(FILE *to, const struct column *column, const uint8_t *at)
{
    char text[INET6_ADDRSTRLEN];
    uint64_t number = is_number(column->type) ? read_number(column, at) : 0;
    const char *word = word_of(column->type, number);

    fprintf(to, ",\"%s\":", column->name);
    if (is_set(column->type)) {
        fputc('[', to);
        print_set(to, column->type, number, "\"");
        fputc(']', to);
    } else if (column->type == TYPE_ADDRESS) {
        format_address(at, text);
        fprintf(to, "\"%s\"", text);
    } else if (column->type == TYPE_TUNNEL) {
        fputc('"', to);
        print_tunnel(to, (const struct record_flow *)at);
        fputc('"', to);
    } else if (word != NULL) {
        fprintf(to, "\"%s\"", word);
    } else if (column->type == TYPE_PRIORITY && number == PRIORITY_NONE) {
        fputs("null", to);
    } else {
        fprintf(to, "%llu", (unsigned long long)number);
    }
}

static void print_text(FILE *to, const struct column *column, const uint8_t *at)
{
    char text[INET6_ADDRSTRLEN];
    uint64_t number = is_number(column->type) ? read_number(column, at) : 0;
    const char *word = word_of(column->type, number);

    if (is_set(column->type)) {
        fputc(' ', to);
        print_set(to, column->type, number, "");
        return;
    }
    if (column->type == TYPE_ADDRESS)
        format_address(at, text);
    else if (word != NULL)
        snprintf(text, sizeof text, "%s", word);
    else if (column->type == TYPE_PRIORITY && number == PRIORITY_NONE)
        snprintf(text, sizeof text, "-");
    else
        snprintf(text, sizeof text, column->type == TYPE_QPN ? "0x%06llx" : "%llu", (unsigned long long)number);
    fprintf(to, " %*s", column->width, text);
}

static void print_columns(const struct report *report, enum table table, const void *record)
{
    for (size_t i = 0; i < COLUMNS_COUNT; i++) {
        const struct column *column = &columns[i];
        const uint8_t *at = (const uint8_t *)record + column->offset;
        if (column->table != table)
            continue;
        if (report->is_json)
            print_json(report->to, column, at);
        else if (column->width != 0)
            print_text(report->to, column, at);
    }
}

static void print_heads(const struct report *report, enum table table)
{
    for (size_t i = 0; i < COLUMNS_COUNT; i++) {
        if (columns[i].table == table && columns[i].width != 0)
            fprintf(report->to, " %*s", columns[i].width,
                    columns[i].table == TABLE_KEY && columns[i].type == TYPE_QPN ? "to_qpn" : columns[i].name);
    }
}

/* Begins a row of the table that ends with `table`; for people, with its head when another table came before. */
static void begin_row(struct report *report, enum table table, const char *name, const struct flow *flow)
{
    struct record_flow key;

    flow_record(flow, &key);
    if (!report->is_json && report->headed != (int)table) {
        print_heads(report, TABLE_KEY);
        print_heads(report, table);
        fputc('\n', report->to);
        report->headed = (int)table;
    }
    if (report->is_json)
        fprintf(report->to, "{\"row\":\"%s\"", name);
    print_columns(report, TABLE_KEY, &key);
    if (table == TABLE_TOTAL)
        print_columns(report, TABLE_FLOW, &key);
}

static void end_row(const struct report *report)
{
    fputs(report->is_json ? "}\n" : "\n", report->to);
}

void report_begin(struct report *report, const char *source)
{
    if (!report->is_json)
        return;
    fprintf(report->to,
            "{\"row\":\"header\",\"schema_version\":%d,\"generator\":\"qpscope-nic " QPSCOPE_VERSION
            "\",\"window_ns\":%u,\"source\":",
            REPORT_SCHEMA_VERSION, report->window_ns);
    print_string(report->to, source);
    end_row(report);
}

void report_flow(struct report *report, const struct flow *flow, const struct record_flow_total *total)
{
    begin_row(report, TABLE_TOTAL, "flow", flow);
    print_columns(report, TABLE_TOTAL, total);
    end_row(report);
}

void report_message(struct report *report, const struct flow *flow, const struct record_message *message)
{
    begin_row(report, TABLE_MESSAGE, "message", flow);
    print_columns(report, TABLE_MESSAGE, message);
    end_row(report);
}

void report_window(struct report *report, const struct flow *flow, const struct record_window *window)
{
    begin_row(report, TABLE_WINDOW, "window", flow);
    print_columns(report, TABLE_WINDOW, window);
    end_row(report);
}

/* A row that belongs to no flow. */
static void report_row(struct report *report, enum table table, const char *name, const void *record)
{
    if (!report->is_json && report->headed != (int)table) {
        print_heads(report, table);
        fputc('\n', report->to);
        report->headed = (int)table;
    }
    if (report->is_json)
        fprintf(report->to, "{\"row\":\"%s\"", name);
    print_columns(report, table, record);
    end_row(report);
}

void report_source(struct report *report, const struct record_traffic_source *source)
{
    report_row(report, TABLE_SOURCE, "traffic_source", source);
}

void report_endpoint(struct report *report, const struct record_endpoint *endpoint)
{
    report_row(report, TABLE_ENDPOINT, "endpoint", endpoint);
}

void report_reading(struct report *report, const struct record_reading *reading)
{
    report_row(report, TABLE_READING, "reading", reading);
}

void report_port_counter(struct report *report, const struct record_port_counter *counter)
{
    report_row(report, TABLE_PORT_COUNTER, "port_counter", counter);
}

void report_end(struct report *report, const struct counter_table *counters, bool is_complete)
{
    const char *separator = "";

    if (report->is_json)
        fprintf(report->to, "{\"row\":\"summary\",\"complete\":%s,\"counters\":{", is_complete ? "true" : "false");
    for (size_t i = 0; i < counters->count; i++) {
        uint64_t total = counter_read(counters->values, i);
        if (report->is_json)
            fprintf(report->to, "%s\"%s\":%llu", separator, counters->specs[i].name, (unsigned long long)total);
        else if (total != 0)
            fprintf(report->to, "%12llu %s\n", (unsigned long long)total, counters->specs[i].help);
        separator = ",";
    }
    if (report->is_json)
        fputs("}}\n", report->to);
    else if (!is_complete)
        fputs("The input ended in an error: this is what came before it.\n", report->to);
}
