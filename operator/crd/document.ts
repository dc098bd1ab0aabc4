/** The definition as the text that is checked in. */
import { stringify } from 'yaml'
import { GROUP, PLURAL } from '../resource.ts'
import { bufferDefinition } from './definition.ts'

export const CRD_FILE_NAME = `${GROUP}_${PLURAL}.yaml`

/** Each value in full: the anchors that repeated parts would become are read by few. */
export function crdDocument(): string {
  const definition = stringify(bufferDefinition(), { aliasDuplicateObjects: false, lineWidth: 0 })
  return `# Made by \`npm run crd\` from the schema of the admin API. Change that one.\n${definition}`
}
