/** The programs of the guide for receivers that check signatures, each on every vector of api/vectors/deliveries.json. */
import { execFile, execFileSync, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { sign, verifySignature } from '../../internal/domain/signature.ts'
import { tempFolder } from '../support/temp-folders.ts'

interface Vector {
  readonly name: string
  /** Text in UTF-8; or `bodyBase64`. */
  readonly body?: string
  readonly bodyBase64?: string
  readonly secrets: readonly string[]
  readonly signature: string
  readonly valid: boolean
}

const ROOT = join(import.meta.dirname, '..', '..')
const PAGE = readFileSync(join(ROOT, 'docs', 'guide', 'receivers.md'), 'utf8')
const FILE = readFileSync(join(ROOT, 'api', 'vectors', 'deliveries.json'), 'utf8')
const { vectors } = JSON.parse(FILE) as { vectors: Vector[] }

function bodyOf({ body, bodyBase64 }: Vector): Buffer {
  return bodyBase64 === undefined ? Buffer.from(body!) : Buffer.from(bodyBase64, 'base64')
}

describe('the vectors of signatures', () => {
  for (const vector of vectors) {
    it(`are judged as the service signs: ${vector.name}`, () => {
      const body = bodyOf(vector)
      const made = vector.secrets.map((secret) => createHmac('sha256', secret).update(body).digest('hex'))
      expect(vector.secrets.map((secret) => sign(secret, body))).to.deep.equal(made)
      expect(made.includes(vector.signature)).to.equal(vector.valid)
      const taken = vector.secrets.some((secret) => verifySignature(secret, body, vector.signature))
      expect(taken).to.equal(vector.valid)
    })
  }

  it('have names of their own, and some of each kind', () => {
    expect(new Set(vectors.map(({ name }) => name)).size).to.equal(vectors.length)
    const kinds = Map.groupBy(vectors, ({ valid }) => valid)
    expect(kinds.get(true)).to.have.length.above(5)
    expect(kinds.get(false)).to.have.length.above(10)
    expect(vectors.some((vector) => bodyOf(vector).at(-1) === 0x0a && vector.valid)).to.equal(true)
    expect(vectors.some(({ secrets, valid }) => secrets.length > 1 && valid)).to.equal(true)
  })
})

/** A command that runs the program of the page; `undefined`: what it needs is not here. */
interface Language {
  readonly fence: string
  readonly file: string
  /** What has to be installed. */
  readonly tool: string
  command(file: string): Promise<string[]>
}

const LANGUAGES: readonly Language[] = [
  { fence: 'js', file: 'verify.mjs', tool: 'node', command: async (file) => [process.execPath, file] },
  { fence: 'python', file: 'verify.py', tool: 'python3', command: async (file) => ['python3', file] },
  { fence: 'go', file: 'verify.go', tool: 'go', command: built },
  { fence: 'bash', file: 'verify.sh', tool: 'openssl', command: async (file) => ['bash', file] },
]

/** Once, for `go run` would build it for each vector. */
async function built(file: string): Promise<string[]> {
  const binary = file.replace('.go', '')
  await promisify(execFile)('go', ['build', '-o', binary, file])
  return [binary]
}

function isInstalled(tool: string): boolean {
  try {
    execFileSync('bash', ['-c', `command -v ${tool}`])
    return true
  } catch {
    return false
  }
}

describe('the program of the guide that checks signatures', function () {
  this.timeout(300_000)

  for (const { fence, file, tool, command } of LANGUAGES) {
    describe(`in ${file}`, () => {
      let words: string[]

      before(async function () {
        if (!isInstalled(tool)) {
          const missing = `${tool} is not installed, so ${file} of docs/guide/receivers.md was not run`
          if (process.env.CI) throw new Error(missing)
          process.stderr.write(`\n*** SKIPPED: ${missing}. ***\n\n`)
          return this.skip()
        }
        const path = join(tempFolder('signatures'), file)
        writeFileSync(path, programOf(fence))
        words = await command(path)
      })

      for (const vector of vectors) {
        it(`${vector.valid ? 'takes' : 'refuses'}: ${vector.name}`, async () => {
          expect(await exitCode(words, vector)).to.equal(vector.valid ? 0 : 1)
        })
      }
    })
  }

  it('checks in the receiver of the page as the one in Node does', () => {
    const check = /^function isSigned.*?^}$/ms.exec(programOf('js'))![0]
    expect(/^cat > receiver\.mjs <<'END'\n(.*?)^END$/ms.exec(PAGE)![1]).to.include(check)
  })
})

/** The only block of the page in this language. */
function programOf(fence: string): string {
  const blocks = [...PAGE.matchAll(new RegExp(`^\`\`\`${fence}\\n(.*?)^\`\`\`$`, 'gms'))]
  expect(blocks, fence).to.have.length(1)
  return blocks[0]![1]!
}

async function exitCode([program, ...words]: string[], vector: Vector): Promise<number> {
  const env = { ...process.env, SECRETS: vector.secrets.join(',') }
  const child = spawn(program!, [...words, vector.signature], { env, stdio: ['pipe', 'ignore', 'ignore'] })
  child.stdin.end(bodyOf(vector))
  const [code] = (await once(child, 'close')) as [number]
  return code
}
