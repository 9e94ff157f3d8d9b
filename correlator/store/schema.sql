-- SPDX-License-Identifier: BSD-2-Clause
-- The store of qpscope-correlator. One database holds one job as far as it was seen; a merged one several, which share nothing.
--
-- Times are integer nanoseconds of the reference clock (the correlator's CLOCK_MONOTONIC); `meta` pairs it with
-- CLOCK_REALTIME. A time that is not known is NULL, never 0. Addresses are text ("10.0.0.1", "fe80::1"), QPNs integers,
-- identities hexadecimal text. `rank` without another word is the job's rank: the rank in the job's largest
-- communicator (of several as large: in the one that counts as the launcher does, else in the one that was made first),
-- or where several are as large side by side the one that the launcher gave (else they are numbered on). The launcher's:
-- RANK, OMPI_COMM_WORLD_RANK or SLURM_PROCID.
-- What a column whose name ends in _ns or rank holds is told in cli/gather/merge_column.def, for merging.
-- Text in the columns class, role, status, cause and kind comes from closed sets, listed beside them.

PRAGMA application_id = 1364218691; -- "QPSC": what tells a store from any other SQLite file
PRAGMA user_version = 10;            -- rises with every change of the tables or of what is in them

CREATE TABLE meta (
    key   TEXT PRIMARY KEY, -- schema_version, generator, reference_boot, realtime_minus_reference_ns, tai_minus_reference_ns, clocks_contradicted, ranks_count, fields, verdicts_withheld, connections_contradicted, traffic_from_ns, steps_from_ns, ...
    value TEXT NOT NULL
) STRICT;

CREATE TABLE source ( -- of a merged store (qpscope merge --rows): the stores that its rows are of, each of a job of its own
    id             INTEGER PRIMARY KEY,
    path           TEXT NOT NULL,
    reference_boot TEXT,             -- whose clock its times were of; now they are of the first one's
    tie            TEXT NOT NULL,    -- how they came there: first, one clock, agent (that both heard), realtime (doc/store.md)
    shift_ns       INTEGER NOT NULL, -- was added to them
    bound_ns       INTEGER NOT NULL, -- error of that beside the rows of other sources; realtime: more by what CLOCK_REALTIMEs differ by
    first_rank     INTEGER NOT NULL  -- was added to its ranks
) STRICT;

CREATE TABLE source_rows ( -- whose rows are whose, of each table
    source    INTEGER NOT NULL REFERENCES source(id),
    name      TEXT NOT NULL,
    first_row INTEGER NOT NULL,
    last_row  INTEGER NOT NULL,
    PRIMARY KEY (name, first_row)
) STRICT;

CREATE TABLE emitter (
    id              INTEGER PRIMARY KEY,
    kind            TEXT NOT NULL, -- nic, host, node
    emitter_id      TEXT NOT NULL,
    boot_id         TEXT NOT NULL,
    host            TEXT NOT NULL,
    instance        TEXT NOT NULL,
    version         TEXT NOT NULL,
    pid             INTEGER NOT NULL,
    window_ns       INTEGER NOT NULL,
    started_ns      INTEGER,
    last_ns         INTEGER,            -- last time it was heard of
    ended           INTEGER NOT NULL,   -- 1: it said that it ends
    batches         INTEGER NOT NULL,
    records_unknown INTEGER NOT NULL,
    clock_offset_ns INTEGER,            -- reference minus emitter, at the middle of its life; NULL: not known
    clock_bound_ns  INTEGER,            -- largest error of a mapped time
    clock_drift_ppb INTEGER,
    clock_samples   INTEGER NOT NULL,
    clock_source    TEXT NOT NULL,      -- exchange, realtime, none
    clock_cuts      INTEGER NOT NULL,   -- times at which it was set, or its machine slept
    clock_frames_bound_ns INTEGER       -- largest error beside emitters to which frames tie it, while these are seen; NULL: there are none
) STRICT;

CREATE TABLE clock_pair ( -- an emitter's clock beside others: the first, the last, some between, and those around a step
    emitter     INTEGER NOT NULL REFERENCES emitter(id),
    at_ns       INTEGER NOT NULL,
    realtime_ns INTEGER NOT NULL, -- CLOCK_REALTIME then
    tai_ns      INTEGER NOT NULL, -- CLOCK_TAI; equal to the former where the kernel does not know of leap seconds
    bound_ns    INTEGER NOT NULL, -- of the three beside each other
    at_bound_ns INTEGER NOT NULL, -- of at_ns against the reference
    at_frames_bound_ns INTEGER    -- of at_ns beside emitters to which frames tie it; NULL: none, or then no frames were seen
) STRICT;

CREATE TABLE gap ( -- what was not heard or not seen, and when
    id      INTEGER PRIMARY KEY,
    emitter INTEGER NOT NULL REFERENCES emitter(id),
    from_ns INTEGER NOT NULL,
    to_ns   INTEGER NOT NULL,
    cause   TEXT NOT NULL,     -- batches lost, link full, port drop, ring full, table full, overwritten, silent, restarted, memory
    lost    INTEGER NOT NULL,  -- batches, frames or events by cause; 0: number not known
    port    INTEGER            -- port number where it concerns one
) STRICT;

CREATE TABLE counter (
    emitter INTEGER NOT NULL REFERENCES emitter(id),
    port    INTEGER NOT NULL,
    name    TEXT NOT NULL,
    total   INTEGER NOT NULL,
    PRIMARY KEY (emitter, port, name)
) STRICT;

CREATE TABLE port (
    id      INTEGER PRIMARY KEY,
    emitter INTEGER NOT NULL REFERENCES emitter(id),
    number  INTEGER NOT NULL,
    name    TEXT NOT NULL,
    address TEXT,
    sees    TEXT NOT NULL -- all, or what is left out there: edges only, part of flows, one queue
) STRICT;

CREATE TABLE process (
    id         INTEGER PRIMARY KEY,
    emitter    INTEGER NOT NULL REFERENCES emitter(id),
    pid        INTEGER NOT NULL,
    command    TEXT NOT NULL,
    library    TEXT NOT NULL,
    started_ns INTEGER,
    ended_ns   INTEGER
) STRICT;

CREATE TABLE process_fact ( -- what /proc, the control group and the environment at its start tell of a process
    process    INTEGER NOT NULL REFERENCES process(id),
    name       TEXT NOT NULL,    -- pid, command_line, container, RANK and others: records.md
    number     INTEGER NOT NULL, -- of facts of which there are several, from 0
    value      TEXT NOT NULL,
    text_bytes INTEGER NOT NULL, -- of the whole text; value holds the first 160
    PRIMARY KEY (process, name, number)
) STRICT;

CREATE TABLE communicator (
    id          INTEGER PRIMARY KEY, -- numbered by the time it was first made, then by identity
    identity    TEXT NOT NULL UNIQUE,
    ranks_count INTEGER NOT NULL,
    ranks_seen  INTEGER NOT NULL,
    created_ns  INTEGER,
    destroyed_ns INTEGER
) STRICT;

CREATE TABLE member ( -- one rank of one communicator
    id                INTEGER PRIMARY KEY,
    communicator      INTEGER NOT NULL REFERENCES communicator(id),
    communicator_rank INTEGER,          -- NULL: not known
    rank              INTEGER,          -- the job's rank
    process           INTEGER NOT NULL REFERENCES process(id),
    pointer           TEXT NOT NULL,    -- ncclComm_t in its process
    created_ns        INTEGER,
    ready_ns          INTEGER,
    destroyed_ns      INTEGER,
    late              INTEGER NOT NULL, -- 1: its creation was not seen
    creator           TEXT,             -- InitRank, Split and so on (wire/creator.def); NULL: not seen
    ending            TEXT,             -- destroyed, aborted and so on (wire/ending.def); NULL: it lives, or not known
    finalized         INTEGER NOT NULL, -- 1: ncclCommFinalize was called
    revoked           INTEGER NOT NULL, -- 1: ncclCommRevoke was called
    cuda_device       INTEGER,          -- as its process counts
    named_by          TEXT NOT NULL     -- what its communicator's identity is made of: id, parent, call, hash; none
) STRICT;

CREATE TABLE queue_pair (
    id             INTEGER PRIMARY KEY,
    process        INTEGER NOT NULL REFERENCES process(id),
    member         INTEGER REFERENCES member(id), -- owner; NULL: unattributed
    rank           INTEGER,                       -- owner's job rank
    peer           INTEGER REFERENCES queue_pair(id),
    peer_rank      INTEGER,
    role           TEXT NOT NULL, -- sender, receiver, unused, flush, foreign, unknown
    device         TEXT NOT NULL,
    port           INTEGER NOT NULL,
    qpn            INTEGER NOT NULL,
    address        TEXT,
    remote_qpn     INTEGER,
    remote_address TEXT,
    state          TEXT NOT NULL, -- RESET, INIT, RTR, RTS, SQD, SQE, ERR, DESTROYED
    connection     TEXT NOT NULL,
    created_ns     INTEGER,
    ready_ns       INTEGER,
    destroyed_ns   INTEGER
) STRICT;

CREATE TABLE queue_pair_setting ( -- how a queue pair was set up; NULL: it was not told, or is not known
    queue_pair           INTEGER PRIMARY KEY REFERENCES queue_pair(id),
    context              TEXT NOT NULL,    -- its maker's own pointer: NCCL from 2.23.4 on, the same in one connection
    generation           INTEGER,          -- n-th queue pair of its device and QPN that was seen, from 1
    error_ns             INTEGER,          -- first change to ERR
    access_flags         INTEGER,          -- enum ibv_access_flags
    path_mtu_bytes       INTEGER,
    traffic_class        INTEGER,
    service_level        INTEGER,
    timeout              INTEGER,          -- 4.096 us x 2^timeout; 0: for ever
    retry_count          INTEGER,          -- after time-outs
    rnr_retry            INTEGER,          -- 7: for ever
    min_rnr_timer        INTEGER,          -- as AETH codes it
    max_send_requests    INTEGER NOT NULL,
    max_receive_requests INTEGER NOT NULL,
    side                 TEXT,             -- sender, receiver: of its connection's data, by how it was set up
    origin_rank          INTEGER,          -- the job's rank that asked for the connection
    far_rank             INTEGER,          -- the job's rank at the other end
    channel              INTEGER,
    pxn                  INTEGER,          -- 1: it sends for another rank of its node
    shared               INTEGER           -- 1: several origin ranks may send through it
) STRICT;

CREATE TABLE failure ( -- the first sign of each kind of a failure; never its cause
    id         INTEGER PRIMARY KEY, -- by time
    at_ns      INTEGER,
    cause      TEXT NOT NULL,       -- queue pair error, process ended, async error, aborted, revoked, warning
    process    INTEGER REFERENCES process(id),
    member     INTEGER REFERENCES member(id),     -- the rank of the communicator concerned; NULL: none is known
    queue_pair INTEGER REFERENCES queue_pair(id), -- the first one concerned
    rank       INTEGER,                           -- the job's rank
    result     INTEGER,                           -- ncclResult_t
    text       TEXT                               -- of a warning its format, not filled in
) STRICT;

CREATE TABLE flow (
    id                   INTEGER PRIMARY KEY,
    emitter              INTEGER NOT NULL REFERENCES emitter(id),
    port                 INTEGER NOT NULL REFERENCES port(id),
    vantage              TEXT NOT NULL, -- tx, rx, middle
    source               TEXT NOT NULL,
    destination          TEXT NOT NULL,
    destination_qpn      INTEGER NOT NULL,
    udp_source_port      INTEGER NOT NULL,
    generation           INTEGER NOT NULL,
    queue_pair           INTEGER REFERENCES queue_pair(id),   -- the sending end; NULL: unattributed
    communicator         INTEGER REFERENCES communicator(id),
    source_rank          INTEGER,
    destination_rank     INTEGER,
    first_ns             INTEGER,
    last_ns              INTEGER,
    data_frames          INTEGER NOT NULL,
    wire_bytes           INTEGER NOT NULL,
    payload_bytes        INTEGER NOT NULL,
    messages             INTEGER NOT NULL,
    acks                 INTEGER NOT NULL,
    naks                 INTEGER NOT NULL,
    rnr_naks             INTEGER NOT NULL,
    cnps                 INTEGER NOT NULL,
    marked_frames        INTEGER NOT NULL,
    repeated_frames      INTEGER NOT NULL,
    late_frames          INTEGER NOT NULL,
    retransmitted_frames INTEGER NOT NULL,
    retransmitted_bytes  INTEGER NOT NULL
) STRICT;

CREATE TABLE flow_evidence ( -- what happened to a flow on its way, and what its receiver answered (got_: NULL = not known)
    flow                  INTEGER PRIMARY KEY REFERENCES flow(id),
    pair                  INTEGER REFERENCES flow(id), -- the other direction at the same port: there the answers travel
    paired_by             TEXT,    -- acknowledgements, set-up, host
    source_qpn            INTEGER, -- the sender's own queue pair
    covered_psns          INTEGER NOT NULL, -- progress: data frames, each PSN once
    late_unknown_frames   INTEGER NOT NULL, -- first seen below the highest PSN, cause unknown
    reordered_frames      INTEGER NOT NULL, -- overtaken by others, not lost
    duplicate_frames      INTEGER NOT NULL, -- doubled on the way
    timeouts              INTEGER NOT NULL, -- pauses as long as a time-out, after which frames were sent again
    pauses                INTEGER NOT NULL, -- as long, inside a message, after which it went on
    source_port_changes   INTEGER NOT NULL, -- of the UDP source port
    codepoints            INTEGER NOT NULL, -- ECN: bit n set = code point n was seen on data (8: congestion experienced)
    got_acks              INTEGER,
    got_naks              INTEGER,
    got_naks_sequence     INTEGER, -- of these: a packet is missing
    got_naks_request      INTEGER, -- invalid request
    got_naks_access       INTEGER, -- remote access error
    got_naks_operation    INTEGER, -- remote operational error
    got_rnr_naks          INTEGER,
    rnr_wait_ns           INTEGER, -- how long these told the sender to wait, together
    rnr_last_ns           INTEGER, -- and the last one
    got_cnps              INTEGER
) STRICT;

CREATE TABLE pin ( -- an interval whose windows the NIC side kept, of all its flows, since a flow broke its own pattern
    flow     INTEGER NOT NULL REFERENCES flow(id),
    from_ns  INTEGER NOT NULL,
    to_ns    INTEGER NOT NULL,
    cause    TEXT NOT NULL,    -- stalled within a message, stalled between messages, rate changed
    usual_ns INTEGER NOT NULL, -- by the flow's pattern: a distance of frames, its longest pause, a message of its size
    found_ns INTEGER NOT NULL  -- what it was; of a stall that went on: when it was found
) STRICT;

CREATE TABLE flow_event ( -- when something rare happened to a flow; of naks, rnr_naks and cnps: in it, about the other direction
    id      INTEGER PRIMARY KEY, -- those of one flow and metric follow each other in order of time
    flow    INTEGER NOT NULL REFERENCES flow(id),
    metric  TEXT NOT NULL,    -- retransmitted_frames, timeouts, timeout_ns, naks, rnr_naks, cnps, marked_frames
    from_ns INTEGER NOT NULL, -- within [from_ns, to_ns)
    to_ns   INTEGER NOT NULL,
    amount  INTEGER NOT NULL
) STRICT;

CREATE TABLE step (
    id           INTEGER PRIMARY KEY, -- the job's own number, from 0: steps that are past are counted
    start_ns     INTEGER NOT NULL,    -- earliest start of a rank
    end_ns       INTEGER NOT NULL,    -- latest end of a rank
    duration_ns  INTEGER NOT NULL,    -- median over ranks of rank_step.duration_ns
    bound_ns     INTEGER NOT NULL,    -- error bound of duration_ns
    operations   INTEGER NOT NULL,
    incomplete   INTEGER NOT NULL,    -- operations of it that are incomplete
    partial      INTEGER NOT NULL,    -- 1: something of it may have been cut out of the memory (the first steps that are left); past_step has it as it was
    slowest_rank INTEGER,             -- who was latest in it, in the operation where it was latest
    late_ns      INTEGER,             -- by how much
    late_bound_ns INTEGER,
    late_operation INTEGER,           -- the operation where it was latest
    kind         TEXT NOT NULL        -- training, warm-up, checkpoint, evaluation, other: doc/store.md
) STRICT;

CREATE TABLE rank_step (
    step        INTEGER NOT NULL REFERENCES step(id),
    rank        INTEGER NOT NULL,
    start_ns    INTEGER NOT NULL, -- end of the last operation of the step before; of the first step: its first enqueue
    end_ns      INTEGER NOT NULL, -- end of its last operation
    duration_ns INTEGER NOT NULL,
    late_ns     INTEGER,          -- largest lateness of this rank in the step
    cost_ns     INTEGER NOT NULL, -- by how much the step would have been shorter without what the rank added by itself
    PRIMARY KEY (step, rank)
) STRICT;

CREATE TABLE past_step ( -- a whole step whose detail is no longer held: memory and store are bounded, a job is not
    start_ns     INTEGER PRIMARY KEY, -- the columns of step, as they were last
    end_ns       INTEGER NOT NULL,
    duration_ns  INTEGER NOT NULL,
    bound_ns     INTEGER NOT NULL,
    kind         TEXT NOT NULL,
    operations   INTEGER NOT NULL,
    incomplete   INTEGER NOT NULL,
    slowest_rank INTEGER,
    late_ns      INTEGER
) STRICT;

CREATE TABLE past_verdict ( -- its verdicts, as they were last; their numbers and rows are no longer held
    step_start_ns INTEGER NOT NULL REFERENCES past_step(start_ns),
    class         TEXT NOT NULL,
    rank          INTEGER,
    candidates    TEXT,
    peer_rank     INTEGER,
    device        TEXT,
    size_ns       INTEGER NOT NULL,
    bound_ns      INTEGER NOT NULL,
    confidence    REAL NOT NULL,
    evidence      TEXT NOT NULL
) STRICT;
CREATE INDEX past_verdict_by_step ON past_verdict(step_start_ns);

CREATE TABLE past_summary ( -- steps so long ago that past_step holds them no longer: about 256 of one kind a row, more of a very long job
    start_ns             INTEGER NOT NULL, -- of the first of them
    end_ns               INTEGER NOT NULL, -- of the last
    kind                 TEXT NOT NULL,
    steps                INTEGER NOT NULL,
    steps_with_verdict   INTEGER NOT NULL,
    operations           INTEGER NOT NULL, -- sum over them
    incomplete           INTEGER NOT NULL,
    duration_ns          REAL NOT NULL,    -- sum over them: divided by steps it is their mean
    duration_squares_ns2 REAL NOT NULL,    -- sum of squares, for their deviation
    shortest_ns          INTEGER NOT NULL,
    longest_ns           INTEGER NOT NULL
) STRICT;

CREATE TABLE past_blame ( -- the verdicts of those steps: one row a class and place; where there are more than 4096, the rarest of a class share one without a place
    class      TEXT NOT NULL,
    rank       INTEGER,
    candidates TEXT,
    peer_rank  INTEGER,
    device     TEXT,
    verdicts   INTEGER NOT NULL,
    first_ns   INTEGER NOT NULL, -- start of the first and of the last step with one
    last_ns    INTEGER NOT NULL,
    size_ns    REAL NOT NULL,    -- sum over them
    largest_ns INTEGER NOT NULL
) STRICT;

CREATE TABLE critical_path ( -- what a step's end waited for; its parts follow each other from its start to its last end
    step      INTEGER NOT NULL REFERENCES step(id),
    place     INTEGER NOT NULL, -- n-th part
    part      TEXT NOT NULL,    -- rank: on its way to the operation; transfer: all had arrived, it was under way
    rank      INTEGER,          -- who was on its way, or whose end was waited for
    operation INTEGER NOT NULL REFERENCES operation(id),
    from_ns   INTEGER NOT NULL,
    to_ns     INTEGER NOT NULL,
    PRIMARY KEY (step, place)
) STRICT;

CREATE TABLE operation (
    id            INTEGER PRIMARY KEY, -- in order of first enqueue
    communicator  INTEGER NOT NULL REFERENCES communicator(id),
    kind          TEXT NOT NULL,    -- AllReduce, ..., SendRecv for a group of point-to-point calls
    sequence      INTEGER NOT NULL, -- collectives: n-th on the communicator; SendRecv: n-th group
    step          INTEGER REFERENCES step(id),
    place         INTEGER,          -- n-th operation of the step
    buffer_bytes  INTEGER NOT NULL,
    algorithm     TEXT NOT NULL,    -- ring, tree, point-to-point, unknown
    ranks_seen    INTEGER NOT NULL,
    start_ns      INTEGER NOT NULL, -- first enqueue
    last_arrival_ns INTEGER,
    end_ns        INTEGER,
    status        TEXT NOT NULL     -- complete, incomplete, no wire, unknown algorithm
) STRICT;

CREATE TABLE rank_operation ( -- what one rank did in one operation: the record that goes from node to job stage
    id                   INTEGER PRIMARY KEY,
    operation            INTEGER NOT NULL REFERENCES operation(id),
    member               INTEGER NOT NULL REFERENCES member(id),
    rank                 INTEGER,
    enqueued_ns          INTEGER,
    host_ready_ns        INTEGER, -- first credit that it gave
    gpu_ready_ns         INTEGER, -- first data that it sent while it held credit
    gpu_ready_known      INTEGER NOT NULL, -- 0: it was ready no later than gpu_ready_ns (or that is NULL)
    arrival_ns           INTEGER,
    arrival_of           TEXT,    -- host, gpu, enqueue: what arrival_ns rests on
    late_ns              INTEGER, -- arrival minus the median arrival of the other ranks
    first_data_ns        INTEGER,
    last_data_ns         INTEGER,
    end_ns               INTEGER, -- last data sent or received
    active_ns            INTEGER NOT NULL,
    expected_bytes       INTEGER, -- payload to send; NULL: not known
    observed_bytes       INTEGER NOT NULL,
    retransmitted_frames INTEGER NOT NULL,
    marked_frames        INTEGER NOT NULL,
    status               TEXT NOT NULL
) STRICT;

CREATE TABLE call (
    id             INTEGER PRIMARY KEY,
    member         INTEGER NOT NULL REFERENCES member(id),
    rank_operation INTEGER REFERENCES rank_operation(id),
    sequence       INTEGER NOT NULL,
    kind           TEXT NOT NULL,
    count          INTEGER NOT NULL,
    datatype       INTEGER,
    reduction      INTEGER,          -- 254: the library's user made it
    peer           INTEGER,
    entered_ns     INTEGER NOT NULL,
    enqueued_ns    INTEGER,
    stream         TEXT NOT NULL,
    tid            INTEGER NOT NULL,
    returned_ns    INTEGER,          -- of the call, or of its group's end; NULL: not known, or it has not returned
    result         INTEGER,          -- ncclResult_t; NULL: not known
    graph          TEXT              -- captured (not run: no operation), replayed (by a launch); NULL: neither
) STRICT;

CREATE TABLE message (
    id             INTEGER PRIMARY KEY,
    flow           INTEGER NOT NULL REFERENCES flow(id),
    rank_operation INTEGER REFERENCES rank_operation(id), -- of the sender; NULL: belongs to none that is known
    role           TEXT NOT NULL, -- data, credit, size, flush, other
    first_ns       INTEGER NOT NULL,
    last_ns        INTEGER NOT NULL,
    payload_bytes  INTEGER NOT NULL,
    frames         INTEGER NOT NULL,
    immediate      INTEGER,
    flags          INTEGER NOT NULL
) STRICT;

CREATE TABLE traffic_window ( -- windows that were asked for
    flow                 INTEGER NOT NULL REFERENCES flow(id),
    start_ns             INTEGER NOT NULL,
    length_ns            INTEGER NOT NULL,
    frames               INTEGER NOT NULL,
    wire_bytes           INTEGER NOT NULL,
    payload_bytes        INTEGER NOT NULL,
    retransmitted_frames INTEGER NOT NULL,
    marked_frames        INTEGER NOT NULL,
    PRIMARY KEY (flow, start_ns)
) STRICT;

CREATE TABLE verdict (
    id         INTEGER PRIMARY KEY,
    step       INTEGER REFERENCES step(id), -- NULL: of a hang, which belongs to no whole step
    class      TEXT NOT NULL, -- host late, host late: no cpu, ..., gpu late, network slow, ...: verdict_class.def, doc/store.md
    rank       INTEGER,       -- the late rank; for a link its sending rank; of a hang who is missing; NULL: all, nobody alone, or one of the candidates
    candidates TEXT,          -- where several fit: the ranks of which it is one, as "4, 5"; rank is NULL then
    peer_rank  INTEGER,       -- for a link its receiving rank
    device     TEXT,          -- for a link the device at the slow port, as "rxe1/1"
    operation  INTEGER NOT NULL REFERENCES operation(id),
    size_ns    INTEGER NOT NULL,
    bound_ns   INTEGER NOT NULL, -- error bound of size_ns from the clocks
    confidence REAL NOT NULL,    -- 0 to 1
    evidence   TEXT NOT NULL,    -- in words, with numbers
    more       TEXT              -- the command that would have its host tell more, from then on; NULL: none
) STRICT;

CREATE TABLE verdict_evidence ( -- the numbers beside a verdict; several rows add up where a link has several flows
    verdict   INTEGER NOT NULL REFERENCES verdict(id),
    decides   INTEGER NOT NULL, -- 1: the verdict's class rests on it
    source    TEXT NOT NULL,    -- the table in which first_row to last_row are: port_counter, flow_event, host_delay, marker, post, transport, failure, rdma_port
    port      INTEGER REFERENCES port(id),
    flow      INTEGER REFERENCES flow(id),
    side      TEXT NOT NULL,    -- sender, receiver: whose port of the link; flow, answers: what travels with, or against the data; caller, library: whose threads
    metric    TEXT NOT NULL,    -- its unit last
    priority  INTEGER,          -- NULL: of the whole port, or of a flow
    from_ns   INTEGER NOT NULL, -- the time that was looked at: the slow transfer; of a late rank: the wait for its first frame
    to_ns     INTEGER NOT NULL,
    amount    INTEGER NOT NULL, -- what was counted in it
    usual     REAL,             -- what nine of ten quiet transfers would have counted in as long a time, over the whole link; of threads: nine of ten quiet waits there, or the other ranks then; NULL: not known
    share     REAL,             -- of a duration: its part of that time
    first_row INTEGER NOT NULL, -- the changes that amount is made of
    last_row  INTEGER NOT NULL,
    rank      INTEGER,          -- whose thread, post or failure
    tid       INTEGER           -- of threads: the one of them that had most of it
) STRICT;

CREATE TABLE withheld ( -- classes of verdict that cannot be given of the ranks at a port, or only where something is seen
    class   TEXT NOT NULL,
    port    INTEGER NOT NULL REFERENCES port(id),
    sight   TEXT NOT NULL, -- none: never given; part: given where it is seen, but not seeing it proves nothing
    missing TEXT NOT NULL, -- what is not seen there
    PRIMARY KEY (class, port)
) STRICT;

CREATE TABLE traffic_source ( -- what a NIC side can see
    emitter  INTEGER PRIMARY KEY REFERENCES emitter(id),
    kind     TEXT NOT NULL,    -- file, dpdk, mlx5, psn, dpa
    fields   TEXT NOT NULL,    -- packets, wire_bytes, ..., separated by commas
    missing  TEXT NOT NULL,    -- the others: what is not seen
    grain_ns INTEGER,          -- frames: the window; counting: the usual time between two readings
    stamp_bound_ns INTEGER     -- how far a frame's time may be from when it passed; NULL: not known, or there are no such times
) STRICT;

CREATE TABLE endpoint ( -- a queue pair that a counting source reads
    id             INTEGER PRIMARY KEY,
    emitter        INTEGER NOT NULL REFERENCES emitter(id),
    port           INTEGER REFERENCES port(id),
    queue_pair     INTEGER REFERENCES queue_pair(id), -- the same one as its host knows it; NULL: unattributed
    qpn            INTEGER NOT NULL,
    generation     INTEGER NOT NULL,
    address        TEXT,
    remote_address TEXT,
    remote_qpn     INTEGER,
    state          TEXT,
    path_mtu_bytes INTEGER,
    first_ns       INTEGER, -- when it was first listed
    gone_ns        INTEGER
) STRICT;

CREATE TABLE reading ( -- what an endpoint did between two readings of its counters; nothing says how it lay inside
    endpoint      INTEGER NOT NULL REFERENCES endpoint(id),
    from_ns       INTEGER NOT NULL, -- all of it happened within [from_ns, to_ns)
    to_ns         INTEGER NOT NULL,
    from_bound_ns INTEGER NOT NULL, -- what happened within [from_ns + from_bound_ns, to_ns - to_bound_ns) is in it
    to_bound_ns   INTEGER NOT NULL,
    bound_ns      INTEGER NOT NULL, -- of the times against the reference clock
    sent_packets         INTEGER,   -- psn: sequence numbers used; NULL: not counted
    sent_bytes_least     INTEGER,   -- mlx5: bytes on the wire, both equal; psn: payload, between these
    sent_bytes_most      INTEGER,
    received_packets     INTEGER,
    received_bytes_least INTEGER,
    received_bytes_most  INTEGER,
    acknowledged_packets   INTEGER,
    unacknowledged_packets INTEGER, -- at to_ns
    flags         INTEGER NOT NULL  -- as in doc/records.md
) STRICT;

CREATE TABLE port_counter ( -- each change of a port's own counters and states
    id       INTEGER PRIMARY KEY, -- those of one port, metric and priority follow each other in order of time
    port     INTEGER NOT NULL REFERENCES port(id),
    metric   TEXT NOT NULL,    -- its unit last: pause_received_ns, ack_timeouts_total, link_state
    priority INTEGER,          -- NULL: of the whole port
    from_ns  INTEGER NOT NULL, -- it changed within [from_ns, to_ns)
    to_ns    INTEGER NOT NULL,
    value    INTEGER NOT NULL, -- since the NIC side began; of a state: what holds
    added    INTEGER NOT NULL, -- since the row before; of a state 1, of the first one 0
    reset    INTEGER NOT NULL  -- 1: the device's counter was set back in between
) STRICT;

CREATE TABLE marker ( -- a call of the GPU's runtime or driver, as the host made it: never when the GPU did it
    id             INTEGER PRIMARY KEY, -- those of one thread follow each other in order of time
    process        INTEGER NOT NULL REFERENCES process(id),
    kind           TEXT NOT NULL,    -- graph instantiated, graph submitted, waited for a stream, ... (doc/records.md)
    tid            INTEGER NOT NULL,
    entered_ns     INTEGER NOT NULL,
    duration_ns    INTEGER,          -- NULL: only its entry was looked at
    stream         TEXT,
    handle         TEXT,             -- the graph, event, function or number of bytes that it is about
    made           TEXT,             -- the graph or memory that it made
    driver         INTEGER NOT NULL, -- 1: seen at the driver
    result         INTEGER,          -- 0 = good
    captured_calls INTEGER           -- data calls that a capture took or a graph holds; NULL: not known
) STRICT;

CREATE TABLE host_delay ( -- what kept one thread of a job from running
    id                   INTEGER PRIMARY KEY, -- those of one thread follow each other: sums, then single stays, in order of time
    process              INTEGER NOT NULL REFERENCES process(id),
    rank                 INTEGER,          -- NULL: the process has none that is known, or several
    tid                  INTEGER NOT NULL,
    alone                INTEGER NOT NULL, -- 1: one stay off the CPU, which the sums hold too
    role                 TEXT NOT NULL,    -- caller (makes data calls), library (the collective library made it)
    from_ns              INTEGER NOT NULL,
    to_ns                INTEGER NOT NULL,
    sleep_ns             INTEGER NOT NULL, -- waited for what it had asked for
    run_queue_ns         INTEGER NOT NULL, -- could have run, but had no CPU
    run_queue_longest_ns INTEGER NOT NULL,
    io_wait_ns           INTEGER NOT NULL,
    minor_faults         INTEGER NOT NULL,
    major_faults         INTEGER NOT NULL,
    tcp_bytes            INTEGER NOT NULL, -- sent
    tcp_retransmissions  INTEGER NOT NULL
) STRICT;

CREATE TABLE followed ( -- when something was followed on request; outside of `work` nothing is in `post`
    emitter INTEGER NOT NULL REFERENCES emitter(id),
    request INTEGER NOT NULL, -- the asker's number
    what    TEXT NOT NULL,    -- work, submissions, delays
    from_ns INTEGER NOT NULL,
    to_ns   INTEGER NOT NULL,
    hits    INTEGER NOT NULL, -- of the probes, each 2 to 4 us of the job's time
    ended   TEXT NOT NULL     -- in time, hits spent (it may have ended before to_ns), replaced, refused
) STRICT;

CREATE TABLE post ( -- a list of send requests given to a queue pair's provider, while that was followed
    id           INTEGER PRIMARY KEY,
    queue_pair   INTEGER NOT NULL REFERENCES queue_pair(id),
    tid          INTEGER NOT NULL,
    posted_ns    INTEGER NOT NULL,
    bound_ns     INTEGER NOT NULL, -- error of posted_ns and completed_ns
    bytes        INTEGER NOT NULL,
    requests     INTEGER NOT NULL,
    operation    TEXT NOT NULL,    -- of the last request: write, write with immediate, send, read, ...
    cut          INTEGER NOT NULL, -- 1: bytes and requests are too low
    completed_ns INTEGER,          -- a completion of it or a later one was taken; NULL: not seen
    status       INTEGER,          -- enum ibv_wc_status of its own completion, 0 = good
    message      INTEGER REFERENCES message(id) -- its first one on the wire; NULL: none fits exactly
) STRICT;

CREATE TABLE transport ( -- by which way a rank's data went
    step        INTEGER REFERENCES step(id), -- NULL: in all that was seen of the rank
    rank        INTEGER NOT NULL,
    from_ns     INTEGER NOT NULL,
    to_ns       INTEGER NOT NULL,
    asked_bytes INTEGER NOT NULL, -- buffers of its data calls
    rdma_bytes  INTEGER NOT NULL, -- payload that its queue pairs sent for them
    tcp_bytes   INTEGER NOT NULL, -- that the library's threads of its process sent in the time
    kind        TEXT NOT NULL     -- rdma; sockets: no queue pair carried anything, and TCP enough; none; unknown
) STRICT;

CREATE TABLE rdma_port ( -- the ports of the machines' RDMA devices, as their hosts tell of them: a row for each state
    id            INTEGER PRIMARY KEY,
    emitter       INTEGER NOT NULL REFERENCES emitter(id),
    device        TEXT NOT NULL,
    port          INTEGER NOT NULL,
    state         TEXT NOT NULL,    -- from at_ns on: active, down, initialising, armed; gone: it is not there any longer
    at_ns         INTEGER NOT NULL, -- when it was seen so
    before_ns     INTEGER,          -- when it was last seen otherwise; NULL: this is the first that is known
    bits_a_second INTEGER,
    interface     TEXT,             -- the network interface below it
    bus           TEXT,             -- PCI address
    root_port     TEXT,             -- of the PCI root port that it is behind: devices with the same one are equally near to a GPU
    numa_node     INTEGER
) STRICT;

CREATE INDEX host_delay_by_rank ON host_delay(rank, from_ns);
CREATE INDEX message_by_flow ON message(flow, first_ns);
CREATE INDEX rank_operation_by_operation ON rank_operation(operation, rank);
CREATE INDEX reading_by_endpoint ON reading(endpoint, from_ns);
CREATE INDEX port_counter_by_port ON port_counter(port, metric, to_ns);
CREATE INDEX verdict_evidence_by_verdict ON verdict_evidence(verdict);
CREATE INDEX post_by_queue_pair ON post(queue_pair, completed_ns);
CREATE INDEX operation_by_step ON operation(step, place);

CREATE VIEW named_flow AS
SELECT flow.id, flow.source_rank, flow.destination_rank, communicator.identity AS communicator, flow.vantage,
       port.name AS port, flow.source, flow.destination, flow.destination_qpn, flow.payload_bytes, flow.data_frames,
       flow.retransmitted_frames, flow.marked_frames, flow.cnps
FROM flow JOIN port ON port.id = flow.port LEFT JOIN communicator ON communicator.id = flow.communicator;

-- where the time of a post went: in the proxy before it, between the post and the wire, on the wire, until it was noticed
CREATE VIEW post_time AS
SELECT post.id, post.queue_pair, post.posted_ns, post.bytes, post.requests,
       post.posted_ns - (SELECT max(before.completed_ns) FROM post AS before WHERE before.queue_pair = post.queue_pair
                         AND before.completed_ns <= post.posted_ns) AS after_completion_ns,
       message.first_ns - post.posted_ns AS to_wire_ns, post.completed_ns - message.first_ns AS on_wire_ns, post.bound_ns
FROM post LEFT JOIN message ON message.id = post.message;

CREATE VIEW verdict_run AS -- since when a verdict's fault goes on: verdicts of one class (whatever its cause) and place, with two steps without one at most between them
WITH told AS (
    SELECT id, step, rank, candidates, peer_rank, CASE instr(class, ':') WHEN 0 THEN class ELSE substr(class, 1, instr(class, ':') - 1) END AS class FROM verdict WHERE step IS NOT NULL
), apart AS (
    SELECT *, coalesce(step - lag(step) OVER (PARTITION BY class, rank, candidates, peer_rank ORDER BY step, id) > 3, 1) AS begins FROM told
), runs AS (
    SELECT *, sum(begins) OVER (PARTITION BY class, rank, candidates, peer_rank ORDER BY step, id ROWS UNBOUNDED PRECEDING) AS run FROM apart
)
SELECT id AS verdict,
    min(step) OVER same AS since_step,
    max(step) OVER same AS last_step,
    count(*) OVER same AS verdicts,
    count(*) OVER same >= 5 AS chronic -- it came back in five steps or more
FROM runs WINDOW same AS (PARTITION BY class, rank, candidates, peer_rank, run);

-- Views for people. The name of a column ends in its unit; a time in UTC is NULL where CLOCK_REALTIME is not known.

CREATE VIEW slow_steps AS -- steps with a verdict, or longer by more than 3 % than is usual for their kind; the longest first
WITH told AS (
    SELECT step.*, coalesce(source, 0) AS source FROM step LEFT JOIN source_rows ON name = 'step' AND step.id BETWEEN first_row AND last_row
), ordered AS (
    SELECT source, kind, duration_ns, row_number() OVER (PARTITION BY source, kind ORDER BY duration_ns) AS place, count(*) OVER (PARTITION BY source, kind) AS steps
    FROM told WHERE partial = 0
), usual AS (
    SELECT source, kind, avg(duration_ns) AS duration_ns FROM ordered WHERE place IN ((steps + 1) / 2, (steps + 2) / 2) GROUP BY source, kind
), worst AS (
    SELECT *, row_number() OVER (PARTITION BY step ORDER BY size_ns DESC, id) AS place FROM verdict WHERE step IS NOT NULL
)
SELECT step.id AS step,
    strftime('%Y-%m-%dT%H:%M:%fZ', (step.start_ns + (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'realtime_minus_reference_ns')) / 1e9, 'unixepoch') AS started_utc,
    step.kind,                                                    -- training, warm-up, checkpoint, evaluation, other
    step.duration_ns / 1e6 AS duration_ms,
    step.bound_ns / 1e6 AS bound_ms,                              -- error bound of duration_ms from the clocks
    usual.duration_ns / 1e6 AS usual_ms,                          -- median of the whole steps of its kind
    (step.duration_ns - usual.duration_ns) / 1e6 AS longer_ms,
    worst.class AS verdict,                                       -- its largest one; NULL: none
    worst.rank, worst.candidates, worst.peer_rank, worst.device,  -- where
    worst.size_ns / 1e6 AS size_ms,                               -- and by how much
    worst.bound_ns / 1e6 AS size_bound_ms,
    worst.confidence,
    (SELECT count(*) FROM verdict WHERE verdict.step = step.id) AS verdicts,
    step.slowest_rank, step.late_ns / 1e3 AS late_us, step.late_bound_ns / 1e3 AS late_bound_us,
    step.incomplete                                               -- operations of it
FROM told AS step LEFT JOIN usual ON usual.kind = step.kind AND usual.source = step.source LEFT JOIN worst ON worst.step = step.id AND worst.place = 1
WHERE worst.id IS NOT NULL OR step.duration_ns > 1.03 * usual.duration_ns ORDER BY step.duration_ns DESC;

CREATE VIEW late_ranks AS -- how late each rank was in each operation, the latest first; what is not known is left out
SELECT operation.step, operation.place, operation.kind,           -- n-th operation of the step
    operation.communicator, rank_operation.rank, emitter.host AS node, process.pid,
    rank_operation.late_ns / 1e3 AS late_us,                      -- after the median of the other ranks; negative: before it
    rank_operation.arrival_of,                                    -- host, gpu, enqueue: what that rests on
    rank_step.cost_ns / 1e3 AS step_cost_us,                      -- how much shorter the step would have been without the rank's own part
    rank_operation.status
FROM rank_operation JOIN operation ON operation.id = rank_operation.operation JOIN member ON member.id = rank_operation.member
    JOIN process ON process.id = member.process JOIN emitter ON emitter.id = process.emitter
    LEFT JOIN rank_step ON rank_step.step = operation.step AND rank_step.rank = rank_operation.rank
WHERE rank_operation.late_ns IS NOT NULL ORDER BY rank_operation.late_ns DESC;

CREATE VIEW flow_windows AS -- what flows sent in the windows that were asked for; where nothing was sent there is none
SELECT traffic_window.start_ns, traffic_window.length_ns / 1e3 AS length_us, flow.source_rank, flow.destination_rank,
    flow.communicator, queue_pair.device || '/' || queue_pair.port AS device, queue_pair.qpn AS lqpn, -- of the sender; NULL: unattributed
    port.name AS port, flow.vantage,                              -- where it was seen: tx, rx, middle; several see the same
    traffic_window.wire_bytes * 8.0 / traffic_window.length_ns AS wire_gbit_per_s,
    traffic_window.wire_bytes, traffic_window.payload_bytes, traffic_window.frames, traffic_window.retransmitted_frames,
    traffic_window.marked_frames,                                 -- ECN: congestion experienced
    traffic_window.flow
FROM traffic_window JOIN flow ON flow.id = traffic_window.flow JOIN port ON port.id = flow.port
    LEFT JOIN queue_pair ON queue_pair.id = flow.queue_pair ORDER BY traffic_window.start_ns, traffic_window.flow;

CREATE VIEW queue_pair_map AS -- whose each queue pair is, and with which other it talks; lqpn, rqpn, pid, comm as rdma-resource(8) has them
WITH carried AS ( -- several ports see the same flow: each vantage is added up, and the fullest stands
    SELECT queue_pair, max(payload_bytes) AS payload_bytes FROM (SELECT queue_pair, vantage, sum(payload_bytes) AS payload_bytes FROM flow
        WHERE queue_pair IS NOT NULL GROUP BY queue_pair, vantage) GROUP BY queue_pair
)
SELECT emitter.host AS node, here.device || '/' || here.port AS device, here.qpn AS lqpn, printf('0x%06x', here.qpn) AS lqpn_hex, here.state,
    process.pid, process.command AS comm, here.rank, here.peer_rank, member.communicator, communicator.identity AS communicator_identity,
    here.role,                                                    -- sender, receiver, unused, flush, foreign, unknown
    setting.channel, here.remote_qpn AS rqpn, far_emitter.host AS peer_node, far.device || '/' || far.port AS peer_device,
    here.address, here.remote_address,
    carried.payload_bytes AS sent_bytes,                          -- payload; NULL: no flow of it was seen
    here.created_ns, here.destroyed_ns, here.id AS queue_pair
FROM queue_pair AS here JOIN process ON process.id = here.process JOIN emitter ON emitter.id = process.emitter
    LEFT JOIN member ON member.id = here.member LEFT JOIN communicator ON communicator.id = member.communicator
    LEFT JOIN queue_pair_setting AS setting ON setting.queue_pair = here.id LEFT JOIN queue_pair AS far ON far.id = here.peer
    LEFT JOIN process AS far_process ON far_process.id = far.process LEFT JOIN emitter AS far_emitter ON far_emitter.id = far_process.emitter
    LEFT JOIN carried ON carried.queue_pair = here.id ORDER BY here.rank IS NULL, here.rank, member.communicator, here.device, here.qpn, here.id;
