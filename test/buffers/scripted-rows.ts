import type { BufferRows } from '../../internal/buffers/ports.ts'
import type { BufferRecord } from '../../internal/domain/model.ts'

/** Rows that answer when they are told to: the order of events is the test's. */
export function scriptedRows() {
  const asked: { keys: readonly string[]; answer: (records: (BufferRecord | Error)[]) => void }[] = []
  const by = (key: (record: BufferRecord) => string) => (keys: readonly string[]) =>
    new Promise<Map<string, BufferRecord | Error>>((resolve) => {
      const answer = (records: (BufferRecord | Error)[]) =>
        resolve(
          new Map(
            records.map((record, index) => [record instanceof Error ? keys[index]! : key(record), record]),
          ),
        )
      asked.push({ keys, answer })
    })
  const rows: BufferRows = { byUids: by(({ uid }) => uid), byIds: by(({ buffer }) => buffer.bufferId) }
  return { rows, asked }
}

export function recordOf(
  uid: string,
  version: number,
  more: { deleted?: boolean; createdAt?: number } = {},
): BufferRecord {
  const buffer = { bufferId: 'b', name: `v${version}`, createdAt: more.createdAt ?? 1 }
  return {
    uid,
    version,
    deleted: more.deleted ?? false,
    suspended: false,
    buffer: buffer as BufferRecord['buffer'],
  }
}

/** Lets settled promises run their consequences. */
export const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
