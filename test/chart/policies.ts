/** What careful clusters ask of a rendering. Each rule answers with what is wrong, in words that name the object. */
import { type Manifest, nameOf, podsOf } from './helm.ts'

const CLUSTER_WIDE = [
  ...['CustomResourceDefinition', 'ClusterRole', 'ClusterRoleBinding'],
  ...['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'],
]
const VOLUMES = ['configMap', 'secret', 'emptyDir', 'persistentVolumeClaim']

/** All that is wrong with it. */
export function breaches(manifests: readonly Manifest[]): string[] {
  const pods = [...podsOf(manifests)]
  return [
    ...repeated(manifests),
    ...manifests.flatMap(unlabelled),
    ...pods.flatMap(([name, pod]) => [...ofPod(pod), ...ofContainers(pod)].map((what) => `${name}: ${what}`)),
    ...manifests.flatMap((each) => pointless(each, manifests)),
  ]
}

function repeated(manifests: readonly Manifest[]): string[] {
  const names = manifests.map((each) => `${each.metadata.namespace ?? ''} ${nameOf(each)}`)
  return names.filter((name, index) => names.indexOf(name) !== index).map((name) => `${name}: made twice`)
}

function unlabelled(each: Manifest): string[] {
  if (each.kind === 'CustomResourceDefinition') return []
  const { namespace, labels = {} } = each.metadata
  const wanted = ['name', 'instance', 'component', 'version', 'part-of', 'managed-by']
  const missing = wanted.filter((label) => !labels[`app.kubernetes.io/${label}`])
  const misplaced = CLUSTER_WIDE.includes(each.kind) === (namespace !== undefined)
  return [...missing.map((label) => `no label ${label}`), ...(misplaced ? ['the wrong scope'] : [])].map(
    (what) => `${nameOf(each)}: ${what}`,
  )
}

function ofPod({ spec, metadata }: Manifest): string[] {
  const { runAsNonRoot, runAsUser, seccompProfile } = spec.securityContext ?? {}
  const isOperator = metadata.labels['app.kubernetes.io/component'] === 'operator'
  const ends = spec.restartPolicy === 'Never'
  return wrong({
    'may run as root': runAsNonRoot !== true || !(runAsUser > 0),
    'has no seccomp profile': seccompProfile?.type !== 'RuntimeDefault',
    'has a token': spec.automountServiceAccountToken !== isOperator,
    'gets variables of services': spec.enableServiceLinks !== false,
    'is cut short in its drain': !ends && !(spec.terminationGracePeriodSeconds >= 25),
    'is not spread': !ends && !isLocal(metadata) && !spec.topologySpreadConstraints,
    'may block a drain': !!spec.topologySpreadConstraints?.some(
      ({ whenUnsatisfiable }: Manifest) => whenUnsatisfiable !== 'ScheduleAnyway',
    ),
    'shares the host': !!(spec.hostNetwork || spec.hostPID || spec.hostIPC),
    'has a volume of the host': (spec.volumes ?? []).some(
      (volume: Manifest) => !VOLUMES.some((type) => type in volume),
    ),
  })
}

function ofContainers({ spec }: Manifest): string[] {
  const containers: Manifest[] = [...spec.containers, ...(spec.initContainers ?? [])]
  return containers.flatMap((each) => [...secured(each), ...sized(each, spec)])
}

function secured({ image, securityContext = {} }: Manifest): string[] {
  return wrong({
    'is privileged': !!securityContext.privileged,
    'may gain privileges': securityContext.allowPrivilegeEscalation !== false,
    'writes to its root': securityContext.readOnlyRootFilesystem !== true,
    'keeps capabilities': String(securityContext.capabilities?.drop) !== 'ALL',
    'adds capabilities': !!securityContext.capabilities?.add,
    'has an image without a version': !/(:(?!latest$)[\w.-]+|@sha256:[0-9a-f]{64})$/.test(image),
  })
}

function sized({ resources = {}, ...container }: Manifest, { restartPolicy }: Manifest): string[] {
  const probes = ['startupProbe', 'readinessProbe', 'livenessProbe']
  return wrong({
    'has no memory limit': !resources.limits?.memory,
    'requests nothing': !resources.requests?.memory || !resources.requests?.cpu,
    'has not all probes': restartPolicy !== 'Never' && !probes.every((probe) => container[probe]?.httpGet),
    'has a variable twice': new Set(names(container.env)).size !== names(container.env).length,
  })
}

function names(list: Manifest[] = []): string[] {
  return list.map(({ name }) => name)
}

/** References within the release that lead nowhere. */
function pointless(each: Manifest, all: readonly Manifest[]): string[] {
  const pods = [...podsOf(all).values()]
  const selected = (labels: Record<string, string>) =>
    pods.filter((pod) => matches(pod.metadata.labels, labels))
  const says = (what: string) => [`${nameOf(each)}: ${what}`]
  switch (each.kind) {
    case 'Service': {
      const ports = selected(each.spec.selector).map((pod) => names(pod.spec.containers[0].ports))
      const reached = ports.length > 0 && ports.every((list) => list.includes(each.spec.ports[0].targetPort))
      return reached ? [] : says('reaches no port')
    }
    case 'PodDisruptionBudget':
      return selected(each.spec.selector.matchLabels).length === 1 ? [] : says('is not of one kind of pods')
    case 'Deployment':
    case 'StatefulSet':
      return selected(each.spec.selector.matchLabels).length === 1 ? [] : says('selects not its pods alone')
    case 'HorizontalPodAutoscaler': {
      const { kind, name } = each.spec.scaleTargetRef
      const target = all.find((other) => nameOf(other) === `${kind}/${name}`)
      return target && !('replicas' in target.spec) ? [] : says('fights over replicas')
    }
    case 'PodMonitor':
      return selected(each.spec.selector.matchLabels).length > 0 ? [] : says('finds no pod')
    case 'Ingress':
    case 'HTTPRoute':
      return backendsOf(each).every((name) => all.some((other) => nameOf(other) === `Service/${name}`))
        ? []
        : says('leads to no service')
    case 'ServiceMonitor':
      return all.some(
        ({ kind, metadata }) =>
          kind === 'Service' && matches(metadata.labels, each.spec.selector.matchLabels),
      )
        ? []
        : says('finds no service')
    case 'RoleBinding':
    case 'ClusterRoleBinding':
      return all.some((other) => nameOf(other) === `${each.roleRef.kind}/${each.roleRef.name}`)
        ? []
        : says('has no role')
    default:
      return []
  }
}

function backendsOf({ kind, spec }: Manifest): string[] {
  if (kind === 'HTTPRoute')
    return spec.rules.flatMap(({ backendRefs }: Manifest) => backendRefs.map(({ name }: Manifest) => name))
  return spec.rules.flatMap(({ http }: Manifest) =>
    http.paths.map(({ backend }: Manifest) => backend.service.name),
  )
}

export function matches(labels: Record<string, string>, wanted: Record<string, string>): boolean {
  return Object.entries(wanted).every(([name, value]) => labels[name] === value)
}

function isLocal(metadata: Manifest): boolean {
  return metadata.labels['app.kubernetes.io/component'] === 'local'
}

function wrong(rules: Record<string, boolean>): string[] {
  return Object.entries(rules).flatMap(([what, holds]) => (holds ? [what] : []))
}
