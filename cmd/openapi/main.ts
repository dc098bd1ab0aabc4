/** `node cmd/openapi/main.ts`: writes the checked-in copy of the OpenAPI document, `api/openapi.json`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openApiDocument } from '../../internal/http/openapi/document.ts'

const file = join(import.meta.dirname, '..', '..', 'api', 'openapi.json')
writeFileSync(file, `${JSON.stringify(openApiDocument(), null, 2)}\n`)
