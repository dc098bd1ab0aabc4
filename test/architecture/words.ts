/**
 * Words that the project has given up for those of the field (`docs/architecture/glossary.md`). They may not come back
 * into names of files or identifiers; in prose most of them are plain English.
 */
import type { Source } from './sources.ts'

/** Parts of names, in lower case: `twin` stands for `Twins`, `findTwin` and `twin-race.test.ts`. */
const GONE: Readonly<Record<string, string>> = {
  twin: 'duplicate',
  twins: 'duplicates',
  burial: 'dead-letter write',
  burials: 'dead-letter writes',
  bury: 'write a dead letter',
  buried: 'stored as a dead letter',
  burying: 'writing a dead letter',
  courier: 'delivery scheduler',
  couriers: 'delivery schedulers',
  endings: 'settlement',
  book: 'buffer state',
  books: 'buffer states',
  rooms: 'log usage',
  roomy: 'has space',
  seat: 'shard supervisor',
  seats: 'shard supervisors',
  wish: 'desired buffer',
  wishes: 'desired buffers',
  ground: 'backends',
  faces: 'endpoints',
  elsewhere: 'remote',
  untaken: 'unclaimed',
  beheaded: 'truncated without snapshot',
  veterans: 'previous members',
  office: 'harness',
  till: 'harness',
  bulletin: 'shared leases',
}
/** Of the shard alone: elsewhere NATS and HTTP have frames. */
const GONE_FROM_SHARDS: Readonly<Record<string, string>> = {
  frame: 'message',
  frames: 'payload cache',
}
/** Names that others gave: columns of the database, and a method of Node. */
const FOREIGN = new Set(['book_consumption', 'dead_buried', 'elsewhere'])

/** One line a breach: the file, what is named so, and the word that stands for it now. */
export function breachesOfWords(sources: readonly Source[]): string[] {
  return sources.flatMap(({ path, code }) => {
    const gone = /^(internal|test)\/shard\//.test(path) ? { ...GONE, ...GONE_FROM_SHARDS } : GONE
    const names = new Set([path.split('/').at(-1)!, ...namesIn(code)])
    return [...names].flatMap((name) => {
      if (FOREIGN.has(name)) return []
      const word = partsOf(name).find((part) => Object.hasOwn(gone, part))
      return word === undefined ? [] : [`${path}: ${name} (${gone[word]})`]
    })
  })
}

/** Identifiers; what stands in strings and templates is prose or data. */
function namesIn(code: string): string[] {
  const bare = code.replace(
    /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/(?:\\.|[^/\\\n])+\/[a-z]*/g,
    ' ',
  )
  return bare.match(/[A-Za-z_$][\w$]*/g) ?? []
}

/** `findTwin`, `MAX_TWINS` and `twin-race.test.ts` in lower-case parts. */
function partsOf(name: string): string[] {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
}
