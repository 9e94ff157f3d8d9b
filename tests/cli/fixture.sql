-- SPDX-License-Identifier: BSD-2-Clause
-- A store made by hand: 4 ranks, 3 communicators (1: all; 2: ranks 0 and 1; 3: ranks 2 and 3), 3 steps of 4 operations.
-- In step 1 the GPU of rank 2 was 51.2 ms late. Steps begin at 1000 s plus 0, 100 and 251.2 ms and follow each other
-- without a pause. All numbers that tests expect follow from these rows by arithmetic.
BEGIN;
INSERT INTO meta VALUES ('schema_version', '2'), ('generator', 'fixture'), ('reference_boot', '00000000000000aa'),
    ('realtime_minus_reference_ns', '1700000000000000000'), ('ranks_count', '4');

INSERT INTO emitter VALUES
    (1, 'nic', '0000000000000001', '00000000000000b1', 'node-a', 'far0,far1', '0.1.0', 100, 8000, 990000000000,
     1002000000000, 1, 500, 0, -7000000000, 20000, 3, 40, 'exchange', 0, NULL),
    (2, 'host', '0000000000000002', '00000000000000b2', 'node-a', 'job', '0.1.0', 101, 0, 990000000000, 1002000000000,
     0, 400, 1, 0, 5000, -2, 41, 'exchange', 0, NULL);

INSERT INTO gap VALUES
    (1, 2, 1000260000000, 1000260120000, 'ring full', 12, NULL),
    (2, 1, 1000700000000, 1000800000000, 'batches lost', 2, NULL),
    (3, 1, 1000900000000, 1000950000000, 'batches lost', 3, NULL);

INSERT INTO counter VALUES (1, 0, 'frames_total', 123456), (1, 2, 'frames_dropped_total', 0),
    (2, 0, 'calls_missed_total', 3);

INSERT INTO traffic_source VALUES (1, 'dpdk', 'packets, messages', 'progress, states', 8000, 230);

INSERT INTO port VALUES (1, 1, 1, 'far0', '10.0.0.1', 'all'), (2, 1, 2, 'far1', '10.0.0.2', 'one queue'),
    (3, 1, 3, 'far2', '10.0.0.3', 'all'), (4, 1, 4, 'far3', '10.0.0.4', 'all');

INSERT INTO process VALUES (1, 2, 1000, 'train', '/usr/lib/librccl.so.1', 991000000000, NULL),
    (2, 2, 1001, 'train', '/usr/lib/librccl.so.1', 991000000000, NULL),
    (3, 2, 1002, 'train', '/usr/lib/librccl.so.1', 991000000000, NULL),
    (4, 2, 1003, 'train' || char(27) || '[31m', '/usr/lib/librccl.so.1', 991000000000, NULL),
    (5, 2, 2000, 'ib_write_bw', '', 995000000000, 996000000000);

INSERT INTO communicator VALUES (1, 'c1aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 4, 4, 992000000000, NULL),
    (2, 'c2bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 2, 2, 993000000000, NULL),
    (3, 'c3cccccccccccccccccccccccccccccc', 2, 2, 993000000000, NULL);

INSERT INTO member VALUES (1, 1, 0, 0, 1, '0x10', 992000000000, 992500000000, NULL, 0, 'InitRank', NULL, 0, 0, 0, 'id'),
    (2, 1, 1, 1, 2, '0x11', 992000000000, 992500000000, NULL, 0, 'InitRank', NULL, 0, 0, 0, 'id'),
    (3, 1, 2, 2, 3, '0x12', 992000000000, 992500000000, NULL, 0, 'InitRank', NULL, 0, 0, 0, 'id'),
    (4, 1, 3, 3, 4, '0x13', 992000000000, 992500000000, NULL, 0, 'InitRank', NULL, 0, 0, 0, 'id'),
    (5, 2, 0, 0, 1, '0x20', 993000000000, 993500000000, NULL, 0, 'InitRank', NULL, 0, 0, 0, 'id'),
    (6, 2, 1, 1, 2, '0x21', 993000000000, 993500000000, NULL, 0, 'InitRank', NULL, 0, 0, 0, 'id'),
    (7, 3, 0, 2, 3, '0x22', 993000000000, 993500000000, NULL, 0, 'InitRank', NULL, 0, 0, 0, 'id'),
    (8, 3, 1, 3, 4, '0x23', NULL, NULL, NULL, 1, NULL, NULL, 0, 0, 0, 'hash');

-- The ring of communicator 1: rank r sends with QP 0x11+r to rank r+1, which receives with QP 0x21+r.
INSERT INTO queue_pair
SELECT 1 + r, 1 + r, 1 + r, r, 5 + r, (r + 1) % 4, 'sender', 'rxe' || r, 1, 17 + r, '10.0.0.' || (1 + r), 33 + r,
    '10.0.0.' || (1 + (r + 1) % 4), 'RTS', 'cq' || r, 992100000000, 992200000000, NULL
FROM (SELECT 0 AS r UNION SELECT 1 UNION SELECT 2 UNION SELECT 3);
INSERT INTO queue_pair
SELECT 5 + r, 1 + (r + 1) % 4, 1 + (r + 1) % 4, (r + 1) % 4, 1 + r, r, 'receiver', 'rxe' || ((r + 1) % 4), 1, 33 + r,
    '10.0.0.' || (1 + (r + 1) % 4), 17 + r, '10.0.0.' || (1 + r), 'RTS', 'rq' || r, 992100000000, 992200000000, NULL
FROM (SELECT 0 AS r UNION SELECT 1 UNION SELECT 2 UNION SELECT 3);
INSERT INTO queue_pair VALUES
    (9, 1, 1, 0, 9, 0, 'flush', 'rxe0', 1, 49, '10.0.0.1', 49, '10.0.0.1', 'RTS', 'fq', 992100000000, 992200000000, NULL),
    (10, 5, NULL, NULL, NULL, NULL, 'foreign', 'rxe0', 1, 65, NULL, NULL, NULL, 'RTS', 'xq', 995000000000, NULL, NULL),
    (11, 2, 2, 1, NULL, NULL, 'unused', 'rxe1', 1, 66, '10.0.0.2', NULL, NULL, 'INIT', 'uq', 992100000000, NULL, NULL),
    (12, 3, 3, 2, NULL, NULL, 'sender', 'rxe2', 1, 67, '10.0.0.3', 68, 'fe80::1', 'DESTROYED', 'dq', 991500000000,
     991600000000, 991700000000);
INSERT INTO queue_pair_setting
SELECT id, '0x0', 1, NULL, 2, 4096, 104, 0, 20, 7, 7, 12, 256, 64, role, rank, peer_rank, 1, 0, 0
FROM queue_pair WHERE id <= 8;
INSERT INTO failure VALUES
    (1, 1000000000000, 'async error', 3, 3, NULL, 2, 6, NULL),
    (2, 1000000000500, 'warning', 3, NULL, NULL, NULL, NULL, 'NET/IB: status=%d'),
    (3, 1000000000900, 'process ended', 3, 3, 1, 2, NULL, NULL);

-- Rank r's data as seen at both ends: flow 1+r at the sender's port, 5+r at the receiver's, where rank 3's lost a frame.
INSERT INTO flow
SELECT 1 + r, 1, 1 + r, 'tx', '10.0.0.' || (1 + r), '10.0.0.' || (1 + (r + 1) % 4), 33 + r, 49152 + r, 0, 1 + r, 1, r,
    (r + 1) % 4, 1000012000000, 1000340000000, 256 * (1 + r), 1134592 * (1 + r), 1048576 * (1 + r), 8, 40, 0, 0, 0, 0, 0,
    0, 0, 0
FROM (SELECT 0 AS r UNION SELECT 1 UNION SELECT 2 UNION SELECT 3);
INSERT INTO flow
SELECT 5 + r, 1, 1 + (r + 1) % 4, 'rx', '10.0.0.' || (1 + r), '10.0.0.' || (1 + (r + 1) % 4), 33 + r, 49152 + r, 0,
    1 + r, 1, r, (r + 1) % 4, 1000012000000, 1000340000000, 256 * (1 + r) - (r = 3), 1134592 * (1 + r),
    1048576 * (1 + r) - 4096 * (r = 3), 8, 40, 0, 0, 0, 0, 0, 0, 0, 0
FROM (SELECT 0 AS r UNION SELECT 1 UNION SELECT 2 UNION SELECT 3);
-- What the answers to rank r's data said at the sender's port; at the receiver's its pair was not known.
INSERT INTO flow_evidence
SELECT 1 + r, NULL, 'acknowledgements', 49 + r, 256 * (1 + r), 0, 0, 0, r, 0, 0, 2, 40, 3 + r, 3 + r, 0, 0, 0, 2 * r, 960000 * r, 480000,
    5 + r
FROM (SELECT 0 AS r UNION SELECT 1 UNION SELECT 2 UNION SELECT 3);
INSERT INTO flow_evidence
SELECT 5 + r, NULL, NULL, NULL, 256 * (1 + r) - (r = 3), 0, 0, 0, 0, 0, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM (SELECT 0 AS r UNION SELECT 1 UNION SELECT 2 UNION SELECT 3);
-- The credits of rank 1 to rank 0, seen at the receiver's port only; a stranger; a flow that only acknowledges.
INSERT INTO flow VALUES
    (9, 1, 1, 'rx', '10.0.0.2', '10.0.0.1', 17, 49160, 0, 5, 1, 1, 0, 1000011000000, 1000330000000, 6, 1000, 384, 6, 30,
     0, 0, 0, 0, 0, 0, 0, 0),
    (10, 1, 1, 'tx', '10.0.0.9', '10.0.0.1', 65, 50000, 0, NULL, NULL, NULL, NULL, 995100000000, 995200000000, 16, 70000,
     65536, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    (11, 1, 1, 'tx', '10.0.0.1', '10.0.0.9', 66, 50001, 0, NULL, NULL, NULL, NULL, 995100000000, 995200000000, 0, 0, 0,
     0, 16, 0, 0, 0, 0, 0, 0, 0, 0);

-- Steps and, in each, operations at places 0 to 3. Place 3 is enqueued on communicator 1 while place 0 still runs there.
CREATE TEMP TABLE plan (step INTEGER, base INTEGER, late INTEGER);
INSERT INTO plan VALUES (0, 1000000000000, 0), (1, 1000100000000, 51200000), (2, 1000251200000, 0);
CREATE TEMP TABLE shape (place INTEGER, communicator INTEGER, kind TEXT, from_ns INTEGER, to_ns INTEGER, bytes INTEGER);
INSERT INTO shape VALUES (0, 1, 'AllReduce', 10000000, 40000000, 1048576),
    (1, 2, 'SendRecv', 20000000, 60000000, 65536), (2, 3, 'AllGather', 20000000, 95000000, 131072),
    (3, 1, 'AllReduce', 12000000, 70000000, 4194304);

INSERT INTO operation
SELECT 1 + step * 4 + place, communicator, kind, CASE WHEN communicator = 1 THEN step * 2 + (place = 3) ELSE step END, step,
    place, bytes, CASE place WHEN 1 THEN 'point-to-point' ELSE 'ring' END, CASE communicator WHEN 1 THEN 4 ELSE 2 END,
    base + from_ns, base + from_ns + 2300000 + late, base + to_ns + late,
    CASE WHEN step = 2 AND place = 3 THEN 'incomplete' ELSE 'complete' END
FROM plan, shape;

INSERT INTO step VALUES
    (0, 1000000000000, 1000100000000, 100000000, 25000, 4, 0, 1, 3, 200000, 25000, 1, 'training'),
    (1, 1000100000000, 1000251200000, 151200000, 25000, 4, 0, 0, 2, 51200000, 25000, 5, 'training'),
    (2, 1000251200000, 1000351200000, 100000000, 25000, 4, 1, 0, NULL, NULL, NULL, NULL, 'evaluation');

WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9)
INSERT INTO past_step SELECT 1000000000000 - i * 100000000, 1000000000000 - (i - 1) * 100000000, 100000000, 25000, 'training', 4, 0, 2, 300000 FROM n;
INSERT INTO past_verdict SELECT start_ns, 'gpu late', 2, NULL, NULL, NULL, 300000, 25000, 0.7, 'rank 2 was late' FROM past_step ORDER BY start_ns LIMIT 2;

-- 51.1 ms of what rank 2 added in step 1 were waited for by all others.
INSERT INTO rank_step
SELECT step, rank, base, base + 100000000 + late, 100000000 + late, CASE WHEN rank = 2 AND step = 1 THEN late END,
    CASE WHEN rank = 2 AND step = 1 THEN 51100000 ELSE 0 END
FROM plan, (SELECT 0 AS rank UNION SELECT 1 UNION SELECT 2 UNION SELECT 3);

INSERT INTO critical_path VALUES (1, 0, 'rank', 2, 5, 1000100000000, 1000163500000),
    (1, 1, 'transfer', 3, 5, 1000163500000, 1000191200000), (1, 2, 'rank', 2, 7, 1000191200000, 1000191900000),
    (1, 3, 'transfer', 0, 7, 1000191900000, 1000251200000);

-- Rank r enqueues r * 0.1 ms after rank 0, gives credit 1 ms later and has data 1 ms after that; but in step 1, place 0,
-- rank 2's data comes 51.1 ms later still, which is 51.2 ms after the median of the others (2.0, 2.1, 2.3).
INSERT INTO rank_operation (operation, member, rank, enqueued_ns, host_ready_ns, gpu_ready_ns, gpu_ready_known, arrival_ns,
    arrival_of, late_ns, first_data_ns, last_data_ns, end_ns, active_ns, expected_bytes, observed_bytes,
    retransmitted_frames, marked_frames, status)
SELECT operation.id, member.id, member.rank, start_ns + rank * 100000, start_ns + rank * 100000 + 1000000,
    start_ns + rank * 100000 + 2000000, 1, start_ns + rank * 100000 + 2000000, 'gpu', NULL,
    start_ns + rank * 100000 + 2000000, end_ns - 1000000, end_ns, 5000000, buffer_bytes, buffer_bytes, 0, 0, 'complete'
FROM operation JOIN member ON member.communicator = operation.communicator ORDER BY operation.id, rank;
-- Place 3 has data 1 ms after place 0 ended: at 41 ms of the step, which is 29 ms after its first enqueue.
UPDATE rank_operation SET gpu_ready_ns = gpu_ready_ns + 27000000 + plan.late, arrival_ns = arrival_ns + 27000000 + plan.late,
    first_data_ns = first_data_ns + 27000000 + plan.late
    FROM operation JOIN plan ON plan.step = operation.step
    WHERE operation.id = rank_operation.operation AND operation.place = 3;
UPDATE rank_operation SET gpu_ready_ns = gpu_ready_ns + 51100000, arrival_ns = arrival_ns + 51100000,
    first_data_ns = first_data_ns + 51100000, late_ns = 51200000 WHERE operation = 5 AND rank = 2;
UPDATE rank_operation SET late_ns = -100000 WHERE operation = 5 AND rank = 0;
UPDATE rank_operation SET late_ns = 0, gpu_ready_known = 0, arrival_of = 'host' WHERE operation = 5 AND rank = 1;
UPDATE rank_operation SET late_ns = 200000 WHERE operation = 5 AND rank = 3;
UPDATE rank_operation SET host_ready_ns = NULL, gpu_ready_ns = NULL, gpu_ready_known = 0, arrival_ns = NULL,
    arrival_of = NULL, first_data_ns = NULL, last_data_ns = NULL, end_ns = NULL, active_ns = 0, observed_bytes = 0,
    expected_bytes = NULL, status = 'incomplete' WHERE operation = 12 AND rank = 3;
UPDATE rank_operation SET rank = NULL WHERE operation = 11 AND rank = 3;

INSERT INTO verdict VALUES
    (1, 1, 'gpu late', 2, NULL, NULL, NULL, 5, 51200000, 25000, 0.95,
     'rank 2 held credit from 1.2 ms after the first enqueue on, but sent no data before 53.3 ms; the other ranks were ready at 2.1 ms (median)', NULL);

-- Data of rank 0 in place 0 of each step: two messages that follow each other, one of a single frame apart from them.
INSERT INTO message (flow, rank_operation, role, first_ns, last_ns, payload_bytes, frames, immediate, flags)
SELECT 1, rank_operation.id, 'data', rank_operation.first_data_ns + offset_ns,
    rank_operation.first_data_ns + offset_ns + length_ns, bytes, frames, NULL, 0
FROM rank_operation JOIN operation ON operation.id = rank_operation.operation,
    (SELECT 0 AS offset_ns, 500000 AS length_ns, 524288 AS bytes, 128 AS frames
     UNION ALL SELECT 500000, 250000, 524288, 128 UNION ALL SELECT 2000000, 0, 64, 1)
WHERE operation.place = 0 AND rank_operation.rank = 0 ORDER BY 1, 4;
-- The same seen at the receiver's end, and credits: neither makes a counter track of its own.
INSERT INTO message (flow, rank_operation, role, first_ns, last_ns, payload_bytes, frames, immediate, flags)
SELECT 5, rank_operation, role, first_ns + 3000, last_ns + 3000, payload_bytes, frames, immediate, flags FROM message
WHERE flow = 1;
INSERT INTO message (flow, rank_operation, role, first_ns, last_ns, payload_bytes, frames, immediate, flags) VALUES
    (9, NULL, 'credit', 1000011000000, 1000011000000, 64, 1, NULL, 0),
    (10, NULL, 'data', 995100000000, 995200000000, 65536, 16, NULL, 0);

INSERT INTO traffic_window VALUES (2, 1000012000000, 8000, 10, 41000, 40960, 0, 0), (2, 1000012008000, 8000, 5, 20500, 20480, 0, 0),
    (2, 1000012032000, 8000, 2, 8200, 8192, 1, 0);
COMMIT;
