/**
 * The CustomResourceDefinition of Buffer. It is made from the schema of the admin API (docs/architecture/protocol.md,
 * "One schema"), so both have the same bounds, defaults and words; `npm run crd` writes it to `crds/`.
 */
import {
  GROUP,
  KIND,
  LIST_KIND,
  PAUSE_ANNOTATION,
  PLURAL,
  RECONCILE_ANNOTATION,
  RESUME_ANNOTATION,
  UNMANAGED_ANNOTATION,
  VERSION,
} from '../resource.ts'
import { nameAsIdentifier } from './rules.ts'
import { specSchema } from './spec.ts'
import { statusSchema } from './status.ts'
import { object, ruled } from './structural.ts'

const condition = (type: string) => `.status.conditions[?(@.type=="${type}")]`

/** `priority` above 0: shown by `kubectl get -o wide` only. */
const printerColumns = [
  { name: 'Ready', type: 'string', jsonPath: `${condition('Ready')}.status` },
  { name: 'Reason', type: 'string', jsonPath: `${condition('Ready')}.reason` },
  { name: 'Enabled', type: 'boolean', jsonPath: '.status.enabled' },
  { name: 'Host', type: 'string', jsonPath: '.status.host' },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  { name: 'Project', type: 'string', jsonPath: '.spec.projectId', priority: 1 },
  { name: 'Buffer-ID', type: 'string', jsonPath: '.status.bufferId', priority: 1 },
  { name: 'Dead-Letters', type: 'integer', jsonPath: '.status.deadLetters', priority: 1 },
]

export function bufferDefinition() {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${PLURAL}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: {
        kind: KIND,
        listKind: LIST_KIND,
        plural: PLURAL,
        singular: KIND.toLowerCase(),
        shortNames: ['buf'],
        categories: ['all', 'webhooks'],
      },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          subresources: { status: {} },
          selectableFields: [{ jsonPath: '.spec.projectId' }],
          additionalPrinterColumns: printerColumns,
          schema: { openAPIV3Schema: resourceSchema() },
        },
      ],
    },
  }
}

function resourceSchema() {
  const members = { spec: specSchema(), status: statusSchema }
  const description =
    'A buffer of the webhook service: takes webhooks, groups them by a key and delivers each group in batches. ' +
    `Any new value of the annotation ${RESUME_ANNOTATION} resumes one that was paused automatically, and any new value ` +
    `of ${RECONCILE_ANNOTATION} has it compared with the service at once. While ${PAUSE_ANNOTATION} is "true" the ` +
    `buffer is disabled, whatever spec.enabled says. While ${UNMANAGED_ANNOTATION} is "true" the operator leaves the ` +
    'buffer at the service as it is.'
  return ruled(object(description, members, ['spec']), nameAsIdentifier)
}
