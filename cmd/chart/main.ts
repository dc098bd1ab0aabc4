/** `node cmd/chart/main.ts`: writes the parts of the chart that are made from others: its README's table, and the definitions. */
import { writeFileSync } from 'node:fs'
import { generated } from './generated.ts'

for (const { path, content } of generated()) writeFileSync(path, content)
