/** Systems that this bench does not run, as they were measured elsewhere: other runs, on another machine. */
import { table } from '../figures.ts'

const HEAD = [
  '',
  'accepted/s',
  'ack p50 / p99 / p99.9 ms',
  'delivered/s',
  'lost / twice / out of order',
  'items a batch',
  'late p50 / p99 ms',
  'CPU µs an item',
  'PSS MB',
]

/** 64 connections in a closed loop for 8 s, 1 KB, 1,000 keys at random. */
const CLOSED = [
  ['Redpanda Connect', '8569', '5.0 / 43 / 333', '7329', '0 / 0 / 132', '15.0', '756 / 2205', '117', '554'],
  ['Graphile Worker', '527', '115 / 225 / 256', '426', '0 / 0 / 0', '1.9', '872 / 987', '1782', '297'],
  ['BullMQ (a POST an item)', '5868', '8.6 / 41 / 105', '5223', '0 / 0 / 4', '1.0', '–', '210', '162'],
  [
    'for scale: hand-written',
    '6036',
    '8.2 / 44 / 128',
    '5365',
    '0 / 0 / 0',
    '12.1',
    '8.6 / 81',
    '175',
    '261',
  ],
  [
    'for scale: Asynq',
    '8505',
    '5.0 / 49 / 166',
    '6121',
    '0 / 0 / 40456',
    '31.0',
    '3359 / 6123',
    '109',
    '118',
  ],
]

/** 1,000 items a second, else alike. */
const AT_RATE = [
  ['Redpanda Connect', '1000', '0.8 / 3.8 / 12', '863', '0 / 0 / 0', '2.3', '-29 / 1000', '393', '113'],
  ['Graphile Worker', '999', '29 / 454 / 473', '855', '7 / 0 / 0', '2.8', '697 / 1073', '1542', '305'],
  ['for scale: hand-written', '1000', '1.0 / 18 / 57', '923', '0 / 0 / 0', '2.4', '0.1 / 3.8', '525', '166'],
  ['for scale: Asynq', '1000', '0.7 / 1.8 / 3.8', '926', '0 / 0 / 2338', '1.8', '-317 / 334', '398', '37'],
]

/** The same load at another time. */
const LATER_AT_RATE = [
  ['BullMQ (a POST an item)', '1000', '1.3 / 77 / 102', '1000', '0 / 0 / 6', '1.0', '–', '703', '136'],
  ['Outpost (a POST an event)', '996', '6.3 / 120 / 152', '992', '0 / 0 / 48', '1.0', '–', '983', '343'],
  ['for scale: hand-written', '1000', '1.1 / 17 / 27', '909', '0 / 0 / 0', '2.4', '0.1 / 9.8', '592', '160'],
  ['for scale: Asynq', '1000', '0.8 / 49 / 135', '899', '0 / 0 / 1924', '2.5', '210 / 1725', '343', '48'],
]

/** 100,000 keys at random instead of 1,000. */
const AT_RATE_100K = [
  ['Redpanda Connect', '1000', '0.8 / 3.7 / 11', '840', '0 / 0 / 0', '1.0', '148 / 1003', '413', '116'],
  ['Graphile Worker', '620', '2689 / 6139 / 6151', '552', '0 / 0 / 0', '1.0', '931 / 1128', '2263', '311'],
  ['for scale: hand-written', '1000', '1.0 / 8.8 / 17', '909', '0 / 0 / 0', '1.0', '0.1 / 5.9', '615', '169'],
  ['for scale: Asynq', '1000', '0.8 / 2.1 / 4.7', '835', '0 / 0 / 30', '1.0', '683 / 1364', '579', '39'],
]

/** 10,000 keys by Zipf's law (1.1). */
const AT_RATE_ZIPF = [
  ['Redpanda Connect', '1000', '0.8 / 8.0 / 19', '840', '0 / 0 / 0', '2.9', '63 / 1026', '286', '110'],
  ['Graphile Worker', '642', '3073 / 5515 / 5623', '568', '84 / 0 / 0', '2.8', '924 / 1019', '1931', '360'],
  ['for scale: hand-written', '1000', '1.0 / 5.6 / 14', '909', '0 / 0 / 0', '2.9', '0.1 / 3.5', '517', '159'],
  ['for scale: Asynq', '1000', '0.7 / 2.2 / 7.9', '334', '0 / 0 / 4853', '2.6', '-390 / 1105', '353', '42'],
]

/** Markdown. */
export function reportedByOthers(): string {
  const rows = [
    ['*a closed loop, 1,000 keys*', ...HEAD.slice(1).map(() => '')],
    ...CLOSED,
    ['*1,000 items a second, 1,000 keys*', ...HEAD.slice(1).map(() => '')],
    ...AT_RATE,
    ['*1,000 items a second, 100,000 keys*', ...HEAD.slice(1).map(() => '')],
    ...AT_RATE_100K,
    ['*1,000 items a second, 10,000 keys by Zipf*', ...HEAD.slice(1).map(() => '')],
    ...AT_RATE_ZIPF,
    ['*1,000 items a second, 1,000 keys, at another time*', ...HEAD.slice(1).map(() => '')],
    ...LATER_AT_RATE,
  ]
  return `**Reported, not measured here.** These are other runs on another machine of two cores (2026-11-20). It had other work, so only ratios of rows under one heading mean anything. Redis syncs every second, NATS (hand-written, Redpanda Connect) every two minutes, Postgres at each commit.\n\n${table(HEAD, rows)}`
}
