/** What an API server estimates the rules of a spec to cost: it refuses a definition whose rules could cost too much. */
import { specSchema } from '../../../operator/crd/spec.ts'
import type { StructuralSchema } from '../../../operator/crd/structural.ts'
import { object } from '../../../operator/crd/structural.ts'

/** A definition of as many specs in one resource: its rules cost that many times as much. */
export function definitionOf(specs: number): object {
  const list: StructuralSchema = {
    type: 'array',
    description: 'Specs.',
    maxItems: specs,
    items: withoutTransitions(specSchema()),
  }
  const openAPIV3Schema = object('Specs.', { specs: list })
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'costs.tests.penstock.dev' },
    spec: {
      group: 'tests.penstock.dev',
      scope: 'Namespaced',
      names: { kind: 'Cost', listKind: 'CostList', plural: 'costs', singular: 'cost' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  }
}

/** Entries of a list have no earlier value. What is left out costs next to nothing. */
function withoutTransitions(schema: StructuralSchema): StructuralSchema {
  const rules = schema['x-kubernetes-validations']?.filter(({ rule }) => !rule.includes('oldSelf')) ?? []
  const { 'x-kubernetes-validations': _rules, ...rest } = schema
  const members = Object.entries(schema.properties ?? {})
  return {
    ...rest,
    ...(rules.length > 0 && { 'x-kubernetes-validations': rules }),
    ...(schema.properties && {
      properties: Object.fromEntries(members.map(([name, member]) => [name, withoutTransitions(member)])),
    }),
  }
}
