/**
 * `npm run audit`: known faults of the packages that the image holds, asked of the registry (docs/operations/release.md,
 * "Known faults"). The last line counts, as that of the tests does: a registry that does not tell is skipped, loudly.
 */
import { askRegistry } from './advisories.ts'

const { outcome, lines } = await askRegistry(process.cwd())
const counts = { passed: 0, failed: 0, skipped: 0, [outcome]: 1 }
process.stdout.write(`${lines.join('\n')}\n`)
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`)
process.exitCode = counts.failed
