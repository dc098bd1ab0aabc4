/** Values that differ in whatever the templates ask. */
import { leastCluster, leastLocal, type Values, valuesFile } from './helm.ts'

export const ALL_APIS = ['monitoring.coreos.com/v1', 'custom.metrics.k8s.io/v1beta2'].flatMap((api) => [
  '--api-versions',
  api,
])

export interface Row {
  readonly what: string
  readonly values: readonly (string | Values)[]
  readonly further?: readonly string[]
}

const placed = {
  podLabels: { team: 'webhooks' },
  podAnnotations: { 'example.com/note': 'yes' },
  nodeSelector: { 'kubernetes.io/os': 'linux' },
  tolerations: [{ key: 'dedicated', operator: 'Exists' }],
  affinity: {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        {
          weight: 1,
          preference: {
            matchExpressions: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] }],
          },
        },
      ],
    },
  },
  priorityClassName: 'system-cluster-critical',
}
const { podAnnotations: _, ...placedHook } = placed
const peers = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'edge' } } }]

export const everything = {
  fullnameOverride: 'hooks',
  image: {
    repository: 'registry.example.com/penstock',
    digest: `sha256:${'a'.repeat(64)}`,
    pullPolicy: 'Always',
  },
  imagePullSecrets: [{ name: 'registry' }],
  nats: {
    url: 'tls://app:$(NATS_PASSWORD)@nats-0:4222,tls://nats-1:4222',
    passwordSecret: { name: 'nats' },
    credsSecret: { name: 'nats', key: 'app.creds' },
  },
  database: { urlSecret: { name: 'postgres-app' } },
  encryptionKeySecret: { name: 'keys' },
  ownerKeysSecret: { name: 'keys' },
  stripe: {
    keySecret: { name: 'stripe' },
    webhookSecret: { name: 'stripe' },
    returnUrl: 'https://app.example.com/billing',
  },
  trustedAuthorities: { configMap: 'authorities' },
  config: {
    subjects: 'shard',
    allowDestinations: ['10.1.0.0/16', 'fd00:1::/64'],
    destinationPorts: [443, 8443],
    dnsServers: ['10.96.0.11', 'fd00:1::b'],
    oidc: { issuer: 'https://id.example.com', audience: 'penstock', jwksUrl: 'https://id.example.com/keys' },
    catalog: { plans: [], packs: [] },
    auditDays: 400,
    logLevel: 'debug',
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', OTEL_BSP_MAX_QUEUE_SIZE: 4096 },
  },
  ingress: {
    autoscaling: { enabled: true },
    service: { type: 'LoadBalancer', port: 8443, annotations: { 'example.com/lb': 'internal' } },
    ...placed,
  },
  admin: { service: { type: 'NodePort', port: 8080 }, ...placed },
  actor: { autoscaling: { enabled: true }, ...placed },
  operator: {
    watchNamespaces: ['ns'],
    adminUrl: 'https://admin.example.com',
    adminAuthority: { configMap: 'authorities', key: 'admin.crt' },
    ...placed,
  },
  migrate: placedHook,
  test: placedHook,
  networkPolicy: {
    ingressFrom: peers,
    adminFrom: peers,
    metricsFrom: peers,
    nats: { ports: [4222, 4443], to: peers },
    database: { to: peers },
    kubernetes: { to: [{ ipBlock: { cidr: '10.96.0.1/32' } }] },
    furtherEgress: [{ ports: [{ port: 4318 }], to: peers }],
  },
  serviceMonitor: { labels: { release: 'prometheus' } },
  admissionPolicy: {
    enabled: true,
    validationActions: ['Warn', 'Audit'],
    rules: [
      {
        name: 'shop',
        namespaceSelector: {
          matchLabels: { team: 'shop' },
          matchExpressions: [
            { key: 'example.com/stage', operator: 'NotIn', values: ['test', 'dev'] },
            { key: 'tier', operator: 'Exists' },
          ],
        },
        allowedHosts: ['hooks.example.com', '*.shop.example.com:8443', '[fd00::1]'],
      },
      { namespaceSelector: {}, allowedHosts: ['*'] },
    ],
  },
}

const account = { name: 'app', create: false, annotations: { 'example.com/role': 'arn' } }
/** Variables of the values themselves. */
export const FURTHER_VARIABLES = ['REGION', 'OTEL_BSP_MAX_QUEUE_SIZE', 'OTEL_EXPORTER_OTLP_ENDPOINT']
const pod = {
  env: [
    { name: 'REGION', value: 'eu' },
    { name: 'OTEL_BSP_MAX_QUEUE_SIZE', value: '1' },
  ],
  envFrom: [{ prefix: 'TEAM_', configMapRef: { name: 'team' } }, { secretRef: { name: 'vault' } }],
  podSecurityContext: { runAsUser: 2000, supplementalGroups: [3000] },
  containerSecurityContext: { seccompProfile: { type: 'RuntimeDefault' } },
}
const role = {
  ...pod,
  serviceAccount: account,
  startupProbe: { failureThreshold: 600 },
  readinessProbe: { successThreshold: 2 },
  livenessProbe: { periodSeconds: 20 },
  topologySpreadConstraints: [
    { topologyKey: 'topology.kubernetes.io/zone', maxSkew: 2, whenUnsatisfiable: 'ScheduleAnyway' },
  ],
}
const loadBalancer = {
  type: 'LoadBalancer',
  loadBalancerClass: 'example.com/lb',
  loadBalancerSourceRanges: ['192.0.2.0/24'],
  allocateLoadBalancerNodePorts: false,
  externalTrafficPolicy: 'Local',
  internalTrafficPolicy: 'Cluster',
  trafficDistribution: 'PreferSameZone',
  sessionAffinity: 'ClientIP',
  ipFamilyPolicy: 'SingleStack',
  ipFamilies: ['IPv4'],
}
const nodePort = { type: 'NodePort', nodePort: 30_080 }
const deployed = { ...role, strategy: { type: 'Recreate' } }

/** Whatever values can add to the objects, beside `everything`. */
export const additions: Values = {
  nameOverride: 'webhooks',
  commonLabels: { 'cost-center': '4711', 'app.kubernetes.io/part-of': 'shop' },
  image: { registry: 'registry.example.com:5000', repository: 'team/penstock' },
  podSecurityContext: { fsGroup: 4000 },
  containerSecurityContext: { privileged: false },
  serviceAccount: { annotations: { 'example.com/role': 'arn' } },
  ingress: {
    ...deployed,
    service: loadBalancer,
    pdb: { minAvailable: '50%' },
    autoscaling: {
      metrics: [
        {
          type: 'Resource',
          resource: { name: 'memory', target: { type: 'Utilization', averageUtilization: 60 } },
        },
      ],
      behavior: { scaleUp: { policies: [{ type: 'Percent', value: 50, periodSeconds: 30 }] } },
    },
  },
  admin: { ...deployed, service: nodePort, serviceAccount: { annotations: account.annotations } },
  actor: { ...deployed, strategy: { rollingUpdate: { maxSurge: 2 } }, pdb: { maxUnavailable: 0 } },
  operator: {
    ...deployed,
    serviceAccount: { name: 'app-operator' },
    verifySeconds: 60,
    pdb: { enabled: false },
  },
  local: {
    ...role,
    updateStrategy: { type: 'OnDelete' },
    service: {
      ...loadBalancer,
      allocateLoadBalancerNodePorts: true,
      nodePort: 30_081,
      healthCheckNodePort: 30_082,
    },
    persistence: { existingClaim: 'claim' },
  },
  migrate: { ...pod, podAnnotations: { note: 'yes' }, serviceAccountName: 'migrator' },
  test: { ...pod, podAnnotations: { note: 'yes' }, serviceAccountName: 'default' },
  serviceMonitor: { relabelings: [{ action: 'labeldrop', regex: 'pod' }] },
  podMonitor: { enabled: true, labels: { release: 'prometheus' }, metricRelabelings: [{ action: 'keep' }] },
}

const nothingMore: Values = {
  operator: { enabled: false },
  crds: { install: false },
  networkPolicy: { enabled: false },
  serviceMonitor: { enabled: false },
}

/** A way in from outside for each of the roles, of both kinds. */
export function exposed(...roles: readonly string[]): Values {
  const annotations = { 'example.com/exposed': 'yes' }
  const hosts = ['hooks.example.com', '*.hooks.example.org']
  const expose = {
    ingress: {
      enabled: true,
      className: 'nginx',
      annotations,
      hosts,
      tls: [{ secretName: 'tls' }, { hosts: [hosts[0]] }],
    },
    httpRoute: {
      enabled: true,
      annotations,
      hostnames: hosts,
      parentRefs: [{ name: 'edge', namespace: 'gw' }],
    },
  }
  return Object.fromEntries(roles.map((role) => [role, { expose }]))
}

/** Whatever values can name: objects of the release by `own`, all others by `other`. */
export function namesLike(own: string, other: string): Values {
  const secret = { name: other, key: other }
  const [local, migrate] = [
    { persistence: { storageClassName: other, size: '8' } },
    { podLabels: { [other]: other } },
  ]
  return {
    fullnameOverride: own,
    image: { repository: other, tag: other, digest: '' },
    nats: { url: '', urlSecret: secret, passwordSecret: secret, credsSecret: secret },
    database: { url: '', urlSecret: secret, passwordSecret: secret },
    encryptionKeySecret: secret,
    ownerKeysSecret: secret,
    stripe: { keySecret: secret, webhookSecret: secret, returnUrl: 'https://app.example.com' },
    local,
    migrate,
    trustedAuthorities: { configMap: other, key: other },
    config: { oidc: { issuer: '', audience: '', jwksUrl: '' } },
    actor: { autoscaling: { latenessMetric: other }, priorityClassName: other },
    operator: { adminAuthority: { configMap: other, key: other }, watchNamespaces: [other] },
  }
}

export const matrix: readonly Row[] = [
  { what: 'the least of a cluster', values: [leastCluster] },
  { what: 'the least of a local instance', values: [leastLocal] },
  { what: 'values-local.yaml', values: [valuesFile('local')] },
  { what: 'values-production.yaml', values: [valuesFile('production')] },
  {
    what: 'values-production.yaml where all APIs are',
    values: [valuesFile('production')],
    further: ALL_APIS,
  },
  { what: 'everything', values: [everything], further: ALL_APIS },
  {
    what: 'names that YAML takes for something else',
    values: [everything, namesLike('null', '1e5')],
    further: ALL_APIS,
  },
  { what: 'such names of a local instance', values: [leastLocal, namesLike('true', '0x1f')] },
  {
    what: 'all additions to a cluster',
    values: [everything, additions, { ingress: { service: { port: 80 } } }, exposed('ingress', 'admin')],
    further: ALL_APIS,
  },
  {
    what: 'all additions to a local instance',
    values: [leastLocal, additions, exposed('local')],
    further: ALL_APIS,
  },
  { what: 'nothing more than a cluster', values: [leastCluster, nothingMore] },
  { what: 'nothing more than a local instance', values: [leastLocal, nothingMore] },
  {
    what: 'a local instance over a broker and a database of its own',
    values: [
      leastLocal,
      leastCluster,
      { ownerKeysSecret: { name: 'keys' }, local: { persistence: { enabled: false }, ...placed } },
      { networkPolicy: { ingressFrom: peers, adminFrom: peers }, config: { catalog: { plans: [] } } },
    ],
  },
]
