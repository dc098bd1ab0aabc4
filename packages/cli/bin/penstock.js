#!/usr/bin/env node
import { existsSync } from 'node:fs'

const program = new URL('../dist/main.js', import.meta.url)
if (existsSync(program)) {
  await import(program.href)
} else {
  process.stderr.write('penstock: it is not built yet: npm run packages\n')
  process.exitCode = 2
}
