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

/** Markdown. */
export function reportedElsewhere(): string {
  const rows = [
    ['*a closed loop*', ...HEAD.slice(1).map(() => '')],
    ...CLOSED,
    ['*1,000 items a second*', ...HEAD.slice(1).map(() => '')],
    ...AT_RATE,
    ['*the same at another time*', ...HEAD.slice(1).map(() => '')],
    ...LATER_AT_RATE,
  ]
  return `**Reported, not measured here**: other runs on another machine of two cores (2026-11-20), which had other work, so only ratios of rows under one heading mean anything. Redis syncs every second, NATS (hand-written, Redpanda Connect) every two minutes, Postgres at each commit\n\n${table(HEAD, rows)}`
}
