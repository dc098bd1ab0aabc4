/**
 * `npm run sbom -- [file]`: what the image holds, as CycloneDX (docs/operations/release.md, "What the image holds").
 * Needs an installed checkout on Linux x64, whose packages the image gets, too.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { imageBom } from './bom.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const DEFAULT_FILE = 'penstock.cdx.json'

const [file = DEFAULT_FILE] = process.argv.slice(2)
const bom = await imageBom(ROOT)
writeFileSync(file, `${JSON.stringify(bom, null, 2)}\n`)
process.stdout.write(`${bom.components.length} components in ${file}\n`)
