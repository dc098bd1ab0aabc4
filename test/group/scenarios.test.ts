/** Golden scenarios; `REWRITE=1` writes what the machine does now, to be read before it is committed. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Script } from './scenario.ts'

const folder = new URL('./scenarios/', import.meta.url)

function replay(text: string): string {
  const script = new Script()
  const blocks = text.trimEnd().split(/\n\n+/)
  return `${blocks.map((block) => replayBlock(script, block)).join('\n\n')}\n`
}

function replayBlock(script: Script, block: string): string {
  const [input = ''] = block.split('\n----')
  const commands = input.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  if (commands.length === 0) return block
  return [input, '----', ...commands.flatMap((command) => script.run(command))].join('\n')
}

describe('group scenarios', () => {
  for (const file of readdirSync(folder)) {
    it(file, () => {
      const golden = readFileSync(new URL(file, folder), 'utf8')
      const actual = replay(golden)
      if (process.env.REWRITE) writeFileSync(new URL(file, folder), actual)
      else expect(actual).to.equal(golden)
    })
  }
})
