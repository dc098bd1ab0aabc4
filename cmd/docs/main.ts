/** `npm run docs`: writes the parts of the reference pages (docs/reference) that follow from the code. */
import { writeFileSync } from 'node:fs'
import { generated } from './generated.ts'

for (const { path, content } of await generated()) writeFileSync(path, content)
