/**
 * The two headers of an append, encoded by hand. The client's own header class validates and rebuilds its
 * text for each of them; the client only ever calls `encode()` of what it is given, and a contract test
 * reads the headers back from the broker, so that a client that wants more than that is noticed.
 */
import type { MsgHdrs } from 'nats'

const UNPRINTABLE = /[^\x21-\x7e]/

/** Throws RangeError for a message id with anything but visible ASCII. */
export function appendHeaders(msgId: string, expectLastSeq: number | undefined): MsgHdrs {
  if (msgId === '' || UNPRINTABLE.test(msgId))
    throw new RangeError(`not a message id: ${JSON.stringify(msgId)}`)
  const expected = expectLastSeq === undefined ? '' : `Nats-Expected-Last-Sequence: ${expectLastSeq}\r\n`
  const text = `NATS/1.0\r\nNats-Msg-Id: ${msgId}\r\n${expected}\r\n`
  return { encode: () => Buffer.from(text, 'latin1') } as unknown as MsgHdrs
}
